# SPDX-License-Identifier: BSD-3-Clause
"""Read all counters of a program at one moment: since its start, or since their reset.

Any DPDK program answers for its ports. Polling, latency and clock come from the probe under
`/linerate/probe/`, else from the program itself under `/linerate/`; DPDK 23.03 and later answer for
lcores under `/eal/lcore/usage` if the program counts its cycles. Figures without an answer are
None.

The program is untrusted: figures and lists that no DPDK program has raise `TelemetryError`, and so
does a program that answers many questions late.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator

from linerate.host.errors import TelemetryError, UnknownCommandError
from linerate.host.process import checkpoint
from linerate.telemetry.client import Reading, Telemetry, complaint
from linerate.telemetry.hdr import Histogram, decode

PROBE = "/linerate/probe"
# rte_lcore.h: the calling thread has no lcore id.
NO_LCORE = 2**32 - 1

T = TypeVar("T")

# DPDK's counters have 64 bits.
Counter = Annotated[int, Field(ge=0, lt=2**64)]
# Histograms of bursts end at 511, and EAL knows 1,024 lcores at most (RTE_MAX_LCORE).
Counters = Annotated[tuple[Counter, ...], Field(max_length=4096)]
Word = Annotated[str, Field(max_length=1024)]
# RTE_MAX_ETHPORTS is 32 by default.
Numbers = Annotated[list[Annotated[int, Field(ge=0, lt=2**16)]], Field(max_length=1024)]
# Limit for all requests of a round, in seconds; a thousand ports that answer at once take less than
# one.
ROUND_S = 30.0


class _Answer(BaseModel):
    """Base of answers; later releases may have more fields."""

    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)


class PortStats(_Answer):
    """/ethdev/stats. The driver decides which layers the bytes include, and whether they are
    counted.

    `obytes`: absent if sent traffic is known in frames only (xdp-fwd, when a driver refused some).
    """

    ipackets: Counter
    opackets: Counter
    ibytes: Counter
    obytes: Counter | None = None
    imissed: Counter
    ierrors: Counter
    oerrors: Counter
    rx_nombuf: Counter


class Info(_Answer):
    """/ethdev/info"""

    name: Word | None = None


class Link(_Answer):
    """/ethdev/link_status"""

    status: Word
    speed: Counter | None = None


class Polling(_Answer):
    """One (lcore, port, RX queue) of /linerate/polling.

    `burst_histogram`: calls that returned 0, 1, 2, .. packets; may be longer than the limit of the
    last call, and ends at 511, which includes all larger ones.
    """

    lcore: Counter
    port: Counter
    queue: Counter
    polls: Counter
    empty_polls: Counter
    packets: Counter
    burst_limit: Counter
    burst_histogram: Counters | None = None
    busy_tsc: Counter
    total_tsc: Counter

    @property
    def key(self) -> tuple[int, int, int]:
        return (self.lcore, self.port, self.queue)


class Latency(_Answer):
    """One (port, TX queue) of /linerate/latency. `histogram` (`hdr`) is absent if `count` is 0."""

    port: Counter
    queue: Counter
    span: Word
    one_in: Counter | None = None
    count: Counter
    max_tsc: Counter | None = None
    histogram: Histogram | None = Field(default=None, alias="hdr")

    @field_validator("histogram", mode="before")
    @classmethod
    def _decode(cls, value: Any) -> Any:
        """Join and decode the histogram, which comes in several strings because telemetry limits
        their length.
        """
        if not isinstance(value, list):
            return value
        if not all(isinstance(each, str) for each in value):
            raise ValueError("a histogram is a list of strings")
        return decode("".join(value))

    @property
    def key(self) -> tuple[int, int, str]:
        return (self.port, self.queue, self.span)


class Clock(_Answer):
    """/linerate/clock"""

    tsc_hz: Annotated[int, Field(gt=0, lt=2**63)]
    clock_cost_cycles: Annotated[float, Field(ge=0)] | None = None


class Probe(_Answer):
    """/linerate/probe. `one_in` 0: it measures no latency."""

    version: Word
    polling: Word
    one_in: Counter
    rx_queues: Counter | None = None
    tx_queues: Counter | None = None
    stamped: Counter | None = None


class LcoreUsage(_Answer):
    """/eal/lcore/usage: three lists of the same length."""

    lcore_ids: Counters
    total_cycles: Counters
    busy_cycles: Counters


@dataclass(frozen=True)
class Port:
    """A port's counters, and the time when they were read (CLOCK_MONOTONIC)."""

    name: str | None
    link: Link | None
    stats: PortStats
    at_ns: float


@dataclass(frozen=True)
class Sample:
    """The answers to one round of questions."""

    at_ns: float
    ports: dict[int, Port]
    probe: Probe | None = None
    clock: Clock | None = None
    polling: dict[tuple[int, int, int], Polling] | None = None
    polling_at_ns: float = 0.0
    latency: dict[tuple[int, int, str], Latency] | None = None
    usage: LcoreUsage | None = None


