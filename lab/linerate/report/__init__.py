# SPDX-License-Identifier: BSD-3-Clause
"""report.html, one file that opens without a network, and the tables on the console."""
