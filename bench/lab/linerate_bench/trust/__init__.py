# SPDX-License-Identifier: BSD-3-Clause
"""Whether the lab's verdicts can be believed: `make bench-trust`.

How often it calls a program different from itself, and how often it finds a slow-down that was put
there, on a simulated machine (`machine`) and on this one (`real`). Verdicts come from the lab's own
functions (`comparison`); the answers are counted and tested exactly (`tally`).
"""
