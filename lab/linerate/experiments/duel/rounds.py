# SPDX-License-Identifier: BSD-3-Clause
"""A duel, round by round, until the question is answered or the time is over."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from linerate.experiments.duel.faults import FaultError, refuse
from linerate.experiments.duel.standing import SETTLE_S, measure, standing
from linerate.experiments.duel.verdict import Verdict
from linerate.experiments.duel.window import Window
from linerate.forwarders import Forwarder
from linerate.host.cpus import CPUS
from linerate.host.process import checkpoint, pause
from linerate.links import Link, LinkContext
from linerate.trial.trial import Bench


@dataclass(frozen=True)
class Asked:
    """`within_s`: the time that the duel may take. `starts`: of each program in a round."""

    margin: float = 0.02
    within_s: float = 60.0
    starts: int = 4
    window_s: float = 0.75
    slices: int = 3
    seed: int = 1
    size: int = 64


@dataclass(frozen=True)
class Round:
    """`steal`: ticks of the forwarders' CPU that the hypervisor took."""

    number: int
    windows: tuple[Window, ...]
    steal: int

    def figures(self, arm: int) -> list[float]:
        """Packets per CPU second of each start, in the order of the slots."""
        return [window.pps for window in self.windows if window.arm == arm]


@dataclass
class Duel:
    """What was found; `fault`: why it is no comparison, if so."""

    verdict: Verdict
    rounds: list[Round] = field(default_factory=list)
    fault: FaultError | None = None
    took_s: float = 0.0


def fight(
    bench: Bench,
    link: Link,
    programs: Sequence[Forwarder],
    asked: Asked,
    seen: Callable[[Duel], None] = lambda duel: None,
) -> Duel:
    """Let two programs stand in rounds; `seen` looks after each. The answer to which is slower is
    as good after any round.
    """
    source = random.Random(f"linerate:duel:{asked.seed}")
    found = Duel(Verdict(asked.margin))
    began = time.monotonic()
    context = LinkContext(
        bench.run.path, asked.size, bench.memory.hugepages, bench.cores, host=bench.host
    )
    with link.open(context) as wire:
        while found.verdict.answer == "undecided":
            checkpoint()
            spent = time.monotonic() - began
            # One more round must fit.
            if found.rounds and spent + spent / len(found.rounds) > asked.within_s:
                break
            order = [0] * asked.starts + [1] * asked.starts
            source.shuffle(order)
            try:
                with standing(bench, wire, programs, order) as starts:
                    pause(SETTLE_S)
                    stolen = _stolen(bench)
                    windows = measure(starts, asked.window_s, asked.slices)
                    steal = _stolen(bench) - stolen
                refuse(windows)
            except FaultError as fault:
                found.fault = fault
                break
            finally:
                found.took_s = time.monotonic() - began
            done = Round(len(found.rounds), tuple(windows), steal)
            found.rounds.append(done)
            found.verdict.add(done.figures(0), done.figures(1))
            seen(found)
    return found


def _stolen(bench: Bench) -> int:
    """Ticks of the forwarders' CPU until now."""
    return bench.host.sample(CPUS).cpus[bench.cores.forwarder].steal
