# SPDX-License-Identifier: BSD-3-Clause
"""Compute the figures of an interval from two samples. Pure functions; also the schema of `--json`.

An unknown figure is absent, never 0: counters that fell (they were reset), a port or list that did
not exist before, an average of nothing. A (lcore, queue) that appears in an existing list began to
count within the interval, so it is compared with zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from linerate.telemetry.hdr import Histogram, difference
from linerate.telemetry.top.discover import Program
from linerate.telemetry.top.sample import (
    NO_LCORE,
    Latency,
    LcoreUsage,
    Polling,
    Port,
    Probe,
    Sample,
)

# Last entry of a histogram that DPDK's telemetry cut: calls that returned as many or more.
_HISTOGRAM_END = 511
# Ports are read one after the other and packets are on their way: RX less TX of all ports is
# meaningful only beyond a millisecond of traffic.
_READ_WITHIN_S = 0.001
# Busy cycles may exceed all cycles by so much: a call is under way while they are read.
_BUSY_TOLERANCE = 0.01

K = TypeVar("K")
V = TypeVar("V")


class _Figures(BaseModel):
    model_config = ConfigDict(extra="forbid")


class PortFigures(_Figures):
    """Figures of one port. Rates are per second of the interval."""

    port: int
    name: str | None = None
    link: str | None = Field(default=None, description="up or down")
    speed_mbps: int | None = None
    rx_mpps: float | None = None
    tx_mpps: float | None = None
    rx_gbps: float | None = Field(
        default=None, description="from the driver's byte counter: frames, usually without FCS"
    )
    tx_gbps: float | None = None
    imissed_per_s: float | None = Field(
        default=None, description="frames without room in the RX queue"
    )
    rx_nombuf_per_s: float | None = Field(
        default=None, description="frames without an mbuf to receive into"
    )
    ierrors_per_s: float | None = None
    oerrors_per_s: float | None = None


class PollingFigures(_Figures):
    """Receive calls of an lcore or of one of its queues."""

    rx_mpps: float | None = None
    busy_share: float | None = Field(
        default=None, description="time from a poll with packets to the end of the next poll"
    )
    empty_polls_share: float | None = None
    average_rx_burst: float | None = Field(default=None, description="packets / all polls")
    average_nonempty_rx_burst: float | None = None
    full_polls_share: float | None = Field(
        default=None, description="share of all polls that returned as many packets as requested"
    )
    busy_cycles_per_packet: float | None = None
    busy_from_before: Literal[True] | None = Field(
        default=None,
        description="busy time from before the interval ended in it, so busy time in it is "
        "not known",
    )
    burst_limit: int | None = Field(default=None, description="the largest burst requested")
    burst_histogram: list[int] | None = Field(
        default=None, description="calls that returned 0, 1, 2, .. packets; 511 means 511 or more"
    )


class QueueFigures(PollingFigures):
    port: int
    queue: int


class LcoreFigures(PollingFigures):
    """Figures of one lcore. `lcore` is absent for threads that have no lcore id."""

    lcore: int | None = None
    busy_by: Literal["polls", "program"] | None = Field(
        default=None,
        description="the source of busy time: polls, or the program for /eal/lcore/usage",
    )
    queues: list[QueueFigures] = []


class LatencyFigures(_Figures):
    """Packets sent by one TX queue in the interval. Values have two significant digits."""

    port: int
    queue: int
    span: str = Field(description="start and end of the span, for instance rx-return_tx-call")
    one_in: int | None = Field(default=None, description="the share that is sampled is 1 / one_in")
    packets: int | None = Field(default=None, description="number of sampled packets")
    p50_cycles: int | None = None
    p90_cycles: int | None = None
    p99_cycles: int | None = None
    p999_cycles: int | None = None
    max_cycles: int | None = None
    p50_ns: float | None = None
    p90_ns: float | None = None
    p99_ns: float | None = None
    p999_ns: float | None = None
    max_ns: float | None = None


PERCENTILES = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p999": 99.9}


class ProbeFigures(_Figures):
    version: str
    polling: bool
    one_in: int = Field(description="0: it measures no latency")
    rx_queues: int | None = None
    tx_queues: int | None = None
    stamped: int | None = Field(
        default=None, description="packets that were stamped in the interval, to measure latency"
    )


class Figures(_Figures):
    """Figures of one interval of one program."""

    schema_id: Literal["linerate/top-1"] = Field(default="linerate/top-1", alias="schema")
    time: str = Field(description="end of the interval, UTC, ISO 8601")
    prefix: str
    pid: int
    program: str
    dpdk: str
    interval_s: float
    probe: ProbeFigures | None = Field(default=None, description="absent: the program has none")
    tsc_hz: int | None = None
    clock_cost_cycles: float | None = Field(default=None, description="cost of one reading")
    rx_mpps: float | None = Field(default=None, description="sum over all ports")
    tx_mpps: float | None = None
    ports: list[PortFigures] = []
    lcores: list[LcoreFigures] | None = Field(default=None, description="absent: nothing counts it")
    latency: list[LatencyFigures] | None = Field(
        default=None, description="absent: nothing measures it"
    )

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


def schema() -> dict[str, Any]:
    """Return the JSON Schema of one line of `linerate top --json`."""
    document = Figures.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **document}


def dump(figures: Figures) -> str:
    """Format the figures as one line of JSON, without absent ones. Characters other than ASCII,
    which might control a terminal, are escaped.
    """
    return figures.model_dump_json(by_alias=True, exclude_none=True, ensure_ascii=True)


def compare(program: Program, dpdk: str, before: Sample, now: Sample, time: datetime) -> Figures:
    """Return the figures of the interval from `before` to `now`."""
    clock = now.clock
    ports = [port_figures(number, before.ports.get(number), now.ports[number]) for number in
             sorted(now.ports)]  # fmt: skip
    rx, tx = _sum([port.rx_mpps for port in ports]), _sum([port.tx_mpps for port in ports])
    return Figures(
        time=time.isoformat(timespec="milliseconds"),
        prefix=program.prefix,
        pid=program.pid,
        program=program.name,
        dpdk=dpdk,
        interval_s=round((now.at_ns - before.at_ns) / 1e9, 6),
        probe=probe_figures(before.probe, now.probe),
        tsc_hz=clock.tsc_hz if clock else None,
        clock_cost_cycles=clock.clock_cost_cycles if clock else None,
        rx_mpps=rx,
        tx_mpps=tx,
        ports=ports,
        lcores=lcores(before, now),
        latency=latency(before, now),
    )


def probe_figures(before: Probe | None, probe: Probe | None) -> ProbeFigures | None:
    if probe is None:
        return None
    stamped = None
    if before is not None and before.stamped is not None and probe.stamped is not None:
        stamped = probe.stamped - before.stamped
    return ProbeFigures(
        version=probe.version,
        polling=probe.polling == "on",
        one_in=probe.one_in,
        rx_queues=probe.rx_queues,
        tx_queues=probe.tx_queues,
        stamped=stamped if stamped is None or stamped >= 0 else None,
    )


def port_figures(number: int, before: Port | None, now: Port) -> PortFigures:
    figures = PortFigures(
        port=number,
        name=now.name,
        link=now.link.status.lower() if now.link else None,
        speed_mbps=now.link.speed if now.link else None,
    )
    if before is None or now.at_ns <= before.at_ns:
        return figures
    seconds = (now.at_ns - before.at_ns) / 1e9
    old, new = before.stats.model_dump(), now.stats.model_dump()
    # Absent, not 0, where either is.
    both = [name for name in new if None not in (old[name], new[name])]
    gone_by = {name: new[name] - old[name] for name in both}
    if any(count < 0 for count in gone_by.values()):
        return figures
    figures.rx_mpps = gone_by["ipackets"] / seconds / 1e6
    figures.tx_mpps = gone_by["opackets"] / seconds / 1e6
    figures.rx_gbps = _gbps(gone_by["ipackets"], gone_by["ibytes"], seconds)
    if "obytes" in gone_by:
        figures.tx_gbps = _gbps(gone_by["opackets"], gone_by["obytes"], seconds)
    figures.imissed_per_s = gone_by["imissed"] / seconds
    figures.rx_nombuf_per_s = gone_by["rx_nombuf"] / seconds
    figures.ierrors_per_s = gone_by["ierrors"] / seconds
    figures.oerrors_per_s = gone_by["oerrors"] / seconds
    return figures


def _gbps(packets: int, octets: int, seconds: float) -> float | None:
    """Return the bit rate; None for packets without bytes: the driver (such as net_null) counts no
    bytes.
    """
    return None if packets and not octets else octets * 8 / seconds / 1e9


def unsent(rx_mpps: float | None, tx_mpps: float | None, seconds: float) -> float | None:
    """Return RX less TX over all ports, if more than a millisecond's worth: reading may take that
    long.

    Meaningless for a program that only receives or only sends.
    """
    if rx_mpps is None or not tx_mpps or seconds <= 0:
        return None
    more = rx_mpps - tx_mpps
    return more if more > rx_mpps * _READ_WITHIN_S / seconds else None


def _sum(values: Sequence[float | None]) -> float | None:
    """Return the sum; None if a value is unknown, or if there are none."""
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def lcores(before: Sample, now: Sample) -> list[LcoreFigures] | None:
    """Return figures from the receive calls if they are counted, else from the cycles of the
    program.
    """
    if now.polling is None:
        return None if now.usage is None else usage(before.usage, now.usage)
    seconds = (now.polling_at_ns - before.polling_at_ns) / 1e9
    gone_by = {
        entry.key: None if before.polling is None else polled(before.polling.get(entry.key), entry)
        for entry in now.polling.values()
    }
    found = []
    for lcore in sorted({key[0] for key in gone_by}):
        mine = {key: gone_by[key] for key in sorted(gone_by) if key[0] == lcore}
        figures = LcoreFigures(
            busy_by="polls",
            lcore=None if lcore == NO_LCORE else lcore,
            queues=[
                QueueFigures(port=port, queue=queue, **_polling([entry], seconds))
                for (_, port, queue), entry in mine.items()
            ],
            **_polling(list(mine.values()), seconds),
        )
        if lcore == NO_LCORE and len(mine) > 1:
            # Perhaps several threads: their times are no part of one core's.
            figures.busy_share = None
        found.append(figures)
    return found


def polled(before: Polling | None, now: Polling) -> Polling | None:
    """Return the differences of an entry; None if a counter fell. The limit is the last call's."""
    if before is None:
        return now
    counters = ("polls", "empty_polls", "packets", "busy_tsc", "total_tsc")
    gone_by = {name: getattr(now, name) - getattr(before, name) for name in counters}
    histogram: tuple[int, ...] | None = None
    if now.burst_histogram is not None and before.burst_histogram is not None:
        old = before.burst_histogram + (0,) * len(now.burst_histogram)
        histogram = tuple(new - old[size] for size, new in enumerate(now.burst_histogram))
    if min(gone_by.values()) < 0 or (histogram and min(histogram) < 0):
        return None
    return now.model_copy(update={**gone_by, "burst_histogram": histogram})


