# SPDX-License-Identifier: BSD-3-Clause
"""Check the published claims without numbers in each arm: an ordering, and equal costs.

Each is a question about some pairs of cells, which `quotients` judges together.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from linerate.experiments.graph.cells import COPIES, ORDERING, WAYS, GraphCell, parse
from linerate.experiments.graph.quotients import Judged, Quotient, Rates
from linerate.records.summary_figures import (
    CellRatio,
    GraphAnswers,
    JudgedRatio,
    Ordering,
    Splitting,
)
from linerate.records.trial import Trial
from linerate.records.types import Answer
from linerate.verdict.comparisons import CellPairs
from linerate.verdict.judgement import alike, greater
from linerate.verdict.ratios import ratio_words

SOURCE = (
    "ByteDance STE, DPDK Graph in network-layer forwarding (2025-02-19), Xeon 8336C, one core, "
    "batches of 256; charts without numbers"
)
PUBLISHED_ORDERING = "pointer swap > memory copy > pointer assignment"
PUBLISHED_SPLITTING = "the per cent change from 1 to 2 ways is like that from 2 to 4"


def answers(
    trials: Sequence[Trial], labels: Sequence[str], pairs: Sequence[CellPairs]
) -> GraphAnswers:
    """Return the answers. `trials`: judged ones. `labels`: the arms without the control. `pairs`:
    of all cells.
    """
    rates = Rates(trials, pairs)
    cells = [parse(name) for name in rates.cells]
    found = GraphAnswers(orderings=[], splitting=[])
    base = {(c.work, c.stats): None for c in cells if _on_ordering(c)}
    ways = {(c.passing, c.work, c.stats): None for c in cells if c.shape in WAYS.values()}
    for arm in labels:
        for work, kind in base:
            for copy in COPIES:
                if each := _ordering(arm, copy, work, kind, rates):
                    found.orderings.append(each)
        for passing, work, kind in ways:
            if split := _splitting(arm, passing, work, kind, rates):
                found.splitting.append(split)
    return found


def _on_ordering(cell: GraphCell) -> bool:
    return cell.shape == "chain4" and cell.batch == 256 and cell.passing in ORDERING


def _together(found: Sequence[Answer]) -> Answer:
    """Combine answers: all hold, or one is shown to be false, or neither."""
    if "no" in found:
        return "no"
    return "yes" if found and all(each == "yes" for each in found) else "untold"


def _ratio(first: str, second: str, judged: Judged) -> JudgedRatio:
    found = JudgedRatio(
        first=first,
        second=second,
        n=0,
        p_holm=judged.p_holm,
        verdict=judged.judgement.verdict,
        reason=judged.judgement.reason,
    )
    if paired := judged.paired:
        found.n, found.ratio, found.p = paired.n, paired.ratio, paired.p
        found.ci_low, found.ci_high = paired.ci_low, paired.ci_high
    return found


def _ordering(arm: str, copy: str, work: str, kind: str, rates: Rates) -> Ordering | None:
    """Return the ordering with copies of this size. None for an arm that has fewer than two of the
    mechanisms, and for one without these copies, for which the first copy size has already
    answered.
    """
    first, first_copy, last = ORDERING
    names = [f"chain4/{passing}/{work}/{kind}/256" for passing in (first, copy, last)]
    there = [name for name in names if rates.there(arm, name)]
    if len(there) < 2 or (copy != first_copy and names[1] not in there):
        return None
    pairs = list(pairwise(there))
    judged = rates.judged(arm, [Quotient((a,), (b,)) for a, b in pairs])
    steps = [_ratio(*pair, each) for pair, each in zip(pairs, judged, strict=True)]
    told = [greater(each.verdict) for each in steps]
    result = Ordering(arm=arm, work=work, stats=kind, steps=steps, holds=_together(told))
    if result.holds != "yes":
        step = steps[told.index(result.holds)]
        names_of = f"{parse(step.first).passing} / {parse(step.second).passing}"
        result.reason = f"{names_of}: {step.reason}"
    elif len(there) < len(names):
        missing = ", ".join(parse(name).passing for name in names if name not in there)
        result.holds = "untold"
        result.reason = f"there is no {missing} here; the others are ordered so"
    return result


def _splitting(arm: str, passing: str, work: str, kind: str, rates: Rates) -> Splitting | None:
    """Return the splitting; None for an arm without two neighbouring numbers of ways."""
    names = {count: f"{shape}/{passing}/{work}/{kind}/256" for count, shape in WAYS.items()}
    steps = [
        (names[twice], names[ways])
        for ways, twice in pairwise(WAYS)
        if rates.there(arm, names[ways]) and rates.there(arm, names[twice])
    ]
    if not steps:
        return None
    # The change of each doubling over the change of the previous one.
    pairs = list(pairwise(steps))
    judged = rates.judged(
        arm, [Quotient((later[0], earlier[1]), (later[1], earlier[0])) for earlier, later in pairs]
    )
    changes = [
        _ratio(later[0], earlier[0], each)
        for (earlier, later), each in zip(pairs, judged, strict=True)
    ]
    told = [alike(each.verdict) for each in changes]
    result = Splitting(
        arm=arm,
        passing=passing,
        work=work,
        stats=kind,
        doublings=[_doubling(arm, *step, rates) for step in steps],
        changes=changes,
        alike=_together(told),
    )
    if not changes:
        result.reason = "there is one doubling alone"
    elif result.alike != "yes":
        result.reason = _why(changes[told.index(result.alike)])
    return result


def _doubling(arm: str, twice: str, ways: str, rates: Rates) -> CellRatio:
    """Return the cost of the split; alone it answers nothing, and so has no verdict."""
    paired = rates.paired(arm, Quotient((twice,), (ways,)))
    if paired is None:
        return CellRatio(first=twice, second=ways, n=0)
    return CellRatio(
        first=twice,
        second=ways,
        n=paired.n,
        ratio=paired.ratio,
        ci_low=paired.ci_low,
        ci_high=paired.ci_high,
    )


def _why(change: JudgedRatio) -> str:
    """Format the ratio that decides."""
    to, earlier = (parse(name).shape for name in (change.first, change.second))
    return (
        f"the doubling to {to} over that to {earlier}: {ratio_words(change)}, for {change.reason}"
    )


def published_words(found: GraphAnswers) -> str:
    """Return how many of the published orderings hold here; "" if none was tested."""
    told = [each.holds for each in found.orderings] + [each.alike for each in found.splitting]
    if not told:
        return ""
    yes, no, untold = (told.count(each) for each in ("yes", "no", "untold"))
    return f"published orderings that hold here: {yes}, that do not: {no}, not decided: {untold}"
