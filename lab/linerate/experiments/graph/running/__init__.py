# SPDX-License-Identifier: BSD-3-Clause
"""How experiment `graph` has `graph-bench` run its cells: programs, slices, and blocks of them."""
