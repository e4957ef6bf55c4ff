# SPDX-License-Identifier: BSD-3-Clause
"""Runs of any experiment: begin, resume, merge, compare."""
