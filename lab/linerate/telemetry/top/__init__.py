# SPDX-License-Identifier: BSD-3-Clause
"""`linerate top`: a running DPDK program, live.

The data flow: `discover` finds the program's telemetry socket, `sample` reads all counters once,
`figures` compares two samples, `screen` draws the result, and `watch` does so at every interval.
Only `discover` and `sample` communicate with the program, only `figures` computes.
"""
