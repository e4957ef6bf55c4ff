# SPDX-License-Identifier: BSD-3-Clause
"""The CPUs that a lab measures on: which, leased, and before others."""
