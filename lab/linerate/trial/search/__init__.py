# SPDX-License-Identifier: BSD-3-Clause
"""Search procedures that find a device's limits by trials: RFC 2544's and their successors."""
