# SPDX-License-Identifier: BSD-3-Clause
"""Tenants: what shares the machine with a forwarder, and the work that they get done beside it."""
