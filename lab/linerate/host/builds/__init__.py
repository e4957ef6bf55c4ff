# SPDX-License-Identifier: BSD-3-Clause
"""Programs as files: those that the lab builds (C examples of DPDK, `bench`), and ELF."""
