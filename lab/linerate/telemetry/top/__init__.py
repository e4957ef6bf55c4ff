# SPDX-License-Identifier: BSD-3-Clause
"""`linerate top`: a running DPDK program, live.

A figure's way: `discover` finds the program's telemetry socket, `sample` asks it once for all
counters, `figures` compares two samples, `screen` draws the result, and `watch` does so at every
interval. Only `discover` and `sample` speak to the program, only `figures` computes.
"""
