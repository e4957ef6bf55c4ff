# SPDX-License-Identifier: BSD-3-Clause
"""Verdicts from records: statistics, comparisons, every rule, and the sentences."""
