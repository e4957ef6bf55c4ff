# SPDX-License-Identifier: BSD-3-Clause
"""The analysis of a cloud run: turns records into statements."""
