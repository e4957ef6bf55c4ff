# SPDX-License-Identifier: BSD-3-Clause
"""Experiment `paths`: forwarders that get at packets in different ways, on the same veth wire.

`presets.py` has what is measured, `experiment.py` measures it, `summarise.py` says what the records
say and `published.py` what was published beside it, `table.py` prints it, `runs.py` is the
experiment as the lab's commands know it.
"""
