# SPDX-License-Identifier: BSD-3-Clause
"""Print a run of `latency`: round trips in microseconds and cycles, then times inside."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rich.console import Console
from rich.table import Table

from linerate.experiments.latency.loads import IDLE, no_packet_sender
from linerate.links import link
from linerate.records.outcome import Clock
from linerate.records.summary import ArmSummary, CellSummary, Summary
from linerate.records.summary_figures import Delayed, Delays, Inside, RoundTrip
from linerate.report.console import new_table, number, print_notes, share
from linerate.report.in_short import print_in_short
from linerate.runs.progress import say
from linerate.verdict.sentences import controls

QUANTILES = ("0.5", "0.9", "0.99", "0.999")
# Below this many microseconds two decimals are shown.
_FINE = 100.0


def load_words(load_share: float) -> str:
    return "idle" if load_share == IDLE else f"{load_share * 100:g} %"


def quantile_words(quantile: str) -> str:
    return f"p{float(quantile) * 100:g}"


def microseconds(ns: float | None) -> str:
    if ns is None:
        return "-"
    return number(ns / 1e3, 2 if abs(ns) < _FINE * 1e3 else 0)


def cycles(value: float | None) -> str:
    return number(value, 0)


def delay_cells(delays: Delays | None, told: Callable[[float | None], str]) -> list[str]:
    """Format least, mean, quantiles and greatest."""
    if delays is None:
        return ["-"] * (len(QUANTILES) + 3)
    found = [delays.quantiles.get(quantile) for quantile in QUANTILES]
    return [
        told(delays.minimum),
        told(delays.mean.median),
        *(told(each.median if each else None) for each in found),
        told(delays.maximum),
    ]


DELAY_COLUMNS = ("min", "mean", *map(quantile_words, QUANTILES), "max")


# The generator is on DPDK; the other asks the kernel by a packet socket.
GENERATOR, PACKET_SOCKET = "DPDK", "PF_PACKET"
PING = "ping"


def round_trips_of(arm: ArmSummary) -> Iterator[tuple[str, RoundTrip]]:
    """Yield the round trips of both senders, with the sender's name, by load."""
    if arm.latency is None:
        return
    others = arm.latency.packet_sender or []
    for entry in arm.latency.round_trips:
        yield GENERATOR, entry
        for other in others:
            if (other.protocol, other.load_share) == (entry.protocol, entry.load_share):
                yield PACKET_SOCKET, other


def step_words(sender: str, entry: RoundTrip) -> str:
    """Format the load; `ping` for the load of the packet socket's sender, which is idle."""
    return PING if sender == PACKET_SOCKET else load_words(entry.load_share)


def without_ping(cell: CellSummary) -> str | None:
    """Return why there are no round trips by a packet socket; None if there can be."""
    why = no_packet_sender(link(cell.link))
    return why and f"no round trips by a packet socket on {cell.link}: {why}"


def packet_sender_line(cell: CellSummary) -> str | None:
    """Explain `ping`, or why there is none; None if it was not requested."""
    if why := without_ping(cell):
        return why
    if not any(arm.latency and arm.latency.packet_sender for arm in cell.arms):
        return None
    return (
        f"{PING}: sent by a packet socket (PF_PACKET), one frame at a time; the generator, on "
        "DPDK, sends all other loads"
    )


def _round_trips(cell: CellSummary, protocol: str) -> Iterator[tuple[ArmSummary, str, RoundTrip]]:
    for arm in cell.arms:
        for sender, entry in round_trips_of(arm):
            if entry.protocol == protocol:
                yield arm, sender, entry


def _insides(cell: CellSummary) -> Iterator[tuple[ArmSummary, Inside]]:
    every = [
        (arm, entry) for arm in cell.arms for entry in (arm.latency.inside if arm.latency else ())
    ]
    # The same span of all programs stands side by side.
    yield from sorted(every, key=lambda each: (each[1].span, each[1].protocol, each[1].load_share))


def time_table(cell: CellSummary, protocol: str) -> Table | None:
    columns = ("forwarder", "load", *DELAY_COLUMNS, "frames", "lost", "valid")
    title = f"{cell.link}, {cell.size} B, {protocol.upper()}: round trip in us"
    found = new_table(title, columns, 2)
    for arm, sender, entry in _round_trips(cell, protocol):
        found.add_row(
            arm.arm,
            step_words(sender, entry),
            *delay_cells(entry.ns, microseconds),
            f"{entry.packets:,}",
            share(entry.loss_share),
            valid(entry),
        )
    return found if found.row_count else None


def cycle_table(cell: CellSummary, protocol: str, clock: Clock | None) -> Table | None:
    columns = ("forwarder", "load", *DELAY_COLUMNS)
    title = f"{cell.link}, {cell.size} B, {protocol.upper()}: round trip in cycles{less(clock)}"
    found = new_table(title, columns, 2)
    for arm, sender, entry in _round_trips(cell, protocol):
        if entry.cycles:
            delays = delay_cells(entry.cycles, cycles)
            found.add_row(arm.arm, step_words(sender, entry), *delays)
    return found if found.row_count else None