class Sampler:
    """Reads the counters of one program repeatedly. One thread, like its `Telemetry`."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._until = 0.0

    def take(self) -> Sample:
        """Read all counters. Raises `TelemetryError`, and `DisconnectedError` if the program has
        ended.
        """
        self._until = time.monotonic() + ROUND_S
        # Asked each time: the probe's plain names appear when the program begins to poll.
        names = set(self._telemetry.commands())
        ports = self._ports() if "/ethdev/list" in names else {}
        polling, polling_at_ns = self._polling(names, ports)
        return Sample(
            at_ns=self._telemetry.read("/info").at_ns,
            ports=ports,
            probe=self._one(Probe, PROBE) if PROBE in names else None,
            clock=self._clock(names),
            polling=polling,
            polling_at_ns=polling_at_ns,
            latency=self._latency(names, ports),
            usage=self._usage(names),
        )

    def _ports(self) -> dict[int, Port]:
        found: dict[int, Port] = {}
        numbers = self._parse(Numbers, "/ethdev/list", self._telemetry.ask("/ethdev/list") or [])
        for port in numbers:
            command = f"/ethdev/stats,{port}"
            reading = self._read(command)
            # A port may be removed at any time.
            if reading is not None:
                info = self._one(Info, f"/ethdev/info,{port}")
                found[port] = Port(
                    name=info.name if info else None,
                    link=self._one(Link, f"/ethdev/link_status,{port}"),
                    stats=self._parse(PortStats, command, reading.value),
                    at_ns=reading.at_ns,
                )
        return found

    def _polling(
        self, names: set[str], ports: Iterable[int]
    ) -> tuple[dict[tuple[int, int, int], Polling] | None, float]:
        command = _preferred("polling", names)
        entries, at_ns = self._list(Polling, command, ports)
        if command is None or entries is None:
            return None, 0.0
        # A list too long for an answer comes without histograms; each queue then answers whole.
        cut = dict.fromkeys(
            (entry.port, entry.queue) for entry in entries if entry.burst_histogram is None
        )
        whole = {entry.key: entry for entry in self._queues(Polling, command, cut)}
        return {entry.key: whole.get(entry.key, entry) for entry in entries}, at_ns

    def _latency(
        self, names: set[str], ports: Iterable[int]
    ) -> dict[tuple[int, int, str], Latency] | None:
        command = _preferred("latency", names)
        entries, _ = self._list(Latency, command, ports)
        if command is None or entries is None:
            return None
        cut = dict.fromkeys(
            (entry.port, entry.queue)
            for entry in entries
            if entry.count and entry.histogram is None
        )
        whole = {entry.key: entry for entry in self._queues(Latency, command, cut)}
        return {entry.key: whole.get(entry.key, entry) for entry in entries}

    def _clock(self, names: set[str]) -> Clock | None:
        command = _preferred("clock", names)
        return None if command is None else self._one(Clock, command)

    def _usage(self, names: set[str]) -> LcoreUsage | None:
        command = "/eal/lcore/usage"
        return self._one(LcoreUsage, command) if command in names else None

    def _list(
        self, kind: type[T], command: str | None, ports: Iterable[int]
    ) -> tuple[list[T] | None, float]:
        """Return all entries and when they were read; None if there is no answer.

        A list too long for one answer is not sent: each port is asked separately then.
        """
        if command is None:
            return None, 0.0
        questions = [command]
        reading = self._read(command)
        if reading is None:
            questions = [f"{command},{port}" for port in ports]
        readings = [reading] if reading else [self._read(question) for question in questions]
        answered = [(q, r) for q, r in zip(questions, readings, strict=True) if r is not None]
        if not answered:
            return None, 0.0
        entries = [entry for q, r in answered for entry in self._many(kind, q, r)]
        return entries, answered[0][1].at_ns

    def _queues(self, kind: type[T], command: str, queues: Iterable[tuple[int, int]]) -> list[T]:
        found: list[T] = []
        for port, queue in queues:
            question = f"{command},{port},{queue}"
            reading = self._read(question)
            if reading is not None:
                found += self._many(kind, question, reading)
        return found

    def _read(self, command: str) -> Reading | None:
        """Read the answer; None if the program has none, or none for this port or queue (any
        more).
        """
        checkpoint()
        if time.monotonic() > self._until:
            raise TelemetryError(
                f"telemetry {self._telemetry.path}: a round of questions took longer than "
                f"{ROUND_S:g} s",
                "the program answers each one late, or has far too many ports and queues",
            )
        with contextlib.suppress(UnknownCommandError):
            return self._telemetry.read(command)
        return None

    def _one(self, kind: type[T], command: str) -> T | None:
        reading = self._read(command)
        return None if reading is None else self._parse(kind, command, reading.value)

    def _many(self, kind: type[T], command: str, reading: Reading) -> list[T]:
        # A list without entries is an empty dictionary to some releases.
        return self._parse(list[kind], command, reading.value or [])  # type: ignore[valid-type]

    def _parse(self, kind: type[T], command: str, value: Any) -> T:
        try:
            return TypeAdapter(kind).validate_python(value)
        except ValidationError as error:
            raise TelemetryError(
                f"{command} answered something else than expected: {complaint(error)}"
            ) from error


def _preferred(name: str, names: set[str]) -> str | None:
    """Return the probe's command, else the program's own."""
    for command in (f"{PROBE}/{name}", f"/linerate/{name}"):
        if command in names:
            return command
    return None
