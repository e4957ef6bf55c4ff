# SPDX-License-Identifier: BSD-3-Clause
"""Draw figures as tables that fit 80 columns, and use more if there are more. No arithmetic beyond
rounding and merging bars: it shows the figures of `--json`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from linerate.host.text import printable
from linerate.telemetry.top.figures import (
    Figures,
    LatencyFigures,
    LcoreFigures,
    PollingFigures,
    PortFigures,
    unsent,
)

NARROW = 80
# From this width on columns are further apart and names are complete.
WIDE = 120
DASH = "-"
_BARS = "▁▂▃▄▅▆▇█"
_ASCII_BARS = ".:-=+*#@"
_SPANS = {
    "rx-return_tx-call": "from the receive call's return to the send call",
    "rx-return_tx-return": "from the receive call's return to the send call's return",
    "rx-call_tx-return": "from the receive call to the send call's return",
}


@dataclass(frozen=True)
class Style:
    """Capabilities of the terminal."""

    wide: bool = False
    ascii_only: bool = False


@dataclass(frozen=True)
class _Column:
    """A heading of two lines, and a fixed width, so that columns do not move between updates."""

    heading: str
    width: int
    wide: int | None = None
    words: bool = False


def mpps(value: float | None) -> str:
    """Format Mpps in at most six characters; an upper bound if all digits would be 0."""
    if value is None:
        return DASH
    if 0 < value < 0.001:
        return "<0.001"
    return f"{value:.{3 if value < 99.9995 else 2 if value < 999.995 else 1}f}"


def per_second(value: float | None) -> str:
    """Format a count per second in at most five characters."""
    if value is None:
        return DASH
    if value == 0:
        return "0"
    if value < 9.95:
        return f"{value:.1f}" if value >= 0.05 else "<0.1"
    for factor, unit in ((1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G")):
        scaled = value / factor
        if scaled < 999.5:
            return f"{scaled:.0f}{unit}" if not unit or scaled >= 99.95 else f"{scaled:.1f}{unit}"
    return f"{value:.1e}"


def percent(share: float | None) -> str:
    """Format a share in percent with one decimal; only 0 and 1 are shown as 0 and 100."""
    if share is None:
        return DASH
    if 0 < share < 0.0005:
        return "<0.1"
    if 0.9995 <= share < 1:
        return ">99.9"
    return f"{share * 100:.1f}"


def cycles(value: float | None) -> str:
    """Format cycles per packet in at most seven characters, with decimals only while they
    matter.
    """
    if value is None:
        return DASH
    return f"{value:.1f}" if value < 999.95 else whole(round(value), 7)


def whole(value: int | None, width: int = 8) -> str:
    """Format a whole number with all digits if they fit, else three or more of them and a unit."""
    if value is None:
        return DASH
    if len(str(value)) <= width:
        return str(value)
    for factor, unit in ((1e6, "M"), (1e9, "G"), (1e12, "T")):
        text = f"{value / factor:.1f}{unit}"
        if len(text) <= 6:
            return text
    return f"{value:.1e}"


def duration(ns: float) -> str:
    """Format a time with three digits and a unit: the histograms hold two."""
    for factor, unit in ((1.0, "ns"), (1e3, "us"), (1e6, "ms")):
        scaled = ns / factor
        if scaled < 999.5:
            digits = 0 if unit == "ns" or scaled >= 99.95 else 1 if scaled >= 9.995 else 2
            return f"{scaled:.{digits}f} {unit}"
    return f"{ns / 1e9:.2f} s"


def burst(value: float | None) -> str:
    if value is None:
        return DASH
    return "<0.01" if 0 < value < 0.005 else f"{value:.2f}" if value < 99.5 else f"{value:.0f}"


def doublings(histogram: Sequence[int], limit: int) -> list[tuple[int, int]]:
    """Return non-empty polls by size, as (smallest size, polls): 1, 2-3, 4-7, .., and full bursts
    alone.

    Sizes above the limit appear only if an earlier call asked for more.
    """
    sizes = [size for size, polls in enumerate(histogram) if polls and size]
    largest = max([limit, *sizes, 1])
    starts = []
    start = 1
    while start < largest:
        starts.append(start)
        start *= 2
    starts.append(largest)
    ends = [*starts[1:], largest + 1]
    return [(start, sum(histogram[start:end])) for start, end in zip(starts, ends, strict=True)]


def bars(figures: PollingFigures, style: Style) -> str:
    """Draw the histogram as one bar per bucket, between the sizes of its first and last."""
    if figures.burst_histogram is None or figures.burst_limit is None:
        return DASH
    if not any(figures.burst_histogram[1:]):
        return DASH
    buckets = doublings(figures.burst_histogram, figures.burst_limit)
    highest = max(polls for _, polls in buckets)
    ramp = _ASCII_BARS if style.ascii_only else _BARS
    drawn = "".join(
        # Whatever was there at all is seen.
        ramp[min(len(ramp) - 1, polls * len(ramp) // highest)] if polls else " "
        for _, polls in buckets
    )
    return f"{buckets[0][0]}|{drawn}|{buckets[-1][0]}"


def _table(columns: Sequence[_Column], style: Style) -> Table:
    table = Table(
        box=None, padding=(0, 2 if style.wide else 1, 0, 0), pad_edge=False, header_style="bold"
    )
    for column in columns:
        width = column.wide if style.wide and column.wide is not None else column.width
        table.add_column(
            Text(column.heading),
            justify="left" if column.words else "right",
            min_width=width,
            max_width=width,
            no_wrap=True,
            overflow="ellipsis",
            vertical="bottom",
        )
    return table


_PORT_COLUMNS = (
    _Column("\nport", 4),
    _Column("\nname", 13, 20, words=True),
    _Column("\nlink", 4, 8, words=True),
    _Column("RX\nMpps", 6, 8),
    _Column("TX\nMpps", 6, 8),
    _Column("RX\nGbit/s", 6, 8),
    _Column("TX\nGbit/s", 6, 8),
    _Column("imissed\n/s", 7, 8),
    _Column("nombuf\n/s", 6, 8),
    _Column("ierr\n/s", 5, 8),
    _Column("oerr\n/s", 5, 8),
)


def ports_table(figures: Figures, style: Style) -> Table:
    table = _table(_PORT_COLUMNS, style)
    for port in figures.ports:
        name = _tail(printable(port.name), style) if port.name else DASH
        table.add_row(str(port.port), Text(name), _link(port, style), *_traffic(port))
    if len(figures.ports) > 1:
        table.add_row("sum", "", "", *_traffic(_total(figures)), style="dim")
    return table


def _tail(name: str, style: Style) -> str:
    """Shorten a name at its start: devices of one kind differ in the ends of their names."""
    column = next(column for column in _PORT_COLUMNS if column.heading.endswith("name"))
    width = (style.wide and column.wide) or column.width
    return name if len(name) <= width else f"~{name[1 - width :]}"


def _total(figures: Figures) -> PortFigures:
    """Return all ports as one; a sum with an unknown value is unknown."""
    total = PortFigures(port=0, rx_mpps=figures.rx_mpps, tx_mpps=figures.tx_mpps)
    for name in (
        "rx_gbps", "tx_gbps", "imissed_per_s", "rx_nombuf_per_s", "ierrors_per_s", "oerrors_per_s",
    ):  # fmt: skip
        values = [getattr(port, name) for port in figures.ports]
        setattr(total, name, None if None in values else sum(values))
    return total


def _traffic(port: PortFigures) -> list[Text]:
    lost = (
        port.imissed_per_s,
        port.rx_nombuf_per_s,
        port.ierrors_per_s,
        port.oerrors_per_s,
    )
    rates = (port.rx_mpps, port.tx_mpps, port.rx_gbps, port.tx_gbps)
    return [
        *(Text(mpps(rate)) for rate in rates),
        *(Text(per_second(rate), style="bold red" if rate else "") for rate in lost),
    ]


def _link(port: PortFigures, style: Style) -> Text:
    if port.link is None:
        return Text(DASH)
    if port.link != "up":
        return Text(printable(port.link.upper()), style="bold red")
    # The driver's "unknown" is the largest 32-bit number.
    known = port.speed_mbps and port.speed_mbps < 2**32 - 1
    return Text(f"up {_speed(port.speed_mbps or 0)}" if style.wide and known else "up")


def _speed(mbps: int) -> str:
    return f"{mbps / 1000:g}G" if mbps >= 1000 else f"{mbps}M"


_LCORE_COLUMNS = (
    _Column("lcore,\n queue", 12, words=True),
    _Column("RX\nMpps", 6, 8),
    _Column("busy\n%", 5, 8),
    _Column("empty\npolls %", 7, 8),
    _Column("cycles\n/packet", 7, 8),
    _Column("burst\nall", 5, 8),
    _Column("burst\n>0", 5, 8),
    _Column("full\npolls %", 7, 8),
    _Column("bursts\nby size", 16, 20, words=True),
)


def lcores_table(lcores: Sequence[LcoreFigures], style: Style, with_queues: bool = True) -> Table:
    table = _table(_LCORE_COLUMNS, style)
    for lcore in lcores:
        name = _lcore_name(lcore)
        if len(lcore.queues) == 1:
            queue = lcore.queues[0]
            table.add_row(f"{name} p{queue.port}q{queue.queue}", *_polls(lcore, style))
            continue
        table.add_row(name, *_polls(lcore, style))
        for queue in lcore.queues if with_queues else ():
            cells = _polls(queue, style)
            table.add_row(f" p{queue.port}q{queue.queue}", *cells, style="dim")
    return table


def _lcore_name(lcore: LcoreFigures) -> str:
    return "none" if lcore.lcore is None else str(lcore.lcore)


def _rests(figures: PollingFigures) -> bool:
    """Return True for an lcore that polled some time ago (as testpmd's main lcore at its start),
    and not since.
    """
    return figures.rx_mpps == 0 and figures.average_rx_burst is None


def _polls(figures: PollingFigures, style: Style) -> list[str]:
    return [
        mpps(figures.rx_mpps),
        percent(figures.busy_share),
        percent(figures.empty_polls_share),
        cycles(figures.busy_cycles_per_packet),
        burst(figures.average_rx_burst),
        burst(figures.average_nonempty_rx_burst),
        percent(figures.full_polls_share),
        bars(figures, style),
    ]


_LATENCY_COLUMNS = (
    _Column("TX\nqueue", 8, 10, words=True),
    _Column("\npackets", 9, 10),
    _Column("\nin", 6, 8, words=True),
    _Column("\np50", 8, 10),
    _Column("\np90", 8, 10),
    _Column("\np99", 8, 10),
    _Column("\np99.9", 8, 10),
    _Column("\nmax", 8, 10),
)
_POINTS = ("p50", "p90", "p99", "p999", "max")


def latency_table(latency: Sequence[LatencyFigures], style: Style) -> Table:
    table = _table(_LATENCY_COLUMNS, style)
    for entry in latency:
        packets = whole(entry.packets, 9)
        name = f"p{entry.port}q{entry.queue}"
        in_cycles = [getattr(entry, f"{point}_cycles") for point in _POINTS]
        in_ns = [getattr(entry, f"{point}_ns") for point in _POINTS]
        if None in in_ns:
            table.add_row(name, packets, "cycles", *map(whole, in_cycles))
            continue
        table.add_row(name, packets, "time", *map(duration, in_ns))
        table.add_row("", "", "cycles", *map(whole, in_cycles), style="dim")
    return table


def _measured(figures: Figures) -> list[LatencyFigures]:
    """Return the latency figures; none while the probe is told to measure none, although its lists
    stay.
    """
    off = figures.probe is not None and figures.probe.one_in == 0
    return [entry for entry in figures.latency or () if entry.packets or not off]


def title(figures: Figures, width: int) -> Text:
    """Return one line: the last facts are left out if they do not fit."""
    name = printable(figures.program)
    facts = [
        f"prefix {printable(figures.prefix)}",
        f"pid {figures.pid}",
        printable(figures.dpdk),
        "no probe" if figures.probe is None else f"probe {printable(figures.probe.version)}",
        f"last {figures.interval_s:.1f} s",
        f"{figures.time[11:19]} UTC",
    ]
    while len(facts) > 1 and len("  ".join([name, *facts])) > width:
        facts.pop()
    return Text.assemble((name, "bold"), "  ", "  ".join(facts))


def remarks(figures: Figures) -> list[str]:
    """Return remarks to show beside the tables."""
    said = []
    kept = unsent(figures.rx_mpps, figures.tx_mpps, figures.interval_s)
    if kept and figures.rx_mpps:
        share = percent(kept / figures.rx_mpps)
        said.append(
            f"{mpps(kept)} Mpps ({share} %) "
            "received and not sent: dropped, used or held by the program."
        )
    if figures.rx_mpps and figures.tx_mpps == 0:
        said.append("Nothing is sent: the program drops, uses or holds what it receives.")
    if not figures.ports:
        said.append("The program has no Ethernet port.")
    resting = [_lcore_name(lcore) for lcore in figures.lcores or () if _rests(lcore)]
    if resting and not (figures.probe and not figures.probe.polling):
        said.append(f"Polled before and not in this interval: lcore {', '.join(resting)}.")
    if any(lcore.busy_from_before for lcore in figures.lcores or ()):
        said.append(
            "Busy time from before this interval ended in it: no busy % and no cycles for those."
        )
    if any(port.rx_gbps is not None or port.tx_gbps is not None for port in figures.ports):
        said.append("Gbit/s: from the driver's byte counters, as a rule of frames without FCS.")
    if any(lcore.queues and not _rests(lcore) for lcore in figures.lcores or ()):
        said.append(
            "Bursts by size: polls that returned 1, 2-3, 4-7, .. packets; the last bar: full."
        )
    measured = _measured(figures)
    if unseen := _unseen(figures):
        said.append(
            f"{unseen} packets were stamped and none was seen being sent: the program drops them, "
            "sends copies, or overwrites ol_flags."
        )
    if _only_sends(figures):
        said.append("Lcores that only send are not shown: the probe counts receiving.")
    spans = dict.fromkeys(entry.span for entry in measured)
    shares = {entry.one_in for entry in measured if entry.one_in}
    for span in spans:
        sampled = f", 1 in {min(shares)} sampled" if len(shares) == 1 else ""
        said.append(f"Latency: {_SPANS.get(span, printable(span))}{sampled}.")
    if spans and figures.clock_cost_cycles is not None:
        took = f"{figures.clock_cost_cycles:g} cycles"
        if figures.tsc_hz:
            took += f", {figures.clock_cost_cycles * 1e9 / figures.tsc_hz:.0f} ns"
        said.append(f"Reading the clock takes {took}: no latency is known better than that.")
    return said + hints(figures)


def _unseen(figures: Figures) -> int:
    """Return the number of stamped packets if none of them arrived at a send call, else 0."""
    probe = figures.probe
    if probe is None or not probe.one_in or not probe.stamped or figures.latency is None:
        return 0
    # None: its count is unknown.
    return probe.stamped if all(entry.packets == 0 for entry in figures.latency) else 0


def _only_sends(figures: Figures) -> bool:
    """Return True if packets leave and nobody polls, although polls are counted."""
    lcores = figures.lcores or []
    counted = figures.probe is not None and figures.probe.polling
    counted = counted or any(lcore.busy_by == "polls" for lcore in lcores)
    return bool(counted and figures.tx_mpps and all(map(_rests, lcores)))


def hints(figures: Figures) -> list[str]:
    """Return hints on how to see the missing figures."""
    probe = figures.probe
    if probe is None:
        counted = any(lcore.queues for lcore in figures.lcores or ())
        lacking = [] if counted else ["bursts, empty polls, cycles per packet"]
        if figures.lcores is None:
            lacking.insert(0, "busy time")
        if figures.latency is None:
            lacking.append("latency")
        if not lacking:
            return []
        return [
            f"The probe would show {', '.join(lacking)}. Start the program by",
            f"  linerate attach -- {printable(figures.program)} ARGS...",
        ]
    found = []
    if not probe.polling:
        found.append("The probe counts no polls: ask /linerate/probe,polling=on for them")
    elif not figures.lcores:
        found.append("The probe is there; no queue has been polled yet")
    if probe.one_in == 0:
        found.append("The probe measures no latency: ask /linerate/probe,one_in=64 for it")
    return found


def render(
    figures: Figures, width: int, ascii_only: bool = False, folded: bool = False
) -> RenderableType:
    """Draw the figures. `folded`: for a terminal that is too short: no rows of queues, and lcores
    before ports.
    """
    style = Style(wide=width >= WIDE, ascii_only=ascii_only)
    parts: list[RenderableType] = [title(figures, width)]
    ports: list[RenderableType] = ["", ports_table(figures, style)] if figures.ports else []
    polling = [lcore for lcore in figures.lcores or () if not _rests(lcore)]
    table = lcores_table(polling, style, with_queues=not folded)
    lcores: list[RenderableType] = ["", table] if polling else []
    parts += [*lcores, *ports] if folded else [*ports, *lcores]
    measured = _measured(figures)
    if measured:
        parts += ["", latency_table(measured, style)]
    said = remarks(figures)
    if said:
        parts += ["", *(Text(sentence, style="dim") for sentence in said)]
    return Group(*parts)


@dataclass(frozen=True)
class _Lines:
    """Lines that are drawn already."""

    lines: Sequence[Sequence[Segment]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self.lines:
            yield from line
            yield Segment.line()


def too_narrow(width: int) -> Text | None:
    """Return a message to show instead of truncated figures, or None."""
    if width >= NARROW:
        return None
    return Text(f"linerate top needs {NARROW} columns; here are {width}.")


def fit(figures: Figures, console: Console, notice: str | None = None) -> RenderableType:
    """Draw as much as fits the terminal's height; the last line says how much is missing."""
    options = console.options
    narrow = too_narrow(console.width)
    if narrow is not None:
        return narrow
    above = [Text(notice, style="bold red")] if notice else []

    def lines(folded: bool) -> list[list[Segment]]:
        drawn = render(figures, console.width, options.ascii_only, folded)
        return console.render_lines(Group(*above, drawn), options.update(height=None), pad=False)

    whole_screen = lines(folded=False)
    if len(whole_screen) <= console.height:
        return _Lines(whole_screen)
    kept = lines(folded=True)[: max(console.height - 1, 0)]
    missing = len(whole_screen) - len(kept)
    prefix = printable(figures.prefix)
    last = f"{missing} more lines: a taller terminal, or linerate top {prefix} | less"
    return Group(_Lines(kept), Text(last, style="bold", no_wrap=True, overflow="ellipsis"))
