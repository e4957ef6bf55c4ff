# SPDX-License-Identifier: BSD-3-Clause
"""A stream's packet and what its VM makes of it, as headers, sizes and payload of a flow."""
