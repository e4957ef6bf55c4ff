# SPDX-License-Identifier: BSD-3-Clause
"""Trial records: one JSON object per line of records.jsonl.

A figure that cannot be had is absent, never 0; a trial that failed carries `invalid` with the
reason. A line is in the file whole or not at all, and on disk before the next trial starts.
The JSON Schema in `schema/trial-1.json` is generated from these classes (a test compares them).

Units: counts are frames since the trial's start; sizes are bytes with the 4-byte FCS.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError

from linerate.host.errors import OutputError, RunError
from linerate.records.cloud_window import CloudCell, CloudWindow
from linerate.records.types import Count, Difference, Quantiles, Rate, Seconds, Strict

RECORDS = "records.jsonl"

# burst: so many frames back to back.
Load = Literal["self-driven", "flood", "paced", "burst"]
# probed: like measure, for the figures of polls alone; search: asked for by a procedure; alone: of
# experiment cloud, tenants without a forwarder.
Role = Literal["measure", "self-test", "probed", "lower-load", "search", "alone"]
# The tests of RFC 2544, 26.1 to 26.5; core-use: what a polling core does at fixed loads; low-load:
# what is lost there is shown (docs/how-it-measures.md#spread-and-disturbance).
# spans: how long frames are inside the forwarder, as it measures itself or the probe does.
# ping: round trips by a packet socket instead of the generator.
Test = Literal[
    "throughput", "latency", "loss", "back-to-back", "recovery", "core-use", "low-load", "spans",
    "ping",
]  # fmt: skip
# What the frames are: UDP over IP, or requests by ARP.
Protocol = Literal["udp", "arp"]
# Of traffic on a link with two ports: from the first to the other, or both ways at once.
Directions = Literal["one", "both"]
DIRECTIONS: dict[str, Directions] = {"one": "one", "both": "both"}
# Why a trial does not count, for programs; `invalid` says it in words.
# ended: a process; starved: of its CPU; idle: nothing was carried; kept: not passed on;
# unreadable: counters could not be read in time; work: a graph did other work than the baseline;
# tenant: one did not work, or not to the end.
InvalidCode = Literal[
    "ended", "starved", "late", "books", "idle", "kept", "unreadable", "telemetry", "generator",
    "link", "error", "work", "tenant",
]  # fmt: skip
CpuPart = Literal["process", "napi", "softirq"]
# dpdk-af-xdp: DPDK on AF_XDP; xdp: an XDP program forwards; kernel: packets pass the kernel's ways.
Kind = Literal["dpdk", "dpdk-af-xdp", "xdp", "kernel"]


class Polling(Strict):
    """Core use of one (lcore, port, RX queue): differences over the window.

    The fields: docs/how-it-measures.md#telemetry-polling.
    """

    lcore: int
    port: int
    queue: int
    polls: Count
    empty_polls: Count
    packets: Count
    burst_limit: Count
    burst_histogram: list[Count]
    busy_tsc: Count
    total_tsc: Count


class LatencyFigures(Strict):
    """Of the frames that came back, from the moment each was sent (stamped in software)."""

    count: Count
    minimum_ns: float
    mean_ns: float
    maximum_ns: float
    quantiles_ns: Quantiles = Field(
        default_factory=dict, description="by quantile, 0.5 being the median"
    )
    jitter_rfc3550_ns: float | None = Field(
        default=None, description="as the sender smooths it, for comparison with published figures"
    )
    ipdv_quantiles_ns: Quantiles = Field(
        default_factory=dict,
        description="by quantile: how much the delays of two frames in a row differ (RFC 3393), "
        "without the sign",
    )


class Clock(Strict):
    """The time stamp counter as the program that stamps knows it, and as the lab checked it."""

    tsc_hz: Annotated[int, Field(gt=0, lt=2**63)]
    cost_cycles: Count = Field(description="of one reading, as the program measured it")
    checked_hz: Rate | None = Field(
        default=None,
        description="cycles over CLOCK_MONOTONIC, measured by the lab as its session began",
    )
    checked_within_ppm: Rate | None = Field(default=None, description="how exact that is")


class Span(Strict):
    """How long frames were inside the forwarder, of one (port, TX queue): /linerate/latency."""

    span: str
    port: int
    queue: int
    one_in: Count = Field(description="of so many bursts one was measured, on average")
    sampled: Count = Field(description="bursts")
    count: Count = Field(description="frames")
    mean_cycles: float
    quantiles_cycles: Quantiles


class ChangeFigures(Strict):
    """A trial whose rate changed under way, without a pause: RFC 2544, 26.5."""

    before_intended: Count
    before_received: Count
    after_intended: Count
    after_received: Count
    last_lost_s: Seconds | None = Field(
        default=None, description="from the change to the end of the last slice that lost frames"
    )
    slice_s: Seconds | None = Field(default=None, description="how long that slice is")


class Process(Strict):
    """One process of the trial."""

    role: str
    argv: list[str]
    cpus: list[int] = Field(min_length=1)
    voluntary_switches: int | None = None
    involuntary_switches: int | None = None
    ran_s: float | None = Field(default=None, description="CPU time of all threads")
    waited_s: float | None = Field(
        default=None, description="its busiest thread was ready to run while others had the CPU"
    )


class CpuTime(Strict):
    """Of the forwarder's end, within the window.

    process: all threads of the forwarder; napi: the kernel's threads that receive for it; softirq:
    of its core, to 1/100 s, in part within the other two.
    """

    of: CpuPart
    cpus: list[int] = Field(min_length=1)
    seconds: Seconds


class GraphWindow(Strict):
    """One window of experiment graph: so many walks of a graph over objects that its sources make.

    work: a digest of what the nodes left in the objects, by which windows of as many walks compare.
    """

    walks: Count
    objects: Count = Field(description="that the sources made")
    sunk: Count = Field(description="that the sinks got")
    tsc_cycles: Count
    tsc_hz: Annotated[int, Field(gt=0, lt=2**63)]
    work: str
    path_nodes: Count | None = Field(
        default=None, description="workers that each object passes: neither source nor sink"
    )

    @property
    def objects_per_s(self) -> float | None:
        return self.objects * self.tsc_hz / self.tsc_cycles if self.tsc_cycles else None

    @property
    def cycles_per_object(self) -> float | None:
        return self.tsc_cycles / self.objects if self.objects else None


def is_graph(link: str) -> bool:
    """Whether a record's `link` is a cell of experiment graph: no link has such a name."""
    return "/" in link


