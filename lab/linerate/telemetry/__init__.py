# SPDX-License-Identifier: BSD-3-Clause
"""DPDK's telemetry: the client, latency histograms, spans; and `linerate top`."""
