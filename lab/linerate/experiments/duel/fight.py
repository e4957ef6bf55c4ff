# SPDX-License-Identifier: BSD-3-Clause
"""Compare two programs, round by round, until the question is answered or the time is over."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from linerate.experiments.duel.inspection import looked_at
from linerate.experiments.duel.rounds import Asked, Duel, Round
from linerate.experiments.duel.scheduling import Meeting, Scheduling, opened, without_probe
from linerate.experiments.duel.verdict import Verdict, log_ratio
from linerate.forwarders import Forwarder
from linerate.host.cores.cpus import CPUS
from linerate.host.errors import TrialError
from linerate.host.process import checkpoint
from linerate.links import Frames, Link
from linerate.trial.starts.code import Executables, same_code
from linerate.trial.starts.faults import FaultError, refuse
from linerate.trial.trial import Bench
from linerate.verdict.agreement import Agreement

Seen = Callable[[Duel], None]
# Each start also runs alone in each of the first 4 rounds, and then in every third round, because
# that takes a sixth of a round.
_ALONE_AT_FIRST, _ALONE_ONE_IN = 4, 3


def fight(
    bench: Bench,
    link: Link,
    programs: Sequence[Forwarder],
    asked: Asked,
    seen: Seen = lambda duel: None,
) -> Duel:
    """Compare two programs in rounds; calls `seen` after each. The answer to which is slower is
    valid after any round. First checks what they do to the user's frames.
    """
    source = random.Random(f"linerate:duel:{asked.seed}")
    fighting = _Fight(Meeting(bench, link, programs, asked, source), seen)
    found = fighting.found
    try:
        if asked.check and (bench.frame_files or isinstance(link, Frames)):
            found.works, found.unseen = looked_at(bench, link, programs, asked.size)
        while fairer := fighting.meet():
            fighting.begin_again(fairer)
    except FaultError as fault:
        found.fault = fault
        if fault.kind == "start" and not found.rounds:
            found.other_fault = fighting.try_start(1 - fault.arm)
    found.took_s = fighting.spent()
    return found


class _Fight:
    """The duel. `found`: the result so far."""

    def __init__(self, meeting: Meeting, seen: Seen) -> None:
        asked = meeting.asked
        self.found = Duel(Verdict(asked.margin), method=asked.method, per=asked.per)
        self._meeting = meeting
        self._executables = Executables(meeting.programs)
        self._seen = seen
        self._began = time.monotonic()

    def spent(self) -> float:
        return time.monotonic() - self._began

    def meet(self) -> Asked | None:
        """Run rounds until the question is answered or the time is over. Returns another way to
        compare the programs if this one is not fair.
        """
        asked = self._meeting.asked
        try:
            return None if self._meet() else replace(asked, method="turns")
        except FaultError as fault:
            if self.found.rounds:
                raise
            return without_probe(asked, fault)

    def _meet(self) -> bool:
        """Run rounds; return False if the programs compare differently when each has the CPU to
        itself.
        """
        found = self.found
        with opened(found.method, self._meeting) as by:
            for order in self._orders():
                done = self._round(by, order)
                if done.alone:
                    found.agreement.add(log_ratio(done.windows), log_ratio(done.alone))
                    if found.agreement.broken:
                        return False
                found.rounds.append(done)
                found.verdict.add(done.figures(0), done.figures(1))
                found.took_s = self.spent()
                self._seen(found)
        return True

    def begin_again(self, asked: Asked) -> None:
        """Start over with another method, as if there had been no round."""
        found = self.found
        if asked.method != found.method:
            found.given_up = found.verdict
        found.verdict, found.agreement = Verdict(asked.margin), Agreement()
        found.method, found.per = asked.method, asked.per
        found.rounds.clear()
        self._meeting = replace(self._meeting, asked=asked)

    def try_start(self, arm: int) -> FaultError | None:
        """Return why a program does not start alone; None if it does, or if something else is at
        fault.
        """
        try:
            with opened(self.found.method, self._meeting) as by, by.started([arm]):
                return None
        except FaultError as fault:
            return fault if fault.kind == "start" else None
        except TrialError:
            return None

    def _orders(self) -> Iterator[list[int]]:
        """Yield the program of each start of a round, in the order in which they are started."""
        asked, source = self._meeting.asked, self._meeting.source
        began, before = self.spent(), len(self.found.rounds)
        while self.found.answer == "undecided":
            checkpoint()
            spent, done = self.spent(), len(self.found.rounds) - before
            # The first round is always made; another one must fit into the time.
            if done and spent + (spent - began) / done > asked.within_s:
                return
            order = [0] * asked.starts + [1] * asked.starts
            source.shuffle(order)
            yield order

    def _round(self, by: Scheduling, order: Sequence[int]) -> Round:
        with by.started(order) as starts:
            with self._steal() as stolen:
                windows = by.measure(starts)
            self._executables.check()
            # Afterwards, and in each round: a program may open a plugin late, and may be built
            # anew between two rounds.
            if self._meeting.asked.code and self.found.same_code is not False:
                self.found.same_code = same_code(self._meeting.programs, starts)
            refuse(
                windows,
                dropping=bool(self.found.works),
                said=lambda place: starts[place].said,
            )
            alone = by.alone(starts) if self._look_alone() else ()
        return Round(len(self.found.rounds), tuple(windows), stolen[0], tuple(alone))

    def _look_alone(self) -> bool:
        """Return True if each start also runs alone in this round. Always True while the answer
        waits for that.
        """
        done = len(self.found.rounds)
        return done < _ALONE_AT_FIRST or done % _ALONE_ONE_IN == 0 or self.found.agreement.doubtful

    @contextmanager
    def _steal(self) -> Iterator[list[int]]:
        """Count the ticks of the forwarders' CPU that were stolen in the context."""
        stolen: list[int] = []
        before = self._stolen()
        yield stolen
        stolen.append(self._stolen() - before)

    def _stolen(self) -> int:
        bench = self._meeting.bench
        return bench.host.sample(CPUS).cpus[bench.cores.forwarder].steal
