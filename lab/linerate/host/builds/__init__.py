# SPDX-License-Identifier: BSD-3-Clause
"""Builds of the programs that the lab needs (DPDK's C examples, `bench`), and the reader of ELF
files.
"""
