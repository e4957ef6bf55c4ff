# SPDX-License-Identifier: BSD-3-Clause
"""Describe results in words. Decides nothing: the verdict is already made."""

from __future__ import annotations

from collections import Counter

from linerate.host.text import counted
from linerate.records.cells import cell_words
from linerate.records.summary import AA, CellSummary, Comparison
from linerate.verdict.judgement import MARGIN, MIN_BLOCKS, WIDE_SPREAD
from linerate.verdict.metrics import METRICS, Metric, at_load, words_of

# The label of comparisons that do not answer the experiment's question: they have families of their
# own.
EXPLORATORY = "exploratory"
# From this ratio on it is said how many times as high a figure is, and no percentage.
MANY_TIMES = 3


def standing(found: Comparison) -> str:
    """Return the label that tells a reader how far to trust a verdict; "" if primary."""
    return "" if found.primary else EXPLORATORY


def verdict_word(found: Comparison) -> str:
    """Return the verdict as in the sentence, such as dearer if a cost is compared."""
    metric = METRICS[found.metric]
    words = {"faster": metric.better_word, "slower": metric.worse_word}
    return words.get(found.verdict, found.verdict)


def sentence(found: Comparison) -> str:
    told = _sentence(found)
    if standing(found):
        return f"{EXPLORATORY.capitalize()}: {told[0].lower()}{told[1:]}"
    return told


def _sentence(found: Comparison) -> str:
    metric = METRICS[found.metric]
    where = f"On {cell_words(found.link, found.size, ' at ')}"
    what = words_of(found.metric, found.load_share)
    numbers = _numbers(found, metric)
    if numbers is None:
        return (
            f"{where}, no verdict on {found.arm} against {found.baseline} by {what}: "
            f"{found.reason}."
        )
    if found.verdict in ("faster", "slower"):
        better = found.verdict == "faster"
        least = "at least " if _faster_is_limited(found) else ""
        return (
            f"{where}, {found.arm} {metric.wins if better else metric.loses} {found.baseline}: "
            f"{least}{_effect(found, metric)} ({numbers}).{_caution(found)}{_limited(found)}"
        )
    if found.verdict == "equal" and found.difference:
        zero = f"every run of both {metric.zero}"
        return f"{where}, {found.arm} and {found.baseline} are equal by {what}: {zero} ({numbers})."
    if found.verdict == "equal":
        return (
            f"{where}, {found.arm} and {found.baseline} are equal within "
            f"{MARGIN * 100:.0f} %: {what} differ{'' if metric.plural else 's'} by "
            f"{_percent(found)} ({numbers}).{_limited(found)}"
        )
    if found.verdict == "undecided":
        floor = (
            f" The smallest difference it would find in four of five runs is "
            f"{found.smallest_detectable * 100:.1f} %."
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


def _numbers(found: Comparison, metric: Metric) -> str | None:
    """Format the effect with its interval, as a ratio or a difference; None without either."""
    if difference := found.difference:
        numbers = f"difference {_scaled(difference.shift, metric, '+')}"
        if difference.low is not None and difference.high is not None:
            numbers += (
                f", 95 % interval {difference.low * metric.scale:+.3g} to "
                f"{_scaled(difference.high, metric, '+')}"
            )
        return (
            (
                f"{numbers}, Cliff's delta {difference.cliffs_delta:+.2f}, "
                f"{counted(found.n, 'block')}; "
                f"{difference.arm_zeros:.0%} of the runs of {found.arm} {metric.zero} and "
                f"{difference.baseline_zeros:.0%} of {found.baseline}'s"
            )
            .replace("%", " %")
            .replace("  %", " %")
        )
    if found.ratio is None:
        return None
    numbers = f"ratio {found.ratio:.3f}"
    if found.ci_low is not None and found.ci_high is not None:
        numbers += f", 95 % interval {found.ci_low:.3f} to {found.ci_high:.3f}"
    numbers += f", {counted(found.n, 'block')}"
    if found.zero_blocks:
        numbers += f", {found.zero_blocks} more left out because a value was 0"
    return numbers


def _effect(found: Comparison, metric: Metric) -> str:
    """Describe by how much the metric is higher or lower."""
    load = at_load(metric, found.load_share)
    if difference := found.difference:
        word = metric.more if difference.shift > 0 else metric.less
        return f"{_scaled(abs(difference.shift), metric)} {word} {metric.words}{load}"
    if (found.ratio or 0) >= MANY_TIMES:
        return f"{found.ratio:.1f} times the {metric.words}{load}"
    word = metric.more if (found.ratio or 0) >= 1 else metric.less
    return f"{_percent(found)} {word} {metric.words}{load}"


def _caution(found: Comparison) -> str:
    """Return a warning if the ratio varies so much between blocks that its size should not be
    quoted.
    """
    if found.spread is None or found.spread <= WIDE_SPREAD:
        return ""
    return (
        f" The ratio varies by {found.spread:.0%} from block to block: quote the interval, not "
        "the size."
    ).replace("%", " %")


def _scaled(value: float, metric: Metric, sign: str = "") -> str:
    return f"{value * metric.scale:{sign}.3g}{metric.unit}"


def _percent(found: Comparison) -> str:
    return f"{abs((found.ratio or 0) - 1) * 100:.1f} %"


def _faster_is_limited(found: Comparison) -> bool:
    """Return True if only the faster one of the two was limited."""
    return found.limited == ("arm" if found.verdict == "faster" else "baseline")


def _limited(found: Comparison) -> str:
    """Name which of the two was limited, if only one was."""
    if found.limited not in ("arm", "baseline"):
        return ""
    name = found.arm if found.limited == "arm" else found.baseline
    return f" {name} is limited by the {found.limited_by} here and may be able to do more."


def control(found: AA) -> str:
    """Describe the result of an A/A arm. If no test could reject, no difference found means
    nothing.
    """
    if found.found_difference:
        return "found a difference: no verdict"
    return "found nothing" if found.n >= MIN_BLOCKS else "too few blocks to tell"


def controls(found: list[AA]) -> str:
    """Summarise all A/A arms of a run; "nothing to compare" if no block has valid trials of
    both.
    """
    if not found:
        return "nothing to compare"
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
    """Return why a cell has no figure at its lower loads; None if it has some, or no such
    trials.
    """
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
