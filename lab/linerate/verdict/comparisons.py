# SPDX-License-Identifier: BSD-3-Clause
"""Compare arms with their baseline, paired in blocks: first all pairs, then Holm, then the
verdicts.

A family of Holm's correction is one arm on one link by one metric, over its frame sizes and loads.
Comparisons that are not primary are labelled exploratory (`sentences`). There are as many such
families as metrics, so they are judged more strictly (`judgement`).

If link or generator limited arms of a cell, cycles per packet at fixed lower loads answer the
question (docs/how-it-measures.md#limited-by-generator-or-link): they are primary there, and the
rates are not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from linerate.links import base_name, link
from linerate.records.cells import AA_SUFFIX, is_graph
from linerate.records.summary import AA, CellSummary, Comparison, Difference
from linerate.records.trial import Trial
from linerate.records.types import Limited
from linerate.verdict import stats
from linerate.verdict.arms import typical_loss
from linerate.verdict.ceiling import cost_loads
from linerate.verdict.judgement import Judgement, found_difference, found_shift, judge, judge_shift
from linerate.verdict.metrics import COST, FORWARDED, METRICS, RECEIVED, Metric, TrialMetric
from linerate.verdict.stats import Paired, Shifted

# Block and session: the key of trials measured together.
Pairing = tuple[int, int]


def metrics_of(cell: CellSummary) -> list[TrialMetric]:
    """Return the rates by which a cell is compared; the first answers the experiment's question."""
    return [RECEIVED, FORWARDED] if link(cell.link).has_generator else [FORWARDED]


@dataclass(frozen=True)
class Pair:
    """Two arms over the pairings in which both are valid; `paired` is None if there are none.

    `zero_blocks` are left out: a value of 0 has no logarithm. For a metric where 0 is a valid
    result, and one occurs, `shifted` replaces `paired`. `unknown`: why there is neither.
    """

    paired: Paired | None
    zero_blocks: int = 0
    shifted: Shifted | None = None
    unknown: str | None = None

    @property
    def p(self) -> float | None:
        found = self.shifted or self.paired
        return found.p if found else None


def pair(trials: list[Trial], arm: str, baseline: str, metric: TrialMetric) -> Pair:
    return _compared(*pairs_of(trials, arm, baseline, metric))


def pairs_of(
    trials: list[Trial], arm: str, baseline: str, metric: TrialMetric
) -> tuple[list[tuple[float, float]], int]:
    """Return the metric of arm and baseline for each pairing that both have, in the order of
    blocks; and how many were left out because one of the two was 0.
    """
    by_pairing: dict[Pairing, dict[str, float]] = {}
    for trial in trials:
        value = metric.value(trial) if trial.valid and trial.arm in (arm, baseline) else None
        if value is not None:
            by_pairing.setdefault(trial.pairing, {})[trial.arm] = value
    return both_of(by_pairing, arm, baseline)


def both_of(
    values: Mapping[Pairing, Mapping[str, float]], arm: str, baseline: str
) -> tuple[list[tuple[float, float]], int]:
    """Return the values for each pairing that both have, and how many were left out because of
    a 0.
    """
    return _without_zeros(_both(values, arm, baseline))


def _both(
    values: Mapping[Pairing, Mapping[str, float]], arm: str, baseline: str
) -> list[tuple[float, float]]:
    return [
        (here[arm], here[baseline])
        for _, here in sorted(values.items())
        if arm in here and baseline in here
    ]


def _without_zeros(both: list[tuple[float, float]]) -> tuple[list[tuple[float, float]], int]:
    usable = [each for each in both if min(each) > 0]
    return usable, len(both) - len(usable)


def _compared(usable: list[tuple[float, float]], zero_blocks: int) -> Pair:
    if not usable:
        return Pair(None, zero_blocks)
    return Pair(stats.compare([a for a, _ in usable], [b for _, b in usable]), zero_blocks)


@dataclass(frozen=True)
class CellPairs:
    """All pairs of one cell by one metric. `control` is the baseline against itself.

    `load_share`: of a metric at a fixed load. `lost`: by arm, the share of the frames that it lost
    at that load in the median trial. `planned`: blocks that were begun; blocks that the run did not
    reach do not count as lost.
    """

    cell: CellSummary
    metric: str
    primary: bool
    baseline: str
    control: Pair
    pairs: dict[str, Pair]
    planned: int
    load_share: float | None = None
    lost: Mapping[str, float] = field(default_factory=dict)

    def lost_by(self, label: str) -> float | None:
        """Return the larger of the losses of this arm and the baseline; None if neither is
        known.
        """
        known = [self.lost[name] for name in (label, self.baseline) if name in self.lost]
        return max(known, default=None)


