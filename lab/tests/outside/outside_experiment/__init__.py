# SPDX-License-Identifier: BSD-3-Clause
"""Experiment `floods`, which is no part of the lab: docs/write-an-experiment.md explains it."""
