# SPDX-License-Identifier: BSD-3-Clause
"""Placement: which forwarder carries a wanted rate, on how many cores? Only records answer that."""
