# SPDX-License-Identifier: BSD-3-Clause
"""One comparison of a program with a baseline: its arms, how many blocks it has, its verdict.

No rule of a verdict is here: trials go in, and what a run's summary would say comes out.
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
    """The baseline, its A/A arm, and the program under test, which may be the baseline too."""
    return [Arm(baseline, baseline), Arm(baseline + AA_SUFFIX, baseline), Arm(TESTED, tested)]


@dataclass(frozen=True)
class Extent:
    """How much one comparison measures: a preset's blocks, as far as they fit into the time."""

    preset: Preset
    budget_s: float | None = None

    def blocks(self, trial_s: float) -> int:
        """Blocks of one trial of each arm, when a trial takes so long."""
        if self.budget_s is None:
            return self.preset.blocks
        return min(self.preset.blocks, int(self.budget_s / (len(arms("a", "b")) * trial_s)))

    def __str__(self) -> str:
        limit = "" if self.budget_s is None else f" in {self.budget_s:g} s"
        return f"{self.preset.name}{limit}"


# Half a minute is what a first answer may take. 5 % is found "nearly always" by the other preset.
QUICK = Extent(PRESETS["quick"], 30.0)
SCREEN = Extent(PRESETS["screen"])


def judged(cell: Cell, both: list[Arm], trials: list[Trial]) -> Comparison:
    """What the lab says of the arm under test by the cell's first metric."""
    summary = summarise_cell(cell, both, trials, None)
    measured = [trial for trial in trials if trial.role == "measure"]
    found = compare(pair_cell(summary, measured, [arm.label for arm in both]))
    return next(each for each in found if each.primary and each.arm == TESTED)
