# SPDX-License-Identifier: BSD-3-Clause
"""The files of a run: one JSON object for each trial, run.json, summary.json, their schemas."""
