# SPDX-License-Identifier: BSD-3-Clause
"""The page of experiment `graph`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from linerate.experiments.graph import answers
from linerate.experiments.graph.cells import GROUPS, groups, parse
from linerate.experiments.graph.page import charts as graph_charts
from linerate.experiments.graph.page import table
from linerate.links import FindLink
from linerate.records.summary import ArmSummary, CellSummary, Summary
from linerate.records.trial import Trial
from linerate.report.page import Charts, render_page
from linerate.verdict import ratios

TEMPLATE = Path(__file__).with_name("graph.html.j2")

TITLES = {
    "passing": "By passing mechanism",
    "splitting": "Splitting a batch",
    "shapes": "By the graph's shape",
    "batch": "By batch size",
}


@dataclass(frozen=True)
class Row:
    """An arm in a cell. `ratio`: to the baseline, in words."""

    cell: CellSummary
    arm: ArmSummary
    ratio: str


@dataclass(frozen=True)
class Group:
    """The cells that one question needs. A cell may be in several; one in none has its own."""

    name: str
    title: str
    charts: list[str]
    rows: list[Row]


def render(summary: Summary, trials: list[Trial], link: FindLink) -> str:
    """The whole page as text."""
    placed = Charts()
    found = []
    for name in GROUPS:
        cells = [cell for cell in summary.cells if name in groups(parse(cell.link))]
        if cells:
            charts = [
                place for each in _charts(name, cells, summary) if (place := placed.place(each))
            ]
            found.append(Group(name, TITLES[name], charts, _rows(summary, cells)))
    if others := [cell for cell in summary.cells if not groups(parse(cell.link))]:
        found.append(Group("others", "Further cells", [], _rows(summary, others)))
    return render_page(
        TEMPLATE,
        placed,
        summary,
        trials,
        link,
        groups=found,
        headline=table.headline(summary),
        disturbed_words=table.disturbed_words(summary),
        holds=table.HOLDS,
        alike=table.ALIKE,
        steps=lambda each: [(s.first, s.second, ratios.ratio_words(s)) for s in each],
        changes=lambda each: [(s.second, s.first, table.change_words(s)) for s in each],
        published_source=answers.SOURCE,
        published_ordering=answers.PUBLISHED_ORDERING,
        published_splitting=answers.PUBLISHED_SPLITTING,
    )


def _charts(
    name: str, cells: list[CellSummary], summary: Summary
) -> list[graph_charts.Spec | None]:
    if name == "splitting":
        assert summary.graph
        return [graph_charts.doublings(summary.graph.splitting)]
    draw = {
        "passing": graph_charts.passing,
        "shapes": graph_charts.shapes,
        "batch": graph_charts.batches,
    }[name]
    return [draw(each, title) for title, each in _alike(cells).items()]


def _alike(cells: list[CellSummary]) -> dict[str, list[CellSummary]]:
    """Return the cells by work and statistics, which are not mixed in one chart."""
    found: dict[str, list[CellSummary]] = {}
    for cell in cells:
        parsed = parse(cell.link)
        found.setdefault(f"{parsed.work}, {parsed.stats}", []).append(cell)
    return found


def _rows(summary: Summary, cells: list[CellSummary]) -> list[Row]:
    return [
        Row(cell, arm, ratios.ratio_words(ratios.ratio_to_baseline(summary, cell, arm.arm)))
        for cell in cells
        for arm in ratios.shown_arms(cell)
    ]
