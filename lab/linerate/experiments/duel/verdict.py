# SPDX-License-Identifier: BSD-3-Clause
"""The verdict of a duel so far.

Three answers. *Direction*: the programs differ. *Claim*: the second is slower (or faster) by more
than the margin. *Equal*: they differ by less than that. All of them hold however often one checks
(`linerate.verdict.sequential`). The exit status follows the claim.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from linerate.trial.starts.window import Window
from linerate.verdict.agreement import MIN_ROUNDS
from linerate.verdict.sequential import (
    ALPHA,
    Direction,
    Interval,
    OfStarts,
    half_width,
    interval,
    of_starts,
)

Answer = Literal["slower", "faster", "equal", "undecided"]
Side = Literal["slower", "faster"]

# Rounds whose ratios spread by more than this do not share one: the ratio hangs on the machine.
MOVES = 0.08
# An estimate of more than so many times the rounds so far is useless.
_MOST_TIMES = 10


def log_ratio(windows: Sequence[Window]) -> float:
    """Return the logarithm of a round's ratio: the second program's figure over the first's
    (`of_starts`).
    """
    one, other = (log_of_starts(each.pps for each in windows if each.arm == arm) for arm in (0, 1))
    return other - one


def log_of_starts(pps: Iterable[float], of: OfStarts = "faster-half") -> float:
    """Return the logarithm of the figure of a program's starts in a round (`of_starts`)."""
    return of_starts([math.log(max(each, 1.0)) for each in pps], of)


def supports(
    low: float, high: float, margin: float, answer: Answer, direction: Side | None
) -> bool:
    """Return True if the interval of the ratio supports the answer by itself.

    The answer comes of the ranks of the starts, which need fewer rounds than the interval of their
    mean. An interval that does not support it would seem to contradict it.
    """
    if answer in ("slower", "faster"):
        return high < 1 - margin if answer == "slower" else low > 1 / (1 - margin)
    if direction:
        return high < 1 if direction == "slower" else low > 1
    return True


@dataclass
class Verdict:
    """The verdict about two programs, round by round. `margin`: a share, such as 0.02.

    Figures are packets per second, usually of CPU time; ratios are the second program over the
    first.
    """

    margin: float
    rounds: list[float] = field(default_factory=list)
    control: list[float] = field(default_factory=list)
    _differs: Direction = field(default_factory=Direction)
    _low: Direction = field(init=False)
    _high: Direction = field(init=False)
    _itself: Direction = field(default_factory=Direction)

    def __post_init__(self) -> None:
        self._low = Direction(1 - self.margin)
        self._high = Direction(1 / (1 - self.margin))

    def add(self, first: Sequence[float], second: Sequence[float]) -> None:
        """Add a round: the figures of the starts of both programs, in the order of their slots."""
        one, other = ([math.log(each) for each in figures] for figures in (first, second))
        for direction in (self._differs, self._low, self._high):
            direction.add(one, other)
        self.rounds.append(of_starts(other) - of_starts(one))
        if len(one) >= 2:
            # Labels were drawn: halves by slot are halves at random.
            halves = one[::2], one[1::2]
            self._itself.add(*halves)
            self.control.append(of_starts(halves[1]) - of_starts(halves[0]))

    @property
    def interval(self) -> Interval | None:
        """The interval of the mean ratio; None if there are too few rounds."""
        return interval(self.rounds)

    @property
    def ratio(self) -> float | None:
        """The median of the rounds' ratios."""
        return math.exp(statistics.median(self.rounds)) if self.rounds else None

    @property
    def within_margin(self) -> bool:
        """True if the current ratio is within the margin, which proves nothing by itself."""
        ratio = self.ratio
        return ratio is not None and 1 - self.margin < ratio < 1 / (1 - self.margin)

    @property
    def moves(self) -> bool:
        """True if the ratio itself changes with the machine's state: by more than the noise of
        starts.
        """
        return len(self.rounds) >= MIN_ROUNDS and statistics.stdev(self.rounds) > MOVES

    @property
    def range(self) -> tuple[float, float]:
        """The least and the greatest of the rounds' ratios."""
        return math.exp(min(self.rounds)), math.exp(max(self.rounds))

    @property
    def supporting_interval(self) -> Interval | None:
        """The interval, if it supports the answer by itself."""
        found = self.interval
        if found is None or self.moves:
            return None
        good = supports(found.low, found.high, self.margin, self.answer, self.direction)
        return found if good else None

    @property
    def unsound(self) -> bool:
        """True if the control, the first program against itself, showed a difference."""
        return self._itself.either >= 1 / ALPHA

    @property
    def direction(self) -> Side | None:
        """The direction of the difference, if it is shown."""
        if len(self.rounds) < MIN_ROUNDS or self.unsound or self._differs.either < 1 / ALPHA:
            return None
        return "slower" if self._differs.less > self._differs.more else "faster"

    @property
    def answer(self) -> Answer:
        """The answer whether the second is slower, or faster, by more than the margin."""
        if len(self.rounds) < MIN_ROUNDS or self.unsound:
            return "undecided"
        if self._low.less >= 1 / ALPHA:
            return "slower"
        if self._high.more >= 1 / ALPHA:
            return "faster"
        found = self.interval
        if found and found.low > 1 - self.margin and found.high < 1 / (1 - self.margin):
            return "equal"
        return "undecided"

    @property
    def detectable(self) -> float | None:
        """The smallest difference that these rounds could have shown, as a share; None if none."""
        found = self.interval
        return None if found is None else math.sqrt(found.high / found.low) - 1

    @property
    def more_for_equal(self) -> int | None:
        """How many more rounds like these would show that they are equal; None if they would not,
        or only after ten times as many.
        """
        n = len(self.rounds)
        if n < MIN_ROUNDS or self.answer != "undecided":
            return None
        room = -math.log(1 - self.margin) - abs(statistics.fmean(self.rounds))
        deviation = statistics.pstdev(self.rounds)
        for more in range(1, _MOST_TIMES * n):
            half = half_width(n + more, deviation)
            if half is not None and half < room:
                return more
        return None
