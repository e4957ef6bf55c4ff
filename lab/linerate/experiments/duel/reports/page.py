# SPDX-License-Identifier: BSD-3-Clause
"""The page of `linerate duel --out`: the answers first, then their evidence.

Runs below the directory, such as `run overload --out DIR/overload`, are reported after the duels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from linerate.experiments.duel.kept import Duels
from linerate.experiments.duel.record import DuelRecord
from linerate.experiments.duel.reports import charts
from linerate.experiments.duel.reports.report import Figures, figures
from linerate.experiments.duel.sentences import UNITS
from linerate.records.cells import AA_SUFFIX
from linerate.records.summary import CellSummary, Summary
from linerate.report import published
from linerate.report.in_short import in_short
from linerate.report.page import Charts
from linerate.report.page import render as render_page

TEMPLATE = Path(__file__).with_name("duel.html.j2")
_WAYS = {
    "standing": "all starts at once on one CPU, packets over the CPU time of each process",
    "turns": "one start at a time, the others stopped",
}


@dataclass(frozen=True)
class View:
    """A duel with further values for the template."""

    record: DuelRecord
    figures: Figures | None
    unit: str
    way: str
    control: str

    @property
    def answered(self) -> bool:
        return not self.record.fault and self.record.answer != "undecided"


@dataclass(frozen=True)
class RunBelow:
    """A run in a directory below. `cell`: the one shown beside the published table."""

    place: str
    summary: Summary
    cell: CellSummary | None

    @property
    def answer(self) -> str | None:
        """The answer of the run in one sentence; None if it compared nothing."""
        return in_short(self.summary)


def below(directory: str, summary: Summary) -> RunBelow:
    """Return a run for the page."""
    carried = [
        cell
        for cell in summary.cells
        if cell.size == published.SIZE and any(arm.generator_tx_mpps for arm in cell.arms)
    ]
    return RunBelow(directory, summary, carried[0] if carried else None)


def render(duels: Duels, runs: Sequence[RunBelow] = ()) -> str:
    """Return the whole page as text."""
    placed = Charts()
    views = [_view(record) for record in duels.duels]
    told = [(view.record, view.figures) for view in views if view.figures]
    margin = duels.duels[0].margin
    return render_page(
        TEMPLATE,
        placed,
        duels=duels,
        views=views,
        answered=[view for view in views if view.answered],
        unanswered=[view for view in views if not view.answered],
        margin=margin,
        forest=placed.place(charts.forest(told, margin)),
        stolen=sum(each.steal_ticks for view in views for each in view.record.rounds) / 100,
        runs=runs,
        published=published.overload(),
        published_source=published.SOURCE,
        aa_suffix=AA_SUFFIX,
    )


def _view(record: DuelRecord) -> View:
    names = tuple(program.name for program in record.programs)
    control = "-" if record.control is None else f"{record.control:.3f}"
    # The figures of a program at fault are not comparable.
    found = None if record.fault else figures(record, (names[0], names[1]))
    return View(record, found, UNITS[record.per], _WAYS[record.method], control)