def cell_words(link: str, size: int, between: str = " ") -> str:
    """A cell as it is called in sentences and tables; a graph's name has all in it."""
    return link if is_graph(link) else f"{link}{between}{size} B"


class TxBuffer(Strict):
    """Frames wait in it until there are so many, or until it is drained, every so often."""

    frames: Annotated[int, Field(ge=1)]
    drain_s: Seconds

    def longest_s(self, pps: float) -> float:
        """Return the longest wait of a frame when so many come per second, at equal distances."""
        return min((self.frames - 1) / pps, self.drain_s)


class Program(Strict):
    """What reports say of a forwarder, as the build that ran it knew it."""

    language: str
    kind: Kind | None = Field(default=None, description="absent: not known")
    tx_buffer: TxBuffer | None = Field(
        default=None, description="in which it collects frames before it sends them, if it does"
    )
    definition: str | None = Field(
        default=None,
        description="SHA-256 of the forwarder's definition, as canonical JSON without description; "
        "absent: of an older version",
    )


class Trial(Strict):
    """One trial: one independent run of the forwarder."""

    schema_id: Literal["linerate/trial-1"] = Field(default="linerate/trial-1", alias="schema")
    experiment: str
    seed: int
    session: int = Field(
        default=1, ge=1, description="the attempt in which it ran: a resumed run has several"
    )
    block: int = Field(ge=0, description="randomised complete block, counted from 0")
    position: int = Field(ge=0, description="place in the order of the whole run, counted from 0")
    role: Role
    arm: str
    forwarder: str
    program: Program | None = Field(default=None, description="absent: of an older version")
    link: str = Field(
        description="of experiment graph: the cell, such as chain4/swap/hash5/nostats/256"
    )
    size: int = Field(
        description="frame size in bytes, the 4-byte FCS included; of experiment graph: objects in "
        "a batch"
    )
    load: Load
    load_share: float | None = Field(default=None, description="of the ceiling, when paced")
    probe: bool = Field(default=False, description="the probe looked at the forwarder's polls")
    test: Test | None = Field(default=None, description="of a search: the test that asked for it")
    attempt: int | None = Field(
        default=None,
        description="of a search: 1, or more when the windows before were disturbed and are void",
    )
    maximum_pps: Rate | None = Field(
        default=None, description="of a search: 100 %, the ceiling of link and sender"
    )
    asked_pps: Rate | None = Field(
        default=None, description="of a search: frames per second, over all directions"
    )
    asked_s: Seconds | None = Field(default=None, description="of a search: for so long")
    asked_frames: Count | None = Field(
        default=None, description="of a burst: so many frames, over all directions"
    )
    ip: Literal[4, 6] | None = None
    directions: Directions | None = None
    protocol: Protocol | None = Field(default=None, description="absent: udp")
    started_at: str = Field(description="UTC, ISO 8601")
    invalid: str | None = Field(default=None, description="why the trial does not count, in words")
    invalid_code: InvalidCode | None = Field(default=None, description="the same, for programs")

    duration_s: Seconds | None = Field(default=None, description="of the window or the sending")
    duration_uncertainty_s: Seconds | None = None
    intended: Count | None = None
    attempted: Count | None = None
    refused: Count | None = Field(default=None, description="flood only: back-pressure, not loss")
    lost_at_ingress: Count | None = None
    late: Count | None = None
    accepted: Count | None = None
    forwarder_rx: Count | None = None
    forwarder_tx: Count | None = None
    forwarder_drops: Difference | None = Field(
        default=None, description="forwarder_rx less forwarder_tx, below 0 where it sent more"
    )
    received: Count | None = None
    link_drops: dict[str, Difference] = Field(
        default_factory=dict,
        description="lost between the programs, by place; below 0: of an earlier window",
    )
    unattributed: Difference | None = Field(
        default=None, description="below 0 where more came back than was sent"
    )
    pacing_error_ppm: float | None = None

    latency: LatencyFigures | None = None
    spans: list[Span] | None = Field(default=None, description="inside the forwarder")
    clock: Clock | None = Field(default=None, description="that stamped for latency or spans")
    then_pps: Rate | None = Field(default=None, description="of a search: asked for thereafter")
    then_s: Seconds | None = None
    change: ChangeFigures | None = None

    tsc_hz: Count | None = None
    polling: list[Polling] | None = Field(default=None, description="as the probe saw them")
    steal_ticks: dict[str, Difference] = Field(default_factory=dict, description="per CPU, 1/100 s")
    processes: list[Process] = Field(default_factory=list)
    cpu_time: list[CpuTime] | None = Field(
        default=None,
        description="what the window cost the forwarder's core, if known",
    )
    graph: GraphWindow | None = None
    cloud: CloudWindow | None = Field(
        default=None, description="of experiment cloud: the cell, and what was beside the forwarder"
    )
    build: dict[str, str] = Field(default_factory=dict, description="of what the lab built")
    memory: Literal["hugepages", "no-huge"] | None = None

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    @property
    def valid(self) -> bool:
        return self.invalid is None

    @property
    def bed(self) -> tuple[int, int]:
        """Names, within a cell and role, the trials that shared one bed: only these make pairs.

        A block is one bed at one moment. Where a run was interrupted in the middle of a block and
        resumed, the block's other trials ran on another bed, later (`linerate.records.journal`).
        """
        return self.block, self.session

    @property
    def cloud_cell(self) -> CloudCell | None:
        """Of experiment cloud: which combination of levels it is of."""
        return self.cloud.cell if self.cloud else None

    def reject(self, code: InvalidCode, why: str) -> None:
        """The trial does not count; the first reason stays."""
        if self.valid:
            self.invalid_code, self.invalid = code, why

    @property
    def forwarder_rx_pps(self) -> float | None:
        return _rate(self.forwarder_rx, self.duration_s)

    @property
    def received_pps(self) -> float | None:
        return _rate(self.received, self.duration_s)

    @property
    def window_cycles_per_packet(self) -> float | None:
        """All cycles of the window over its packets: what a packet costs a core that is full."""
        if not self.tsc_hz or not self.forwarder_rx or not self.duration_s:
            return None
        return self.tsc_hz * self.duration_s / self.forwarder_rx

    @property
    def busy_cycles_per_packet(self) -> float | None:
        """Busy cycles over packets, where the program reports them."""
        packets = sum(entry.packets for entry in self.polling or ())
        return sum(entry.busy_tsc for entry in self.polling or ()) / packets if packets else None

    def cpu_seconds(self, *parts: CpuPart) -> float | None:
        """The time of these parts together; None where one of them is not known."""
        found = {each.of: each.seconds for each in self.cpu_time or ()}
        if any(part not in found for part in parts):
            return None
        return sum(found[part] for part in parts)

    def cpu_ns_per_packet(self, *parts: CpuPart) -> float | None:
        """Their time over the frames that came back: what was done for lost ones is paid, too."""
        seconds = self.cpu_seconds(*parts)
        return seconds / self.received * 1e9 if seconds is not None and self.received else None

    @property
    def average_rx_burst(self) -> float | None:
        """Packets per poll, the published metric."""
        polls = sum(entry.polls for entry in self.polling or ())
        return sum(entry.packets for entry in self.polling or ()) / polls if polls else None

    @property
    def average_nonempty_rx_burst(self) -> float | None:
        """Packets per poll that found some."""
        polls = sum(entry.polls - entry.empty_polls for entry in self.polling or ())
        return sum(entry.packets for entry in self.polling or ()) / polls if polls else None

    @property
    def busy_share(self) -> float | None:
        """Busy cycles over all cycles of the lcores that polled.

        Each queue of an lcore counts the whole time of that lcore.
        """
        totals: dict[int, int] = {}
        for entry in self.polling or ():
            totals[entry.lcore] = max(totals.get(entry.lcore, 0), entry.total_tsc)
        total = sum(totals.values())
        busy = sum(entry.busy_tsc for entry in self.polling or ())
        # Busy time and all time are read one after the other.
        return min(busy / total, 1.0) if total else None

    @property
    def full_share(self) -> float | None:
        """Polls that returned as many packets as they asked for, over polls."""
        polls = sum(entry.polls for entry in self.polling or ())
        full = sum(sum(e.burst_histogram[max(e.burst_limit, 1) :]) for e in self.polling or ())
        return full / polls if polls else None

    @property
    def rx_spin(self) -> float | None:
        """Polls that found nothing, over polls."""
        polls = sum(entry.polls for entry in self.polling or ())
        return sum(entry.empty_polls for entry in self.polling or ()) / polls if polls else None


