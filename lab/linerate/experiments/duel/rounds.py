# SPDX-License-Identifier: BSD-3-Clause
"""A duel, round by round, until the question is answered or the time is over."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from linerate.experiments.duel.inspection import Work, inspect
from linerate.experiments.duel.turns import Ground
from linerate.experiments.duel.verdict import Answer, Verdict, log_ratio
from linerate.forwarders import Forwarder
from linerate.host.cpus import CPUS
from linerate.host.errors import TrialError
from linerate.host.process import checkpoint, pause
from linerate.links import Frames, Link, LinkContext
from linerate.trial.starts.alone import ALONE_S, alone, take_turns
from linerate.trial.starts.faults import FaultError, refuse
from linerate.trial.starts.standing import SETTLE_S, standing, together
from linerate.trial.starts.start import Per
from linerate.trial.starts.ways import Method
from linerate.trial.starts.window import Window
from linerate.trial.trial import Bench
from linerate.verdict.agreement import Agreement


@dataclass(frozen=True)
class Asked:
    """`within_s`: the time that the duel may take. `starts`: of each program in a round. `turns`:
    of each start in a round, of `turn_s`; standing starts have a window of so many `slices`.
    `check`: look at what is sent first, on links where that can be seen.
    """

    margin: float = 0.02
    within_s: float = 60.0
    starts: int = 4
    window_s: float = 0.75
    slices: int = 3
    turn_s: float = 0.05
    turns: int = 5
    seed: int = 1
    size: int = 64
    method: Method = "standing"
    per: Per = "cpu"
    check: bool = True


@dataclass(frozen=True)
class Round:
    """`steal`: ticks of the forwarders' CPU that the hypervisor took. `alone`: of standing starts,
    what each did while the others were stopped.
    """

    number: int
    windows: tuple[Window, ...]
    steal: int
    alone: tuple[Window, ...] = ()

    def figures(self, arm: int) -> list[float]:
        """Packets per second of each start, in the order of the slots."""
        return [window.pps for window in self.windows if window.arm == arm]


@dataclass
class Duel:
    """What was found; `fault`: why it is no comparison, if so. `rounds`: by `method`. `given_up`:
    the comparison by standing starts that came before, and was no fair one. `works`: what each
    program made of the frames, where that was looked at. `other_fault`: why the other program does
    not start either.
    """

    verdict: Verdict
    rounds: list[Round] = field(default_factory=list)
    method: Method = "standing"
    agreement: Agreement = field(default_factory=Agreement)
    given_up: Verdict | None = None
    works: tuple[Work, ...] = ()
    fault: FaultError | None = None
    other_fault: FaultError | None = None
    took_s: float = 0.0

    @property
    def answer(self) -> Answer:
        """The verdict's, unless it may not hold for the programs by themselves."""
        return "undecided" if self.agreement.doubtful else self.verdict.answer


def fight(
    bench: Bench,
    link: Link,
    programs: Sequence[Forwarder],
    asked: Asked,
    seen: Callable[[Duel], None] = lambda duel: None,
) -> Duel:
    """Let two programs meet in rounds; `seen` looks after each. The answer to which is slower is
    as good after any round.
    """
    found = Duel(Verdict(asked.margin), method=asked.method)
    fighting = _Fight(bench, link, programs, asked, found, seen)
    try:
        if asked.check and isinstance(link, Frames):
            found.works = inspect(bench, link, programs, asked.size)
        if asked.method == "standing":
            fighting.stand()
        if found.method == "turns":
            fighting.take_turns()
    except FaultError as fault:
        found.fault = fault
        if fault.kind == "start" and not found.rounds:
            found.other_fault = fighting.try_start(1 - fault.arm)
    found.took_s = fighting.spent()
    return found


@dataclass
class _Fight:
    bench: Bench
    link: Link
    programs: Sequence[Forwarder]
    asked: Asked
    found: Duel
    seen: Callable[[Duel], None]

    def __post_init__(self) -> None:
        self._source = random.Random(f"linerate:duel:{self.asked.seed}")
        self._began = time.monotonic()

    def spent(self) -> float:
        return time.monotonic() - self._began

    def stand(self) -> None:
        """All starts of a round at once, and then each by itself for a moment."""
        bench, asked, found = self.bench, self.asked, self.found
        with self.link.open(self._context()) as wire:
            for order in self._orders():
                with standing(bench, wire, self.programs, order) as starts:
                    pause(SETTLE_S)
                    with self._steal() as stolen:
                        windows = together(starts, asked.window_s, asked.slices)
                    refuse(windows, dropping=bool(found.works))
                    with alone(starts):
                        by_itself = take_turns(starts, self._source, ALONE_S, 1)
                done = Round(len(found.rounds), tuple(windows), stolen[0], tuple(by_itself))
                found.agreement.add(log_ratio(done.windows), log_ratio(done.alone))
                if found.agreement.broken:
                    found.given_up, found.verdict = found.verdict, Verdict(asked.margin)
                    found.method, found.agreement = "turns", Agreement()
                    found.rounds.clear()
                    return
                self._enter(done)

    def take_turns(self) -> None:
        """One start at a time."""
        asked, found, ground = self.asked, self.found, self._ground()
        for order in self._orders():
            with ground.apart(self.programs, order) as starts:
                with self._steal() as stolen:
                    windows = take_turns(starts, self._source, asked.turn_s, asked.turns)
                refuse(windows, dropping=bool(found.works))
            self._enter(Round(len(found.rounds), tuple(windows), stolen[0]))

    def try_start(self, arm: int) -> FaultError | None:
        """Why a program does not start by itself; None: it does, or something else is at fault."""
        try:
            if self.found.method == "standing":
                with (
                    self.link.open(self._context()) as wire,
                    standing(self.bench, wire, self.programs, [arm]),
                ):
                    return None
            with self._ground().apart(self.programs, [arm]):
                return None
        except FaultError as fault:
            return fault if fault.kind == "start" else None
        except TrialError:
            return None

    def _context(self) -> LinkContext:
        bench = self.bench
        return LinkContext(
            bench.run.path, self.asked.size, bench.memory.hugepages, bench.cores, host=bench.host
        )

    def _ground(self) -> Ground:
        return Ground(self.bench, self.link, self.asked.size, self.asked.per)

    def _orders(self) -> Iterator[list[int]]:
        """Whose each start is, in the order in which they are started, for one round more."""
        began, before = self.spent(), len(self.found.rounds)
        while self.found.answer == "undecided":
            checkpoint()
            spent, done = self.spent(), len(self.found.rounds) - before
            # One more round must fit, and the first is always made.
            if done and spent + (spent - began) / done > self.asked.within_s:
                return
            order = [0] * self.asked.starts + [1] * self.asked.starts
            self._source.shuffle(order)
            yield order

    def _enter(self, done: Round) -> None:
        self.found.rounds.append(done)
        self.found.verdict.add(done.figures(0), done.figures(1))
        self.found.took_s = self.spent()
        self.seen(self.found)

    @contextmanager
    def _steal(self) -> Iterator[list[int]]:
        """Ticks of the forwarders' CPU that were stolen meanwhile."""
        stolen: list[int] = []
        before = self._stolen()
        yield stolen
        stolen.append(self._stolen() - before)

    def _stolen(self) -> int:
        bench = self.bench
        return bench.host.sample(CPUS).cpus[bench.cores.forwarder].steal
