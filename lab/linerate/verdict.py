# SPDX-License-Identifier: BSD-3-Clause
"""From a comparison to one word, and to one sentence (measuring.md, rules 9 to 12).

faster, slower   the interval excludes 1 and Holm's p is below .05
equal            the whole interval lies inside +-2 %: an equivalence claim
undecided        neither: the run was too small or too noisy to tell
invalid          the A/A arm found a difference, the cell was unstable, or too few blocks were valid
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from linerate.stats import Paired

Verdict = Literal["faster", "slower", "equal", "undecided", "invalid"]

ALPHA = 0.05
MARGIN = 0.02
MIN_BLOCKS = 6
# Robust spread of the paired log-ratios above which a cell is unstable.
SPREAD_LIMIT = 0.15
# Share of blocks that may be lost to invalid trials.
LOST_BLOCKS = 0.5


@dataclass(frozen=True)
class Judgement:
    """`reason` says what decided it, for the report."""

    verdict: Verdict
    reason: str


def found_difference(paired: Paired) -> bool:
    """What makes an A/A comparison fail."""
    return paired.n >= MIN_BLOCKS and paired.p < ALPHA


def judge(
    paired: Paired,
    p_holm: float,
    *,
    planned: int,
    aa: Paired | None,
    higher_is_better: bool = True,
    low_load_loss: float | None = None,
) -> Judgement:
    """Apply the rules in the order of what forbids a verdict first."""
    if paired.n < MIN_BLOCKS:
        if planned >= MIN_BLOCKS and paired.n < planned * LOST_BLOCKS:
            return Judgement("invalid", f"only {paired.n} of {planned} blocks were valid")
        return Judgement("undecided", f"no test can reject with fewer than {MIN_BLOCKS} blocks")
    if aa is None or aa.n < MIN_BLOCKS:
        return Judgement("invalid", "the A/A arm has too few valid blocks")
    if found_difference(aa):
        return Judgement(
            "invalid",
            f"the A/A arm, one program against itself, differed (ratio {aa.ratio:.3f}, "
            f"p {aa.p:.3f})",
        )
    worst = max(paired.spread, aa.spread)
    if worst > SPREAD_LIMIT:
        return Judgement(
            "invalid", f"unstable: the ratios spread by {worst:.0%} (limit {SPREAD_LIMIT:.0%})"
        )
    if low_load_loss is not None and low_load_loss > 0.001:
        return Judgement("invalid", f"unstable: {low_load_loss:.2%} lost at a low load")
    if paired.ci_low is None or paired.ci_high is None:
        return Judgement("undecided", "too few blocks for an interval")
    if paired.ci_low > 1 - MARGIN and paired.ci_high < 1 + MARGIN:
        return Judgement("equal", f"the interval lies inside +-{MARGIN:.0%}")
    if p_holm < ALPHA and paired.ci_low > 1:
        return Judgement("faster" if higher_is_better else "slower", "the interval lies above 1")
    if p_holm < ALPHA and paired.ci_high < 1:
        return Judgement("slower" if higher_is_better else "faster", "the interval lies below 1")
    return Judgement("undecided", "the interval neither excludes 1 nor lies inside the margin")
