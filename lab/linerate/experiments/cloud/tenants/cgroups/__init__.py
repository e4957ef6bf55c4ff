# SPDX-License-Identifier: BSD-3-Clause
"""Control groups of both versions, for what tenants may use."""
