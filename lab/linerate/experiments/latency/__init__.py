# SPDX-License-Identifier: BSD-3-Clause
"""Experiment `latency`: how long frames are inside a forwarder, and on their way there and back.

Two tests were published under one name (rdtsc latency of DPDK and PF_PACKET, 2016). The first reads
the clock inside the forwarder (`inside.py`), the second at the sender (`round_trips.py`).
"""
