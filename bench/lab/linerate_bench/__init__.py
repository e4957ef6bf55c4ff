# SPDX-License-Identifier: BSD-3-Clause
"""Measurements of the project itself: its goals, its parts beside their peers, its verdicts."""
