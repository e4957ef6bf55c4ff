# SPDX-License-Identifier: BSD-3-Clause
"""Statements that follow from the data, each with its test, effect, interval and verdict.

held        the test rejects at ALPHA, and the effect is not inside the margin of equivalence
not held    shown to be false: everything compared lies inside the margin, or the opposite is shown
undecided   neither. The reason says what the run could have found

No p above ALPHA alone makes a statement "not held". An effect is chosen as the largest of several,
which makes it look larger than it is; the reason gives their number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from linerate.experiments.cloud.factorial.contrasts import Contrast, Levels, contrasts
from linerate.experiments.cloud.factorial.design import Observations, crossed
from linerate.experiments.cloud.factorial.effects import PERMUTATIONS
from linerate.experiments.cloud.factorial.losses import LossContrast, loss_contrasts
from linerate.experiments.cloud.factorial.whole import Whole, any_effect
from linerate.host.errors import DesignError
from linerate.host.text import counted
from linerate.verdict.judgement import MARGIN
from linerate.verdict.stats import ALPHA, MIN_COUNT, Paired, Shifted

# `contrasts` or `loss_contrasts`.
_Compare = Callable[..., Sequence[Contrast | LossContrast]]
Answer = Literal["held", "not held", "undecided"]
# The unit of `effect` and its interval.
Measure = Literal["ratio", "difference", "partial eta squared"]


@dataclass(frozen=True)
class Takeaway:
    """A statement with its verdict. `low` and `high`: the 95 % interval of `effect`. `about`: the
    factors, which identify its chart. `compared`: the subjects of the effect, in words.
    `detectable`: the effect that such a run finds in four of five cases: a share of the ratio, a
    difference, or a share of variance, as `measure` says. `cliffs_delta`: P(the first of two
    compared is above the other in any two blocks) less P(below).
    """

    statement: str
    metric: str
    about: tuple[str, ...]
    test: str
    verdict: Answer
    reason: str
    p: float | None = None
    measure: Measure = "ratio"
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    compared: str = ""
    detectable: float | None = None
    cliffs_delta: float | None = None


def matters(
    observations: Observations,
    factor: str,
    statement: str | None = None,
    *,
    permutations: int = PERMUTATIONS,
    seed: int = 1,
) -> Takeaway:
    """Test if a factor has any effect at all, by the exact test of `whole`.

    "Not held" requires that every pair of levels is inside the margin, over all cells and at each
    level of each other factor; for loss, that no run lost anything.
    """
    told = statement or f"{factor} matters for {observations.metric}"
    test = "permutation within blocks and cells of the other factors, all effects of the factor"
    unknown = _cannot(observations, factor)
    if unknown:
        return Takeaway(told, observations.metric, (factor,), test, "undecided", unknown)
    try:
        whole = any_effect(observations, factor, permutations=permutations, seed=seed)
    except DesignError as error:
        return Takeaway(told, observations.metric, (factor,), test, "undecided", error.message)
    kept = crossed(observations)
    found = _judged(kept, told, test, whole)
    return replace(found, reason=found.reason + caveats(kept))


def _cannot(observations: Observations, factor: str) -> str | None:
    """Return why there can be no statement about a factor."""
    if not observations.has(factor):
        return f"the design has no factor {factor}"
    if len(observations.factor(factor).levels) < 2:
        return f"the design has one level of {factor}"
    if len(observations.blocks) < 2:
        return "one block has no error to compare an effect with"
    return None


def _others(observations: Observations, factor: str) -> list[str]:
    return [
        each.name for each in observations.factors if each.name != factor and len(each.levels) > 1
    ]


def _judged(observations: Observations, statement: str, test: str, whole: Whole) -> Takeaway:
    factor = whole.factor
    relative = observations.scale == "log"
    compare: _Compare = contrasts if relative else loss_contrasts
    overall = list(compare(observations, factor))
    others = _others(observations, factor)
    every = [
        *overall,
        *(each for other in others for each in compare(observations, factor, [other])),
    ]
    shown = _largest(every if whole.p < ALPHA else overall)
    if all(each.verdict == "equal" for each in every):
        verdict: Answer = "not held"
        reason = "no run lost anything"
        if relative:
            reason = f"all {counted(len(every), 'comparison')} lie inside +-{MARGIN * 100:.0f} %"
    elif whole.p < ALPHA:
        verdict = "held"
        reason = f"p {whole.p:.4f}; the effect shown is the largest of {len(every)}{_free(shown)}"
    else:
        verdict = "undecided"
        reason = _undecided(whole.p, len(observations.blocks), _least(overall), relative=relative)
    effect, low, high = estimate(shown.found if shown else None)
    return Takeaway(
        statement,
        observations.metric,
        (factor,),
        test,
        verdict,
        reason,
        p=whole.p,
        measure="ratio" if relative else "difference",
        effect=effect,
        low=low,
        high=high,
        compared=compared_words(shown) if shown else "",
        detectable=_least(overall),
        cliffs_delta=delta_of(shown.found if shown else None),
    )


def estimate(found: Paired | Shifted | None) -> tuple[float | None, float | None, float | None]:
    """Return the ratio or difference with its interval."""
    if found is None:
        return None, None, None
    if isinstance(found, Shifted):
        return found.shift, found.low, found.high
    return found.ratio, found.ci_low, found.ci_high


def delta_of(found: Paired | Shifted | None) -> float | None:
    """Return Cliff's delta."""
    if found is None:
        return None
    return found.cliffs_delta if isinstance(found, Shifted) else 2 * found.a12 - 1


