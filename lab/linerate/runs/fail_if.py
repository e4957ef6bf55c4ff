# SPDX-License-Identifier: BSD-3-Clause
"""The exit status of a run with `--fail-if slower`: is an arm slower than the baseline?

Only comparisons that answer the experiment's question count; exploratory ones do not.
`linerate.verdict.margin` defines slower.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from linerate.host.exit_status import ExitStatus
from linerate.host.text import counted
from linerate.records.summary import Comparison
from linerate.verdict.judgement import MARGIN
from linerate.verdict.margin import Side, beyond

Condition = Literal["slower"]
CONDITIONS: dict[str, Condition] = {"slower": "slower"}

_STATUS: dict[Side, ExitStatus] = {
    "slower": ExitStatus.SLOWER,
    "not slower": ExitStatus.DONE,
    "undecided": ExitStatus.UNDECIDED,
}


def status_of(comparisons: Sequence[Comparison]) -> ExitStatus:
    """Return SLOWER if an arm is slower in any cell, else UNDECIDED if a comparison is undecided or
    there is none, else DONE.
    """
    found = {_status(each) for each in comparisons if each.primary}
    if ExitStatus.SLOWER in found:
        return ExitStatus.SLOWER
    return ExitStatus.DONE if found == {ExitStatus.DONE} else ExitStatus.UNDECIDED


def _status(found: Comparison) -> ExitStatus:
    if found.verdict == "invalid":
        return ExitStatus.UNDECIDED
    if found.ci_low is None or found.ci_high is None:
        return _by_difference(found)
    side, _ = beyond(
        found.ci_low,
        found.ci_high,
        better=found.better,
        margin=MARGIN,
        zero_blocks=found.zero_blocks,
        arm_limited=found.limited in ("arm", "both"),
        baseline_limited=found.limited in ("baseline", "both"),
    )
    if side == "slower" and found.verdict != "slower":
        # Holm's p or the A/A arm took the direction away.
        return ExitStatus.UNDECIDED
    return _STATUS[side]


def _by_difference(found: Comparison) -> ExitStatus:
    """Decide by the difference: zeros allow no ratio and so no margin, so any significant
    difference counts.
    """
    if found.difference is None or found.verdict == "undecided":
        return ExitStatus.UNDECIDED
    return ExitStatus.SLOWER if found.verdict == "slower" else ExitStatus.DONE


def line_of(comparisons: Sequence[Comparison]) -> str:
    """Return the meaning of the status in words."""
    asked = [each for each in comparisons if each.primary]
    states = [_status(each) for each in asked]
    slower, unclear = states.count(ExitStatus.SLOWER), states.count(ExitStatus.UNDECIDED)
    status = status_of(comparisons)
    return (
        f"--fail-if slower: {counted(len(asked), 'comparison')}, {slower} slower by more than "
        f"{MARGIN * 100:g} % and {unclear} undecided: exit status {int(status)}"
    )
