# SPDX-License-Identifier: BSD-3-Clause
"""The CPUs that a lab measures on: choice, leases, and their weight against other processes."""
