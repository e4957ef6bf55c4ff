# SPDX-License-Identifier: BSD-3-Clause
"""Starts of which one runs while the others are stopped."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Protocol

from linerate.host.errors import TrialError
from linerate.host.process import pause
from linerate.trial.starts.start import Start
from linerate.trial.starts.window import Slice, Window

# The time after it continues, until a program's caches are warm and its rings are full.
SETTLE_S = 0.01
# How long each standing start runs alone, to check if the comparison differs then.
ALONE_S = 0.03


class Halting(Protocol):
    """A start that can be stopped and continued."""

    def halt(self) -> None:
        """Stop it; raises `TrialError` if it has ended or does not stop."""

    def go_on(self) -> None:
        """Continue it."""


@contextmanager
def turn(of: Halting) -> Iterator[None]:
    """Continue a start and let it settle; stop it again at the end of the context."""
    of.go_on()
    pause(SETTLE_S)
    try:
        yield
    except TrialError:
        # The cause is better news than that it cannot be stopped.
        with suppress(TrialError):
            of.halt()
        raise
    of.halt()


@contextmanager
def alone(starts: Sequence[Halting]) -> Iterator[None]:
    """Stop all starts but those that are continued explicitly; continue all at the end."""
    try:
        for start in starts:
            start.halt()
        yield
    finally:
        for start in starts:
            start.go_on()


def take_turns(
    starts: Sequence[Start], source: random.Random, seconds: float, turns: int
) -> list[Window]:
    """Give each start `turns` turns of `seconds` each, in a new random order each time. All must be
    stopped before (`alone`, or `linerate.trial.starts.apart`).
    """
    slices: list[list[Slice]] = [[] for _ in starts]
    for _ in range(turns):
        order = list(range(len(starts)))
        source.shuffle(order)
        for place in order:
            with turn(starts[place]):
                first = starts[place].sample()
                pause(seconds)
                last = starts[place].sample()
            slices[place].append(starts[place].slice(first, last))
    return [Window(start.arm, tuple(mine)) for start, mine in zip(starts, slices, strict=True)]


def by_itself(
    starts: Sequence[Start], source: random.Random, seconds: float = ALONE_S, turns: int = 1
) -> list[Window]:
    """Measure each of several standing starts while the others are stopped; all are continued at
    the end.
    """
    with alone(starts):
        return take_turns(starts, source, seconds, turns)
