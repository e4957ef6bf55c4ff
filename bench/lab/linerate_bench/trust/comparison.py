# SPDX-License-Identifier: BSD-3-Clause
"""One comparison of a program with a baseline: its arms, its number of blocks, its verdict.

This module has no rules of verdicts: it returns what a run's summary would say about the trials.
"""

from __future__ import annotations

from dataclasses import dataclass

from linerate.experiments.overload.options import PRESETS
from linerate.experiments.overload.summarise import summarise_cell
from linerate.records.cells import AA_SUFFIX, Arm, Cell
from linerate.records.summary import Comparison
from linerate.records.trial import Trial
from linerate.runs.options import Preset
from linerate.verdict.comparisons import compare, pair_cell

TESTED = "under-test"
SIZE = 64


def arms(baseline: str, tested: str) -> list[Arm]:
    """Return the baseline, its A/A arm, and the program under test, which may be the baseline as
    well.
    """
    return [Arm(baseline, baseline), Arm(baseline + AA_SUFFIX, baseline), Arm(TESTED, tested)]


@dataclass(frozen=True)
class Extent:
    """How much one comparison measures: a preset's blocks, as many as fit into the time."""

    preset: Preset
    budget_s: float | None = None

    def blocks(self, trial_s: float) -> int:
        """Return the number of blocks, with one trial of each arm, if a trial takes so long."""
        if self.budget_s is None:
            return self.preset.blocks
        return min(self.preset.blocks, int(self.budget_s / (len(arms("a", "b")) * trial_s)))

    def __str__(self) -> str:
        limit = "" if self.budget_s is None else f" in {self.budget_s:g} s"
        return f"{self.preset.name}{limit}"


# A first answer may take half a minute. The other preset finds 5 % "nearly always".
QUICK = Extent(PRESETS["quick"], 30.0)
SCREEN = Extent(PRESETS["screen"])


def judged(cell: Cell, both: list[Arm], trials: list[Trial]) -> Comparison:
    """Return the lab's verdict on the arm under test by the cell's first metric."""
    summary = summarise_cell(cell, both, trials, None)
    measured = [trial for trial in trials if trial.role == "measure"]
    found = compare(pair_cell(summary, measured, [arm.label for arm in both]))
    return next(each for each in found if each.primary and each.arm == TESTED)
