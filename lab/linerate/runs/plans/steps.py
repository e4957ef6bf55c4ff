# SPDX-License-Identifier: BSD-3-Clause
"""What an experiment says of its session: what it needs, and its steps in their order.

A plan is a generator of steps. `linerate.runs.engine` takes them one after the other and sends back
what each came to, so that the next ones may depend on it. A plan touches no process and no file: it
decides from its options, its seed and the trials so far. That is what makes a run resumable: the
engine goes through the plan again, and takes from the records what they have.

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
from linerate.records.trial import DISTURBED, Directions, InvalidCode, Load, Role, Test, Trial
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
    """One of those below."""


# What yields steps, and gets back what each came to.
Steps = Generator[Step, Any, T]


@dataclass(frozen=True)
class Announce(Step):
    """What comes next, as progress has it."""

    text: str


@dataclass(frozen=True)
class Say(Step):
    """A line that stays."""

    text: str


@dataclass(frozen=True)
class Rest(Step):
    """Nothing for so many seconds: what disturbed the machine may end. `why`: in words."""

    seconds: float
    why: str


@dataclass(frozen=True)
class More(Step):
    """The number of trials that come beyond those planned; below 0: fewer come."""

    trials: int


@dataclass(frozen=True)
class OnSetup(Step):
    """Steps on an open link, with a sender where it has one. It comes to what they return.

    `flood`: for floods alone, which the sender then does not pace. `sender`: False where another
    program of the plan's sends.
    """

    cell: Cell
    steps: Callable[[LinkSetup], Steps[Any]]
    flood: bool = False
    sender: bool = True


@dataclass(frozen=True)
class BlockOver(Step):
    """The end of a block: from now on the remaining time can be told."""


@dataclass(frozen=True)
class GiveUp(Step):
    """Steps that are given up where too many starts in them fail in a row: with a warning of
    `what`, and the run goes on. `trials`: how many are planned in them.
    """

    what: str
    trials: int
    steps: Callable[[], Steps[None]]


@dataclass(frozen=True, kw_only=True)
class Once(Step):
    """One trial by a forwarder that is started for it. It comes to its `Trial`.

    `counts`: it is one of the planned trials. `fails`: it ends the run where so many fail in a row.
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
    """A forwarder that is started, and what a procedure asks of it. It comes to what that returns.

    `of`: more fields by which its records are known. `failed`: why what the procedure returned is
    no figure; or `each_fails`: each trial that could not be measured counts. `told`: what was
    found, in words, which makes the whole start one of the planned trials.
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
    """One trial of each of these, which are started together and share a core, on an open link."""

    setup: LinkSetup
    items: Sequence[tuple[Role, Arm]]
    block: int


@dataclass(frozen=True, kw_only=True)
class Turns(Step):
    """Forwarders that are started together, each on a link of its own with a sender of its own, and
    of which one runs at a time; and what a procedure asks of them, which come in the order of
    `items`: as many at once as memory takes.

    `flood`: for floods alone, which the senders then do not pace. `max_pps`: by the label of an
    arm, where it is not only flooded. `each_fails`: each trial that
    could not be measured counts as a failure, else a start without any that could. The rest as in
    `Start`.
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
    """A forwarder that runs and a sender, as a procedure has them. What earlier sessions asked is
    answered from the records.
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
        """One of the planned trials; None: it could not be measured. `of`: what else its records
        are known by, such as the protocol of its frames.
        """

    def flood(self) -> Trial:
        """One of the planned trials, in which the sender sends all that is taken."""

    def skip(self, trials: int) -> None:
        """Say that this number of planned trials is not run."""


@dataclass(frozen=True)
class Most:
    """How often a trial is tried. `windows`: all told. `starts`: attempts that failed otherwise
    than by one of `disturbed`.
    """

    windows: int
    starts: int = 1
    disturbed: tuple[InvalidCode, ...] = DISTURBED


@dataclass(frozen=True, kw_only=True)
class Attempts(Step):
    """One trial as often as it takes. It comes to the attempt that counts, or the last of those
    that do not.

    `due`: by which fields the record of an attempt is known, from its number. `run`: makes attempts
    from that number on, records each and returns the last.
    """

    due: Callable[[int], Mapping[str, object]]
    run: Callable[[int, Record], Trial]
    most: Most
    counts: bool = True
    fails: bool = True


@dataclass(frozen=True)
class Needs:
    """What a session looks for before its first trial: what is missing must not end it later.

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
    """After so many in a row the run ends, unless it is to keep going."""

    most: int
    what: str
    hint: str | None = None


class SessionPlan(ABC):
    """What an experiment measures in a session, and how far it is from being hopeless.

    `total`: trials that are known beforehand. `warnings`: what must be known of all figures.
    """

    name: str
    window_s: float
    total: int
    failures: Failures
    ip: Ip = 4
    directions: Directions = "both"
    # What one of `total` is called.
    unit = "trial"
    # Of the session's time; None: until the plan's end.
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
        # The engine's: the session's trials, passed or run, in their order; with what it measures.
        self.trials: list[Trial] = []
        self.bench: Bench

    def warn(self, text: str) -> None:
        """Have it said with the figures, once."""
        if text not in self.warnings:
            self.warnings.append(text)

    def last_reason(self, measured: object) -> str | None:
        """Why a start gave nothing, if it did: what its last trial says."""
        return None if measured else self.trials[-1].invalid_why or "no trial counts"

    @property
    @abstractmethod
    def needs(self) -> Needs:
        """What there must be."""

    @abstractmethod
    def steps(self) -> Steps[None]:
        """The steps from the first trial to the last."""

    def prepare(self) -> None:  # noqa: B027 - most need nothing else
        """Look for what only this experiment needs; raises `LabError`."""

    def held(self) -> AbstractContextManager[object]:
        """What the session holds from before its first trial until its end."""
        return nullcontext()

    def programs(self) -> dict[str, str]:
        """SHA-256 of programs that `needs` does not name, after `prepare`."""
        return {}
