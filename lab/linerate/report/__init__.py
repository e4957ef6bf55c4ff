# SPDX-License-Identifier: BSD-3-Clause
"""report.html: one file that opens with no network."""

from linerate.report.overload_page import render

__all__ = ["render"]
