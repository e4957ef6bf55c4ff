# SPDX-License-Identifier: BSD-3-Clause
"""The plan of an experiment's session: its needs, and its steps in their order.

A plan is a generator of steps. `linerate.runs.engine` runs them one after the other and sends back
the result of each, so that the next ones may depend on it. A plan touches no process and no file:
it decides from its options, its seed and the trials so far. That makes a run resumable: the engine
goes through the plan again, and takes results from the records as far as they go.

    def steps(self) -> Steps[None]:
        for cell in self.cells:
            yield Announce(f"{cell.link} {cell.size} B")
            trial: Trial = yield OnSetup(cell, lambda setup: self.block(setup, cell))
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from linerate.records.cells import Arm, Cell
from linerate.records.trial import (
    DISTURBED,
    Directions,
    InvalidCode,
    Load,
    Method,
    Role,
    Test,
    Trial,
)
from linerate.runs.options import Options
from linerate.traffic.otg import Ip
from linerate.traffic.other_generator import OtherGenerator
from linerate.trial.link_setup import LinkSetup
from linerate.trial.search.device import Outcome, TestedDevice
from linerate.trial.search.setup_device import Terms
from linerate.trial.trial import Bench

T = TypeVar("T")
Record = Callable[[Trial], None]


class Step:
    """Base of the steps below."""


# A generator of steps that receives the result of each.
Steps = Generator[Step, Any, T]


@dataclass(frozen=True)
class Announce(Step):
    """Announce the next step for the progress display."""

    text: str


@dataclass(frozen=True)
class Say(Step):
    """Print a line that stays."""

    text: str


@dataclass(frozen=True)
class Rest(Step):
    """Do nothing for a time, in which a disturbance may end. `why`: in words."""

    seconds: float
    why: str


@dataclass(frozen=True)
class More(Step):
    """Change the number of planned trials; below 0: fewer."""

    trials: int


@dataclass(frozen=True)
class OnSetup(Step):
    """Run steps on an open link, with a sender if it has one. Its result is what they return.

    `flood`: for floods only, which the sender does not pace. `sender`: False if another program of
    the plan sends.
    """

    cell: Cell
    steps: Callable[[LinkSetup], Steps[Any]]
    flood: bool = False
    sender: bool = True


@dataclass(frozen=True)
class BlockOver(Step):
    """End a block: from now on the remaining time can be estimated."""


@dataclass(frozen=True)
class GiveUp(Step):
    """Give up steps after too many failed starts in a row: with a warning of `what`, and the run
    continues. `trials`: how many are planned in them.
    """

    what: str
    trials: int
    steps: Callable[[], Steps[None]]


@dataclass(frozen=True, kw_only=True)
class Once(Step):
    """Run one trial of a forwarder that is started for it. Its result is its `Trial`.

    `counts`: it is one of the planned trials. `fails`: too many failures in a row end the run.
    """

    setup: LinkSetup
    arm: Arm
    block: int
    role: Role
    load: Load = "flood"
    window_s: float | None = None
    counts: bool = True
    fails: bool = True


@dataclass(frozen=True, kw_only=True)
class Start(Step):
    """Start a forwarder and run a procedure on it. Its result is what the procedure returns.

    `of`: more fields that identify its records. `failed`: why the procedure's result is not a
    figure; or `each_fails`: each trial that could not be measured counts. `told`: the result in
    words, which makes the whole start one of the planned trials.
    """

    setup: LinkSetup
    arm: Arm
    block: int
    role: Role
    max_pps: float
    terms: Terms
    procedure: Callable[[Started], Any]
    test: Test = "throughput"
    probe: bool = False
    spans: int = 0
    of: Mapping[str, object] = field(default_factory=dict)
    failed: Callable[[Any], str | None] | None = None
    each_fails: bool = False
    told: Callable[[Any], str] | None = None


@dataclass(frozen=True, kw_only=True)
class Standing(Step):
    """Run one trial of each of these, which are started together and share a core, on an open link
    without a generator. `method`: all at once, or in turns.
    """

    setup: LinkSetup
    items: Sequence[tuple[Role, Arm]]
    block: int
    method: Method = "standing"


@dataclass(frozen=True, kw_only=True)
class Turns(Step):
    """Start forwarders together, each on a link with a sender of its own, one of which runs at a
    time, and run a procedure on them. They come in the order of `items`: as many at once as fit
    into memory.

    `flood`: for floods only, which the senders do not pace. `max_pps`: by the label of an arm, if
    it is not only flooded. `each_fails`: each trial that could not be measured counts as a failure,
    else a start without any valid trial. The others as in `Start`.
    """

    cell: Cell
    items: Sequence[tuple[Role, Arm]]
    block: int
    procedure: Callable[[Sequence[Started]], None]
    flood: bool = False
    max_pps: Mapping[str, float] = field(default_factory=dict)
    terms: Terms = field(default_factory=Terms)
    test: Test = "throughput"
    probe: bool = False
    spans: int = 0
    each_fails: bool = True


class Started(Protocol):
    """A running forwarder and a sender, for a procedure. Requests of earlier sessions are answered
    from the records.
    """

    @property
    def device(self) -> TestedDevice:
        """The device that procedures use."""

    @property
    def arm(self) -> Arm:
        """The arm that was started."""

    @property
    def trials(self) -> list[Trial]:
        """The trials of this start."""

    def measure(
        self, pps: float, seconds: float, *, latency: bool = False, **of: Any
    ) -> Outcome | None:
        """Run one of the planned trials; None if it could not be measured. `of`: further fields
        that identify its record, such as the protocol of its frames.
        """

    def flood(self) -> Trial:
        """Run one of the planned trials as a flood."""

    def skip(self, trials: int) -> None:
        """Record that this number of planned trials is not run."""


@dataclass(frozen=True)
class Most:
    """The limits of repetition. `windows`: in total. `starts`: attempts that failed for another
    reason than one of `disturbed`.
    """

    windows: int
    starts: int = 1
    disturbed: tuple[InvalidCode, ...] = DISTURBED


@dataclass(frozen=True, kw_only=True)
class Attempts(Step):
    """Repeat one trial until it is valid. Its result is the valid attempt, or the last invalid one.

    `due`: the fields that identify the record of an attempt, from its number. `run`: makes attempts
    from that number on, records each and returns the last.
    """

    due: Callable[[int], Mapping[str, object]]
    run: Callable[[int, Record], Trial]
    most: Most
    counts: bool = True
    fails: bool = True


@dataclass(frozen=True)
class Needs:
    """The programs and links that a session checks before its first trial: a missing one must not
    end it later.

    `others`: more programs of ours. `sender`: instead of our generator. `own_programs`: those are
    all, and there are no links.
    """

    forwarders: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    probe: bool = False
    others: tuple[str, ...] = ()
    sender: OtherGenerator | None = None
    # The time stamp counter is compared with the kernel's clock.
    clock: bool = True


@dataclass(frozen=True)
class Failures:
    """The limit of failures in a row, after which the run ends unless it is to keep going."""

    most: int
    what: str
    hint: str | None = None


class SessionPlan(ABC):
    """The measurements of a session, and its count of failures.

    `total`: trials that are known beforehand. `warnings`: remarks on all figures.
    """

    name: str
    window_s: float
    total: int
    failures: Failures
    ip: Ip = 4
    directions: Directions = "both"
    # The name of one of `total`.
    unit = "trial"
    # The session's time budget; None: until the plan's end.
    minutes: float | None = None
    # A frame counts as late when it is sent so much after its time; None: as the sender has it.
    late_after_us: int | None = None
    receive_first = False

    def __init__(self, options: Options) -> None:
        self.seed = options.seed
        self.hugepages = options.hugepages
        self.keep_going = options.keep_going
        self.link = options.link
        self.warnings: list[str] = []
        # The engine's list of the session's trials, replayed or run, in their order, and its bench.
        self.trials: list[Trial] = []
        self.bench: Bench

    def warn(self, text: str) -> None:
        """Add a warning to the figures, once."""
        if text not in self.warnings:
            self.warnings.append(text)

    def last_reason(self, measured: object) -> str | None:
        """Return why a start gave no result: the reason of its last trial; None if it gave one."""
        return None if measured else self.trials[-1].invalid_why or "no trial counts"

    @property
    @abstractmethod
    def needs(self) -> Needs:
        """What the session needs."""

    @abstractmethod
    def steps(self) -> Steps[None]:
        """Yield the steps from the first trial to the last."""

    def prepare(self) -> None:  # noqa: B027 - most need nothing else
        """Check what only this experiment needs; raises `LabError`."""

    def held(self) -> AbstractContextManager[object]:
        """Return what the session holds from before its first trial until its end."""
        return nullcontext()

    def programs(self) -> dict[str, str]:
        """Return the SHA-256 of programs that `needs` does not name, after `prepare`."""
        return {}
