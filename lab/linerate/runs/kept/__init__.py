# SPDX-License-Identifier: BSD-3-Clause
"""Runs that are kept: read, extended, told."""
