# SPDX-License-Identifier: BSD-3-Clause
"""Hosts, such as this machine: processes, counters, CPUs, network namespaces, locks, what
is installed; and the errors.
"""
