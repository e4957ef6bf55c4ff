# SPDX-License-Identifier: BSD-3-Clause
"""Run the cells of experiment `graph` by `graph-bench`: programs, slices, and blocks of them."""
