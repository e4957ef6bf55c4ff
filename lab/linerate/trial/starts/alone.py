# SPDX-License-Identifier: BSD-3-Clause
"""Starts of which one runs while the others are stopped."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from linerate.host.process import pause
from linerate.trial.starts.start import Start
from linerate.trial.starts.window import Slice, Window

# After it goes on, until a program's caches are its own and its rings are full.
SETTLE_S = 0.01
# How long each standing start runs alone, to see whether it compares otherwise by itself.
ALONE_S = 0.03


@contextmanager
def alone(starts: Sequence[Start]) -> Iterator[None]:
    """Nobody runs but who is let; in the end all go on."""
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
    """Give each start `turns` turns of `seconds` each. All must be stopped before (`alone`)."""
    slices: list[list[Slice]] = [[] for _ in starts]
    for _ in range(turns):
        order = list(range(len(starts)))
        source.shuffle(order)
        for place in order:
            slices[place].append(_turn(starts[place], seconds))
    return [Window(start.arm, tuple(mine)) for start, mine in zip(starts, slices, strict=True)]


def _turn(start: Start, seconds: float) -> Slice:
    start.go_on()
    pause(SETTLE_S)
    first = start.sample()
    pause(seconds)
    last = start.sample()
    start.halt()
    return start.slice(first, last)
