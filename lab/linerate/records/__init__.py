# SPDX-License-Identifier: BSD-3-Clause
"""What a run writes: one JSON object for each trial, run.json, summary.json, their schemas."""
