# SPDX-License-Identifier: BSD-3-Clause
"""DPDK's telemetry: the client, the histograms that travel by it, spans; and `linerate top`."""