def _free(shown: Contrast | LossContrast | None) -> str:
    """Describe how many runs lost nothing, if that is known."""
    if not isinstance(shown, LossContrast):
        return ""
    free, other_free = shown.loss_free
    if free is None or other_free is None:
        return ""
    return (
        f"; {free * 100:.0f} % of the runs at {shown.level} are loss-free, "
        f"{other_free * 100:.0f} % at {shown.against}"
    )


def _undecided(p: float, blocks: int, least: float | None, *, relative: bool) -> str:
    """Return why it is undecided, and what the run could have found."""
    if blocks < MIN_COUNT:
        return f"p {p:.3f}; {counted(blocks, 'block')}, of which {MIN_COUNT} or more are needed"
    if least is None:
        return f"p {p:.3f}; how much the runs spread is not known"
    words = difference_words(least, relative)
    return f"p {p:.3f}; {counted(blocks, 'block')} find {words} in four of five runs"


def difference_words(difference: float | None, relative: bool) -> str:
    """Format a difference of ratios in per cent, or one of losses in percentage points."""
    if difference is None:
        return "a difference that is not known"
    if relative:
        return f"a difference of {difference * 100:.1f} %"
    return f"one of {difference * 100:.2g} percentage points"


def caveats(observations: Observations) -> str:
    """Describe what an answer does not cover: levels that were left out, and values without a
    logarithm.
    """
    told = [f"without {each.factor} {each.level}" for each in observations.dropped]
    if observations.scale == "log" and observations.zeros:
        told.append(f"{counted(observations.zeros, 'value')} of 0 left out, having no logarithm")
    return "".join(f"; {each}" for each in told)


def _least(found: Sequence[Contrast | LossContrast]) -> float | None:
    """Return the largest difference that some pair needs to be found; None if one is unknown."""
    needed = [each.detectable for each in found]
    known = [each for each in needed if each is not None]
    return max(known) if known and len(known) == len(needed) else None


def _largest(found: Sequence[Contrast | LossContrast]) -> Contrast | LossContrast | None:
    """Return the contrast farthest from no difference, among the significant ones if there are
    any.
    """
    there = [each for each in found if each.found is not None]
    shown = [each for each in there if each.verdict in ("higher", "lower")]
    return max(shown or there, key=lambda each: _far(each.found), default=None)


def _far(found: Paired | Shifted | None) -> float:
    if found is None:
        return 0.0
    return abs(found.shift) if isinstance(found, Shifted) else abs(math.log(found.ratio))


def compared_words(found: Contrast | LossContrast) -> str:
    """Format what was compared, such as `size 1518 against 64 with load network`."""
    return f"{found.factor} {found.level} against {found.against}{place_words(found.within)}"


def place_words(within: Levels) -> str:
    return "".join(f" with {name} {level}" for name, level in within)