def _polling(entries: Sequence[Polling | None], seconds: float) -> dict[str, Any]:
    """Return the fields of `PollingFigures` from these differences; empty if one is unknown."""
    known = [entry for entry in entries if entry is not None]
    if not known or len(known) < len(entries):
        return {}
    polls = sum(entry.polls for entry in known)
    packets = sum(entry.packets for entry in known)
    empty = sum(entry.empty_polls for entry in known)
    busy = sum(entry.busy_tsc for entry in known)
    # Each counts the whole time of the lcore since its first poll.
    total = max(entry.total_tsc for entry in known)
    fields: dict[str, Any] = {"burst_limit": max(entry.burst_limit for entry in known)}
    # Busy time is counted when it ends, all at once: after a pause, more than there was time.
    exceeding = any(_exceeds(entry.busy_tsc, entry.total_tsc) for entry in known)
    # Entries without lcore ids may be several threads, with more time than one.
    if exceeding or (known[0].lcore != NO_LCORE and _exceeds(busy, total)):
        fields["busy_from_before"] = exceeding = True
    if seconds > 0:
        fields["rx_mpps"] = packets / seconds / 1e6
    if polls:
        fields["empty_polls_share"] = empty / polls
        fields["average_rx_burst"] = packets / polls
        if total > 0 and not exceeding:
            # Polls and times are counted one after the other.
            fields["busy_share"] = min(1.0, busy / total)
        full = [full_polls(entry) for entry in known]
        if None not in full:
            fields["full_polls_share"] = sum(count or 0 for count in full) / polls
    if polls > empty:
        fields["average_nonempty_rx_burst"] = packets / (polls - empty)
    if packets and not exceeding:
        fields["busy_cycles_per_packet"] = busy / packets
    histograms = [entry.burst_histogram for entry in known if entry.burst_histogram is not None]
    if len(histograms) == len(known):
        longest = max(map(len, histograms))
        padded = [histogram + (0,) * (longest - len(histogram)) for histogram in histograms]
        fields["burst_histogram"] = [sum(counts) for counts in zip(*padded, strict=True)]
    return fields


