# SPDX-License-Identifier: BSD-3-Clause
"""The published cycles of DPDK and PF_PACKET, and ours beside them, of the same spans.

The two published spans of test 1 differ: one includes the whole send call, the other nothing of it.
Only rows of the same span are comparable.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

from linerate.experiments.latency.loads import IDLE
from linerate.records.summary import ArmSummary, CellSummary, Summary
from linerate.records.summary_figures import Delayed, RoundTrip

SOURCE = (
    "slankdev's blog, 2016, DPDK 16.04: averages over 10^6 ARP requests, the clock's own cost in "
    "them, one run each"
)
# Loads where bursts begin to form, and with one frame at a time.
LOADS = (0.5, IDLE)
_AT = {0.5: "at 50 %", IDLE: "at idle"}
# The frequency of the published theoretical rates.
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
    """Our figures of the same span as a published one: a mean, including the clock's cost, by load.
    `wait`: the part that is the program's own buffering; None if it does not buffer.
    """

    test: int
    program: str
    arm: str
    link: str
    timed: str
    protocol: str
    cycles: Mapping[float, float]
    wait: str | None = None


@dataclass(frozen=True)
class Beside:
    """A published figure, and this run's figures of the same span."""

    published: PublishedLatency
    ours: Sequence[Ours]


def rows() -> list[PublishedLatency]:
    text = resources.files("linerate.report").joinpath("data/slankdev-latency.csv").read_text()
    return [
        PublishedLatency(
            int(row["test"]), row["program"], row["span"] or None, row["timed"], int(row["cycles"])
        )
        for row in csv.DictReader(text.splitlines())
    ]


def beside(summary: Summary) -> list[Beside]:
    """Return the published figures beside ours, those of ARP requests if some were sent."""
    cost = summary.clock.cost_cycles if summary.clock else 0
    found = [
        each
        for cell in summary.cells
        if summary.clock
        for arm in cell.arms
        for each in _of_arm(cell, arm, cost)
    ]
    return [
        Beside(
            row, [each for each in found if (each.test, each.program) == (row.test, row.program)]
        )
        for row in rows()
    ]


def _of_arm(cell: CellSummary, arm: ArmSummary, cost: int) -> Iterator[Ours]:
    program = _like_program(arm)
    if arm.latency is None or arm.arm != arm.forwarder or program is None:
        return
    span = next((row.span for row in rows() if row.span and row.program == program), None)
    inside = [each for each in arm.latency.inside if each.span == span]
    chosen: list[tuple[int, str, Sequence[Delayed]]] = [
        (1, span or "", inside),
        (2, "round trip, by the generator", arm.latency.round_trips),
        (2, "round trip, by a packet socket", arm.latency.packet_sender or []),
    ]
    for test, timed, entries in chosen:
        protocol = min((each.protocol for each in entries), default=None)
        means = {
            each.load_share: each.cycles.mean.median + cost
            for each in entries
            if each.protocol == protocol and each.cycles and each.load_share in LOADS
        }
        if protocol and means:
            # write() alone has no buffer before it.
            buffered = test == 2 or program == "DPDK"
            wait = _wait(arm.latency.round_trips, protocol) if buffered else None
            yield Ours(test, program, arm.arm, cell.link, timed, protocol, means, wait)


def _wait(entries: Sequence[RoundTrip], protocol: str) -> str | None:
    """Describe the longest wait in a TX buffer, at each load."""
    found = {
        each.load_share: each.buffered_ns
        for each in entries
        if each.protocol == protocol and each.buffered_ns and each.load_share in LOADS
    }
    if not found:
        return None
    told = [f"{ns / 1e3:.3g} us {_AT[load]}" for load, ns in sorted(found.items(), reverse=True)]
    return f"in it the wait in the TX buffer, until it is full or drained: up to {', '.join(told)}"


def _like_program(arm: ArmSummary) -> str | None:
    """Return the published program of the same kind; None if there was none."""
    if arm.kind == "dpdk":
        return "DPDK"
    return "PF_PACKET" if arm.forwarder == "af-packet-read-write" else None
