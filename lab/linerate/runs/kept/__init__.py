# SPDX-License-Identifier: BSD-3-Clause
"""Stored runs: read, extended, reported."""
