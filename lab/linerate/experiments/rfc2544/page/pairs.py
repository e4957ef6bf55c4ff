# SPDX-License-Identifier: BSD-3-Clause
"""The five published charts by frame size: ours with intervals and limits, and theirs beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from linerate.experiments.rfc2544.page import charts as rfc2544_charts
from linerate.experiments.rfc2544.page import published as published_rfc2544
from linerate.experiments.rfc2544.page.charts import Point, Spec, Theory
from linerate.experiments.rfc2544.page.method import goal_words
from linerate.experiments.rfc2544.page.published import AsPublished
from linerate.experiments.rfc2544.page.rows import Row, line_rate_known
from linerate.records.summary import CellSummary, Comparison
from linerate.records.summary_figures import Quartiles
from linerate.records.types import LAYER_1_BYTES
from linerate.report import charts
from linerate.report.page import Charts
from linerate.trial.search.goals import Goal
from linerate.verdict.metrics import NDR

_GIGA, _MEGA = 1e9, 1e6


@dataclass(frozen=True)
class Pair:
    """A pair of charts: ours, and the published figures alone."""

    heading: str
    ours: str | None
    published: str | None
    note: str


@dataclass(frozen=True)
class BySize:
    """Draws the results of one link by frame size; `rows` without the control."""

    link: str
    cells: list[CellSummary]
    rows: list[Row]
    comparisons: list[Comparison]
    placed: Charts

    @property
    def colours(self) -> dict[str, str]:
        return charts.arms_of(self.cells)

    def chart(
        self,
        title: str,
        value: Callable[[Row], Quartiles | None],
        theory: Theory | None = None,
        least: Callable[[Row], bool] = lambda _: False,
    ) -> str | None:
        """Draw one figure of each arm; None if no arm has it. `least`: whether it is a lower
        bound.
        """
        points = [
            Point.of(row.cell.size, row.arm.arm, figure, least=least(row))
            for row in self.rows
            if not row.reference and (figure := value(row)) is not None
        ]
        spec = rfc2544_charts.by_size(
            points,
            title=title,
            colours=self.colours,
            theory=theory,
            description=f"This run on {self.link}, by frame size and forwarder: {title}.",
        )
        return self.placed.place(spec)

    def difference(self) -> str | None:
        """Draw each arm's throughput against the baseline's, even if cost answers the question."""
        found = [
            (c, c.ratio)
            for c in self.comparisons
            if c.metric == NDR.name and c.link == self.link and c.ratio is not None
        ]
        points = [
            Point(
                c.size,
                f"{c.arm} against {c.baseline}",
                (ratio - 1) * 100,
                None if c.ci_low is None else (c.ci_low - 1) * 100,
                None if c.ci_high is None else (c.ci_high - 1) * 100,
            )
            for c, ratio in found
        ]
        spec = rfc2544_charts.by_size(
            points,
            title="difference in throughput, %",
            colours={f"{c.arm} against {c.baseline}": self.colours[c.arm] for c, _ in found},
            margin=True,
            description=f"This run on {self.link}: throughput of each arm less that of the "
            "baseline, in per cent of it, by frame size.",
        )
        return self.placed.place(spec)

    def further(self) -> list[tuple[str, str]]:
        """Return bursts and recovery: heading and place."""

        def burst(row: Row) -> Quartiles | None:
            return row.figures.back_to_back.frames if row.figures.back_to_back else None

        def recovery(row: Row) -> Quartiles | None:
            found = row.figures.recovery
            return found.recovered_s.scaled(1e3) if found and found.recovered_s else None

        drawn = (
            (
                "Back-to-back frames",
                self.chart(
                    "frames, longest without loss (more is better)", burst, least=_burst_bound
                ),
            ),
            (
                "System recovery",
                self.chart("to the last lost frame, ms (less is better)", recovery),
            ),
        )
        return [(heading, place) for heading, place in drawn if place]


def _burst_bound(row: Row) -> bool:
    found = row.figures.back_to_back
    return bool(found and (found.at_limit or found.disturbed))


@dataclass(frozen=True)
class Theirs:
    """Draws published rows, in the published units."""

    rows: list[AsPublished]
    placed: Charts

    def chart(
        self,
        title: str,
        value: Callable[[AsPublished], float | None],
        limit: Callable[[int], float] | None = None,
    ) -> str | None:
        """Draw a figure. `limit`: the line rate by their arithmetic, by frame size."""
        theory = Theory(
            "line rate of 25 Gbit/s, added",
            {row.size: limit(row.size) for row in self.rows} if limit else {},
        )
        spec = rfc2544_charts.by_size(
            [
                Point(row.size, row.language, found)
                for row in self.rows
                if (found := value(row)) is not None
            ],
            title=title,
            colours=rfc2544_charts.PUBLISHED_COLOURS,
            theory=theory if limit else None,
            description=f"Published figures of l2fwd in C and Rust, by frame size: {title}.",
        )
        return self.placed.place(spec)

    def difference(self) -> str | None:
        received = {(row.language, row.size): row.rx_packets for row in self.rows}
        label = "Rust against C"
        spec: Spec | None = rfc2544_charts.by_size(
            [
                Point(size, label, (received["Rust", size] / received["C", size] - 1) * 100)
                for size in sorted({row.size for row in self.rows})
                if received.get(("C", size)) and ("Rust", size) in received
            ],
            title="difference in received packets, %",
            colours={label: rfc2544_charts.PUBLISHED_COLOURS["Rust"]},
            margin=True,
            description="Published figures: packets received in Rust less those in C, in per "
            "cent, by frame size.",
        )
        return self.placed.place(spec)


def pairs(ours: BySize, theirs: Theirs, goal: Goal) -> list[Pair]:
    """Return the pairs in the order of the published page. `goal`: the one whose rates are
    drawn.
    """
    known = line_rate_known(ours.cells)
    limits = {cell.size: cell.ceiling.pps for cell in ours.cells if cell.ceiling}
    label = "line rate, as given" if known else "100 % (best peer)"

    def limit(factor: Callable[[int], float]) -> Theory | None:
        """Return the limit; None if merged runs had different ones."""
        by_size = {size: pps * factor(size) for size, pps in limits.items()}
        return Theory(label, by_size) if by_size else None

    def gigabits(size: int) -> float:
        return (size + LAYER_1_BYTES) * 8 / _GIGA

    def layer_1(row: Row) -> Quartiles | None:
        pps = row.goal.rate.pps
        return pps.scaled(gigabits(row.cell.size)) if pps else None

    def line_bps(size: int) -> float:
        return published_rfc2544.throughput_bps(published_rfc2544.line_rate_pps(size), size, 1)

    def line_pps(size: int) -> float:
        return published_rfc2544.throughput_pps(published_rfc2544.line_rate_pps(size), 1)

    return [
        Pair(
            "Throughput in bits per second",
            ours.chart(
                "Gbit/s on layer 1 (more is better)",
                layer_1,
                limit(gigabits),
                lambda row: row.least,
            ),
            theirs.chart("2^30 bit/s of size + 13 bytes", lambda row: row.bps, line_bps),
            "Ours: 20 bytes a frame more than its size, giga is decimal; ≥ marks a lower bound.",
        ),
        Pair(
            "Throughput in packets per second",
            ours.chart(
                "Mpps of this machine (more is better)",
                lambda row: row.mpps,
                limit(lambda _: 1 / _MEGA),
                lambda row: row.least,
            ),
            theirs.chart("2^20 packets/s", lambda row: row.pps, line_pps),
            f"Ours: the median over searches of the greatest load that reached {goal.name}; mega "
            f"is decimal. To reach it {goal_words(goal)}.",
        ),
        Pair(
            "Average latency",
            ours.chart(
                "mean latency, us (less is better)",
                lambda row: row.at_throughput.mean_us if row.at_throughput else None,
            ),
            theirs.chart("latency avg, us", lambda row: row.latency_avg_us),
            "Ours: the mean of each trial at the forwarder's own throughput.",
        ),
        Pair(
            "Jitter",
            ours.chart(
                "jitter (RFC 3550), us (less is better)",
                lambda row: row.at_throughput.jitter_us if row.at_throughput else None,
            ),
            theirs.chart("latency jitter, us", lambda row: row.latency_jitter_us),
            "Ours: the smoothed value of RFC 3550 at the forwarder's own throughput. Delay "
            "variation by its quantiles stands with each frame size below.",
        ),
        Pair(
            "Received difference",
            ours.difference(),
            theirs.difference(),
            "Ours: each arm's throughput against the baseline's, as ratios of searches paired "
            "in blocks. Published: frames received in the one run in Rust against those in the "
            "one in C. The band is the margin inside which a whole interval means equal.",
        ),
    ]
