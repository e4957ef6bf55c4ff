# SPDX-License-Identifier: BSD-3-Clause
"""Tenants, which share the machine with a forwarder, and the work that they do beside it."""
