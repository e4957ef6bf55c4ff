# SPDX-License-Identifier: BSD-3-Clause
"""The page of experiment `l3fwd`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from linerate.experiments.l3fwd import charts as l3fwd_charts
from linerate.experiments.l3fwd import table
from linerate.experiments.overload import page as overload_page
from linerate.links import FindLink, Link, RoutedNearFree
from linerate.records.summary import ArmSummary, CellSummary, Summary
from linerate.records.trial import Trial
from linerate.report import published
from linerate.report.page import Charts, render_page
from linerate.verdict import ratios

TEMPLATE = Path(__file__).with_name("l3fwd.html.j2")


@dataclass(frozen=True)
class Row:
    """An arm at a level of routes or rules. `ratio`: of packets to the baseline's, in words."""

    cell: CellSummary
    level: int
    arm: ArmSummary
    ratio: str


@dataclass(frozen=True)
class Levels:
    """The levels of one factor on one link."""

    factor: str
    title: str
    link: str
    description: str
    chart: str | None
    rows: list[Row]


def render(summary: Summary, trials: list[Trial], link: FindLink) -> str:
    """The whole page as text."""
    placed = Charts()
    levels = [
        Levels(
            factor=of,
            title=table.TITLES[of],
            link=on,
            description=_description(link(on)),
            chart=placed.place(l3fwd_charts.levels(of, on, cells)),
            rows=_rows(summary, of, cells),
        )
        for of in ("routes", "rules")
        for on, cells in table.by_link(summary, of)
    ]
    sizes = [cell for _, cells in table.by_link(summary, "sizes") for cell in cells]
    return render_page(
        TEMPLATE,
        placed,
        summary,
        trials,
        link,
        further=(overload_page.TEMPLATE.parent,),
        levels=levels,
        headline=table.headline(summary),
        cells=overload_page.cell_views(sizes, trials, link, placed),
        published={row.language: row for row in published.overload()},
        published_source=published.SOURCE,
    )


def _description(found: Link) -> str:
    assert isinstance(found, RoutedNearFree)
    return found.describe("flows over all routes of the table")


def _rows(summary: Summary, of: str, cells: list[CellSummary]) -> list[Row]:
    return [
        Row(
            cell,
            table.level(of, cell),
            arm,
            ratios.ratio_words(ratios.ratio_to_baseline(summary, cell, arm.arm)),
        )
        for cell in cells
        for arm in ratios.shown_arms(cell)
    ]
