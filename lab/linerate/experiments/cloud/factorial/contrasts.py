# SPDX-License-Identifier: BSD-3-Clause
"""Levels of a factor against each other, by rate: paired in blocks, expressed as ratios.

A pair's value of a block is the geometric mean over the cells of all other factors in which both
levels were measured in that block, so that a missing value also removes its partner and causes no
bias. If factors interact, levels are compared within each level of the other (`within`). Test,
estimate and interval are those of `stats.compare`: signed ranks and Hodges-Lehmann on the log
scale. All contrasts of one call are a family, corrected by Holm. Intervals are not corrected.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from linerate.experiments.cloud.factorial.design import Observations, combinations
from linerate.host.errors import DesignError
from linerate.verdict import stats
from linerate.verdict.judgement import MARGIN
from linerate.verdict.stats import ALPHA, MIN_COUNT, Floats, Paired

# higher, lower: the interval excludes a ratio of 1 and Holm's p is below ALPHA; equal: the interval
# lies inside the margin; undecided: neither.
Verdict = Literal["higher", "lower", "equal", "undecided"]
Levels = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Contrast:
    """`level` over `against`, with the levels `within` of the other factors.

    `found` is None if no block has both. `detectable`: the difference of the ratio from 1 that
    would be found in four of five such runs, as a share; None if it is unknown.
    """

    factor: str
    level: str
    against: str
    within: Levels
    found: Paired | None
    p_holm: float
    family: int
    verdict: Verdict
    reason: str
    detectable: float | None

    @property
    def cliffs_delta(self) -> float | None:
        return None if self.found is None else 2 * self.found.a12 - 1


def block_means(observations: Observations, places: Sequence[Mapping[str, str]]) -> Floats:
    """Return one column for each place (levels of some factors, the same ones in each), one row for
    each block that has a value: shape (blocks, places), on the scale of the analysis.

    Means over the cells of all other factors that have values at every place in that block.
    """
    by_place = np.stack(
        [observations.at(place).scaled.reshape(len(observations.blocks), -1) for place in places],
        axis=-1,
    )
    both = np.asarray(np.isfinite(by_place).all(axis=-1))
    count = both.sum(axis=1)
    total = np.where(both[:, :, None], by_place, 0.0).sum(axis=1)
    return np.asarray(total[count > 0] / count[count > 0, None])


def contrasts(
    observations: Observations,
    factor: str,
    within: Sequence[str] = (),
    *,
    against: str | None = None,
) -> list[Contrast]:
    """Compare every pair of levels, or every level against one, at each combination of levels of
    `within`.

    Raises DesignError for values on the linear scale (`losses.contrasts` has those).
    """
    if observations.scale != "log":
        raise DesignError(f"{observations.metric} has no ratios", "compare it by differences")
    places = list(pairs(observations, factor, within, against))
    found = []
    for level, other, at in places:
        means = np.exp(block_means(observations, [{**at, factor: level}, {**at, factor: other}]))
        arm, baseline = means.T.tolist()
        found.append(stats.compare(arm, baseline) if arm else None)
    return judged(factor, places, found)


def pairs(
    observations: Observations, factor: str, within: Sequence[str], against: str | None = None
) -> list[tuple[str, str, dict[str, str]]]:
    """Yield the later level of each pair, the earlier or the one compared with, and the place."""
    levels = observations.factor(factor).levels
    if against is not None:
        observations.factor(factor).index(against)
    chosen = (
        [(later, earlier) for earlier, later in itertools.combinations(levels, 2)]
        if against is None
        else [(level, against) for level in levels if level != against]
    )
    return [(*pair, at) for at in combinations(observations, within) for pair in chosen]


def judged(
    factor: str,
    places: Sequence[tuple[str, str, Mapping[str, str]]],
    found: Sequence[Paired | None],
) -> list[Contrast]:
    """Return contrasts with their verdicts: the family is all that could be compared."""
    adjusted = iter(stats.holm([each.p for each in found if each]))
    family = sum(each is not None for each in found)
    told = []
    for (level, other, at), each in zip(places, found, strict=True):
        p_holm = next(adjusted) if each else 1.0
        verdict, reason = judge(each, p_holm, family)
        told.append(
            Contrast(
                factor,
                level,
                other,
                tuple(at.items()),
                each,
                p_holm,
                family,
                verdict,
                reason,
                detectable(each, family),
            )
        )
    return told


def judge(found: Paired | None, p_holm: float, family: int) -> tuple[Verdict, str]:
    """Return a ratio's verdict and its reason. Equivalence is tested first."""
    if found is None:
        return "undecided", "no block has values of both"
    if found.ci_low is None or found.ci_high is None:
        return "undecided", f"no test can reject with fewer than {MIN_COUNT} blocks"
    if inside_margin(found):
        return "equal", f"the interval lies inside +-{MARGIN * 100:.0f} %"
    if found.ci_low <= 1 <= found.ci_high:
        return "undecided", "the interval neither excludes 1 nor lies inside the margin"
    if p_holm >= ALPHA:
        return "undecided", too_weak(found.n, p_holm, family)
    if found.ci_low > 1:
        return "higher", "the interval lies above 1"
    return "lower", "the interval lies below 1"


def too_weak(blocks: int, p_holm: float, family: int) -> str:
    """Return why a difference shown by an interval is no verdict."""
    fewest = stats.fewest_pairs(family)
    if blocks < fewest:
        return f"{family} comparisons are corrected together, which takes {fewest} blocks or more"
    return f"Holm's p over {family} comparisons is {p_holm:.3f}, not below {ALPHA:g}"


def inside_margin(found: Paired) -> bool:
    """Return True if this is an equivalence: the whole interval is within the margin."""
    if found.ci_low is None or found.ci_high is None:
        return False
    return found.ci_low > 1 - MARGIN and found.ci_high < 1 + MARGIN


def detectable(found: Paired | None, family: int) -> float | None:
    """Return `Contrast.detectable`."""
    if found is None:
        return None
    logs = stats.smallest_detectable(found.n, found.deviation, max(family, 1))
    return math.expm1(logs) if math.isfinite(logs) else None
