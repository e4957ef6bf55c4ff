# SPDX-License-Identifier: BSD-3-Clause
"""The best build of each arm: chosen in every second block, judged in the others.

If it were chosen and judged in the same blocks, it would look better than it is
(docs/how-it-measures.md#claims-and-choices). The result has the judging blocks' windows, under the
names of the arms.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from linerate.experiments.graph.cells import families, family
from linerate.experiments.graph.window import OBJECTS
from linerate.records.cells import AA_SUFFIX
from linerate.records.trial import Trial

# One of this many blocks judges.
CHOSEN_IN = 2


@dataclass(frozen=True)
class Judged:
    """The result. `trials`: of the best builds, each under its arm's label. `builds`: by cell and
    arm.
    """

    trials: list[Trial]
    builds: dict[tuple[str, str], str]


def best(trials: Sequence[Trial], builds: Sequence[str]) -> str | None:
    """Return the build with the greatest median; None without any valid window."""
    medians = {}
    for build in builds:
        rates = [
            rate
            for trial in trials
            if trial.arm == build and trial.valid and (rate := OBJECTS.value(trial))
        ]
        if rates:
            medians[build] = statistics.median(rates)
    return max(medians, key=lambda build: medians[build]) if medians else None


def judged(trials: Sequence[Trial]) -> Judged:
    """Return the judged windows of all cells. If no arm has a choice, every block judges."""
    measured = [trial for trial in trials if trial.role == "measure"]
    several = len({trial.forwarder for trial in measured}) > len(
        {family(trial.forwarder) for trial in measured}
    )
    found: list[Trial] = []
    chosen: dict[tuple[str, str], str] = {}
    for cell in dict.fromkeys(trial.cell.name for trial in measured):
        mine = [trial for trial in measured if trial.cell.name == cell]
        choosing = [trial for trial in mine if trial.block % CHOSEN_IN == 0 or not several]
        judging = [trial for trial in mine if trial.block % CHOSEN_IN == 1 or not several]
        for name in families(trial.forwarder for trial in mine):
            builds = dict.fromkeys(t.forwarder for t in mine if family(t.forwarder) == name)
            if (build := best(choosing, list(builds))) is None:
                continue
            chosen[cell, name] = build
            for trial in judging:
                if trial.forwarder == build:
                    again = AA_SUFFIX if trial.arm.endswith(AA_SUFFIX) else ""
                    found.append(trial.with_identity(arm=name + again))
    return Judged(found, chosen)


def last_windows(trials: Sequence[Trial]) -> list[Trial]:
    """Return the last window of each place, without those that were void and repeated."""
    last = {(t.session, t.block, t.cell.name, t.arm, t.role): t for t in trials}
    return list(last.values())
