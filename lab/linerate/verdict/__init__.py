# SPDX-License-Identifier: BSD-3-Clause
"""From records to verdicts: statistics, comparisons, every rule, and the sentences."""