def low_load_loss(cell: CellSummary) -> float | None:
    """Return the largest share of frames that any arm lost at a low load; None if not measured."""
    return max(
        (
            entry.loss_share
            for entry in cell.lower_load
            if entry.load_share == cell.low_load_share and entry.loss_share is not None
        ),
        default=None,
    )


def _losses(trials: Sequence[Trial], labels: Sequence[str]) -> dict[str, float]:
    """Return the median loss of each arm's trials at one load, if it was counted."""
    found = {
        label: typical_loss([trial for trial in trials if trial.arm == label]) for label in labels
    }
    return {label: lost for label, lost in found.items() if lost is not None}


def blocks_of(trials: list[Trial]) -> int:
    """Return the number of blocks that have some of these trials."""
    return len({trial.block for trial in trials})


def pair_arms(
    cell: CellSummary,
    metric: TrialMetric,
    trials: list[Trial],
    labels: Sequence[str],
    *,
    planned: int,
    primary: bool = False,
    load_share: float | None = None,
) -> CellPairs:
    """Pair every arm with the baseline, the first label, by one metric of these trials.

    `planned`: blocks in which there should be some. `load_share`: if all are at that load.
    """
    baseline, *others = labels
    return CellPairs(
        cell=cell,
        metric=metric.name,
        primary=primary,
        baseline=baseline,
        control=pair(trials, baseline + AA_SUFFIX, baseline, metric),
        pairs={
            label: pair(trials, label, baseline, metric)
            for label in others
            if not label.endswith(AA_SUFFIX)
        },
        planned=planned,
        load_share=load_share,
        lost={} if load_share is None else _losses(trials, labels),
    )


def pair_cell(cell: CellSummary, trials: list[Trial], labels: list[str]) -> list[CellPairs]:
    """Pair every arm with the baseline, the first label, by every metric of the cell."""
    planned = blocks_of(trials)
    return [
        pair_arms(cell, metric, trials, labels, planned=planned, primary=place == 0)
        for place, metric in enumerate(metrics_of(cell))
    ]


def pair_searched(
    cell: CellSummary,
    metric: Metric,
    values: Mapping[Pairing, Mapping[str, float]],
    labels: Sequence[str],
    *,
    planned: int,
    primary: bool = False,
    load_share: float | None = None,
    unknown: Mapping[str, str] | None = None,
) -> CellPairs:
    """Pair the results of searches like `pair_cell`: each arm's value, if any, by pairing and
    label.

    `planned`: blocks in which a search was begun. `unknown`: arms that cannot be compared, and why.
    """
    baseline, *others = labels
    reasons = unknown or {}
    zeros = metric.zero is not None and any(
        here.get(label) == 0 for here in values.values() for label in labels
    )

    def of(label: str) -> Pair:
        if why := reasons.get(label) or reasons.get(baseline):
            return Pair(None, unknown=why)
        both = _both(values, label, baseline)
        if not zeros:
            return _compared(*_without_zeros(both))
        return Pair(None, 0, stats.shifted(*zip(*both, strict=True)) if both else None)

    return CellPairs(
        cell=cell,
        metric=metric.name,
        primary=primary,
        baseline=baseline,
        control=of(baseline + AA_SUFFIX),
        pairs={label: of(label) for label in others if not label.endswith(AA_SUFFIX)},
        planned=planned,
        load_share=load_share,
    )


def pair_costs(
    cell: CellSummary, trials: list[Trial], labels: list[str], planned: int
) -> list[CellPairs]:
    """Pair every arm with the baseline by its cycles per packet, at each load where they are
    known.
    """
    return pair_at_loads(cell, trials, labels, planned, COST, cost_loads(cell))


def pair_at_loads(  # noqa: PLR0917
    cell: CellSummary,
    trials: list[Trial],
    labels: list[str],
    planned: int,
    metric: TrialMetric,
    loads: Sequence[float],
) -> list[CellPairs]:
    """Pair every arm with the baseline by a metric at fixed loads.

    `trials`: those at fixed loads. `planned`: blocks in which there should be some.
    """
    return [
        pair_arms(
            cell,
            metric,
            [trial for trial in trials if trial.request.load_share == share],
            labels,
            planned=planned,
            load_share=share,
        )
        for share in loads
    ]


def led(rates: list[CellPairs], costs: list[CellPairs], *, costs_lead: bool) -> list[CellPairs]:
    """Return both, with those that answer the experiment's question in this cell marked primary,
    and first.
    """
    if not (costs and costs_lead):
        return [*rates, *costs]
    return [
        *(replace(each, primary=True) for each in costs),
        *(replace(each, primary=False) for each in rates),
    ]


# Family: metric, link and arm; member: load and size.
_Family = tuple[str, str, str]
_Member = tuple[float | None, int, str]


@dataclass(frozen=True)
class Corrected:
    """Holm's p, and the number of comparisons in the correction."""

    p: float
    family: int


