# SPDX-License-Identifier: BSD-3-Clause
"""The content of a duel's reports in any format: an answer, or why there is none."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from linerate.experiments.duel.programs import LETTERS
from linerate.experiments.duel.record import DuelRecord
from linerate.experiments.duel.record import Round as RoundRecord
from linerate.experiments.duel.sentences import UNITS, named, side_called
from linerate.experiments.duel.verdict import log_of_starts, supports
from linerate.host.errors import LabError
from linerate.host.text import listed
from linerate.verdict.sequential import OfStarts

# The outcomes of test reports. An undecided question is skipped: it is not the program's failure,
# and many CI systems count an error as one.
Outcome = Literal["passed", "failure", "skipped", "error"]


@dataclass(frozen=True)
class Report:
    """A report. `kind`: one word for why it did not pass. `question`: the same in each duel of the
    same programs with the same options, by which CI systems recognise a test. `repeat`: a command
    line.
    """

    outcome: Outcome
    kind: str
    question: str
    sentence: str
    repeat: str
    notes: Sequence[str] = ()
    took_s: float = 0.0
    figures: Figures | None = None
    facts: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Figures:
    """The figures. `medians`: packets per second of A and of B, of the unit. `between`: the
    interval of the ratio B over A, and `how` it is known. `ratios`: of the rounds.
    """

    unit: str
    names: tuple[str, str]
    medians: tuple[float, float]
    ratio: float
    between: tuple[float, float]
    how: str
    ratios: tuple[float, ...]

    @property
    def rounds(self) -> int:
        return len(self.ratios)


def question(names: Sequence[str], margin: float, *links: str) -> str:
    """Return the question of a duel."""
    one, other = names
    return f"Is {other} slower than {one} by more than {margin * 100:g} % on {listed(links)}?"


def sides(record: DuelRecord) -> tuple[str, str]:
    """Return the names of A and B: the same whichever build took part."""
    found = []
    for program, letter in zip(record.programs, LETTERS, strict=True):
        builds = [build.name for build in record.builds if build.program == letter]
        found.append(side_called(builds or [program.name], letter))
    return found[0], found[1]


def of_duel(record: DuelRecord) -> Report:
    """Return the report of a duel."""
    called = record.called or [program.name for program in record.programs]
    one, other = (named(*each) for each in zip(called, LETTERS, strict=True))
    outcome: Outcome = "passed"
    kind: str = record.answer
    if record.fault:
        outcome, kind = "error", record.fault.kind
    elif record.answer == "undecided":
        outcome = "skipped"
    elif record.answer == "slower":
        outcome = "failure"
    facts = {
        "link": record.link,
        "method": record.method,
        "margin": f"{record.margin:g}",
        "seed": str(record.seed),
        "answer": record.answer,
        "rounds": str(len(record.rounds)),
    }
    for build in record.builds:
        facts[f"build {build.name}"] = f"{build.share:.4f}"
    if record.ratio is not None:
        facts["ratio"] = f"{record.ratio:.4f}"
    return Report(
        outcome, kind, question(sides(record), record.margin, record.link), record.sentence,
        record.repeat, record.notes, record.took_s, figures(record, (one, other)), facts,
    )  # fmt: skip


def of_error(error: LabError, asked: str, repeat: str) -> Report:
    """Return the report of a failed comparison. `asked`: the question."""
    hints = [error.hint] if error.hint else []
    return Report("error", "error", asked, f"No comparison: {error.message}", repeat, hints)


def figures(record: DuelRecord, names: tuple[str, str]) -> Figures | None:
    if not record.rounds or record.ratio is None:
        return None
    rounds = [_logarithms(each, record.of_starts) for each in record.rounds]
    one, other = (math.exp(statistics.median(figures)) for figures in zip(*rounds, strict=True))
    ratios = tuple(math.exp(second - first) for first, second in rounds)
    between, how = (min(ratios), max(ratios)), "least and greatest round"
    if record.low is not None and record.high is not None and not record.moves:
        found = record.low, record.high
        if supports(*found, record.margin, record.answer, record.direction):
            between, how = found, "99 % interval"
    return Figures(
        f"M packets per {UNITS[record.per]}", names, (one / 1e6, other / 1e6), record.ratio,
        between, how, ratios,
    )  # fmt: skip


def _logarithms(done: RoundRecord, of: OfStarts) -> tuple[float, float]:
    """Return the logarithms of A's and B's figures in a round."""
    one, other = (
        log_of_starts(
            (pps for pps, whose in zip(done.pps, done.order, strict=True) if whose == letter), of
        )
        for letter in LETTERS
    )
    return one, other
