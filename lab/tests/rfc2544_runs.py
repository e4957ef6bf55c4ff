# SPDX-License-Identifier: BSD-3-Clause
"""Runs of rfc2544 on simulated forwarders, for its tests."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from simulated_lab import (
    SimulatedLab,
    options,
    start,
)

from linerate.experiments.rfc2544.plan import cells
from linerate.records.summary import ArmSummary, Comparison, Summary
from linerate.records.trial import Trial

# With all tests at one size, where nothing else is asked for.
BLOCKS = cells(options())[0].blocks


def run(lab: SimulatedLab, **given: object) -> tuple[list[Trial], Summary]:
    with tempfile.TemporaryDirectory() as scratch:
        found = start(lab, Path(scratch) / "out", **given)
    return found.trials, found.summary


@dataclass(frozen=True)
class Measured:
    directory: Path
    trials: list[Trial]
    summary: Summary


def measured_in(directory: Path) -> Measured:
    """Return a whole run, with all tests at one size."""
    found = start(SimulatedLab(), directory)
    return Measured(directory, found.trials, found.summary)


def arm(found: Summary, name: str) -> ArmSummary:
    return next(each for each in found.cells[0].arms if each.arm == name)


def verdict(found: Summary, metric: str = "ndr_pps") -> Comparison:
    return next(each for each in found.comparisons if each.metric == metric)
