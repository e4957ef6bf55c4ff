# SPDX-License-Identifier: BSD-3-Clause
"""This machine: processes, CPUs, network namespaces, locks, what is installed; and the errors."""
