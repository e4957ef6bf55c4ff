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
    """A compared figure. `load_share`: its load; None: the metric has only one.

    `tests`: those whose trials must all be of one setup for a pair. A figure measured at a rate
    from the throughput test needs that test's trials too: otherwise the rate would be of another
    moment.

    `beyond`: why a search has a figure worse or better than everything that was tried, if so. Its
    arm is not compared: the other searches alone would be too good, or too bad.
    """

    metric: Metric
    value: Value
    tests: tuple[Test, ...]
    load_share: float | None = None
    beyond: Callable[[Searched], str | None] = lambda _: None


def rate_of(searched: Searched, goal: str) -> float | None:
    """Return the rate that this search found for the goal, in frames per second; None if it has no
    result.

    0: not even the least load reached it. Leaving these out would compare only the better searches.
    A lower bound because greater loads could not be tried is no result: the disturbance was not
    caused by the forwarder.
    """
    throughput = searched.unit.throughput
    found = throughput.found.get(goal) if throughput else None
    if found is None or found.state == "disturbed_above":
        return None
    return 0.0 if found.state == "below_minimum" else found.lower_pps


def compared_loads(preset: Preset) -> list[float]:
    """Return the shares of the own throughput at which latency is compared."""
    return [share for share in preset.latency_loads if share < 1]


def compared(preset: Preset) -> list[Compared]:
    """Return the secondary figures, beside rates and cost, which answer the question.

    Latency is compared below the throughput: at the throughput the length of a queue is random.
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
        # At shares of 100 %, independent of the throughput.
        Compared(LOSS, _loss, ("loss",), 1.0),
        Compared(RECOVERY, _recovery, ("throughput", "recovery"), beyond=_without_end),
    ]


def _latency(share: float, value: Callable[[Latency], float | None]) -> Value:
    """Return the median over the runs of a search, in microseconds."""

    def found(searched: Searched) -> float | None:
        result = searched.unit.latency
        at = next((each for each in result.loads if each.share == share), None) if result else None
        return median_of([value(run) for run in at.runs], _MICRO) if at else None

    return found


def median_of(values: Sequence[float | None], scale: float = 1.0) -> float | None:
    """Return the median; None unless every run has its value: a median of the good ones would be
    too good.
    """
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
    """Return the loss at 100 %."""
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
