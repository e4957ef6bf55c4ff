# SPDX-License-Identifier: BSD-3-Clause
"""Choose the fastest of several builds for the duel.

The rounds that choose are over before those that judge begin. A build that is chosen by luck has no
advantage: its rounds are not counted again.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass

from linerate.experiments.duel.programs import Side
from linerate.experiments.duel.rounds import Asked
from linerate.experiments.duel.scheduling import Meeting, opened, without_probe
from linerate.host.process import checkpoint
from linerate.links import Link
from linerate.trial.starts.clocks import Per
from linerate.trial.starts.faults import FaultError, refuse
from linerate.trial.trial import Bench

# Rounds with one start of every build. A start alone varies by a few per cent, so one round is too
# few.
ROUNDS = 3


@dataclass(frozen=True)
class Choice:
    """The choice. `shares`: of each build, its rate over the chosen one's; medians of the rounds.
    `per`: the unit over which packets were counted.
    """

    chosen: int
    shares: tuple[float, ...]
    per: Per


def choose(
    bench: Bench, link: Link, side: Side, asked: Asked, seen: Callable[[int], None]
) -> Choice:
    """Measure the builds of a side beside each other; `seen` gets the number of each round.

    Raises `FaultError` if a build does not start or does not do the work.
    """
    try:
        try:
            return _choose(bench, link, side, asked, seen)
        except FaultError as fault:
            return _choose(bench, link, side, without_probe(asked, fault), seen)
    except FaultError as fault:
        # The message names the build, not its index.
        name = side.programs[fault.arm].name
        raise FaultError(side.place, fault.kind, f"{name}: {fault.message}") from fault


def _choose(
    bench: Bench, link: Link, side: Side, asked: Asked, seen: Callable[[int], None]
) -> Choice:
    source = random.Random(f"linerate:duel:choosing:{side.letter}:{asked.seed}")
    figures: list[list[float]] = [[] for _ in side.programs]
    with opened(asked.method, Meeting(bench, link, side.programs, asked, source)) as by:
        for number in range(ROUNDS):
            checkpoint()
            order = list(range(len(side.programs)))
            source.shuffle(order)
            with by.started(order) as starts:
                windows = by.measure(starts)
            refuse(windows)
            found = {window.arm: math.log(window.pps) for window in windows}
            middle = statistics.fmean(found.values())
            for place, figure in found.items():
                figures[place].append(figure - middle)
            seen(number)
    medians = [statistics.median(each) for each in figures]
    chosen = medians.index(max(medians))
    shares = tuple(math.exp(each - medians[chosen]) for each in medians)
    return Choice(chosen, shares, asked.per)
