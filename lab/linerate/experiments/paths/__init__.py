# SPDX-License-Identifier: BSD-3-Clause
"""Experiment `paths`: forwarders that access packets in different ways, on the same veth wire.

`options.py` has the presets, `plan.py` measures them, `summarise.py` summarises the records,
`published.py` has the published figures, `table.py` prints, `runs.py` is the experiment as the
lab's commands know it.
"""