def adjusted(cells: list[CellPairs]) -> dict[tuple[_Family, _Member], Corrected]:
    """Return Holm's p of each family and member: over the sizes, tables and loads of one arm."""
    families: dict[_Family, dict[_Member, float]] = {}
    for each in cells:
        for label, found in each.pairs.items():
            if found.p is not None:
                families.setdefault(_family(each, label), {})[_member(each)] = found.p
    return {
        (key, member): Corrected(p_holm, len(family))
        for key, family in families.items()
        for member, p_holm in zip(family, stats.holm(list(family.values())), strict=True)
    }


def _family(pairs: CellPairs, label: str) -> _Family:
    # A graph's cells are as the sizes of one link; that which answers the question stands alone.
    further = is_graph(pairs.cell.link) and not pairs.primary
    where = "" if further else base_name(pairs.cell.link)
    return pairs.metric, where, label


def _member(pairs: CellPairs) -> _Member:
    return pairs.load_share, pairs.cell.size, pairs.cell.link


def control_of(pairs: CellPairs) -> AA | None:
    """Return the A/A arm's result, or None."""
    control = pairs.control
    if control.p is None:
        return None
    result = AA(
        link=pairs.cell.link,
        size=pairs.cell.size,
        metric=pairs.metric,
        load_share=pairs.load_share,
        n=0,
        p=control.p,
        difference=_difference(control.shifted),
        found_difference=False,
    )
    if shifted := control.shifted:
        result.n, result.found_difference = shifted.n, found_shift(shifted)
    elif paired := control.paired:
        result.n, result.found_difference = paired.n, found_difference(paired)
        result.ratio, result.spread = paired.ratio, paired.spread
        result.ci_low, result.ci_high = paired.ci_low, paired.ci_high
    return result


def compare(cells: list[CellPairs]) -> list[Comparison]:
    """Return all comparisons with their verdicts; the sentences come later."""
    corrected = adjusted(cells)
    return [
        _comparison(each, label, corrected.get((_family(each, label), _member(each))))
        for each in cells
        for label in each.pairs
    ]


def _comparison(pairs: CellPairs, label: str, corrected: Corrected | None) -> Comparison:
    p_holm = corrected.p if corrected else None
    cell, found, metric = pairs.cell, pairs.pairs[label], METRICS[pairs.metric]
    limits = {arm.arm: arm.limited_by for arm in cell.arms} if metric.rate else {}
    limited_by = (limits.get(label), limits.get(pairs.baseline))
    result = Comparison(
        metric=pairs.metric,
        better=metric.better,
        load_share=pairs.load_share,
        primary=pairs.primary,
        link=cell.link,
        size=cell.size,
        baseline=pairs.baseline,
        arm=label,
        n=0,
        p=found.p,
        p_holm=p_holm,
        difference=_difference(found.shifted),
        zero_blocks=found.zero_blocks,
        limited_by=limited_by[0] or limited_by[1],
        limited=_limited(*(limit is not None for limit in limited_by)),
        verdict="invalid",
        reason="",
        sentence="",
    )
    if why := found.unknown or pairs.control.unknown:
        judgement = Judgement("undecided", why)
    elif shifted := found.shifted:
        result.n = shifted.n
        judgement = judge_shift(
            shifted,
            p_holm,
            planned=pairs.planned,
            aa=pairs.control.shifted,
            higher_is_better=metric.better == "higher",
            # A rate of 0 is below the least that was tried, no one knows where.
            zeros_alike=not metric.rate,
            exploratory=not pairs.primary,
        )
    else:
        judgement = judge(
            found.paired,
            p_holm,
            planned=pairs.planned,
            aa=pairs.control.paired,
            lost=pairs.lost_by(label),
            most_lost=metric.most_lost,
            limited_by=limited_by,
            zero_blocks=found.zero_blocks,
            higher_is_better=metric.better == "higher",
            exploratory=not pairs.primary,
        )
    result.verdict, result.reason = judgement.verdict, judgement.reason
    if paired := found.paired:
        result.n = paired.n
        result.ratio = paired.ratio
        result.ci_low, result.ci_high = paired.ci_low, paired.ci_high
        result.a12 = paired.a12
        result.spread = paired.spread
        family = corrected.family if corrected else 1
        shift = stats.smallest_detectable(paired.n, paired.deviation, family)
        if math.isfinite(shift):
            result.smallest_detectable = math.expm1(shift)
    return result


def _difference(found: Shifted | None) -> Difference | None:
    if found is None:
        return None
    return Difference(
        shift=found.shift,
        low=found.low,
        high=found.high,
        cliffs_delta=found.cliffs_delta,
        arm_zeros=found.arm_zeros,
        baseline_zeros=found.baseline_zeros,
    )


def _limited(arm: bool, baseline: bool) -> Limited | None:
    if arm and baseline:
        return "both"
    return "arm" if arm else "baseline" if baseline else None
