# SPDX-License-Identifier: BSD-3-Clause
"""Test if a value rises or falls over ordered levels: Page's test in blocks.

It is two-sided: twice the smaller tail. L is exact, also with ties (the distribution of each
block's midranks over all of its orders), up to 7 levels, beyond normal with the variance of the
midranks and a correction for continuity.

Sources: Page, JASA 58(301), 1963; Hollander, Wolfe and Chicken, Nonparametric Statistical Methods,
3rd ed., section 7.2.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, reduce

import numpy as np
from scipy import stats as scipy_stats

from linerate.experiments.cloud.factorial.contrasts import block_means, inside_margin
from linerate.experiments.cloud.factorial.design import Observations
from linerate.host.errors import DesignError
from linerate.verdict import stats
from linerate.verdict.stats import Floats, Paired

# Up to this many levels all orders of a block are counted: 5040.
_EXACT_LEVELS = 7


@dataclass(frozen=True)
class Ordered:
    """The result. `statistic` is L, `mean` its expectation by chance; above it values rise with the
    levels.

    `agreement`: from -1 (every block falls) to 1 (every one rises): the mean of Spearman's
    correlations with the order of levels. `rising_p`: one-sided, of values that rise.
    """

    statistic: float
    mean: float
    p: float
    rising_p: float
    agreement: float
    exact: bool


def page(values: Floats) -> Ordered:
    """Run Page's test: values of shape (blocks, levels), levels in their order, none missing."""
    if values.ndim != 2 or values.shape[1] < 3 or not np.isfinite(values).all():
        raise DesignError(
            f"Page's test of values of shape {values.shape}",
            "give three levels or more, and only blocks that have a value of each",
        )
    blocks, levels = values.shape
    ranks = scipy_stats.rankdata(values, axis=1)
    weights = np.arange(1, levels + 1)
    statistic = float((ranks @ weights).sum())
    mean = blocks * levels * (levels + 1) ** 2 / 4
    # For each block Pearson's correlation of midranks with the order; 0 if all are tied.
    spread_of_ranks = np.square(ranks - (levels + 1) / 2).sum(axis=1)
    spread_of_weights = float(np.square(weights - (levels + 1) / 2).sum())
    along = (ranks - (levels + 1) / 2) @ (weights - (levels + 1) / 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        correlations = along / np.sqrt(spread_of_ranks * spread_of_weights)
    agreement = float(np.nan_to_num(correlations).mean())
    if levels <= _EXACT_LEVELS:
        doubled = np.rint(2 * ranks).astype(int)
        pmfs = [_block_pmf(tuple(sorted(row))) for row in doubled.tolist()]
        falls, rises = _tails(reduce(np.convolve, pmfs), round(2 * statistic))
    else:
        # The sum over orders of (sum of j r)^2 about its mean, for each block's midranks.
        variance = float(spread_of_ranks.sum()) * spread_of_weights / (levels - 1)
        falls, rises = _normal_tails(statistic - mean, variance)
    return Ordered(
        statistic,
        mean,
        min(1.0, 2 * min(falls, rises)),
        rises,
        agreement,
        levels <= _EXACT_LEVELS,
    )


@cache
def _block_pmf(doubled: tuple[int, ...]) -> Floats:
    """Return P(2 x sum of j r_j = k), k from 0, when every order of these doubled ranks is equally
    likely.
    """
    every = np.asarray(list(itertools.permutations(doubled)))
    sums = every @ np.arange(1, len(doubled) + 1)
    return np.asarray(np.bincount(sums) / len(every))


def _tails(pmf: Floats, place: int) -> tuple[float, float]:
    """Return P(as low) and P(as high)."""
    return float(pmf[: place + 1].sum()), float(pmf[place:].sum())


def _normal_tails(excess: float, variance: float) -> tuple[float, float]:
    """Return the same by the normal distribution, with a half for continuity."""
    if variance <= 0:
        return 1.0, 1.0
    sigma = math.sqrt(variance)
    low = float(scipy_stats.norm.cdf((excess + 0.5) / sigma))
    high = float(scipy_stats.norm.sf((excess - 0.5) / sigma))
    return low, high


@dataclass(frozen=True)
class Trend:
    """The trend of a metric over the levels of a factor, with the levels `within` of the other
    factors.

    `blocks`: the number of blocks that have values of every level in some cell. `ends` compares the
    last level with the first, by rate; None on the linear scale. `shift` is the median difference
    of the two there, `detectable` the one that is found in four of five such runs (of a ratio its
    difference from 1), None if it is unknown. `found` is None for fewer than three levels or no
    block. `flat`: every level is shown to be inside the margin of the first, by rate.
    """

    factor: str
    within: tuple[tuple[str, str], ...]
    levels: tuple[str, ...]
    blocks: int
    found: Ordered | None
    ends: Paired | None
    shift: stats.Shifted | None
    detectable: float | None
    flat: bool


def trend(
    observations: Observations, factor: str, within: Mapping[str, str] | None = None
) -> Trend:
    """Run Page's test over the levels of an ordered factor, on means over the cells of the others.

    Raises DesignError for a factor without order.
    """
    chosen = observations.factor(factor)
    if not chosen.ordered:
        raise DesignError(f"the levels of {factor} have no order", "declare the factor as ordered")
    at = dict(within or {})
    means = block_means(observations, [{**at, factor: level} for level in chosen.levels])
    found = page(means) if len(means) and means.shape[1] > 2 else None
    first, last = means[:, 0], means[:, -1]
    ends = shift = None
    flat = False
    deviation = stats.deviation((last - first).tolist()) if len(means) else 0.0
    needed = stats.smallest_detectable(len(means), deviation)
    if len(means) and observations.scale == "log":
        each = [stats.compare(level, np.exp(first).tolist()) for level in np.exp(means).T.tolist()]
        ends = each[-1]
        flat = all(inside_margin(found) for found in each[1:])
        needed = math.expm1(needed)
    elif len(means):
        shift = stats.shifted(last.tolist(), first.tolist())
    least = needed if math.isfinite(needed) else None
    return Trend(
        factor, tuple(at.items()), chosen.levels, len(means), found, ends, shift, least, flat
    )