def inside_table(cell: CellSummary, clock: Clock | None) -> Table | None:
    columns = ("span", "frames", "load", "forwarder", "mean", "p50", "p99", "measured", "valid")
    found = new_table(
        f"{cell.link}, {cell.size} B: inside the forwarder, in cycles{less(clock)}", columns, 4
    )
    for arm, entry in _insides(cell):
        if (delays := entry.cycles) is None:
            continue
        high = delays.quantiles.get("0.99")
        middle = delays.quantiles.get("0.5")
        found.add_row(
            entry.span,
            entry.protocol.upper(),
            load_words(entry.load_share),
            arm.arm,
            cycles(delays.mean.median),
            cycles(middle.median if middle else None),
            cycles(high.median if high else None),
            f"{entry.packets:,}",
            valid(entry),
        )
    return found if found.row_count else None


def less(clock: Clock | None) -> str:
    return f", less {clock.cost_cycles} for the clock" if clock else ""


def valid(entry: Delayed) -> str:
    return f"{entry.trials - entry.invalid}/{entry.trials}"


def clock_line(clock: Clock) -> str:
    """Describe the clock of all figures."""
    told = f"the sender assumes {clock.tsc_hz / 1e6:,.3f} MHz for the time stamp counter"
    cost = f"reading it costs {clock.cost_cycles} cycles, which are subtracted"
    if clock.checked_hz is None:
        return f"Clock: {told}; {cost}."
    apart = (clock.checked_hz / clock.tsc_hz - 1) * 100
    within = f" to {clock.checked_within_ppm:.0f} ppm" if clock.checked_within_ppm else ""
    return (
        f"Clock: {told}; against CLOCK_MONOTONIC it has {clock.checked_hz / 1e6:,.3f} MHz{within} "
        f"({apart:+.3f} %), from which nanoseconds are computed; {cost}."
    )


def capacity_lines(cell: CellSummary) -> list[str]:
    """Return 100 % of each forwarder."""
    told = []
    for arm in cell.arms:
        if arm.latency is None or arm.latency.capacity_pps is None:
            continue
        capacity, flood = arm.latency.capacity_pps, arm.latency.flood_pps
        of_flood = ""
        if flood:
            part = capacity / flood
            of_flood = (
                ", the rate that came back of a flood"
                if part > 0.999
                else f", {part:.0%} of the rate that came back of a flood, because the sender is "
                "late at more"
            ).replace("%", " %")
        told.append(f"{arm.arm}: 100 % = {capacity / 1e6:.3f} Mpps{of_flood}")
    return told


def buffer_lines(cell: CellSummary) -> list[str]:
    """Return the computed part of a round trip at idle that is the wait for a buffer to be
    drained.
    """
    told = []
    for arm in cell.arms:
        for entry in arm.latency.round_trips if arm.latency else ():
            if entry.load_share != IDLE or not entry.buffered_ns or not entry.ns:
                continue
            # Frames come at any time between two drains.
            wait, mean = entry.buffered_ns / 2, entry.ns.mean.median
            told.append(
                f"{arm.arm}, {entry.protocol.upper()} at idle: a frame waits up to "
                f"{microseconds(entry.buffered_ns)} us in its TX buffer, {microseconds(wait)} us "
                f"on average, which is {wait / mean:.0%} of the mean round trip of "
                f"{microseconds(mean)} us".replace("%", " %")
            )
    return told


def _print_cell(console: Console, cell: CellSummary, clock: Clock | None) -> None:
    kinds = dict.fromkeys(
        entry.protocol for arm in cell.arms if arm.latency for entry in arm.latency.round_trips
    )
    tables = [
        table
        for protocol in kinds
        for table in (time_table(cell, protocol), cycle_table(cell, protocol, clock))
    ]
    for table in [*tables, inside_table(cell, clock)]:
        if table:
            console.print()
            # A title of the table's own would be wrapped to its width.
            say(console, str(table.title), "bold")
            table.title = None
            console.print(table)
    for line in filter(
        None, [*capacity_lines(cell), *buffer_lines(cell), packet_sender_line(cell)]
    ):
        say(console, f"  {line}", "dim")


def print_latency(console: Console, summary: Summary) -> None:
    """Print tables, the answer in short, a sentence per primary comparison, then the notes."""
    for cell in summary.cells:
        _print_cell(console, cell, summary.clock)
    print_in_short(console, summary)
    console.print()
    for comparison in summary.comparisons:
        if comparison.primary:
            say(console, comparison.sentence)
    others = sum(not each.primary for each in summary.comparisons)
    if others:
        say(console, f"{others} further comparisons, exploratory: summary.json and the report.")
    say(console, f"The baseline against itself: {controls(summary.aa)}.")
    if summary.clock:
        say(console, clock_line(summary.clock))
    print_notes(console, summary)
