# SPDX-License-Identifier: BSD-3-Clause
"""Arms against their baseline, paired in blocks: first all pairs, then Holm, then the verdicts.

A family of Holm's is one arm on one link by one metric, over its frame sizes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from linerate import stats
from linerate.design import AA_SUFFIX
from linerate.links import link
from linerate.records import Trial
from linerate.stats import Paired
from linerate.summary import AA, CellSummary, Comparison
from linerate.verdict import LOW_LOAD, Limited, found_difference, judge


@dataclass(frozen=True)
class Metric:
    """A rate by which programs are compared; more is better. `words`: what it counts."""

    name: str
    words: str
    value: Callable[[Trial], float | None]


METRICS = {
    metric.name: metric
    for metric in (
        Metric(
            "received_pps",
            "frames per second carried there and back",
            lambda trial: trial.received_pps,
        ),
        Metric(
            "forwarder_rx_pps",
            "packets per second taken by the forwarder",
            lambda trial: trial.forwarder_rx_pps,
        ),
    )
}


# Rates that a search found, one per block and arm.
SEARCHED = {
    "ndr_pps": "frames per second without loss",
    "pdr_pps": "frames per second with little loss",
}


def words_of(metric: str) -> str:
    """What the metric counts."""
    return SEARCHED[metric] if metric in SEARCHED else METRICS[metric].words


def metrics_of(cell: CellSummary) -> list[Metric]:
    """What can be compared in a cell; the first answers the experiment's question."""
    carried = link(cell.link).has_generator
    return [m for m in METRICS.values() if carried or m.name != "received_pps"]


@dataclass(frozen=True)
class Pair:
    """Two arms over the beds on which both are valid; `paired` is None when there is no such.

    `zero_blocks` are left out: a rate of 0 has no logarithm.
    """

    paired: Paired | None
    zero_blocks: int = 0


def pair(trials: list[Trial], arm: str, baseline: str, metric: Metric) -> Pair:
    return _compared(*pairs_of(trials, arm, baseline, metric))


def pair_beds(
    by_bed: Mapping[tuple[int, int], Mapping[str, float]], arm: str, baseline: str
) -> Pair:
    """`by_bed`: a rate of each arm that has one, by its label, for each block and session."""
    return _compared(*both_of(by_bed, arm, baseline))


def pairs_of(
    trials: list[Trial], arm: str, baseline: str, metric: Metric
) -> tuple[list[tuple[float, float]], int]:
    """The metric of arm and baseline for each bed that both shared, in the order of blocks; and how
    many were left out because one of the two was 0.
    """
    by_bed: dict[tuple[int, int], dict[str, float]] = {}
    for trial in trials:
        value = metric.value(trial) if trial.valid and trial.arm in (arm, baseline) else None
        if value is not None:
            by_bed.setdefault(trial.bed, {})[trial.arm] = value
    return both_of(by_bed, arm, baseline)


def both_of(
    rates: Mapping[tuple[int, int], Mapping[str, float]], arm: str, baseline: str
) -> tuple[list[tuple[float, float]], int]:
    """What arm and baseline have for each bed that both shared, and how many have a rate of 0."""
    both = [
        (here[arm], here[baseline])
        for _, here in sorted(rates.items())
        if arm in here and baseline in here
    ]
    usable = [each for each in both if min(each) > 0]
    return usable, len(both) - len(usable)


def _compared(usable: list[tuple[float, float]], zero_blocks: int) -> Pair:
    if not usable:
        return Pair(None, zero_blocks)
    return Pair(stats.compare([a for a, _ in usable], [b for _, b in usable]), zero_blocks)


@dataclass(frozen=True)
class CellPairs:
    """All pairs of one cell by one metric. `control` is the baseline against itself."""

    cell: CellSummary
    metric: str
    primary: bool
    baseline: str
    control: Pair
    pairs: dict[str, Pair]

    @property
    def worst_spread(self) -> float:
        """The cell is as stable as its least stable arm, the A/A arm included."""
        every = [self.control, *self.pairs.values()]
        return max((each.paired.spread for each in every if each.paired), default=0.0)

    @property
    def low_load_loss(self) -> float | None:
        """The largest loss of any arm at a low load; None: not measured."""
        losses = [
            entry.loss_share
            for entry in self.cell.lower_load
            if entry.load_share <= LOW_LOAD and entry.loss_share is not None
        ]
        return max(losses, default=None)


