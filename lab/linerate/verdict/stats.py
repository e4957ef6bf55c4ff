# SPDX-License-Identifier: BSD-3-Clause
"""Statistics of paired comparisons.

Each block gives one log-ratio of an arm to the baseline. The test is conditional on ties: its null
distribution is the exact sign-flip distribution of the observed midranks, at any n used here. The
interval is the classical one by Walsh averages, without tie correction. Without ties it contains
the shifts that the test does not reject; with ties the two may differ at the edge.

Sources: Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, 3rd ed., sections 3.1 to
3.3 (signed rank, Hodges-Lehmann estimate, interval by Walsh averages); Vargha and Delaney, J. Educ.
Behav. Stat. 25(2), 2000 (A12); Holm, Scand. J. Stat. 6(2), 1979; Fisher, The Design of Experiments,
1935, section 21 (permutation of signs); Cliff, Psych. Bull. 114(3), 1993 (delta).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# The level of every test, and of every interval as 1 - ALPHA, if a run is looked at once.
ALPHA = 0.05
# Below this no two-sided signed-rank or sign test can reject at ALPHA, and no interval exists.
MIN_COUNT = 6
# Up to this many values a sign-flip test tries all signs.
EXACT_COUNT = 15
# ARE of the signed-rank test to the t test for normal data.
_EFFICIENCY = 3 / math.pi
# Up to this many values the power of the signed-rank test is simulated; beyond, the t test's rule
# is as good. The second number is how many Walsh averages are drawn.
_SIMULATED_COUNT, _DRAWN = 60, 2_000_000
# The power for a detectable difference.
POWER = 0.8


_LEVEL: ContextVar[float] = ContextVar("level", default=ALPHA)


def level() -> float:
    """Return the level of the tests of the current run; intervals have 1 less this."""
    return _LEVEL.get()


@contextmanager
def tested_at(level: float) -> Iterator[None]:
    """Set the level of the tests in this context, for a run that has been looked at before."""
    token = _LEVEL.set(level)
    try:
        yield
    finally:
        _LEVEL.reset(token)


def level_after(looks: int) -> float:
    """Return the level for a run after this number of looks, each with more blocks: half of the
    previous level. All looks together stay below 2 ALPHA.
    """
    return math.ldexp(ALPHA, 1 - looks)


def scipy_stats() -> ModuleType:
    """Return `scipy.stats`, imported on first use: the import takes longer than the start of a
    duel.
    """
    return import_module("scipy.stats")


def midranks(values: Sequence[float] | Floats) -> Floats:
    """Return the rank of each value, from 1; equal values share the mean of their ranks.

    Like `scipy.stats.rankdata`, without the time to import scipy.
    """
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last: Floats = np.cumsum(counts) - (counts - 1) / 2
    return last[places]


def signed_rank_pmf(ranks_doubled: Sequence[int]) -> Floats:
    """Return P(sum of ranks with a positive sign = k/2) for k = 0, 1, ..., signs being fair coins.

    Ranks are passed doubled, so that midranks are integers.
    """
    pmf = np.zeros(sum(ranks_doubled) + 1)
    pmf[0] = 1.0
    reached = 0
    for rank in ranks_doubled:
        shifted = pmf[: reached + 1].copy()
        pmf[: reached + 1] *= 0.5
        pmf[rank : reached + rank + 1] += 0.5 * shifted
        reached += rank
    return pmf


def signed_rank_p(differences: Sequence[float]) -> float:
    """Return the two-sided p value of Wilcoxon's signed-rank test; differences of 0 are left
    out.
    """
    values = np.asarray([value for value in differences if value != 0.0])
    if values.size == 0:
        return 1.0
    doubled = np.rint(2 * midranks(np.abs(values))).astype(int)
    pmf = signed_rank_pmf(doubled.tolist())
    positive = int(doubled[values > 0].sum())
    low, high = float(pmf[: positive + 1].sum()), float(pmf[positive:].sum())
    return min(1.0, 2 * min(low, high))


def walsh_averages(values: Sequence[float]) -> Floats:
    """Return the sorted means of all pairs of values, including each value with itself."""
    data = np.asarray(values, dtype=np.float64)
    rows, columns = np.triu_indices(data.size)
    return np.sort((data[rows] + data[columns]) / 2)


def hodges_lehmann(values: Sequence[float]) -> float:
    """Return the median of the Walsh averages."""
    return float(np.median(walsh_averages(values)))


@dataclass(frozen=True)
class Interval:
    """An interval. `level` is the actual coverage of the discrete distribution."""

    low: float
    high: float
    level: float


def shift_interval(values: Sequence[float], alpha: float | None = None) -> Interval | None:
    """Return an interval for the centre of symmetry; None if n is too small for this level.

    `alpha`: it covers with a probability of 1 - alpha; None: at the run's level.
    """
    alpha = level() if alpha is None else alpha
    count = len(values)
    if count == 0:
        return None
    cumulative = np.cumsum(signed_rank_pmf(range(1, count + 1)))
    # The largest c with 2 P(T < c) <= alpha: the interval is [W(c), W(M+1-c)], from 1.
    cut = int(np.searchsorted(cumulative, alpha / 2 + 1e-12, side="right"))
    if cut == 0:
        return None
    averages = walsh_averages(values)
    tail = float(cumulative[cut - 1])
    return Interval(float(averages[cut - 1]), float(averages[-cut]), 1 - 2 * tail)


def a12(first: Sequence[float], second: Sequence[float]) -> float:
    """Return P(a value of `first` exceeds one of `second`), ties counting one half."""
    ranks = midranks([*first, *second])
    count_1, count_2 = len(first), len(second)
    total = float(np.sum(ranks[:count_1]))
    return (total - count_1 * (count_1 + 1) / 2) / (count_1 * count_2)


def spread(values: Sequence[float]) -> float:
    """Return the robust standard deviation: 1.4826 times the median absolute deviation."""
    data = np.asarray(values, dtype=np.float64)
    return float(1.4826 * np.median(np.abs(data - np.median(data))))


def deviation(values: Sequence[float]) -> float:
    """Return the larger of robust and ordinary standard deviation; 0 if most values are the same.

    Such values were limited or fall on a grid: their spread is not known then.
    """
    robust = spread(values)
    # A threshold, not 0: the logarithms of equal ratios differ by their last bit.
    return max(robust, float(np.std(values, ddof=1))) if robust > 1e-12 else 0.0


def smallest_detectable(count: int, deviation: float, family: int = 1) -> float:
    """Return the shift of log-ratios that the signed-rank test finds with `POWER`.

    `count` values of this standard deviation; `family`: the number of comparisons corrected
    together (Holm), of which this may be the only one with a difference. Infinite if no test can
    reject, and for constant values (`deviation` 0), whose noise is not known.
    """
    if count < MIN_COUNT or deviation == 0:
        return math.inf
    return deviation * _detectable(count, level() / family)


@cache
def _detectable(count: int, alpha: float) -> float:
    """Return `smallest_detectable` in standard deviations, for normal values.

    The test rejects upwards when the c-th least Walsh average is above 0, c being the number of
    sums of ranks whose two-sided p is below alpha. A shift moves all averages equally: the shift
    that a sample needs is that average with its sign changed, and `POWER` of the samples need less
    than their quantile.
    """
    below = np.cumsum(signed_rank_pmf(range(1, count + 1)))
    cut = int(np.searchsorted(below, alpha / 2, side="left"))
    if cut == 0:
        return math.inf
    if count > _SIMULATED_COUNT:
        quantiles = scipy_stats().t.ppf([1 - alpha / 2, POWER], count - 1)
        return float(quantiles.sum() / math.sqrt(count * _EFFICIENCY))
    rows, columns = np.triu_indices(count)
    drawn = np.random.default_rng(1).normal(size=(min(_DRAWN // rows.size, 20_000), count))
    needed = [-np.partition((each[rows] + each[columns]) / 2, cut - 1)[cut - 1] for each in drawn]
    return float(np.quantile(needed, POWER))


def fewest_pairs(family: int) -> int:
    """Return the fewest pairs with which a signed-rank test passes Holm's correction over this
    family.

    The least p of n pairs is 2 / 2^n, two-sided.
    """
    return max(math.floor(math.log2(2 * family / ALPHA)) + 1, MIN_COUNT)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's adjusted p values, in the order given."""
    count = len(p_values)
    adjusted = [1.0] * count
    running = 0.0
    for place, index in enumerate(sorted(range(count), key=lambda i: p_values[i])):
        running = max(running, min(1.0, (count - place) * p_values[index]))
        adjusted[index] = running
    return adjusted


