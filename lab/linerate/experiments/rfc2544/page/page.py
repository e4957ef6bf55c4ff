# SPDX-License-Identifier: BSD-3-Clause
"""The page of experiment `rfc2544`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from linerate.experiments.rfc2544.answer import answers
from linerate.experiments.rfc2544.page import charts as rfc2544_charts
from linerate.experiments.rfc2544.page import method as rfc2544_method
from linerate.experiments.rfc2544.page import published as published_rfc2544
from linerate.experiments.rfc2544.page.charts import Spec
from linerate.experiments.rfc2544.page.pairs import BySize, Pair, Theirs, pairs
from linerate.experiments.rfc2544.page.published import AsPublished, PublishedRow
from linerate.experiments.rfc2544.page.rows import Row, line_rate_known, rows_of
from linerate.experiments.rfc2544.summarise import Asked, Searches
from linerate.experiments.rfc2544.table import bound_words, conformity, reason_lines
from linerate.links import FindLink, Link
from linerate.records.summary import AA, CellSummary, Comparison, Summary
from linerate.records.summary_figures import LowerLoad, Quartiles
from linerate.records.trial import Trial
from linerate.records.types import LOW_LOAD
from linerate.report import charts
from linerate.report.page import Charts, render_page
from linerate.trial.search.goals import Goal
from linerate.trial.search.recovery import OVERLOAD
from linerate.verdict.comparisons import low_load_loss

TEMPLATE = Path(__file__).with_name("rfc2544.html.j2")


@dataclass(frozen=True)
class Gate:
    """The conditions for a verdict in a cell (verdict.py): the same figures.

    `spread`: the worst of any arm, the control included, by the metric that answers the question.
    """

    cell: CellSummary
    low_load_loss: float | None
    spread: float | None
    windows: int
    void_windows: int


@dataclass(frozen=True)
class CellView:
    """A cell: its rows, and its charts."""

    cell: CellSummary
    rows: list[Row]
    charts: list[tuple[str, str]]
    gate: Gate


@dataclass(frozen=True)
class LinkView:
    """A link with all frame sizes."""

    name: str
    description: str
    cells: list[CellView]
    # The chart of each forwarder's rate, by frame size.
    carried: str | None
    pairs: list[Pair]
    further: list[tuple[str, str]]
    line_rate: bool
    reproduced: list[PublishedRow]
    beside: list[AsPublished]

    @property
    def rows(self) -> list[Row]:
        return [row for view in self.cells for row in view.rows]


def render(
    summary: Summary,
    trials: list[Trial],
    asked: Asked,
    searches: Searches,
    link: FindLink,
    *,
    published: Sequence[AsPublished] | None = None,
) -> str:
    """Return the whole page as text.

    `asked` and `searches`: the inputs of the summary. `published`: rows of others; default: the
    package's.
    """
    placed = Charts()
    theirs = published_rfc2544.rows() if published is None else list(published)
    rows = rows_of(summary, searches)
    names = dict.fromkeys(cell.link for cell in summary.cells)
    goals = asked.search.goals
    links = [_link(link(name), summary, rows, theirs, placed, goal=goals[0]) for name in names]
    shown = {row.size for view in links for row in view.beside}
    return render_page(
        TEMPLATE,
        placed,
        summary,
        trials,
        link,
        links=links,
        sentences=answers(summary, verdicts=asked.search.verdicts),
        conformity=conformity(summary),
        columns=published_rfc2544.COLUMNS,
        published_source=published_rfc2544.SOURCE,
        published_findings=published_rfc2544.findings(theirs),
        bed_note=rfc2544_method.bed_note(trials),
        bound_words=bound_words,
        reason_lines=reason_lines,
        goals={goal.name: rfc2544_method.goal_words(goal) for goal in goals},
        exceed_ratios={goal.name: goal.exceed_ratio for goal in goals},
        tests=rfc2544_method.tests_done(asked, trials),
        method=rfc2544_method.method(summary, asked, trials),
        other_published=[row for row in theirs if row.size not in shown],
        gates=[view.gate for each in links for view in each.cells],
        overload=OVERLOAD,
        low_load=LOW_LOAD,
        quantiles=rfc2544_charts.QUANTILES,
        percent=_percent,
        many_sizes=rfc2544_charts.UPRIGHT,
        deviations=_deviations(rows),
    )


def _deviations(rows: list[Row]) -> list[str]:
    return list(
        dict.fromkeys(
            each
            for row in rows
            if not (row.control or row.reference)
            for each in row.figures.deviations
        )
    )


def _percent(value: float | None, digits: int = 1) -> str:
    if value is None:
        return "-"
    return "0 %" if value == 0 else f"{value * 100:.{digits}f} %"


def _link(
    on: Link,
    summary: Summary,
    rows: list[Row],
    theirs: list[AsPublished],
    placed: Charts,
    *,
    goal: Goal,
) -> LinkView:
    cells = [cell for cell in summary.cells if cell.link == on.name]
    mine = [row for row in rows if row.cell.link == on.name]
    colours = charts.arms_of(cells)
    compared = [row for row in mine if not row.control]
    sizes = {cell.size for cell in cells}
    ours = BySize(on.name, cells, compared, summary.comparisons, placed)
    return LinkView(
        name=on.name,
        description=on.description,
        carried=ours.chart(
            "million frames/s without loss (more is better)",
            lambda row: row.mpps,
            least=lambda row: row.least,
        ),
        pairs=pairs(ours, Theirs(theirs, placed), goal),
        further=ours.further(),
        cells=[_cell(cell, mine, summary, colours, placed) for cell in cells],
        line_rate=line_rate_known(cells),
        reproduced=[found for row in compared if not row.reference and (found := row.reproduced)],
        beside=sorted(
            (row for row in theirs if row.size in sizes), key=lambda row: (row.size, row.language)
        ),
    )


# -- one cell ------------------------------------------------------------------------------------


def _cell(
    cell: CellSummary,
    rows: list[Row],
    summary: Summary,
    colours: dict[str, str],
    placed: Charts,
) -> CellView:
    where = f"{cell.link}, {cell.size} B"

    def quantiles(heading: str, title: str, kind: str) -> tuple[str, Spec | None]:
        return heading, rfc2544_charts.quantiles_by_load(
            cell,
            colours,
            lambda entry: entry.quantiles_us if kind == "latency" else entry.pdv_us,
            title=title,
            description=f"{where}: {heading.lower()}, its quantiles by load and forwarder.",
        )

    def polling(
        heading: str, title: str, value: Callable[[LowerLoad], Quartiles | None]
    ) -> tuple[str, Spec | None]:
        return heading, rfc2544_charts.lower_load(
            cell,
            colours,
            value,
            title=title,
            description=f"{where}: {title}, by load and forwarder.",
        )

    asked = [
        quantiles("Latency", "latency, us (less is better)", "latency"),
        quantiles("Packet delay variation", "above the trial's least, us", "pdv"),
        (
            "Frame loss",
            rfc2544_charts.loss_curve(
                cell, colours, f"{where}: share of frames lost, by offered load and forwarder."
            ),
        ),
        polling(
            "Cost of a packet",
            "busy cycles per packet (fewer is better)",
            lambda e: e.busy_cycles_per_packet,
        ),
        polling(
            "Core use",
            "busy, % of the core's cycles",
            lambda e: e.busy_share.scaled(100) if e.busy_share else None,
        ),
        polling("RX bursts", "packets per poll, empty polls counted", lambda e: e.average_rx_burst),
    ]
    mine = [row for row in rows if row.cell is cell]
    return CellView(
        cell=cell,
        rows=mine,
        charts=[(heading, place) for heading, spec in asked if (place := placed.place(spec))],
        gate=_gate(cell, mine, summary),
    )


def _gate(cell: CellSummary, rows: list[Row], summary: Summary) -> Gate:
    def here(found: AA | Comparison) -> bool:
        return (found.link, found.size) == cell.key

    asked = {(c.metric, c.load_share) for c in summary.comparisons if here(c) and c.primary}
    every: list[AA | Comparison] = [*summary.comparisons, *summary.aa]
    spreads = [
        each.spread
        for each in every
        if here(each) and (each.metric, each.load_share) in asked and each.spread is not None
    ]
    return Gate(
        cell=cell,
        low_load_loss=low_load_loss(cell),
        spread=max(spreads, default=None),
        windows=sum(row.figures.windows for row in rows),
        void_windows=sum(row.figures.void_windows for row in rows),
    )
