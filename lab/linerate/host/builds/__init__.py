# SPDX-License-Identifier: BSD-3-Clause
"""Programs that the lab builds: the C examples of DPDK, and what is in `bench`."""