def _every_sign_p(differences: Sequence[float]) -> float:
    """Return the p value over all signs. Each value doubles the sums, which is a hundred times as
    fast as computing each sum by itself. Sums that differ by rounding are the same.
    """
    sums = np.zeros(1)
    for value in differences:
        sums = np.concatenate([sums + value, sums - value])
    rounding = 1e-12 * float(np.abs(differences).sum())
    return float(np.mean(np.abs(sums) >= abs(sums[0]) - rounding))


def sign_flip_p(differences: Sequence[float]) -> float:
    """Return the two-sided p value of Fisher's permutation test for paired data: each sign is a
    fair coin.

    All signs are tried up to `EXACT_COUNT` values; beyond, a fixed number drawn from a fixed seed.
    """
    # A single value is equally far from 0 with either sign.
    if len(differences) < 2 or not any(differences):
        return 1.0
    if len(differences) <= EXACT_COUNT:
        return _every_sign_p(differences)
    found = scipy_stats().permutation_test(
        (np.asarray(differences, dtype=np.float64),),
        np.sum,
        permutation_type="samples",
        n_resamples=2**EXACT_COUNT,
        vectorized=True,
        rng=1,
    )
    return min(1.0, float(found.pvalue))


@dataclass(frozen=True)
class Shifted:
    """A paired comparison by differences (arm less baseline), for values that may be 0.

    `cliffs_delta`: P(arm above baseline) less P(arm below). The zeros are shares of the blocks.
    """

    n: int
    shift: float
    low: float | None
    high: float | None
    p: float
    cliffs_delta: float
    arm_zeros: float
    baseline_zeros: float


