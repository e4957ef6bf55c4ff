# SPDX-License-Identifier: BSD-3-Clause
"""The output of a cloud run: tables, charts, the page."""
