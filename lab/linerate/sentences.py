# SPDX-License-Identifier: BSD-3-Clause
"""What was found, in words. Decides nothing: the verdict stands already."""

from __future__ import annotations

from collections import Counter

from linerate.comparisons import words_of
from linerate.summary import AA, CellSummary, Comparison
from linerate.verdict import MARGIN, MIN_BLOCKS


def sentence(found: Comparison) -> str:
    where = f"On {found.link} at {found.size} B"
    what = words_of(found.metric)
    if found.ratio is None:
        return f"{where}, no verdict on {found.arm} against {found.baseline}: {found.reason}."
    numbers = f"ratio {found.ratio:.3f}"
    if found.ci_low is not None and found.ci_high is not None:
        numbers += f", 95 % interval {found.ci_low:.3f} to {found.ci_high:.3f}"
    numbers += f", {found.n} blocks"
    if found.zero_blocks:
        numbers += f", {found.zero_blocks} more left out because a rate was 0"
    percent = f"{abs(found.ratio - 1) * 100:.1f} %"
    if found.verdict in ("faster", "slower"):
        least = "at least " if _faster_is_limited(found) else ""
        more = "more" if found.ratio >= 1 else "fewer"
        return (
            f"{where}, {found.arm} is {found.verdict} than {found.baseline}: "
            f"{least}{percent} {more} {what} ({numbers}).{_limited(found)}"
        )
    if found.verdict == "equal":
        return (
            f"{where}, {found.arm} and {found.baseline} are equal within "
            f"{MARGIN * 100:.0f} %: {what} differ by {percent} ({numbers}).{_limited(found)}"
        )
    if found.verdict == "undecided":
        floor = (
            f" The smallest difference it could find is {found.smallest_detectable * 100:.1f} %."
            if found.smallest_detectable is not None
            else ""
        )
        return (
            f"{where}, this run cannot tell {found.arm} from {found.baseline} by {what} "
            f"({numbers}): {found.reason}.{floor}"
        )
    return (
        f"{where}, no verdict on {found.arm} against {found.baseline} by {what} ({numbers}): "
        f"{found.reason}."
    )


def _faster_is_limited(found: Comparison) -> bool:
    """True when only the faster one of the two was held back."""
    return found.limited == ("arm" if found.verdict == "faster" else "baseline")


def _limited(found: Comparison) -> str:
    """Who of the two was held back, when only one was."""
    if found.limited not in ("arm", "baseline"):
        return ""
    name = found.arm if found.limited == "arm" else found.baseline
    return f" {name} is limited by the {found.limited_by} here and may be able to do more."


def control(found: AA) -> str:
    """What an A/A arm says. Where no test could reject, not having found anything says nothing."""
    if found.found_difference:
        return "found a difference: no verdict"
    return "found nothing" if found.n >= MIN_BLOCKS else "too few blocks to tell"


def controls(found: list[AA]) -> str:
    """What all A/A arms of a run say together."""
    differed = sum(each.found_difference for each in found)
    if differed:
        return f"{differed} of {len(found)} differed"
    telling = sum(each.n >= MIN_BLOCKS for each in found)
    if not telling:
        return "too few blocks to tell"
    if telling < len(found):
        return f"found nothing in {telling} of {len(found)}, too few blocks in the others"
    return "found nothing"


def no_lower_load(cell: CellSummary) -> str | None:
    """Why a cell has no figure at its lower loads; None when it has some, or no such trials."""
    trials = sum(entry.trials for entry in cell.lower_load)
    if not trials or any(entry.trials > entry.invalid for entry in cell.lower_load):
        return None
    reasons = [reason for entry in cell.lower_load for reason in entry.invalid_reasons]
    counts: Counter[str] = Counter()
    for reason in reasons:
        counts[reason.code] += reason.count
    code, count = counts.most_common(1)[0]
    example = next(reason.example for reason in reasons if reason.code == code)
    often = "all" if count == trials else f"{count} of them"
    return (
        f"None of the {trials} trials at fixed lower loads is valid, so nothing is known there; "
        f"{often} for a reason like this: {example.rstrip('.')}."
    )
