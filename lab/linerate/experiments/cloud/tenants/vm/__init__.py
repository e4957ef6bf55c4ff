# SPDX-License-Identifier: BSD-3-Clause
"""Tenants that are virtual machines."""
