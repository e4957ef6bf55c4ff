# SPDX-License-Identifier: BSD-3-Clause
"""Levels of a factor against each other where most values are 0: loss.

A 0 has no logarithm but is informative: the run lost nothing. So levels are compared by
differences, as `contrasts` compares ratios: Fisher's sign flips over blocks, the Hodges-Lehmann
shift with its interval, Cliff's delta, and the share of loss-free runs beside them. Only two levels
that never lost anything are equal: there is no meaningful margin around zero loss.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from linerate.experiments.cloud.factorial.contrasts import (
    Levels,
    Verdict,
    block_means,
    pairs,
    too_weak,
)
from linerate.experiments.cloud.factorial.design import Observations
from linerate.verdict import stats
from linerate.verdict.stats import ALPHA, MIN_COUNT, Shifted


@dataclass(frozen=True)
class LossContrast:
    """`level` less `against`, with the levels `within` of the other factors.

    `loss_free`: the share of runs without any loss, of both. `detectable` is a difference of loss;
    None if it is unknown, for instance if most blocks do not differ.
    """

    factor: str
    level: str
    against: str
    within: Levels
    found: Shifted | None
    loss_free: tuple[float | None, float | None]
    p_holm: float
    family: int
    verdict: Verdict
    reason: str
    detectable: float | None


def loss_free(observations: Observations, place: Mapping[str, str]) -> float | None:
    """Return the share of the runs at some levels that are 0; None if there are none."""
    values = observations.at(place).values
    there = values[np.isfinite(values)]
    return float(np.mean(there == 0)) if there.size else None


def loss_contrasts(
    observations: Observations,
    factor: str,
    within: Sequence[str] = (),
    *,
    against: str | None = None,
) -> list[LossContrast]:
    """Compare every pair of levels, or every one against one, at each combination of levels of
    `within`.
    """
    places = pairs(observations, factor, within, against)
    compared = [
        shifted(observations, {**at, factor: level}, {**at, factor: other})
        for level, other, at in places
    ]
    adjusted = iter(stats.holm([found.p for found, _ in compared if found]))
    family = sum(found is not None for found, _ in compared)
    told = []
    for (level, other, at), (found, deviation) in zip(places, compared, strict=True):
        p_holm = next(adjusted) if found else 1.0
        verdict, reason = judge(found, p_holm, family)
        told.append(
            LossContrast(
                factor,
                level,
                other,
                tuple(at.items()),
                found,
                (
                    loss_free(observations, {**at, factor: level}),
                    loss_free(observations, {**at, factor: other}),
                ),
                p_holm,
                family,
                verdict,
                reason,
                _detectable(found, deviation, family),
            )
        )
    return told


def shifted(
    observations: Observations, first: Mapping[str, str], second: Mapping[str, str]
) -> tuple[Shifted | None, float]:
    """Return the comparison of two places in the blocks that have both, and the spread of its
    differences.
    """
    means = block_means(observations, [first, second])
    arm, baseline = means.T.tolist()
    if not arm:
        return None, 0.0
    differences = (means[:, 0] - means[:, 1]).tolist()
    return stats.shifted(arm, baseline), stats.deviation(differences)


def judge(found: Shifted | None, p_holm: float, family: int) -> tuple[Verdict, str]:
    """Return a difference's verdict and its reason."""
    if found is None:
        return "undecided", "no block has values of both"
    if found.n < MIN_COUNT:
        return "undecided", f"no test can reject with fewer than {MIN_COUNT} blocks"
    if found.arm_zeros == found.baseline_zeros == 1:
        return "equal", "all values are 0"
    if found.low is None or found.high is None or found.low <= 0 <= found.high:
        return "undecided", "the interval does not exclude a difference of 0"
    if p_holm >= ALPHA:
        return "undecided", too_weak(found.n, p_holm, family)
    if found.low > 0:
        return "higher", "the interval lies above 0"
    return "lower", "the interval lies below 0"


def _detectable(found: Shifted | None, deviation: float, family: int) -> float | None:
    if found is None:
        return None
    least = stats.smallest_detectable(found.n, deviation, max(family, 1))
    return least if math.isfinite(least) else None