def _exceeds(busy: int, total: int) -> bool:
    return busy > total * (1 + _BUSY_TOLERANCE)


def full_polls(entry: Polling) -> int | None:
    """Return the polls that returned as many as were asked for, or more by an earlier, larger
    limit.
    """
    if entry.burst_histogram is None or entry.burst_limit > _HISTOGRAM_END:
        return None
    return sum(entry.burst_histogram[max(entry.burst_limit, 1) :])


def usage(before: LcoreUsage | None, now: LcoreUsage) -> list[LcoreFigures]:
    """Return busy time as the program reports it to DPDK."""
    old = _cycles(before) if before else {}
    found = []
    for lcore, (total, busy) in sorted(_cycles(now).items()):
        figures = LcoreFigures(lcore=lcore, busy_by="program")
        if lcore in old:
            total_by, busy_by = total - old[lcore][0], busy - old[lcore][1]
            if total_by > 0 and _exceeds(busy_by, total_by):
                figures.busy_from_before = True
            elif total_by > 0 and busy_by >= 0:
                figures.busy_share = min(1.0, busy_by / total_by)
        found.append(figures)
    return found


def _cycles(usage: LcoreUsage) -> dict[int, tuple[int, int]]:
    return {
        lcore: (total, busy)
        for lcore, total, busy in zip(
            usage.lcore_ids, usage.total_cycles, usage.busy_cycles, strict=False
        )
    }


