# SPDX-License-Identifier: BSD-3-Clause
"""Compare two programs by rounds, checked after each: the verdicts hold however often one checks.

In a round both programs have several starts, whose labels, order and slots were drawn at random.
All figures are logarithms of a good (packets per CPU second), so that differences are ratios.

Direction. If both programs were the same, each way to deal the labels among the starts of a round
would have been equally likely. So exp(s z) over its mean over all deals is an e-value, z being the
sum of exponential scores (Savage, Annals of Mathematical Statistics 27, 1956) of one program's
starts, standardised over the deals: its mean is 1 for any distribution of the figures, and however
much the machine changed between rounds. These scores weigh fast starts most: a disturbance always
slows a start down, some by a few per cent and some by half, so that slow ones tell little. The
product over rounds is a test martingale for each strength s, and so is the mean of these over
several s. By Ville's inequality it reaches 1 / ALPHA with a probability of at most ALPHA, at any
time. For "slower by more than the margin" one program's figures are scaled by the margin first.
Sources: Ville 1939; Koning and van Meer, arXiv:2501.03982 (any test made sequential); Ramdas and
others, Statistical Science 38(4), 2023.

Size. A round is one observation: the difference of the two programs' `of_starts`, because the
starts of a round share the machine's state. The interval is a confidence sequence for the mean of
the rounds: it holds for all numbers of rounds at once. M(m) = sqrt(c / (n + c)) (1 - S^2 / ((n + c)
V))^(-n / 2), with S = sum(x - m) and V = sum((x - m)^2), is the Bayes factor of a normal mean with
unknown variance (effect over deviation normal with variance 1 / c, right Haar prior on the
deviation) and a test martingale in the filtration that forgets the scale; the interval has all m
with M(m) < 1 / ALPHA. Assumed: rounds are independent, with one mean, and their noise is normal or
nearly so. Source: Lai, Annals of Statistics 4(2), 1976; Wang and Ramdas, arXiv:2310.03722, theorem
4.9.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

OfStarts = Literal["faster-half", "median"]

ALPHA = 0.01
# The mixture over strengths: a small effect needs a weak bet over many rounds; a large one a strong
# bet.
STRENGTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
# c: how many rounds the prior is worth.
PRIOR_ROUNDS = 1.0
# Up to so many ways to deal labels are all used; of more, so many are drawn.
_MOST_DEALS = 5000


@dataclass(frozen=True)
class Interval:
    """The interval of a ratio, valid at all moments simultaneously."""

    ratio: float
    low: float
    high: float


class Direction:
    """Test if the second of two programs does more, or less, than `factor` times as much as the
    first.

    `more`, `less`: evidence that the second does more, or less, than that; each reaches 1 / ALPHA
    with a probability of at most ALPHA if that is false. `either`: of both sides.
    """

    def __init__(self, factor: float = 1.0, seed: int = 0) -> None:
        self._shift = math.log(factor)
        self._source = np.random.default_rng(seed)
        self._more = np.zeros(len(STRENGTHS))
        self._less = np.zeros(len(STRENGTHS))

    def add(self, first: Sequence[float], second: Sequence[float]) -> None:
        """Add a round: the logarithms of the starts of both programs."""
        together = np.concatenate([np.asarray(first) + self._shift, np.asarray(second)])
        scores = exponential_scores(together)
        size = len(first), len(second)
        if (
            len(np.unique(together)) == len(together)
            and math.comb(sum(size), size[1]) <= _MOST_DEALS
        ):
            null = _untied(*size)
        else:
            null = _null(scores[self._deals(*size)].sum(axis=1))
        if null.deviation == 0:
            return
        there = (float(scores[len(first) :].sum()) - null.mean) / null.deviation
        for at, strength in enumerate(STRENGTHS):
            self._more[at] += strength * there - null.more[at]
            self._less[at] += -strength * there - null.less[at]

    def _deals(self, first: int, second: int) -> npt.NDArray[np.intp]:
        """Return the possible choices of the second program's starts; the real deal is among
        them.
        """
        count = first + second
        if math.comb(count, second) <= _MOST_DEALS:
            return _all_deals(count, second)
        drawn = self._source.permuted(np.tile(np.arange(count), (_MOST_DEALS - 1, 1)), axis=1)
        return np.concatenate([np.arange(first, count)[None, :], drawn[:, :second]])

    @property
    def more(self) -> float:
        return math.exp(min(_log_mean_exp(self._more), 700.0))

    @property
    def less(self) -> float:
        return math.exp(min(_log_mean_exp(self._less), 700.0))

    @property
    def either(self) -> float:
        return (self.more + self.less) / 2


@dataclass(frozen=True)
class _Null:
    """Sums of scores over the deals. `more`, `less`: logarithms of the mean of exp(s z), and of
    exp(-s z).
    """

    mean: float
    deviation: float
    more: tuple[float, ...]
    less: tuple[float, ...]


def exponential_scores(
    values: Sequence[float] | npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """Return Savage's score of each value: 1/n for the least of n, 1/n + 1/(n-1) for the next, and
    so on. Equal values share the mean of their scores.
    """
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    scores = np.cumsum(1.0 / np.arange(len(places), 0, -1))
    sums = np.concatenate([[0.0], np.cumsum(scores)])
    ends = np.cumsum(counts)
    shared: npt.NDArray[np.float64] = (sums[ends] - sums[ends - counts]) / counts
    return shared[places]


def of_starts(figures: Sequence[float], of: OfStarts = "faster-half") -> float:
    """Return one figure for all starts of a program in a round: the mean of the faster half of
    their logarithms.

    This mean varies less from round to round than the median (docs/benchmarks.md), because a
    disturbance always slows a start down. `of`: older records have the median.
    """
    if of == "median":
        return float(np.median(figures))
    return float(np.mean(sorted(figures)[len(figures) // 2 :]))


def _null(sums: npt.NDArray[np.float64]) -> _Null:
    mean, deviation = float(sums.mean()), float(sums.std())
    if deviation == 0:
        return _Null(mean, 0.0, (), ())
    z = (sums - mean) / deviation
    return _Null(
        mean,
        deviation,
        tuple(_log_mean_exp(strength * z) for strength in STRENGTHS),
        tuple(_log_mean_exp(-strength * z) for strength in STRENGTHS),
    )


@functools.cache
def _untied(first: int, second: int) -> _Null:
    """Return the sums if no two figures are equal: then they depend only on the numbers of
    starts.
    """
    count = first + second
    return _null(exponential_scores(np.arange(float(count)))[_all_deals(count, second)].sum(axis=1))


@functools.cache
def _all_deals(count: int, second: int) -> npt.NDArray[np.intp]:
    return np.array(list(itertools.combinations(range(count), second)), dtype=np.intp)


def _log_mean_exp(values: npt.NDArray[np.float64]) -> float:
    highest = float(values.max())
    return highest + math.log(float(np.exp(values - highest).mean()))


def interval(rounds: Sequence[float], alpha: float = ALPHA) -> Interval | None:
    """Return the confidence sequence after these rounds, each the logarithm of a ratio; None if
    there are too few for it to be bounded.
    """
    n = len(rounds)
    if n < 2:
        return None
    values = np.asarray(rounds)
    mean = float(values.mean())
    half = half_width(n, float(values.std()), alpha)
    if half is None:
        return None
    return Interval(math.exp(mean), math.exp(mean - half), math.exp(mean + half))


def half_width(n: int, deviation: float, alpha: float = ALPHA) -> float | None:
    """Return half the length of the confidence sequence after n rounds with this sample standard
    deviation; None if it is not bounded yet.
    """
    # M(m) < 1 / alpha, solved for (mean - m)^2.
    c = PRIOR_ROUNDS
    kept = 1 - (alpha**2 * c / (n + c)) ** (1 / n)
    room = n - kept * (n + c)
    if room <= 0:
        return None
    return deviation * math.sqrt(kept * (n + c) / room)
