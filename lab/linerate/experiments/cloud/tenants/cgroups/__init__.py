# SPDX-License-Identifier: BSD-3-Clause
"""Control groups of both versions, which limit tenants."""
