# SPDX-License-Identifier: BSD-3-Clause
"""The page of experiment `overload`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from linerate.experiments.overload import charts as overload_charts
from linerate.experiments.overload import table
from linerate.links import FindLink
from linerate.records.summary import CellSummary, Summary
from linerate.records.trial import Trial
from linerate.report import console, published
from linerate.report.in_short import in_short
from linerate.report.page import Charts, render_page
from linerate.verdict import ceiling, sentences

TEMPLATE = Path(__file__).with_name("overload.html.j2")


@dataclass(frozen=True)
class CellView:
    """A cell with further values for the template."""

    cell: CellSummary
    description: str
    carried: bool
    drops_before: bool
    cost_leads: bool
    no_lower_load: str | None
    polls_from: str | None
    chart: str | None
    lower_chart: str | None


def cell_views(
    cells: Sequence[CellSummary], trials: list[Trial], link: FindLink, placed: Charts
) -> list[CellView]:
    """Return each cell with its charts."""
    found = []
    for cell in cells:
        place = link(cell.link)
        lower = overload_charts.lower_loads(cell) if place.has_generator else None
        found.append(
            CellView(
                cell=cell,
                description=place.description,
                carried=place.has_generator,
                drops_before=table.drops_before(cell),
                cost_leads=ceiling.cost_leads(cell),
                no_lower_load=sentences.no_lower_load(cell),
                polls_from=console.polls_from(cell),
                chart=placed.place(overload_charts.trials_of_cell(cell, trials)),
                lower_chart=placed.place(lower),
            )
        )
    return found


def render(summary: Summary, trials: list[Trial], link: FindLink) -> str:
    """The whole page as text."""
    placed = Charts()
    cells = cell_views(summary.cells, trials, link, placed)
    ours = table.like_published(summary.cells)
    return render_page(
        TEMPLATE,
        placed,
        summary,
        trials,
        link,
        cells=cells,
        published=published.overload(),
        published_source=published.SOURCE,
        ours=ours,
        ours_without_drops=ours and not table.drops_before(ours),
        in_short=in_short(summary),
    )
