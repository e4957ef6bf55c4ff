# SPDX-License-Identifier: BSD-3-Clause
"""What a cloud run shows: tables, charts, the page."""
