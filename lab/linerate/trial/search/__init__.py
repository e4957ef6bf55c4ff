# SPDX-License-Identifier: BSD-3-Clause
"""Procedures that look for a device's limits by trials: RFC 2544's and their successors."""
