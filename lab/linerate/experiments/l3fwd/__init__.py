# SPDX-License-Identifier: BSD-3-Clause
"""Experiment `l3fwd`: the cost of routing by the size of the tables, in C and in Rust.

`design.py` chooses the cells, `plan.py` measures them as `overload` does, `table.py` prints them,
`runs.py` is the experiment as the lab's commands know it.
"""
