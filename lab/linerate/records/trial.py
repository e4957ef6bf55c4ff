# SPDX-License-Identifier: BSD-3-Clause
"""Trial records: one JSON object per line of records.jsonl.

A record has the trial's identity (`Identity`), its cell (a `TrialCell`), its program
(`ProgramRun`), the request (`Request`), and the result (an `Outcome` of a class that belongs to the
experiment). A trial that failed carries `invalid` with the reason; without an outcome it failed
before there was any. An unknown figure is absent, never 0.

A line is in the file complete or not at all, and on disk before the next trial starts. Lines are
written by schema `linerate/trial-2`; those of `linerate/trial-1` are read as well, line by line
(`linerate.records.trial_1`). The JSON Schema in `schema/trial-2.json` is generated from these
classes (a test compares them).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    SerializeAsAny,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import from_json

from linerate.host import foreign
from linerate.host.errors import OutputError, RunError
from linerate.records import trial_1
from linerate.records.cells import TrialCell
from linerate.records.outcome import NO_FRAMES, Frames, Outcome
from linerate.records.output_paths import reached
from linerate.records.types import Count, Difference, Rate, Seconds, Strict

RECORDS = "records.jsonl"
# The id of hosts and cabling where a run does not name any: this machine, without cables.
LOCAL_BED = "local"

# burst: a number of frames back to back.
Load = Literal["self-driven", "flood", "paced", "burst"]
# probed: like measure, for the figures of polls alone; search: asked for by a procedure; alone: of
# experiment cloud, tenants without a forwarder.
Role = Literal["measure", "self-test", "probed", "lower-load", "search", "alone"]
# The tests of RFC 2544, 26.1 to 26.5; core-use: the figures of a polling core at fixed loads;
# low-load: shows the loss there (docs/how-it-measures.md#spread-and-disturbance). spans: how long
# frames are inside the forwarder, measured by itself or the probe. ping: round trips by a packet
# socket instead of the generator.
Test = Literal[
    "throughput", "latency", "loss", "back-to-back", "recovery", "core-use", "low-load", "spans",
    "ping",
]  # fmt: skip
# The kind of frames: UDP over IP, or ARP requests.
Protocol = Literal["udp", "arp"]
# Traffic on a link with two ports: from the first to the other, or both ways at once.
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
# Disturbances by other work of the machine; the next window may be valid.
DISTURBED: tuple[InvalidCode, ...] = ("late", "starved")
# The least share of a CPU's time with which other processes are named in words.
NAMED_SHARE = 0.005
# dpdk-af-xdp: DPDK on AF_XDP; xdp: an XDP program forwards; kernel: packets pass the kernel's ways.
Kind = Literal["dpdk", "dpdk-af-xdp", "xdp", "kernel"]


# fresh: the program was started for this trial, or for this arm of this block. standing: programs
# of several arms run at once and the scheduler shares the core out. turns: they are started
# together, and one runs while the others are stopped.
Method = Literal["fresh", "standing", "turns"]


# The context of a validator for a line that was read.
_ON_RECORD = {"on": "record"}


class WrongOutcomeError(LookupError):
    """The trial has an outcome of another kind than the requested figures."""


class Process(Strict):
    """One process of the trial."""

    role: str
    argv: list[str]
    cpus: list[int] = Field(min_length=1)
    voluntary_switches: int | None = None
    involuntary_switches: int | None = None
    ran_s: float | None = Field(default=None, description="CPU time of all threads")
    waited_s: float | None = Field(
        default=None,
        description="time in which its busiest thread was ready to run while others had the CPU",
    )


class TxBuffer(Strict):
    """A buffer in which frames wait until it is full, or until it is drained, once per period."""

    frames: Annotated[int, Field(ge=1)]
    drain_s: Seconds

    def longest_s(self, pps: float) -> float:
        """Return the longest wait (s) of a frame in the buffer at a constant rate of `pps`."""
        return min((self.frames - 1) / pps, self.drain_s)


class Program(Strict):
    """Facts about a forwarder for reports, from the build that ran it."""

    language: str
    kind: Kind | None = Field(default=None, description="absent: not known")
    tx_buffer: TxBuffer | None = Field(
        default=None,
        description="the buffer in which it collects frames before it sends them, if it does",
    )
    definition: str | None = Field(
        default=None,
        description="SHA-256 of the forwarder's definition, as canonical JSON without description; "
        "absent: of an older version",
    )


class Identity(Strict):
    """The identity of a trial. Two trials of one run differ in `position`."""

    experiment: str
    seed: int
    run: str | None = Field(
        default=None, description="id of the run that measured it; absent: of trial-1"
    )
    bed: str = Field(default=LOCAL_BED, description="the hosts and their cabling")
    session: int = Field(
        default=1, ge=1, description="the session in which it ran: a resumed run has several"
    )
    block: int = Field(ge=0, description="randomised complete block, counted from 0")
    start: Count | None = Field(
        default=None,
        description="start of the program within the session, counted from 0; trials of one "
        "process have the same. Absent: it was not started, or of trial-1",
    )
    arm: str
    slot: Count | None = Field(
        default=None,
        description="place within the block: with method fresh that of the start, counted "
        "from 0 on each open link. Absent: as `start`, and if one process runs "
        "all arms",
    )
    position: int = Field(ge=0, description="place in the order of the whole run, counted from 0")
    role: Role


class ProgramRun(Strict):
    """The program of a trial, and how it ran."""

    forwarder: str
    described: Program | None = Field(default=None, description="absent: of an older version")
    probe: bool = Field(
        default=False, description="whether the probe counted the forwarder's polls"
    )
    build: dict[str, str] = Field(default_factory=dict, description="facts about the lab's build")
    memory: Literal["hugepages", "no-huge"] | None = None
    tsc_hz: Count | None = None
    processes: list[Process] = Field(default_factory=list)


class Request(Strict):
    """The traffic that the trial was to send, and its purpose. Rates and frames are over all
    directions.
    """

    load: Load
    load_share: float | None = Field(default=None, description="share of the ceiling, when paced")
    test: Test | None = Field(default=None, description="in a search: the test that requested it")
    attempt: int | None = Field(
        default=None,
        description="1, or more if the windows before were disturbed and are void",
    )
    maximum_pps: Rate | None = Field(
        default=None,
        description="100 %: in a search the ceiling of link and sender; in experiment cloud "
        "the rate of which `load_share` is a share",
    )
    alone_pps: Rate | None = Field(
        default=None,
        description="experiment cloud: the forwarder's own rate without loss, if it was "
        "searched; `maximum_pps` is less if the generator keeps a lower rate "
        "beside tenants",
    )
    alone_again_pps: Rate | None = Field(
        default=None,
        description="experiment cloud: the rate of the search that confirms `alone_pps`, or the "
        "second highest if none does, 0 if no other found one; absent if it was searched once, as "
        "in older runs",
    )
    pps: Rate | None = Field(default=None, description="frames per second")
    seconds: Seconds | None = Field(default=None, description="duration of sending")
    frames: Count | None = Field(default=None, description="number of frames of a burst")
    then_pps: Rate | None = Field(default=None, description="in a search: the rate that follows")
    then_s: Seconds | None = None
    ip: Literal[4, 6] | None = None
    directions: Directions | None = None
    protocol: Protocol | None = Field(default=None, description="absent: udp")


class Invalid(Strict):
    """The reason why a trial does not count: `code` for programs, `why` in words."""

    code: InvalidCode = "error"
    why: str

    def __str__(self) -> str:
        return self.why


class Trial(Strict):
    """One trial: one window, of a forwarder or of another subject that its experiment measures."""

    schema_id: Literal["linerate/trial-2"] = Field(default="linerate/trial-2", alias="schema")
    identity: Identity
    cell: Annotated[SerializeAsAny[TrialCell], BeforeValidator(TrialCell.read)]
    program: ProgramRun
    request: Request
    method: Method = Field(default="fresh", description="how programs share core and time")
    started_at: str = Field(description="UTC, ISO 8601")
    steal_ticks: dict[str, Difference] = Field(default_factory=dict, description="per CPU, 1/100 s")
    others: dict[str, dict[str, float]] | None = Field(
        default=None,
        description="per CPU: the share of the time that each process outside the lab used "
        "it, by name, the greatest ones; absent: this user may not see it, or the "
        "CPU has too many switches to record",
    )
    rejected: Invalid | None = Field(
        default=None,
        alias="invalid",
        description="absent: it is valid, unless the outcome's slices say otherwise",
    )
    outcome: Annotated[SerializeAsAny[Outcome], BeforeValidator(Outcome.read)] | None = Field(
        default=None, description="absent: it failed before there was any"
    )

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    @model_validator(mode="after")
    def _ended(self, info: ValidationInfo) -> Trial:
        """Check that a trial on record is over: it failed, or has an outcome."""
        if info.context is _ON_RECORD and self.rejected is None and self.outcome is None:
            raise ValueError("it has neither an outcome nor a reason for having none")
        return self

    # -- which trial it is ------------------------------------------------------------------------

    @property
    def experiment(self) -> str:
        return self.identity.experiment

    @property
    def seed(self) -> int:
        return self.identity.seed

    @property
    def session(self) -> int:
        return self.identity.session

    @property
    def block(self) -> int:
        return self.identity.block

    @property
    def position(self) -> int:
        return self.identity.position

    @property
    def role(self) -> Role:
        return self.identity.role

    @property
    def arm(self) -> str:
        return self.identity.arm

    @property
    def forwarder(self) -> str:
        return self.program.forwarder

    @property
    def pairing(self) -> tuple[int, int]:
        """The key, within a cell and role, of the trials on one open link: only these make pairs.

        A block is one open link at one moment. If a run was interrupted in a block and resumed, the
        block's other trials ran on another link, later (`linerate.records.journal`).
        """
        return self.block, self.session

    def with_identity(self, **changes: object) -> Trial:
        """Return the same trial under another identity, such as another `arm` or `block`."""
        return self.model_copy(update={"identity": self.identity.model_copy(update=changes)})

    # -- whether it counts ------------------------------------------------------------------------

    @property
    def invalid(self) -> Invalid | None:
        """Why it does not count: it was rejected, or its slices were disturbed; None if it
        counts.
        """
        if self.rejected or self.outcome is None or (why := self.outcome.disturbed) is None:
            return self.rejected
        return Invalid(code="starved", why=why)

    @property
    def valid(self) -> bool:
        return self.invalid is None

    @property
    def invalid_code(self) -> InvalidCode | None:
        found = self.invalid
        return found.code if found else None

    @property
    def invalid_why(self) -> str | None:
        """The reason in words; None if it counts."""
        found = self.invalid
        return found.why if found else None

    @property
    def neighbours(self) -> str:
        """The processes that used the lab's CPUs during the trial, in words: `CPU 0: cc1 46 %, as 2
        %`; empty if there were none.
        """
        shares = {
            cpu: ", ".join(
                f"{name} {share:.0%}" for name, share in found.items() if share >= NAMED_SHARE
            )
            for cpu, found in (self.others or {}).items()
        }
        return "; ".join(f"CPU {cpu}: {who}" for cpu, who in shares.items() if who)

    def reject(self, code: InvalidCode, why: str) -> None:
        """Mark the trial as invalid; the first reason stays."""
        if self.rejected is None:
            self.rejected = Invalid(code=code, why=why)

    # -- what it found ----------------------------------------------------------------------------

    @property
    def has_frames(self) -> bool:
        """True if `frames` has counts of this trial."""
        return isinstance(self.outcome, Frames)

    @property
    def frames(self) -> Frames:
        """The frames that it counted; all figures are absent if it failed before it counted any.

        Raises `WrongOutcomeError` if its experiment counts something else.
        """
        if self.outcome is None:
            return NO_FRAMES
        if not isinstance(self.outcome, Frames):
            raise WrongOutcomeError(
                f"trial {self.position} of experiment {self.experiment} has no frames, but an "
                f"outcome of kind {self.outcome.kind!r}"
            )
        return self.outcome

    @property
    def window_cycles_per_packet(self) -> float | None:
        """All cycles of the window per packet: the cost of a packet on a fully loaded core."""
        frames, tsc_hz = self.frames, self.program.tsc_hz
        if not tsc_hz or not frames.forwarder_rx or not frames.duration_s:
            return None
        return tsc_hz * frames.duration_s / frames.forwarder_rx


# Fields that identify trials in the order of a run, beside those of `Identity` and `Request`: a
# cell by the two words that designs use for it.
_FIELDS: dict[str, Callable[[Trial], object]] = {
    "link": lambda trial: trial.cell.name,
    "size": lambda trial: trial.cell.key[1],
    "cell": lambda trial: trial.cell,
}


def field(trial: Trial, name: str) -> object:
    """Return a field that identifies a trial: `link`, `size`, `cell`, or one of `Identity`,
    `Request`.

    Raises `AttributeError` for another.
    """
    if name in _FIELDS:
        return _FIELDS[name](trial)
    part = trial.identity if name in Identity.model_fields else trial.request
    found: object = getattr(part, name)
    return found


def dump(trial: Trial) -> str:
    """Return the record as one line of JSON, absent figures left out."""
    data = trial.model_dump(mode="json", by_alias=True, exclude_none=True)
    return json.dumps(data, separators=(",", ":"))


def parse(line: bytes | str) -> Trial:
    """Parse the record of one line, of either schema; raises `ValidationError`."""
    try:
        data = from_json(line)
    except ValueError:
        data = None
    if not isinstance(data, dict):
        return Trial.model_validate_json(line)
    if data.get("schema") == trial_1.SCHEMA:
        data = trial_1.converted(data)
    return Trial.model_validate(data, context=_ON_RECORD)


def schema() -> dict[str, Any]:
    """Return the JSON Schema of one line, with the cells and outcomes of all loaded experiments."""
    document = Trial.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **document}


class RecordWriter:
    """Appends records; one writer per file. Each `append` returns after fsync.

    `torn`: bytes of an unfinished last line that a crash left, and that were cut off.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            flags = os.O_CREAT | os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            with reached(path) as there:
                self._fd = os.open(there, flags, 0o644)
        except OSError as error:
            raise OutputError(
                f"cannot write {path}: {error.strerror}", "choose another --out"
            ) from error
        try:
            content = foreign.content(path, foreign.MOST_RECORDS)
        except OSError as error:
            self.close()
            raise OutputError(f"cannot read {path}: {error.strerror}") from error
        self._end = end_of_lines(content)
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


def end_of_lines(content: bytes) -> int:
    """Return the length up to the last newline: a line cut off by a crash does not count."""
    return content.rfind(b"\n") + 1


@dataclass(frozen=True)
class Scan:
    """The complete records of a file, and the size in bytes of an unfinished last line."""

    trials: list[Trial]
    torn: int


def scan(path: Path) -> Scan:
    """Read a file that a crash may have left; raises `RunError` with the line that is no record."""
    trials: list[Trial] = []
    # The line, by position, which is unique in a run. Benchmarks keep many runs in a file, each
    # with a seed of its own.
    lines: dict[tuple[str | None, int, int], int] = {}
    try:
        with foreign.opened(path, foreign.MOST_RECORDS) as file:
            number = 1
            # One byte more than the limit: a longer line has no newline there.
            while (line := file.readline(foreign.MOST_RECORD + 1)).endswith(b"\n"):
                trial = _record(path, number, line)
                place = (trial.identity.run, trial.identity.seed, trial.position)
                if (first := lines.setdefault(place, number)) != number:
                    raise RunError(
                        f"{path}, line {number}: the trial at position {trial.position}, which is "
                        f"in line {first} already",
                        "lines were doubled: each trial would count twice",
                    )
                trials.append(trial)
                number += 1
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror}") from error
    if len(line) > foreign.MOST_RECORD:
        raise RunError(
            f"{path}, line {number}: no record of a trial: longer than "
            f"{foreign.MOST_RECORD // foreign.MIB} MiB",
            "the file was changed",
        )
    return Scan(trials, len(line))


def _record(path: Path, number: int, line: bytes) -> Trial:
    try:
        return parse(line.removesuffix(b"\n"))
    except ValidationError as error:
        raise RunError(
            f"{path}, line {number}: no record of a trial: {first_complaint(error)}",
            "the file was changed, or another version of linerate wrote it",
        ) from error


def first_complaint(error: ValidationError) -> str:
    """Return the first error, with the field's name; both may be of any length in a changed file,
    and are cut.
    """
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(f"{part!s:.80}" for part in first["loc"])
    message = f"{first['msg']:.400}"
    return f"{where:.200}: {message}" if where else message


def read(path: Path) -> list[Trial]:
    """Read all complete records of a file."""
    return scan(path).trials
