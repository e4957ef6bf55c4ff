# SPDX-License-Identifier: BSD-3-Clause
"""Hosts (such as this machine): processes, counters, CPUs, network namespaces, locks and installed
programs; and the lab's errors.
"""
