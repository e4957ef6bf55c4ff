# SPDX-License-Identifier: BSD-3-Clause
"""The page of experiment `paths`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from linerate.experiments.paths import charts as paths_charts
from linerate.experiments.paths import published, table
from linerate.links import FindLink
from linerate.records.summary import CellSummary, Summary
from linerate.records.trial import Trial
from linerate.report.console import percent
from linerate.report.in_short import in_short
from linerate.report.page import Charts, render_page

TEMPLATE = Path(__file__).with_name("paths.html.j2")


@dataclass(frozen=True)
class CellView:
    """A cell with further values for the template."""

    cell: CellSummary
    notes: list[str]
    cpu_chart: str | None
    latency_chart: str | None


@dataclass(frozen=True)
class LinkView:
    """A link with its cells."""

    name: str
    description: str
    chart: str | None
    cells: list[CellView]


def render(summary: Summary, trials: list[Trial], link: FindLink) -> str:
    """The whole page as text."""
    placed = Charts()
    links = []
    for name in dict.fromkeys(cell.link for cell in summary.cells):
        cells = [cell for cell in summary.cells if cell.link == name]
        chart = placed.place(paths_charts.throughput(cells))
        views = [
            CellView(
                cell=cell,
                notes=table.notes(cell),
                cpu_chart=placed.place(paths_charts.cpu(cell)),
                latency_chart=placed.place(paths_charts.latency(cell)),
            )
            for cell in cells
        ]
        links.append(LinkView(name, link(name).description, chart, views))
    return render_page(
        TEMPLATE,
        placed,
        summary,
        trials,
        link,
        in_short=in_short(summary),
        links=links,
        band_chart=placed.place(paths_charts.ratio_bands(summary.bands)),
        published_source=published.SOURCE,
        published_further=published.FURTHER,
        percent=percent,
        lost_by=table.lost_by,
    )
