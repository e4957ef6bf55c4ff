# SPDX-License-Identifier: BSD-3-Clause
"""Measures how reliable the lab's verdicts are: `make bench-trust`.

It counts how often the lab calls a program different from itself, and how often it finds a
slow-down that was planted, on a simulated machine (`machine`) and on this one (`real`). Verdicts
come from the lab's own functions (`comparison`); the answers are counted and tested exactly
(`tally`).
"""
