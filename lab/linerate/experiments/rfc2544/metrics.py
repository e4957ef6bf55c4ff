# SPDX-License-Identifier: BSD-3-Clause
"""The figures by which arms are compared: each search gives one value, or none."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from linerate.experiments.rfc2544.presets import Preset
from linerate.experiments.rfc2544.results import Searched
from linerate.records.trial import Test
from linerate.trial.search.device import Latency
from linerate.verdict.metrics import (
    BUFFER,
    HIGH_LATENCY,
    LOSS,
    MEDIAN_LATENCY,
    RECOVERY,
    VARIATION,
    Metric,
)

Value = Callable[[Searched], float | None]

_MICRO = 1e6


@dataclass(frozen=True)
class Compared:
    """`load_share`: at which load; None: the metric has but one.

    `tests`: whose trials must all be of one setup for a pair. What was measured at a rate that the
    throughput test found needs that test's too: the rate would be of another moment.

    `beyond`: why a search that was made has a figure worse or better than what was tried, if so.
    Its arm is not compared: the other searches alone would be too good, or too bad.
    """

    metric: Metric
    value: Value
    tests: tuple[Test, ...]
    load_share: float | None = None
    beyond: Callable[[Searched], str | None] = lambda _: None


def rate_of(searched: Searched, goal: str) -> float | None:
    """What this search found for the goal, in frames per second; None: it has no result.

    0: not even the least load reached it. Without those a comparison would be of the better ones. A
    lower bound for greater loads could not be tried is no result: what disturbed them was no doing
    of the forwarder's.
    """
    throughput = searched.unit.throughput
    found = throughput.found.get(goal) if throughput else None
    if found is None or found.state == "disturbed_above":
        return None
    return 0.0 if found.state == "below_minimum" else found.lower_pps


def compared_loads(preset: Preset) -> list[float]:
    """Shares of the own throughput at which latency is compared."""
    return [share for share in preset.latency_loads if share < 1]


def compared(preset: Preset) -> list[Compared]:
    """Beside rates and cost, which answer the question; all of these are secondary.

    Latency is compared below the throughput: at it a queue is as full as chance has it.
    """
    result = [
        Compared(metric, _latency(share, value), ("throughput", "latency"), share)
        for metric, value in (
            (MEDIAN_LATENCY, lambda run: run.quantiles.get(0.5)),
            (HIGH_LATENCY, lambda run: run.quantiles.get(0.99)),
            (VARIATION, _variation),
        )
        for share in compared_loads(preset)
    ]
    return [
        *result,
        Compared(BUFFER, _buffer, ("throughput", "back-to-back"), beyond=_at_limit),
        # At shares of 100 %, whatever the throughput.
        Compared(LOSS, _loss, ("loss",), 1.0),
        Compared(RECOVERY, _recovery, ("throughput", "recovery"), beyond=_without_end),
    ]


def _latency(share: float, value: Callable[[Latency], float | None]) -> Value:
    """The median over the runs of a search, in microseconds."""

    def found(searched: Searched) -> float | None:
        result = searched.unit.latency
        at = next((each for each in result.loads if each.share == share), None) if result else None
        return median_of([value(run) for run in at.runs], _MICRO) if at else None

    return found


def median_of(values: Sequence[float | None], scale: float = 1.0) -> float | None:
    """None unless every run has its value: a median of the good ones would be too good."""
    known = [value for value in values if value is not None]
    return statistics.median(known) * scale if known and len(known) == len(values) else None


def _variation(run: Latency) -> float | None:
    found = run.quantiles.get(0.99)
    return None if found is None else found - run.minimum


def _buffer(searched: Searched) -> float | None:
    result = searched.unit.back_to_back
    return result.corrected_s if result else None


def _at_limit(searched: Searched) -> str | None:
    result = searched.unit.back_to_back
    if result and result.at_limit:
        return "the longest burst that was tried passed"
    if result and result.disturbed:
        return "longer bursts than one that passed had gaps"
    return None


def _loss(searched: Searched) -> float | None:
    """The loss at 100 %."""
    result = searched.unit.loss
    return (
        next((point.loss_ratio for point in result.points if point.share == 1), None)
        if result
        else None
    )


def _recovery(searched: Searched) -> float | None:
    result = searched.unit.recovery
    return median_of([each.seconds for each in result.repetitions]) if result else None


def _without_end(searched: Searched) -> str | None:
    result = searched.unit.recovery
    states = {each.state for each in result.repetitions} if result else set()
    if "not_recovered" in states:
        return "frames were lost to the end"
    return "the overload lost nothing" if "not_overloaded" in states else None
