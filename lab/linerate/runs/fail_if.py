# SPDX-License-Identifier: BSD-3-Clause
"""The exit status of a run with `--fail-if slower`: did an arm turn out slower than the baseline?

Only comparisons that answer the experiment's question count; exploratory ones do not. As in
`linerate compare`, slower means that the whole interval lies beyond the margin, and not slower that
the whole interval lies on the near side of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from linerate.host.exit_status import ExitStatus
from linerate.host.text import counted
from linerate.records.summary import Comparison
from linerate.verdict.judgement import MARGIN

Condition = Literal["slower"]
CONDITIONS: dict[str, Condition] = {"slower": "slower"}


def status_of(comparisons: Sequence[Comparison]) -> ExitStatus:
    """Return SLOWER if one arm is in one cell, else UNDECIDED if one cannot be told or there is
    none, else DONE.
    """
    found = {_status(each) for each in comparisons if each.primary}
    if ExitStatus.SLOWER in found:
        return ExitStatus.SLOWER
    return ExitStatus.DONE if found == {ExitStatus.DONE} else ExitStatus.UNDECIDED


def _status(found: Comparison) -> ExitStatus:
    if found.verdict == "invalid" or found.limited == "both":
        return ExitStatus.UNDECIDED
    if found.ci_low is None or found.ci_high is None:
        return _by_difference(found)
    # Both as ratios of what is good: an interval of costs is turned over.
    low, high = found.ci_low, found.ci_high
    border = 1 - MARGIN
    if found.better == "lower":
        low, high, border = -high, -low, -(1 + MARGIN)
    if low > border:
        return ExitStatus.DONE
    if high < border and found.verdict == "slower":
        return ExitStatus.SLOWER
    return ExitStatus.UNDECIDED


def _by_difference(found: Comparison) -> ExitStatus:
    """Zeros allow no ratio and so no margin: any difference that is shown counts."""
    if found.difference is None or found.verdict == "undecided":
        return ExitStatus.UNDECIDED
    return ExitStatus.SLOWER if found.verdict == "slower" else ExitStatus.DONE


def line_of(comparisons: Sequence[Comparison]) -> str:
    """Return what the status stands for, in words."""
    asked = [each for each in comparisons if each.primary]
    states = [_status(each) for each in asked]
    slower, unclear = states.count(ExitStatus.SLOWER), states.count(ExitStatus.UNDECIDED)
    status = status_of(comparisons)
    return (
        f"--fail-if slower: of {counted(len(asked), 'comparison')}, {slower} slower by more than "
        f"{MARGIN * 100:g} % and {unclear} undecided: exit status {int(status)}"
    )
