# SPDX-License-Identifier: BSD-3-Clause
"""Experiment `graph`: nodes in C and in Rust, in librte_graph and fused, and one loop.

The windows are run by `graph-bench`, one process per block; the lab decides their order, voids and
repeats them, chooses the best builds, and says which differences are real.
"""
