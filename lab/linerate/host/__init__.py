# SPDX-License-Identifier: BSD-3-Clause
"""Hosts, of which this machine is one: processes, counters, CPUs, network namespaces, locks, what
is installed; and the errors.
"""
