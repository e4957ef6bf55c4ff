# SPDX-License-Identifier: BSD-3-Clause
"""The figures of one trial, in cycles and less the cost of reading the clock.

Two readings of the clock with nothing between are one reading apart, so each delay contains one,
until its cost is subtracted: by the sender (`LatencyFigures.net`), or here. The sender converts to
nanoseconds with its own value of the counter's frequency; that is undone here.
"""

from __future__ import annotations

from collections.abc import Mapping

from linerate.records.outcome import Clock, LatencyFigures, Span
from linerate.records.trial import Trial
from linerate.trial.search.latency import supports

# The span that programs of every kind can measure: see telemetry's /linerate/latency.
COMMON_SPAN = "rx-return_tx-call"


def cycles_of(ns: float, found: LatencyFigures, clock: Clock) -> float:
    """Return a delay of these figures in cycles, less the clock's cost, which is subtracted once.

    Trial-1 did not record if the sender had subtracted it. Those figures are reported as they were
    then.
    """
    cycles = ns * clock.tsc_hz / 1e9
    return cycles if found.net else cycles - clock.cost_cycles


def ns_per_cycle(clock: Clock) -> float:
    """Return nanoseconds per cycle, by the measured frequency if there is one."""
    return 1e9 / (clock.checked_hz or clock.tsc_hz)


def supported(quantiles: Mapping[str, float], count: int) -> dict[str, float]:
    """Return the quantiles that this number of frames supports."""
    return {name: value for name, value in quantiles.items() if supports(count, float(name))}


def latency_us(trial: Trial, quantile: str) -> float | None:
    """Return the sender's quantile in us; None if it has none, or if too few frames came back."""
    found = trial.frames.latency
    value = supported(found.quantiles_ns, found.count).get(quantile) if found else None
    return None if value is None else value / 1e3


def round_trip_cycles(trial: Trial, quantile: str) -> float | None:
    found, clock = trial.frames.latency, trial.frames.clock
    if found is None or clock is None:
        return None
    value = supported(found.quantiles_ns, found.count).get(quantile)
    return None if value is None else cycles_of(value, found, clock)


def inside_cycles(trial: Trial, quantile: str = "0.5") -> float | None:
    """Return the cycles of the span that all programs can measure, less the clock's cost, if one
    queue sends.

    None if it is no longer than that cost: a ratio to it would be meaningless.
    """
    found = [each for each in trial.frames.spans or () if each.span == COMMON_SPAN]
    clock = trial.frames.clock
    if len(found) != 1 or clock is None:
        return None
    value = supported(found[0].quantiles_cycles, found[0].count).get(quantile)
    return None if value is None else above_cost(value, clock)


def above_cost(cycles: float, clock: Clock) -> float | None:
    """Subtract the clock's cost; None if the rest is not positive, because it cannot be
    distinguished from the cost.
    """
    return cycles - clock.cost_cycles if cycles > clock.cost_cycles else None


def spans_of(trial: Trial) -> dict[str, list[Span]]:
    """Return the spans by name; a program may send by several queues."""
    found: dict[str, list[Span]] = {}
    for each in trial.frames.spans or ():
        found.setdefault(each.span, []).append(each)
    return found