def latency(before: Sample, now: Sample) -> list[LatencyFigures] | None:
    if now.latency is None:
        return None
    hz = now.clock.tsc_hz if now.clock else None
    return [latency_figures(before.latency, now.latency[key], hz) for key in sorted(now.latency)]


def latency_figures(
    before: Mapping[tuple[int, int, str], Latency] | None, now: Latency, hz: int | None
) -> LatencyFigures:
    figures = LatencyFigures(port=now.port, queue=now.queue, span=now.span, one_in=now.one_in)
    if before is None:
        return figures
    old, new = _histogram(before.get(now.key)), _histogram(now)
    between = None if old is None or new is None else difference(new, old)
    if between is None:
        return figures
    figures.packets = between.total
    highest = between.maximum
    if highest is None:
        return figures
    # The largest value ever is an upper bound of the rounded bucket.
    bound = now.max_tsc if now.max_tsc is not None else highest
    for name, percent in PERCENTILES.items():
        value = between.percentile(percent)
        if value is not None:
            _set(figures, name, min(value, bound), hz)
    _set(figures, "max", min(highest, bound), hz)
    return figures


def _set(figures: LatencyFigures, name: str, cycles: int, hz: int | None) -> None:
    setattr(figures, f"{name}_cycles", cycles)
    if hz:
        setattr(figures, f"{name}_ns", round(cycles * 1e9 / hz, 1))


def _histogram(entry: Latency | None) -> Histogram | None:
    """Decode an entry's histogram: empty for a missing entry; None if the answer had no
    histogram.
    """
    return Histogram() if entry is None or entry.count == 0 else entry.histogram
