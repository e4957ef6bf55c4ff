# SPDX-License-Identifier: BSD-3-Clause
"""The answer of a run of `rfc2544` in one sentence: the rate of each forwarder, and which has the
higher one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from linerate.host.text import counted
from linerate.records.cells import AA_SUFFIX
from linerate.records.summary import CellSummary, Comparison, Summary
from linerate.records.summary_figures import GoalFigure
from linerate.verdict.metrics import words_of
from linerate.verdict.sentences import verdict_word

_MEGA = 1e6


def answers(summary: Summary, *, verdicts: bool) -> list[str]:
    """Return a sentence for each link. `verdicts`: the preset promises some."""
    found = []
    for name in dict.fromkeys(cell.link for cell in summary.cells):
        cells = [cell for cell in summary.cells if cell.link == name]
        sizes = sorted(cell.size for cell in cells)
        where = f"On {name}, "
        where += (
            f"at {sizes[0]} B"
            if len(sizes) == 1
            else f"at {len(sizes)} frame sizes from {sizes[0]} to {sizes[-1]} B"
        )
        labels = dict.fromkeys(
            arm.arm for cell in cells for arm in cell.arms if not arm.arm.endswith(AA_SUFFIX)
        )
        carried = ", ".join(f"{label} {_carried(cells, label)}" for label in labels)
        carried = carried or "no forwarder was searched"
        primary = [c for c in summary.comparisons if c.primary and c.link == name]
        ends = [_compared([c for c in primary if c.arm == label]) for label in labels]
        told = "; ".join(end for end in ends if end)
        if not verdicts and not _decided(primary):
            told = "this preset gives tables and no verdicts"
        found.append(f"{where}, without loss: {carried}{f'; {told}' if told else ''}.")
    return found


def _carried(cells: Sequence[CellSummary], label: str) -> str:
    goals = [
        arm.search.goals[0]
        for cell in cells
        for arm in cell.arms
        if arm.arm == label and arm.search and arm.search.goals
    ]
    known = [(pps.median / _MEGA, goal) for goal in goals if (pps := goal.rate.pps)]
    if not known:
        return "nothing, as far as is known" if goals else "not searched"
    if len(known) == 1:
        ((mpps, goal),) = known
        return f"carries {_least(goal)}{mpps:.3f} Mpps{_spread(goal)}"
    rates = [mpps for mpps, _ in known]
    said = f"carries {min(rates):.3f} to {max(rates):.3f} Mpps"
    if bounds := sum(goal.is_bound for _, goal in known):
        said += f" (at {counted(bounds, 'size')} a lower bound)"
    return said


def _spread(goal: GoalFigure) -> str:
    """Describe how far the searches agree: beside other work they differ many times over."""
    found = goal.rate.pps
    if found is None or goal.is_bound or found.n < 2:
        return ""
    if found.low is None or found.high is None:
        return f" ({found.n} searches: too few for an interval)"
    return f" (95 % interval {found.low / _MEGA:.3f} to {found.high / _MEGA:.3f})"


def _least(goal: GoalFigure) -> str:
    return "at least " if goal.is_bound else ""


def _decided(comparisons: Sequence[Comparison]) -> list[Comparison]:
    return [c for c in comparisons if c.verdict in {"faster", "slower", "equal"}]


def _compared(mine: Sequence[Comparison]) -> str:
    """Describe an arm against the baseline, by the metric that answers the question; empty for the
    baseline.
    """
    if not mine:
        return ""
    decided, (first, *_) = _decided(mine), mine
    by = words_of(first.metric, None)
    if not decided:
        return f"this run cannot tell {first.arm} from {first.baseline} by {by}"
    if len(mine) == 1:
        return f"{first.arm} is {verdict_word(first)} {_than(first)} {first.baseline} by {by}"
    counts = Counter(verdict_word(c) for c in decided)
    said = ", ".join(f"{word} in {count}" for word, count in counts.items())
    if undecided := len(mine) - len(decided):
        said += f", not decided in {undecided}"
    return f"{first.arm} against {first.baseline} by {by}: {said} of {len(mine)} comparisons"


def _than(found: Comparison) -> str:
    return "to" if found.verdict == "equal" else "than"