def _rate(count: int | None, seconds: float | None) -> float | None:
    return count / seconds if count is not None and seconds else None


def dump(trial: Trial) -> str:
    """The record as one line of JSON, absent figures left out."""
    data = trial.model_dump(mode="json", by_alias=True, exclude_none=True)
    return json.dumps(data, separators=(",", ":"))


def schema() -> dict[str, Any]:
    """JSON Schema of one line."""
    document = Trial.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **document}


class RecordWriter:
    """Appends records; one writer per file. Each `append` returns after fsync.

    `torn`: bytes of an unfinished last line, which a crash left and which were cut off.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._fd = os.open(path, os.O_CREAT | os.O_RDWR | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise OutputError(
                f"cannot write {path}: {error.strerror}", "choose another --out"
            ) from error
        content = path.read_bytes()
        self._end = _whole_lines(content)
        self.torn = len(content) - self._end
        os.ftruncate(self._fd, self._end)

    def append(self, trial: Trial) -> None:
        line = (dump(trial) + "\n").encode()
        try:
            written = os.write(self._fd, line)
            if written == len(line):
                os.fsync(self._fd)
                self._end += written
                return
            reason = "no space left"
        except OSError as error:
            reason = error.strerror or str(error)
        os.ftruncate(self._fd, self._end)
        raise OutputError(
            f"cannot write {self.path}: {reason}", "free some space, or choose another --out"
        )

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _whole_lines(content: bytes) -> int:
    """Length up to the last newline: a line cut off by a crash does not count."""
    return content.rfind(b"\n") + 1


@dataclass(frozen=True)
class Scan:
    """A file's whole records, and how many bytes of an unfinished last line follow them."""

    trials: list[Trial]
    torn: int


def scan(path: Path) -> Scan:
    """Read a file that a crash may have left; raises `RunError` with the line that is no record."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror}") from error
    end = _whole_lines(content)
    trials = []
    # Not splitlines(), which takes other characters for the end of a line, too.
    for number, line in enumerate(content[:end].split(b"\n")[:-1], start=1):
        try:
            trials.append(Trial.model_validate_json(line))
        except ValidationError as error:
            raise RunError(
                f"{path}, line {number}: no record of a trial: {first_complaint(error)}",
                "the file was changed, or another version of linerate wrote it",
            ) from error
    return Scan(trials, len(content) - end)


def first_complaint(error: ValidationError) -> str:
    """The first thing that is wrong, with the field's name."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg']}" if where else first["msg"]


def read(path: Path) -> list[Trial]:
    """All whole records of a file."""
    return scan(path).trials
