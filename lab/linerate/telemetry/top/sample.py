# SPDX-License-Identifier: BSD-3-Clause
"""All counters of a program at one moment, as it answers them: since its start, or its reset.

Any DPDK program answers for its ports. Polling, latency and clock come from the probe under
`/linerate/probe/`, else from the program itself under `/linerate/`; DPDK 23.03 and later answer for
lcores under `/eal/lcore/usage` when the program counts its cycles. What nobody answers is None.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator

from linerate.host.errors import TelemetryError, UnknownCommandError
from linerate.telemetry.client import Reading, Telemetry
from linerate.telemetry.hdr import Histogram, decode

PROBE = "/linerate/probe"
# rte_lcore.h: the calling thread has no lcore id.
NO_LCORE = 2**32 - 1

T = TypeVar("T")


class _Answer(BaseModel):
    """Later releases may answer more than is known here."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class PortStats(_Answer):
    """/ethdev/stats. Which layers the bytes hold, and whether they are counted, is the driver's.

    `obytes`: absent where what left is known in frames only (xdp-fwd, when a driver refused some).
    """

    ipackets: int
    opackets: int
    ibytes: int
    obytes: int | None = None
    imissed: int
    ierrors: int
    oerrors: int
    rx_nombuf: int


class Info(_Answer):
    """/ethdev/info"""

    name: str | None = None


class Link(_Answer):
    """/ethdev/link_status"""

    status: str
    speed: int | None = None


class Polling(_Answer):
    """One (lcore, port, RX queue) of /linerate/polling.

    `burst_histogram`: calls that returned 0, 1, 2, .. packets; may be longer than the limit of the
    last call, and ends at 511, which then stands for all above.
    """

    lcore: int
    port: int
    queue: int
    polls: int
    empty_polls: int
    packets: int
    burst_limit: int
    burst_histogram: tuple[int, ...] | None = None
    busy_tsc: int
    total_tsc: int

    @property
    def key(self) -> tuple[int, int, int]:
        return (self.lcore, self.port, self.queue)


class Latency(_Answer):
    """One (port, TX queue) of /linerate/latency. `histogram` (`hdr`) is absent if `count` is 0."""

    port: int
    queue: int
    span: str
    one_in: int | None = None
    count: int
    max_tsc: int | None = None
    histogram: Histogram | None = Field(default=None, alias="hdr")

    @field_validator("histogram", mode="before")
    @classmethod
    def _decode(cls, value: Any) -> Any:
        """Strings of telemetry are short: it comes in several."""
        return decode("".join(value)) if isinstance(value, list) else value

    @property
    def key(self) -> tuple[int, int, str]:
        return (self.port, self.queue, self.span)


class Clock(_Answer):
    """/linerate/clock"""

    tsc_hz: int
    clock_cost_cycles: float | None = None


class Probe(_Answer):
    """/linerate/probe. `one_in` 0: it measures no latency."""

    version: str
    polling: str
    one_in: int
    rx_queues: int | None = None
    tx_queues: int | None = None
    stamped: int | None = None


class LcoreUsage(_Answer):
    """/eal/lcore/usage: three lists of the same length."""

    lcore_ids: tuple[int, ...]
    total_cycles: tuple[int, ...]
    busy_cycles: tuple[int, ...]


@dataclass(frozen=True)
class Port:
    """A port's counters and when they were read (CLOCK_MONOTONIC)."""

    name: str | None
    link: Link | None
    stats: PortStats
    at_ns: float


@dataclass(frozen=True)
class Sample:
    """What one round of questions brought."""

    at_ns: float
    ports: dict[int, Port]
    probe: Probe | None = None
    clock: Clock | None = None
    polling: dict[tuple[int, int, int], Polling] | None = None
    polling_at_ns: float = 0.0
    latency: dict[tuple[int, int, str], Latency] | None = None
    usage: LcoreUsage | None = None


class Sampler:
    """Asks one program again and again. One thread, as its `Telemetry`."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry

    def take(self) -> Sample:
        """Raises `TelemetryError`, and `DisconnectedError` when the program has ended."""
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
        numbers = self._parse(list[int], "/ethdev/list", self._telemetry.ask("/ethdev/list") or [])
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
        """All entries and when they were read; None when there is no answer.

        A list too long for one answer is no answer: each port then answers for itself.
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
        """None when the program has no answer, or none for this port or queue (any more)."""
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
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise TelemetryError(
                f"{command} answered something else than expected: {where}: {first['msg']}"
            ) from error


def _preferred(name: str, names: set[str]) -> str | None:
    """The probe's command, else the program's own."""
    for command in (f"{PROBE}/{name}", f"/linerate/{name}"):
        if command in names:
            return command
    return None
