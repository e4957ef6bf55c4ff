# SPDX-License-Identifier: BSD-3-Clause
"""Experiment `cloud`: forwarders beside tenants that load the core they share.

`design` reads a design and plans its cells and blocks, `tenants` makes the tenants, `session`
measures the cells, `analysis` turns records into statements, `page` prints and draws them, and
`runs.py` is the experiment as the lab's commands know it.
"""
