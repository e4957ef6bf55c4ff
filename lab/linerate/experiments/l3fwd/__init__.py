# SPDX-License-Identifier: BSD-3-Clause
"""Experiment `l3fwd`: what routing costs by the size of its tables, in C and in Rust.

`design.py` has what is measured, `experiment.py` measures it as `overload` does, `table.py` prints
it, `goals.py` holds it against the goals, `runs.py` is the experiment as the lab's commands know
it.
"""
