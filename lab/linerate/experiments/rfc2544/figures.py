# SPDX-License-Identifier: BSD-3-Clause
"""The figures of one arm over its searches: each search is one value, whatever its repetitions."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Sequence

from linerate.experiments.rfc2544.metrics import median_of
from linerate.experiments.rfc2544.presets import REST_S, Preset
from linerate.experiments.rfc2544.results import Searched, maximum_of
from linerate.records.cells import Cell
from linerate.records.summary_figures import (
    AtLeast,
    BurstFigure,
    GoalFigure,
    LatencyFigure,
    LossEnded,
    LossFigure,
    LowerLoad,
    Quartiles,
    RecoveryFigure,
    SearchFigures,
)
from linerate.records.trial import DISTURBED, Test, Trial
from linerate.records.types import LAYER_1_BYTES, BoundKind
from linerate.trial.search.back_to_back import REPETITIONS as BURST_REPETITIONS
from linerate.trial.search.core_use import share_of
from linerate.trial.search.device import Latency
from linerate.trial.search.goals import Goal
from linerate.trial.search.latency import DEFINITION, AtLoad
from linerate.trial.search.latency import REPETITIONS as LATENCY_REPETITIONS
from linerate.trial.search.procedure import Result
from linerate.trial.search.recovery import REPETITIONS as RECOVERY_REPETITIONS
from linerate.trial.search.replay import ENDED
from linerate.trial.search.setup_device import outcome_of
from linerate.trial.search.throughput import Tried, held, unfinished
from linerate.verdict.arms import last_windows, lower_load, quartiles

_MICRO = 1e6


def figures_of(
    units: Sequence[Searched],
    preset: Preset,
    cell: Cell,
    tests: Sequence[Test],
    definition: str = DEFINITION,
) -> SearchFigures:
    """Return the figures of the units of one arm and cell; `tests`: the requested ones.

    `definition`: the latency that the sender measures.
    """
    trials = [trial for each in units for trial in each.trials]
    latency, (loss, ended) = _latency(units), _loss(units)
    return SearchFigures(
        searches=len(units),
        unfinished=sum(each.unit.lossless is None for each in units),
        reasons=dict(_reasons(units)),
        windows=len(trials),
        void_windows=sum(trial.invalid_code in DISTURBED for trial in trials),
        goals=[_goal(units, goal, cell.size, bounds=preset.bounds) for goal in preset.goals],
        latency_definition=definition if latency else None,
        latency=latency,
        loss=loss,
        loss_ended=ended,
        back_to_back=_bursts(units),
        recovery=_recovery(units),
        at_throughput=_at_throughput(units, preset),
        deviations=_deviations(units, preset, tests),
    )


def _goal(units: Sequence[Searched], goal: Goal, size: int, *, bounds: bool) -> GoalFigure:
    both = [
        (each.unit.throughput.found[goal.name], maximum_of(each.trials))
        for each in units
        if each.unit.throughput and goal.name in each.unit.throughput.found
    ]
    both = [(each, most) for each, most in both if each.state != "disturbed_above"]
    found = [each for each, _ in both]
    pps = quartiles(each.lower_pps for each in found)
    widths = [each.width for each in found if each.width is not None]
    shares = [each.lower_pps / most for each, most in both if each.lower_pps and most]
    return GoalFigure(
        goal=goal.name,
        loss_ratio=goal.loss_ratio,
        searches=len(found),
        pps=pps,
        l2_bps=pps.median * size * 8 if pps else None,
        l1_bps=pps.median * (size + LAYER_1_BYTES) * 8 if pps else None,
        width=max(widths, default=None),
        share=statistics.median(shares) if shares else None,
        at_maximum=sum(each.state == "at_maximum" for each in found),
        below_minimum=sum(each.state == "below_minimum" for each in found),
        at_least=_at_least(units, goal, size) if bounds and pps is None else None,
    )


def _at_least(units: Sequence[Searched], goal: Goal, size: int) -> AtLeast | None:
    """Return a lower bound: the median of lower bounds bounds the median. A search without a valid
    window of its throughput has the load that it carried in other tests.
    """
    bounds: list[float] = []
    shares: list[float] = []
    kinds: set[BoundKind] = set()
    for each in units:
        throughput = each.unit.throughput
        found = throughput.found.get(goal.name) if throughput else None
        pps = throughput.carried(goal.name) if throughput else None
        pps = pps or _held_by(each.trials, goal)
        if pps is None:
            continue
        bounds.append(pps)
        kinds.add("disturbed" if found and found.lower_pps else "trials")
        if most := maximum_of(each.trials):
            shares.append(pps / most)
    middle = quartiles(bounds)
    if middle is None:
        return None
    return AtLeast(
        pps=middle,
        kind="trials" if "trials" in kinds else "disturbed",
        l2_bps=middle.median * size * 8,
        l1_bps=middle.median * (size + LAYER_1_BYTES) * 8,
        share=statistics.median(shares) if shares else None,
    )


def _held_by(trials: Sequence[Trial], goal: Goal) -> float | None:
    """Return the bound from all valid windows at one rate: a search that was cut off has nothing
    else.
    """
    tried = [
        Tried(trial.request.pps, trial.request.seconds or 0.0, outcome.loss_ratio)
        for trial in trials
        if trial.valid
        and trial.request.load == "paced"
        and trial.request.then_pps is None
        and trial.request.pps
        and (outcome := outcome_of(trial)).received
    ]
    return held(goal, tried)


def _results(each: Searched) -> dict[str, Result]:
    unit = each.unit
    every: dict[str, Result | None] = {
        "throughput": unit.throughput,
        "latency": unit.latency,
        "loss": unit.loss,
        "back-to-back": unit.back_to_back,
        "recovery": unit.recovery,
        "core use": unit.core_use,
    }
    return {name: result for name, result in every.items() if result}


def _reasons(units: Sequence[Searched]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for each in units:
        for name, result in _results(each).items():
            if result.invalid:
                counts[f"{name}: {result.invalid.reason}"] += 1
        throughput, bursts = each.unit.throughput, each.unit.back_to_back
        if throughput and any(f.state == "disturbed_above" for f in throughput.found.values()):
            counts["throughput: in all windows at greater loads the sender was disturbed"] += 1
        if bursts and bursts.disturbed:
            counts["back-to-back: all bursts that were longer had gaps"] += 1
        if each.mismatch:
            counts[f"records of another procedure: {each.mismatch}"] += 1
        elif each.cut_in == "throughput":
            counts[f"throughput: {unfinished(ENDED).reason}"] += 1
        elif not each.complete:
            counts["cut off before its end"] += 1
    return counts


def _latency(units: Sequence[Searched]) -> list[LatencyFigure]:
    by_share: dict[float, list[AtLoad]] = {}
    for each in units:
        for load in each.unit.latency.loads if each.unit.latency else ():
            by_share.setdefault(load.share, []).append(load)
    return [_latency_at(share, by_share[share]) for share in sorted(by_share)]


def _latency_at(share: float, loads: list[AtLoad]) -> LatencyFigure:
    """Return the latency at a load. Each search is one value, that of its repetitions: they share a
    process.

    The rule: docs/how-it-measures.md#independent-starts.
    """
    mean = quartiles(load.mean * _MICRO for load in loads)
    assert mean is not None
    return LatencyFigure(
        share=share,
        trials=sum(len(load.runs) for load in loads),
        average_us=statistics.fmean(run.mean for load in loads for run in load.runs) * _MICRO,
        mean_us=mean,
        minimum_us=min(load.minimum for load in loads) * _MICRO,
        maximum_us=max(load.maximum for load in loads) * _MICRO,
        quantiles_us=_by_quantile(loads, lambda run: run.quantiles),
        pdv_us=_by_quantile(loads, _variation),
        jitter_us=quartiles(median_of([run.jitter for run in load.runs], _MICRO) for load in loads),
        ipdv_us=_by_quantile(loads, lambda run: run.ipdv) or None,
    )


def _variation(run: Latency) -> dict[float, float]:
    return {quantile: value - run.minimum for quantile, value in run.quantiles.items()}


def _by_quantile(
    loads: Sequence[AtLoad], figures: Callable[[Latency], dict[float, float]]
) -> dict[str, Quartiles]:
    """Return the medians over searches in microseconds, for the quantiles that every run has."""
    known = set.intersection(*(set(figures(run)) for load in loads for run in load.runs))
    return {
        f"{quantile:g}": found
        for quantile in sorted(known)
        if (
            found := quartiles(
                median_of([figures(run)[quantile] for run in load.runs], _MICRO) for load in loads
            )
        )
    }


def _loss(units: Sequence[Searched]) -> tuple[list[LossFigure], list[LossEnded]]:
    """Return the loads with a median, falling; and the loads below, which some searches did not
    reach.

    A median of only the searches that still lost frames would be too high, and 0 for the others was
    not measured. A search whose test failed on its way down has no value at the loads below; that
    does not depend on its loss, so those loads keep the median of the others.
    """
    by_share: dict[float, list[float]] = {}
    clean_ends: list[float] = []
    for each in units:
        if not each.unit.loss:
            continue
        for point in each.unit.loss.points:
            by_share.setdefault(round(point.share, 6), []).append(point.loss_ratio)
        if each.unit.loss.clean:
            clean_ends.append(round(each.unit.loss.points[-1].share, 6))
    figures: list[LossFigure] = []
    below: list[LossEnded] = []
    for share in sorted(by_share, reverse=True):
        losses = by_share[share]
        ended = sum(share < end for end in clean_ends)
        found = quartiles(losses)
        if ended:
            below.append(LossEnded(share=share, tried=len(losses), ended=ended))
        elif found:
            figures.append(LossFigure(share=share, searches=len(losses), loss_ratio=found))
    return figures, below


def _bursts(units: Sequence[Searched]) -> BurstFigure | None:
    """Return the bursts. A search is one value, the mean of its repetitions; RFC 9004 reports all
    repetitions.
    """
    results = [each.unit.back_to_back for each in units if each.unit.back_to_back]
    lengths = [length for result in results for length in result.lengths]
    frames = quartiles(result.mean for result in results)
    if frames is None:
        return None
    at_limit = sum(result.at_limit for result in results)
    disturbed = sum(result.disturbed for result in results)
    # The searches without a limit alone would give too short a time.
    timed = [] if at_limit or disturbed else results
    return BurstFigure(
        repetitions=len(lengths),
        at_limit=at_limit,
        disturbed=disturbed,
        average=statistics.fmean(lengths),
        minimum=min(lengths),
        maximum=max(lengths),
        deviation=statistics.stdev(lengths) if len(lengths) > 1 else None,
        frames=frames,
        implied_s=quartiles(result.implied_s for result in timed),
        corrected_s=quartiles(result.corrected_s for result in timed),
    )


def _recovery(units: Sequence[Searched]) -> RecoveryFigure | None:
    """Return the recovery. A search is one value, the mean of its repetitions: RFC 2544 reports
    their average.
    """
    results = [each.unit.recovery for each in units if each.unit.recovery]
    seen = [each for result in results for each in result.repetitions]
    if not seen:
        return None
    times = [each.seconds for each in seen if each.seconds is not None]
    complete = len(times) == len(seen)
    return RecoveryFigure(
        repetitions=len(seen),
        not_overloaded=sum(each.state == "not_overloaded" for each in seen),
        not_recovered=sum(each.state == "not_recovered" for each in seen),
        recovered_s=quartiles(result.mean for result in results) if complete else None,
        average_s=statistics.fmean(times) if complete else None,
    )


def _at_throughput(units: Sequence[Searched], preset: Preset) -> LowerLoad | None:
    """Return core use at the load that each search itself found."""
    trials: list[Trial] = []
    for each in units:
        mine = [
            trial
            for trial in each.trials
            if trial.request.test == "core-use" and trial.request.load_share
        ]
        rate = each.unit.carried(preset)
        trials += [
            trial
            for trial in last_windows(mine)
            if rate
            and trial.request.maximum_pps
            and trial.request.load_share == share_of(rate, trial.request.maximum_pps)
        ]
    shares = [trial.request.load_share for trial in trials if trial.request.load_share]
    return lower_load(trials[0].arm, statistics.median(shares), trials) if trials else None


def _deviations(units: Sequence[Searched], preset: Preset, tests: Sequence[Test]) -> list[str]:
    """Return the procedures' deviations, except for repetitions: those that have a result count
    together.
    """
    told = [
        deviation
        for each in units
        for result in _results(each).values()
        for deviation in result.deviations
        if not deviation.startswith("repetitions:")
    ]
    for name, count, wanted in (
        ("latency", _latency_count(units, preset), LATENCY_REPETITIONS),
        ("back-to-back", _burst_count(units), BURST_REPETITIONS),
        ("recovery", _recovery_count(units), RECOVERY_REPETITIONS),
    ):
        if name in tests and count < wanted:
            told.append(f"{name} repeated {count} times instead of {wanted}")
    if preset.terms.rest_s < REST_S:
        told.append("no pauses between trials (RFC 2544, 23)")
    return list(dict.fromkeys(told))


def _latency_count(units: Sequence[Searched], preset: Preset) -> int:
    """Return the number of values of the load with the fewest."""
    found = dict.fromkeys(preset.latency_loads, 0)
    for each in units:
        for load in each.unit.latency.loads if each.unit.latency else ():
            found[load.share] += len(load.runs)
    return min(found.values())


def _burst_count(units: Sequence[Searched]) -> int:
    return sum(len(each.unit.back_to_back.lengths) for each in units if each.unit.back_to_back)


def _recovery_count(units: Sequence[Searched]) -> int:
    return sum(len(each.unit.recovery.repetitions) for each in units if each.unit.recovery)