def shifted(arm: Sequence[float], baseline: Sequence[float]) -> Shifted:
    """Compare values paired by block, of which some may be 0."""
    differences = [a - b for a, b in zip(arm, baseline, strict=True)]
    interval = shift_interval(differences)
    count = len(differences)
    return Shifted(
        n=count,
        shift=hodges_lehmann(differences),
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        p=sign_flip_p(differences),
        cliffs_delta=2 * a12(arm, baseline) - 1,
        arm_zeros=sum(value == 0 for value in arm) / count,
        baseline_zeros=sum(value == 0 for value in baseline) / count,
    )


@dataclass(frozen=True)
class Paired:
    """A paired comparison on the log scale, reported as ratios (arm over baseline).

    `spread` and `deviation` are of the log-ratios.
    """

    n: int
    ratio: float
    ci_low: float | None
    ci_high: float | None
    p: float
    a12: float
    spread: float
    deviation: float


def compare(arm: Sequence[float], baseline: Sequence[float], alpha: float | None = None) -> Paired:
    """Compare values paired by block; all must be positive. `alpha`: as `shift_interval`."""
    logs = [math.log(a / b) for a, b in zip(arm, baseline, strict=True)]
    interval = shift_interval(logs, alpha)
    return Paired(
        n=len(logs),
        ratio=math.exp(hodges_lehmann(logs)),
        ci_low=math.exp(interval.low) if interval else None,
        ci_high=math.exp(interval.high) if interval else None,
        p=signed_rank_p(logs),
        a12=a12(arm, baseline),
        spread=spread(logs),
        deviation=deviation(logs),
    )
