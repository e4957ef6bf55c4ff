# SPDX-License-Identifier: BSD-3-Clause
"""What was published without numbers, looked for in each arm: an ordering, and alike costs.

Cells of one arm are compared within blocks, as arms are within cells. Where the A/A arm of one of
the cells found a difference, nothing is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from linerate import stats
from linerate.comparisons import Bed
from linerate.graph.cells import ORDERING, WAYS, GraphCell, parse
from linerate.metrics import OBJECTS
from linerate.records import Trial
from linerate.stats import Paired
from linerate.summary import AA
from linerate.summary_figures import CellRatio, GraphAnswers, Ordering, Splitting
from linerate.verdict import Answer, alike, greater

SOURCE = (
    "ByteDance STE, DPDK Graph in network-layer forwarding (2025-02-19), Xeon 8336C, one core, "
    "batches of 256; charts without numbers"
)
PUBLISHED_ORDERING = "pointer swap > memory copy > pointer assignment"
PUBLISHED_SPLITTING = "the per cent change from 1 to 2 ways is like that from 2 to 4"


def answers(trials: Sequence[Trial], labels: Sequence[str], controls: Sequence[AA]) -> GraphAnswers:
    """`trials`: judged ones. `labels`: the arms without the control."""
    unsound = {each.link for each in controls if each.found_difference}
    rates = _rates(trials)
    cells = {name: parse(name) for name in dict.fromkeys(trial.link for trial in trials)}
    found = GraphAnswers(orderings=[], splitting=[])
    base = {(c.work, c.stats): None for c in cells.values() if _on_ordering(c)}
    ways = {(c.passing, c.work, c.stats): None for c in cells.values() if c.shape in WAYS.values()}
    for arm in labels:
        mine = {cell: values for (label, cell), values in rates.items() if label == arm}
        for work, kind in base:
            if each := _ordering(arm, work, kind, mine, unsound):
                found.orderings.append(each)
        for passing, work, kind in ways:
            if split := _splitting(arm, passing, work, kind, mine, unsound):
                found.splitting.append(split)
    return found


def _on_ordering(cell: GraphCell) -> bool:
    return cell.shape == "chain4" and cell.batch == 256 and cell.passing in ORDERING


def _rates(trials: Sequence[Trial]) -> dict[tuple[str, str], dict[Bed, float]]:
    found: dict[tuple[str, str], dict[Bed, float]] = {}
    for trial in trials:
        if trial.valid and (rate := OBJECTS.value(trial)):
            found.setdefault((trial.arm, trial.link), {})[trial.bed] = rate
    return found


Rates = dict[str, dict[Bed, float]]


def _paired(first: dict[Bed, float], second: dict[Bed, float]) -> Paired | None:
    beds = sorted(first.keys() & second.keys())
    if not beds:
        return None
    return stats.compare([first[bed] for bed in beds], [second[bed] for bed in beds])


def _ratio(first: str, second: str, paired: Paired | None) -> CellRatio:
    if paired is None:
        return CellRatio(first=first, second=second, n=0)
    return CellRatio(
        first=first,
        second=second,
        n=paired.n,
        ratio=paired.ratio,
        ci_low=paired.ci_low,
        ci_high=paired.ci_high,
    )


def _together(found: Sequence[Answer]) -> Answer:
    """All, or one that is shown not to be, or neither."""
    if "no" in found:
        return "no"
    return "yes" if found and all(each == "yes" for each in found) else "untold"


def _ordering(arm: str, work: str, kind: str, rates: Rates, unsound: set[str]) -> Ordering | None:
    """None for an arm that has fewer than two of the mechanisms."""
    names = [f"chain4/{passing}/{work}/{kind}/256" for passing in ORDERING]
    there = [name for name in names if name in rates]
    if len(there) < 2:
        return None
    pairs = [(a, b, _paired(rates[a], rates[b])) for a, b in pairwise(there)]
    result = Ordering(
        arm=arm, work=work, stats=kind, steps=[_ratio(*each) for each in pairs], holds="untold"
    )
    found = [greater(paired) for _, _, paired in pairs]
    if bad := [name for name in there if name in unsound]:
        result.reason = f"the A/A arm differed in {', '.join(bad)}"
    elif len(there) < len(names) and _together(found) == "yes":
        missing = ", ".join(parse(name).passing for name in names if name not in there)
        result.reason = f"there is no {missing} here; the others are ordered so"
    else:
        result.holds = _together(found)
    return result


def _splitting(  # noqa: PLR0917 - the names of a cell
    arm: str, passing: str, work: str, kind: str, rates: Rates, unsound: set[str]
) -> Splitting | None:
    """None for an arm without two neighbours."""
    names = {count: f"{shape}/{passing}/{work}/{kind}/256" for count, shape in WAYS.items()}
    steps = [
        (names[twice], names[ways])
        for ways, twice in pairwise(WAYS)
        if names[ways] in rates and names[twice] in rates
    ]
    if not steps:
        return None
    changes = {}
    for twice, once in steps:
        beds = rates[twice].keys() & rates[once].keys()
        changes[twice] = {bed: rates[twice][bed] / rates[once][bed] for bed in beds}
    result = Splitting(
        arm=arm,
        passing=passing,
        work=work,
        stats=kind,
        doublings=[_ratio(*step, _paired(rates[step[0]], rates[step[1]])) for step in steps],
        alike="untold",
    )
    if bad := sorted({name for step in steps for name in step} & unsound):
        result.reason = f"the A/A arm differed in {', '.join(bad)}"
    elif len(steps) < 2:
        result.reason = "there is one doubling alone"
    else:
        # Each doubling's change against that of the one before it.
        result.alike = _together(
            [
                alike(_paired(changes[later[0]], changes[earlier[0]]))
                for earlier, later in pairwise(steps)
            ]
        )
    return result
