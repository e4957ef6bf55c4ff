# SPDX-License-Identifier: BSD-3-Clause
"""What runs the plan of any experiment: it takes the plan's steps one after the other."""
