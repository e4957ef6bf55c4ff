# SPDX-License-Identifier: BSD-3-Clause
"""Test if one combination of levels is worse than every other.

It is only if it is worse than each: all comparisons must reject, each at ALPHA, without correction
(an intersection-union test; its p is the largest). It is not if some other is shown to be worse or
as bad, for which there are several chances: that requires intervals and p corrected for their
number.

Worse is a lower rate, or a higher loss.

Source: Berger, Technometrics 24(4), 1982 (intersection-union tests).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from linerate.experiments.cloud.factorial.answers.takeaways import Answer, Measure, difference_words
from linerate.experiments.cloud.factorial.contrasts import block_means, detectable, inside_margin
from linerate.experiments.cloud.factorial.design import Observations
from linerate.experiments.cloud.factorial.losses import shifted
from linerate.host.text import counted, probability
from linerate.verdict import stats
from linerate.verdict.judgement import MARGIN
from linerate.verdict.stats import ALPHA, MIN_COUNT


@dataclass(frozen=True)
class Rival:
    """The combination against another: a ratio (below 1 is worse) or a difference (above 0 is).

    `refutes`: why the other shows that the claim is false, if it does.
    """

    words: str
    blocks: int
    effect: float | None
    low: float | None
    high: float | None
    p: float
    beaten: bool
    refutes: str | None
    detectable: float | None


@dataclass(frozen=True)
class Worst:
    """The result. The rival that decided: for a claim that held the closest."""

    verdict: Answer
    reason: str
    measure: Measure
    p: float | None
    rival: Rival | None


def is_worst(
    observations: Observations,
    place: Mapping[str, str],
    rivals: Sequence[Mapping[str, str]],
    *,
    unit_rival: str | None = None,
) -> Worst:
    """Run the test. `unit_rival`: the name of a ratio of 1, if the values are ratios: it is a
    rival, too.
    """
    measure: Measure = "ratio" if observations.scale == "log" else "difference"
    count = len(rivals) + (unit_rival is not None)
    if observations.scale == "log":
        found = [_rate(observations, place, each, count) for each in rivals]
        if unit_rival is not None:
            found.append(_unit(observations, place, unit_rival, count))
    else:
        found = [_loss(observations, place, each, count) for each in rivals]
    if not found:
        return Worst("undecided", "there is nothing to compare it with", measure, None, None)
    refuting = next((each for each in found if each.refutes), None)
    if refuting:
        return Worst("not held", str(refuting.refutes), measure, refuting.p, refuting)
    # The closest one has the largest p; of such alike the one with the smallest effect.
    closest = max(found, key=lambda each: (not each.beaten, each.p, -_far(each, measure)))
    if all(each.beaten for each in found):
        reason = f"worse than each of {count} others; {closest.words} comes closest"
        return Worst("held", reason, measure, closest.p, closest)
    return Worst("undecided", _why(closest, found, measure), measure, closest.p, closest)


def _far(rival: Rival, measure: Measure) -> float:
    if rival.effect is None:
        return 0.0
    return abs(math.log(rival.effect)) if measure == "ratio" else abs(rival.effect)


def _why(closest: Rival, found: Sequence[Rival], measure: Measure) -> str:
    told = f"not told from {closest.words}"
    others = sum(not each.beaten for each in found) - 1
    if others:
        told += f" and {others} more"
    if closest.blocks < MIN_COUNT:
        return (
            f"{told}: {counted(closest.blocks, 'block')}, of which {MIN_COUNT} or more are needed"
        )
    if closest.detectable is None:
        return f"{told} ({probability(closest.p, 3)}); how much the runs spread is not known"
    words = difference_words(closest.detectable, measure == "ratio")
    return f"{told} ({probability(closest.p, 3)}); {words} is found in four of five runs"


def _words(place: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {level}" for name, level in place.items())


def _rate(
    observations: Observations, place: Mapping[str, str], other: Mapping[str, str], count: int
) -> Rival:
    means = np.exp(block_means(observations, [place, other]))
    return _ratio_rival(_words(other), means[:, 0].tolist(), means[:, 1].tolist(), count)


def _unit(observations: Observations, place: Mapping[str, str], words: str, count: int) -> Rival:
    means = np.exp(block_means(observations, [place]))[:, 0].tolist()
    return _ratio_rival(words, means, [1.0] * len(means), count)


def _ratio_rival(words: str, arm: Sequence[float], other: Sequence[float], count: int) -> Rival:
    if not arm:
        return Rival(words, 0, None, None, None, 1.0, False, None, None)
    found = stats.compare(arm, other)
    corrected = stats.compare(arm, other, ALPHA / count)
    refutes = None
    if corrected.ci_low is not None and corrected.ci_low > 1:
        refutes = f"{words} is worse"
    elif inside_margin(corrected):
        refutes = f"{words} is as bad, within +-{MARGIN * 100:.0f} %"
    beaten = found.ci_high is not None and found.ci_high < 1 and found.p < ALPHA
    return Rival(
        words,
        found.n,
        found.ratio,
        found.ci_low,
        found.ci_high,
        found.p,
        beaten,
        refutes,
        detectable(found, 1),
    )


def _loss(
    observations: Observations, place: Mapping[str, str], other: Mapping[str, str], count: int
) -> Rival:
    found, deviation = shifted(observations, place, other)
    words = _words(other)
    if found is None:
        return Rival(words, 0, None, None, None, 1.0, False, None, None)
    refutes = None
    if found.high is not None and found.high < 0 and found.p * count < ALPHA:
        refutes = f"{words} is worse"
    elif found.arm_zeros == found.baseline_zeros == 1 and found.n >= MIN_COUNT:
        refutes = f"neither it nor {words} lost anything"
    beaten = found.low is not None and found.low > 0 and found.p < ALPHA
    least = stats.smallest_detectable(found.n, deviation)
    return Rival(
        words,
        found.n,
        found.shift,
        found.low,
        found.high,
        found.p,
        beaten,
        refutes,
        least if math.isfinite(least) else None,
    )
