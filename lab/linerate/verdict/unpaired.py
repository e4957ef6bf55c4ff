# SPDX-License-Identifier: BSD-3-Clause
"""Compare two independent samples: does the second lie higher or lower, and by how much?

The shift is the Hodges-Lehmann estimate, the median of all differences. Interval and test are those
of Mann and Whitney; if the spreads differ (Brown and Forsythe's test), they are those of Brunner
and Munzel, which asks only which sample tends to the larger values: the interval then contains the
shifts that this test does not reject.

Sources: Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, 3rd ed., sections 4.1 to
4.3; Brunner and Munzel, Biometrical Journal 42(1), 2000; Brown and Forsythe, JASA 69(346), 1974.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from linerate.verdict.stats import ALPHA, Floats, Interval, scipy_stats

Test = Literal["Mann-Whitney", "Brunner-Munzel"]

# Up to this many differences the null distribution is exact, above it normal.
_EXACT = 2500
# Brunner and Munzel's t approximation is too bold for smaller samples.
_ENOUGH = 10


@functools.lru_cache(maxsize=32)
def mann_whitney_pmf(first: int, second: int) -> Floats:
    """Return P(U = k), k = 0 to first * second, when both samples come from one distribution.

    The numbers of partitions are coefficients of a Gaussian binomial: a product of (1 - q^(second +
    i)) / (1 - q^i) over i = 1 to first, computed in integers, so that nothing is rounded.
    """
    size = first * second + 1
    counts = [1] + [0] * (size - 1)
    for factor in range(1, first + 1):
        for place in range(size - 1, second + factor - 1, -1):
            counts[place] -= counts[place - second - factor]
        for place in range(factor, size):
            counts[place] += counts[place - factor]
    total = math.comb(first + second, first)
    return np.asarray([count / total for count in counts])


def differences(first: Sequence[float], second: Sequence[float]) -> Floats:
    """Return all differences, a value of the second less one of the first, sorted."""
    every = np.subtract.outer(np.asarray(second, float), np.asarray(first, float))
    return np.sort(every.ravel())


def mann_whitney_p(first: Sequence[float], second: Sequence[float]) -> float:
    """Return Mann and Whitney's two-sided p; exact without ties up to 2500 pairs, else normal with
    ties and continuity.
    """
    count = len(first) * len(second)
    tied = len({*first, *second}) < len(first) + len(second)
    method = "asymptotic" if tied or count > _EXACT else "exact"
    if tied and len({*first, *second}) == 1:
        return 1.0
    found = scipy_stats().mannwhitneyu(first, second, alternative="two-sided", method=method)
    return float(found.pvalue)


def brunner_munzel_p(first: Sequence[float], second: Sequence[float]) -> float:
    """Return Brunner and Munzel's two-sided p, by the t approximation.

    Never below the probability of the most extreme order: if the samples do not overlap the
    estimated variance is 0, and the approximation has no bound.
    """
    least = 2 / math.comb(len(first) + len(second), len(first))
    if min(first) > max(second) or max(first) < min(second):
        return least
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        p = float(scipy_stats().brunnermunzel(first, second).pvalue)
    return 1.0 if math.isnan(p) else max(p, least)


def spreads_differ(first: Sequence[float], second: Sequence[float]) -> bool:
    """Return the answer of Brown and Forsythe's test at ALPHA."""
    with np.errstate(all="ignore"):
        p = float(scipy_stats().levene(first, second, center="median").pvalue)
    return p < ALPHA


def choose_test(first: Sequence[float], second: Sequence[float]) -> Test:
    small = min(len(first), len(second)) < _ENOUGH
    return "Mann-Whitney" if small or not spreads_differ(first, second) else "Brunner-Munzel"


def _mann_whitney_interval(
    first: Sequence[float], second: Sequence[float], level: float
) -> Interval | None:
    every = differences(first, second)
    count = len(every)
    if count <= _EXACT:
        cumulative = np.cumsum(mann_whitney_pmf(len(first), len(second)))
        # The largest c with P(U < c) <= (1 - level) / 2: the interval is [D(c), D(mn+1-c)], from 1.
        cut = int(np.searchsorted(cumulative, (1 - level) / 2 + 1e-12, side="right"))
        if cut == 0:
            return None
        covered = 1 - 2 * float(cumulative[cut - 1])
    else:
        sigma = math.sqrt(count * (len(first) + len(second) + 1) / 12)
        cut = math.floor(count / 2 - float(scipy_stats().norm.ppf((1 + level) / 2)) * sigma)
        covered = level
    return Interval(float(every[cut - 1]), float(every[-cut]), covered)


def _brunner_munzel_interval(
    first: Sequence[float], second: Sequence[float], level: float
) -> Interval | None:
    """Return the shifts between differences at which the test changes its answer."""
    every = np.unique(differences(first, second))
    # The statistic changes only where the shift passes a difference.
    inside = (every[:-1] + every[1:]) / 2
    data = np.asarray(first, float)

    def kept(place: int) -> bool:
        return brunner_munzel_p(list(data + inside[place]), second) > 1 - level

    middle = int(np.searchsorted(inside, float(np.median(every))))
    middle = min(middle, len(inside) - 1)
    if len(inside) == 0 or not kept(middle):
        return None
    low, high = -1, middle
    while high - low > 1:
        place = (low + high) // 2
        low, high = (low, place) if kept(place) else (place, high)
    first_kept = high
    low, high = middle, len(inside)
    while high - low > 1:
        place = (low + high) // 2
        low, high = (place, high) if kept(place) else (low, place)
    return Interval(float(every[first_kept]), float(every[low + 1]), level)


@dataclass(frozen=True)
class Shift:
    """The second sample against the first. `test` produced the interval, and every p."""

    counts: tuple[int, int]
    estimate: float
    interval: Interval | None
    test: Test
    _first: tuple[float, ...]
    _second: tuple[float, ...]

    def p(self, shift: float = 0.0) -> float:
        """Return the two-sided p value of the hypothesis of this shift."""
        moved = [value + shift for value in self._first]
        if self.test == "Brunner-Munzel":
            return brunner_munzel_p(moved, self._second)
        return mann_whitney_p(moved, self._second)


def compare(first: Sequence[float], second: Sequence[float], level: float = 1 - ALPHA) -> Shift:
    """Compare two samples, neither empty."""
    test = choose_test(first, second)
    interval = None
    if test == "Brunner-Munzel":
        interval = _brunner_munzel_interval(first, second, level)
    if interval is None:
        test, interval = "Mann-Whitney", _mann_whitney_interval(first, second, level)
    estimate = float(np.median(differences(first, second)))
    counts = (len(first), len(second))
    return Shift(counts, estimate, interval, test, tuple(first), tuple(second))
