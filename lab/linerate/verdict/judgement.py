# SPDX-License-Identifier: BSD-3-Clause
"""Derive a verdict from a comparison. All rules are here.

In words: docs/how-it-measures.md#how-a-verdict-is-made.

    faster, slower   better or worse by the metric: the interval excludes 1, Holm's p is below the
                     level, which is ALPHA unless the run has been looked at before
    equal            the whole interval lies inside the margin: an equivalence claim, tested first
    undecided        neither: the run was too small or too noisy to tell, or both were limited
    invalid          the A/A arm found a difference, one of the two lost frames of a load at which
                     both must do the same work, or too few blocks were valid

Spread forbids nothing: it is in the interval. A wide one is mentioned beside a verdict, because the
size of the effect then depends on the machine's state more than the interval's middle says.

The A/A arm is itself a test. At ALPHA it would forbid the verdict in every twentieth sound cell, so
that not even a difference of 10 % could count on one. A cell is forbidden if the control's whole
interval lies outside the margin: that shows a difference that matters. Any other control removes
the verdicts that its difference could explain.

A run has many exploratory comparisons, and each metric and arm is corrected alone: at ALPHA, one of
two equal programs was "faster" in every few runs. So there the interval must not overlap the
control's. With 7 to 14 simulated blocks at most 3 of 10,000 comparisons are wrong, instead of 300.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from linerate.host.text import probability
from linerate.records.types import Answer, Limiter, Verdict
from linerate.verdict.stats import ALPHA, MIN_COUNT, Paired, Shifted, level

MARGIN = 0.02
MIN_BLOCKS = MIN_COUNT
# Robust spread of the paired log-ratios above which the size of an effect is not to be quoted.
WIDE_SPREAD = 0.15
# The share of the frames of a fixed load that a program may lose and still count as having carried
# it: the compared figure, a cost or a delay per packet, then differs by no more than the margin.
LOAD_LOSS = MARGIN
# The share of blocks that may be lost to invalid trials.
LOST_BLOCKS = 0.5
_AA_TOO_FEW = "the A/A arm has too few valid blocks"
# Correct for sizes and loads, for tables, and for the cells of graphs.
_FAMILY = "this arm's family of comparisons"


@dataclass(frozen=True)
class Judgement:
    """A verdict. `reason` says what decided it, for the report."""

    verdict: Verdict
    reason: str


def found_difference(paired: Paired) -> bool:
    """Return True if an A/A comparison failed: the whole interval lies outside the margin."""
    if paired.n < MIN_BLOCKS or paired.ci_low is None or paired.ci_high is None:
        return False
    return paired.ci_low > 1 + MARGIN or paired.ci_high < 1 - MARGIN


def _explained(paired: Paired, control: Paired) -> bool:
    """Return True if the difference of the baseline from itself could explain the arm's.

    It does where it is as large, in either direction, whatever its p: the noise that makes one
    program differ from itself makes two programs differ. Where it has p < ALPHA, the arm has to
    differ from the baseline under both of its labels.
    """
    if abs(math.log(control.ratio)) >= abs(math.log(paired.ratio)):
        return True
    if control.p >= ALPHA or paired.ci_low is None or paired.ci_high is None:
        return False
    if paired.ci_low > 1:
        return paired.ci_low <= control.ratio
    return paired.ci_high >= control.ratio


def _overlap(
    low: float, high: float, aa_low: float | None, aa_high: float | None, form: str
) -> Judgement | None:
    """Return why an exploratory difference does not count; None if it does."""
    if aa_low is None or aa_high is None or low > aa_high or high < aa_low:
        return None
    return Judgement(
        "undecided",
        "the interval overlaps that of the A/A arm, one program against itself, which is "
        f"{aa_low:{form}} to {aa_high:{form}}",
    )


def judge(
    paired: Paired | None,
    p_holm: float | None,
    *,
    planned: int,
    aa: Paired | None,
    lost: float | None = None,
    most_lost: float = LOAD_LOSS,
    limited_by: tuple[Limiter | None, Limiter | None] = (None, None),
    zero_blocks: int = 0,
    higher_is_better: bool = True,
    family: str = _FAMILY,
    exploratory: bool = False,
) -> Judgement:
    """Apply the rules; those that forbid a verdict come first.

    `planned`: blocks that there should be. `lost`: at a fixed load, the larger of the shares of
    frames that arm and baseline lost, each of which must not exceed `most_lost`; `limited_by`: what
    limited the arm and the baseline; `family`: the comparisons of Holm's correction, in words.
    `exploratory`: it does not answer the experiment's question.
    """
    if paired is None or p_holm is None:
        lacking = "can be compared" if zero_blocks else "has a valid trial of both"
        return Judgement("invalid", f"no block {lacking}{_zeros(zero_blocks)}")
    forbidden = (
        _too_few(paired, planned, zero_blocks) or unsound(aa) or unequal_work(lost, most_lost)
    )
    if forbidden:
        return forbidden
    if paired.ci_low is None or paired.ci_high is None:
        return Judgement("undecided", "too few blocks for an interval")
    if paired.ci_low > 1 - MARGIN and paired.ci_high < 1 + MARGIN:
        if all(limited_by):
            return Judgement(
                "undecided",
                f"both are limited by the {' or the '.join(dict.fromkeys(map(str, limited_by)))}, "
                "so equal rates say nothing about the programs",
            )
        return Judgement("equal", f"the interval lies inside +-{MARGIN:.0%}")
    if paired.ci_low <= 1 <= paired.ci_high:
        return Judgement("undecided", "the interval neither excludes 1 nor lies inside the margin")
    if p_holm >= level():
        return Judgement("undecided", _holm_says(p_holm, family))
    if aa is not None and _explained(paired, aa):
        return Judgement(
            "undecided",
            f"the A/A arm, one program against itself, differed as far (ratio {aa.ratio:.3f}, "
            f"{probability(aa.p, 3)})",
        )
    if (
        exploratory
        and aa is not None
        and (overlap := _overlap(paired.ci_low, paired.ci_high, aa.ci_low, aa.ci_high, ".3f"))
    ):
        return overlap
    if paired.ci_low > 1:
        return Judgement("faster" if higher_is_better else "slower", "the interval lies above 1")
    return Judgement("slower" if higher_is_better else "faster", "the interval lies below 1")


def greater(verdict: Verdict) -> Answer:
    """Convert a verdict to whether the first of two is greater: "no" if they are equal."""
    if verdict == "faster":
        return "yes"
    return "no" if verdict in {"slower", "equal"} else "untold"


def alike(verdict: Verdict) -> Answer:
    """Convert a verdict to whether the two are equal."""
    if verdict == "equal":
        return "yes"
    return "no" if verdict in {"faster", "slower"} else "untold"


def found_shift(found: Shifted) -> bool:
    """Return the same if zeros allow no ratio, and so no margin: any significant difference."""
    if found.n < MIN_BLOCKS or found.low is None or found.high is None:
        return False
    return found.p < ALPHA and not found.low <= 0 <= found.high


def judge_shift(
    found: Shifted,
    p_holm: float | None,
    *,
    planned: int,
    aa: Shifted | None,
    higher_is_better: bool = True,
    zeros_alike: bool = True,
    exploratory: bool = False,
) -> Judgement:
    """`judge` for values that may be 0, by their differences. Only two that are always 0 are equal:
    zeros have no meaningful margin. `zeros_alike`: False if not even those are.
    """
    forbidden = _too_few(found, planned, 0)
    if forbidden:
        return forbidden
    if aa is None or aa.n < MIN_BLOCKS:
        return Judgement("invalid", _AA_TOO_FEW)
    if found_shift(aa):
        return Judgement(
            "invalid", f"the A/A arm, one program against itself, differed ({probability(aa.p, 3)})"
        )
    if found.arm_zeros == found.baseline_zeros == 1:
        if zeros_alike:
            return Judgement("equal", "all values are 0")
        return Judgement("undecided", "both are below all that was tried")
    if found.low is None or found.high is None or found.low <= 0 <= found.high:
        return Judgement("undecided", "the interval does not exclude a difference of 0")
    if p_holm is None or p_holm >= level():
        return Judgement("undecided", _holm_says(p_holm))
    if abs(aa.shift) >= abs(found.shift):
        return Judgement(
            "undecided",
            "the A/A arm, one program against itself, differed as far (difference "
            f"{aa.shift:+.3g}, {probability(aa.p, 3)})",
        )
    if exploratory and (overlap := _overlap(found.low, found.high, aa.low, aa.high, "+.3g")):
        return overlap
    better = (found.low > 0) == higher_is_better
    side = "above" if found.low > 0 else "below"
    return Judgement("faster" if better else "slower", f"the interval lies {side} 0")


def _holm_says(p_holm: float | None, family: str = _FAMILY) -> str:
    return f"Holm's p over {family} is {p_holm or 1:.3f}, not below {level():g}"


def too_few(n: int, planned: int, zero_blocks: int) -> str | None:
    """Return why too few blocks are left for a verdict, regardless of their number: the cause of so
    many failures may have selected them.
    """
    if planned >= MIN_BLOCKS and n < planned * LOST_BLOCKS:
        return f"only {n} of {planned} blocks were valid{_zeros(zero_blocks)}"
    return None


def _too_few(paired: Paired | Shifted, planned: int, zero_blocks: int) -> Judgement | None:
    if few := too_few(paired.n, planned, zero_blocks):
        return Judgement("invalid", few)
    if paired.n < MIN_BLOCKS:
        return Judgement("undecided", f"no test can reject with fewer than {MIN_BLOCKS} blocks")
    return None


def unsound(aa: Paired | None) -> Judgement | None:
    """Return why the control forbids every verdict by a metric in a cell, at a load; None if it
    does not.
    """
    if aa is None or aa.n < MIN_BLOCKS:
        return Judgement("invalid", _AA_TOO_FEW)
    if found_difference(aa):
        return Judgement(
            "invalid",
            f"the A/A arm, one program against itself, differed (ratio {aa.ratio:.3f}, "
            f"{probability(aa.p, 3)})",
        )
    return None


def unequal_work(lost: float | None, most: float) -> Judgement | None:
    """Return why arm and baseline cannot be compared at a fixed load: one of them lost the share
    `lost`, which is above `most`; None if they can. A program that drops packets is cheap.
    """
    if lost is None or lost <= most:
        return None
    return Judgement(
        "invalid",
        f"one of the two lost {lost:.1%} of the frames at this load in its median trial (limit "
        f"{most:.0%}), so they did not do the same work",
    )


def _zeros(blocks: int) -> str:
    return f"; {blocks} left out because a value was 0, which has no logarithm" if blocks else ""
