# SPDX-License-Identifier: BSD-3-Clause
"""The published cycles of DPDK and PF_PACKET, and ours beside them, of the same spans.

The two published spans of test 1 are not alike: one of them has the whole send call in it, the
other nothing of it. Only a row and its like are to be compared.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

from linerate.experiments.latency.loads import IDLE
from linerate.records.summary import ArmSummary, CellSummary, Summary
from linerate.records.summary_figures import Delayed

SOURCE = (
    "slankdev's blog, 2016, DPDK 16.04: averages over 10^6 ARP requests, the clock's own cost in "
    "them, one run each"
)
# At which the published theoretical rates were computed.
PUBLISHED_HZ = 3e9


@dataclass(frozen=True)
class PublishedLatency:
    """One figure. `span`: its name in `/linerate/latency`; None: the round trip."""

    test: int
    program: str
    span: str | None
    timed: str
    cycles: int


@dataclass(frozen=True)
class Ours:
    """The like of a published figure: a mean, with the clock's cost in it and without."""

    test: int
    arm: str
    link: str
    timed: str
    protocol: str
    with_clock: float
    cycles: float


def rows() -> list[PublishedLatency]:
    text = resources.files("linerate.report").joinpath("data/slankdev-latency.csv").read_text()
    return [
        PublishedLatency(
            int(row["test"]), row["program"], row["span"] or None, row["timed"], int(row["cycles"])
        )
        for row in csv.DictReader(text.splitlines())
    ]


def ours(summary: Summary) -> list[Ours]:
    """At idle, by ARP requests if some were sent: by test, then in the order of the run."""
    if summary.clock is None:
        return []
    found = [
        each
        for cell in summary.cells
        for arm in cell.arms
        for each in _of_arm(cell, arm, summary.clock.cost_cycles)
    ]
    return sorted(found, key=lambda each: each.test)


def _of_arm(cell: CellSummary, arm: ArmSummary, cost: int) -> list[Ours]:
    if arm.latency is None or arm.arm != arm.forwarder:
        return []
    program = _like_program(arm)
    span = next((row.span for row in rows() if row.span and row.program == program), None)
    inside = [each for each in arm.latency.inside if each.span == span]
    chosen: list[tuple[int, str, Delayed | None]] = [
        (1, span or "", _like(inside)),
        (2, "round trip, by the generator", _like(arm.latency.round_trips)),
        (2, "round trip, by a packet socket", _like(arm.latency.packet_sender or [])),
    ]
    return [
        Ours(
            test=test,
            arm=arm.arm,
            link=cell.link,
            timed=timed,
            protocol=entry.protocol,
            with_clock=entry.cycles.mean.median + cost,
            cycles=entry.cycles.mean.median,
        )
        for test, timed, entry in chosen
        if entry and entry.cycles
    ]


def _like_program(arm: ArmSummary) -> str | None:
    """The published program that is of the same kind; None: there was none."""
    if arm.kind == "dpdk":
        return "DPDK"
    return "PF_PACKET" if arm.forwarder == "af-packet-read-write" else None


def _like(entries: Sequence[Delayed]) -> Delayed | None:
    idle = [each for each in entries if each.load_share == IDLE and each.cycles]
    return min(idle, key=lambda each: each.protocol, default=None)
