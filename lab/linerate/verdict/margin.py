# SPDX-License-Identifier: BSD-3-Clause
"""Decide if something is slower by more than a margin. One rule, for an arm against its baseline in
one run (`linerate.runs.fail_if`) and for two runs (`linerate.runs.compare`).

    slower      the interval lies beyond the margin
    not slower  the interval lies on the near side of the margin: tested, not assumed
    undecided   the interval contains the margin, or left-out values could change the answer
"""

from __future__ import annotations

from typing import Literal

Better = Literal["higher", "lower"]
Side = Literal["slower", "not slower", "undecided"]


def border(better: Better, margin: float) -> float:
    """Return the ratio that is slower by exactly the margin: less of a good figure, more of a
    cost.
    """
    return 1 - margin if better == "higher" else 1 + margin


def beyond(
    low: float,
    high: float,
    *,
    better: Better,
    margin: float,
    zero_blocks: int = 0,
    arm_limited: bool = False,
    baseline_limited: bool = False,
) -> tuple[Side, str]:
    """Return the side of the margin on which an interval of ratios lies, and why.

    `zero_blocks`: blocks that have no ratio because a value was 0. `arm_limited`,
    `baseline_limited`: link or generator limit it, so that it may be able to do more.
    """
    limit = border(better, margin)
    beyond_it = high < limit if better == "higher" else low > limit
    near = low > limit if better == "higher" else high < limit
    if beyond_it and arm_limited:
        return "undecided", "the arm is limited by link or generator and may be able to do more"
    if beyond_it:
        return "slower", "the interval lies beyond the margin"
    if not near:
        return "undecided", "the interval holds the margin"
    if baseline_limited:
        return "undecided", (
            "the baseline is limited by link or generator and may be able to do more"
        )
    if zero_blocks:
        # The left-out values may be the slower ones.
        return "undecided", left_out(zero_blocks)
    return "not slower", "the interval excludes a slow-down by the margin"


def left_out(zero_blocks: int) -> str:
    """Return why blocks are missing from an interval."""
    return f"blocks left out because a value was 0, which has no logarithm: {zero_blocks}"
