# SPDX-License-Identifier: BSD-3-Clause
"""Experiment `cloud`: forwarders beside tenants that load the core they share.

`levels.py` names factors and levels, `design.py` reads a design, `plan.py` makes cells and blocks
of it, `estimate.py` says how long they take. `neighbours.py` makes the tenants of a cell,
`meter.py` and `counters.py` look at the core, `experiment.py` measures. `observations.py` hands the
records to `linerate.experiments.cloud.factorial`, `takeaways.py` says what follows, `summarise.py`
makes the summary, `table.py` prints it, and `runs.py` is the experiment as the lab's commands know
it.
"""