def pair_cell(cell: CellSummary, trials: list[Trial], labels: list[str]) -> list[CellPairs]:
    """Every arm with the baseline, the first label, by every metric of the cell."""
    baseline = labels[0]
    others = [label for label in labels[1:] if not label.endswith(AA_SUFFIX)]
    return [
        CellPairs(
            cell=cell,
            metric=metric.name,
            primary=place == 0,
            baseline=baseline,
            control=pair(trials, baseline + AA_SUFFIX, baseline, metric),
            pairs={label: pair(trials, label, baseline, metric) for label in others},
        )
        for place, metric in enumerate(metrics_of(cell))
    ]


def adjusted(cells: list[CellPairs]) -> dict[tuple[str, str, str, int], float]:
    """Holm's p of each (metric, link, arm, size): corrected over the sizes of one arm."""
    families: dict[tuple[str, str, str], dict[int, float]] = {}
    for each in cells:
        for label, found in each.pairs.items():
            if found.paired:
                family = families.setdefault((each.metric, each.cell.link, label), {})
                family[each.cell.size] = found.paired.p
    return {
        (*key, size): p_holm
        for key, family in families.items()
        for size, p_holm in zip(family, stats.holm(list(family.values())), strict=True)
    }


def control_of(pairs: CellPairs) -> AA | None:
    """The A/A arm's result, where it has one."""
    found = pairs.control.paired
    if found is None:
        return None
    return AA(
        link=pairs.cell.link,
        size=pairs.cell.size,
        metric=pairs.metric,
        n=found.n,
        ratio=found.ratio,
        ci_low=found.ci_low,
        ci_high=found.ci_high,
        p=found.p,
        spread=found.spread,
        found_difference=found_difference(found),
    )


def compare(cells: list[CellPairs]) -> list[Comparison]:
    """All comparisons with their verdicts; the sentences come later."""
    p_holm = adjusted(cells)
    return [
        _comparison(each, label, p_holm.get((each.metric, each.cell.link, label, each.cell.size)))
        for each in cells
        for label in each.pairs
    ]


def _comparison(pairs: CellPairs, label: str, p_holm: float | None) -> Comparison:
    cell, found = pairs.cell, pairs.pairs[label]
    limits = {arm.arm: arm.limited_by for arm in cell.arms}
    limited_by = (limits.get(label), limits.get(pairs.baseline))
    judgement = judge(
        found.paired,
        p_holm,
        planned=cell.blocks,
        aa=pairs.control.paired,
        worst_spread=pairs.worst_spread,
        low_load_loss=pairs.low_load_loss,
        limited_by=limited_by,
        zero_blocks=found.zero_blocks,
    )
    result = Comparison(
        metric=pairs.metric,
        primary=pairs.primary,
        link=cell.link,
        size=cell.size,
        baseline=pairs.baseline,
        arm=label,
        n=0,
        p_holm=p_holm,
        zero_blocks=found.zero_blocks,
        limited_by=limited_by[0] or limited_by[1],
        limited=_limited(*(limit is not None for limit in limited_by)),
        verdict=judgement.verdict,
        reason=judgement.reason,
        sentence="",
    )
    if paired := found.paired:
        result.n = paired.n
        result.ratio = paired.ratio
        result.ci_low, result.ci_high = paired.ci_low, paired.ci_high
        result.p = paired.p
        result.a12 = paired.a12
        result.spread = paired.spread
        if math.isfinite(paired.smallest_detectable):
            result.smallest_detectable = paired.smallest_detectable
    return result


def _limited(arm: bool, baseline: bool) -> Limited | None:
    if arm and baseline:
        return "both"
    return "arm" if arm else "baseline" if baseline else None


def ungated(cell: CellSummary) -> list[str]:
    """A warning when loss at a low load, half of the stability gate, was not measured."""
    if not link(cell.link).has_generator:
        return []
    measured = {
        entry.arm
        for entry in cell.lower_load
        if entry.load_share <= LOW_LOAD and entry.loss_share is not None
    }
    missing = [
        arm.arm for arm in cell.arms if not arm.arm.endswith(AA_SUFFIX) and arm.arm not in measured
    ]
    if not missing:
        return []
    return [
        f"{cell.link} {cell.size} B: no valid trial at a low load of {', '.join(missing)}: whether "
        "frames are lost there is unknown, so the verdicts of this cell lack that stability gate"
    ]
