# SPDX-License-Identifier: BSD-3-Clause
"""The page of experiment `latency`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from linerate.experiments.latency import charts as latency_charts
from linerate.experiments.latency import published as published_latency
from linerate.experiments.latency import table
from linerate.experiments.latency.loads import IDLE_PPS
from linerate.links import FindLink, Link
from linerate.records.summary import ArmSummary, CellSummary, Summary
from linerate.records.summary_figures import Inside, RoundTrip
from linerate.records.trial import Trial
from linerate.report import charts
from linerate.report.in_short import in_short
from linerate.report.page import Charts, render_page

TEMPLATE = Path(__file__).with_name("latency.html.j2")


@dataclass(frozen=True)
class Kind:
    """The round trips of one kind of frame: the drawn figures, and the rows of both tables."""

    protocol: str
    chart: str | None
    rows: list[tuple[ArmSummary, str, RoundTrip]]


@dataclass(frozen=True)
class SpanView:
    """One span, of all programs that can measure it."""

    span: str
    charts: list[str]
    rows: list[tuple[ArmSummary, Inside]]


@dataclass(frozen=True)
class CellView:
    cell: CellSummary
    description: str
    kinds: list[Kind]
    spans: list[SpanView]
    capacities: list[str]
    buffers: list[str]
    no_packet_sender: str | None


def render(summary: Summary, trials: list[Trial], link: FindLink) -> str:
    """The whole page as text."""
    placed = Charts()
    colours = charts.arms_of(summary.cells)
    return render_page(
        TEMPLATE,
        placed,
        summary,
        trials,
        link,
        in_short=in_short(summary),
        cells=[_cell(cell, link(cell.link), colours, placed) for cell in summary.cells],
        clock_line=table.clock_line(summary.clock) if summary.clock else None,
        idle_pps=IDLE_PPS,
        columns=table.DELAY_COLUMNS,
        load_words=table.load_words,
        times=lambda delays: table.delay_cells(delays, table.microseconds),
        cycles=lambda delays: table.delay_cells(delays, table.cycles),
        valid_words=table.valid,
        published=published_latency.beside(summary),
        published_loads=published_latency.LOADS,
        published_source=published_latency.SOURCE,
        published_hz=published_latency.PUBLISHED_HZ,
        hz=summary.clock and (summary.clock.checked_hz or summary.clock.tsc_hz),
    )


def _cell(cell: CellSummary, on: Link, colours: dict[str, str], placed: Charts) -> CellView:
    trips = [(arm, *each) for arm in cell.arms for each in table.round_trips_of(arm)]
    insides = [(arm, each) for arm in cell.arms if arm.latency for each in arm.latency.inside]
    protocols = list(dict.fromkeys(each.protocol for *_, each in trips))
    return CellView(
        cell=cell,
        description=on.description,
        kinds=[
            Kind(
                protocol=protocol,
                chart=placed.place(latency_charts.round_trips(cell, protocol, colours)),
                rows=[row for row in trips if row[-1].protocol == protocol],
            )
            for protocol in protocols
        ],
        spans=[
            _span(cell, span, insides, colours, placed)
            for span in dict.fromkeys(each.span for _, each in insides)
        ],
        capacities=table.capacity_lines(cell),
        buffers=table.buffer_lines(cell),
        no_packet_sender=table.without_ping(cell),
    )


def _span(
    cell: CellSummary,
    span: str,
    insides: list[tuple[ArmSummary, Inside]],
    colours: dict[str, str],
    placed: Charts,
) -> SpanView:
    mine = [(arm, each) for arm, each in insides if each.span == span]
    protocols = dict.fromkeys(each.protocol for _, each in mine)
    charts = [
        placed.place(latency_charts.inside(cell, span, protocol, colours)) for protocol in protocols
    ]
    return SpanView(span, [name for name in charts if name], mine)
