# SPDX-License-Identifier: BSD-3-Clause
"""Runs a TRex profile, which is somebody's Python, and describes its streams as JSON.

`main` is the program: it starts a process that gives up its rights (`confinement`) and executes the
profile on a stand-in of TRex's stateless API (`api`). Nothing here imports the rest of the lab.
"""
