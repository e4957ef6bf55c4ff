# SPDX-License-Identifier: BSD-3-Clause
"""Statements about factors: each held, not held or undecided."""
