# SPDX-License-Identifier: BSD-3-Clause
"""The figures of one trial, in cycles and less what reading the clock costs.

Two readings of the clock with nothing between are one reading apart, so each delay holds one, until
its cost is taken off: by the sender (`LatencyFigures.net`), or here. The sender tells nanoseconds
by the frequency that it takes the counter for; that is undone here.
"""

from __future__ import annotations

from collections.abc import Mapping

from linerate.records.outcome import Clock, LatencyFigures, Span
from linerate.records.trial import Trial
from linerate.trial.search.latency import supports

# What programs of every kind can measure: see telemetry's /linerate/latency.
COMMON_SPAN = "rx-return_tx-call"


def cycles_of(ns: float, found: LatencyFigures, clock: Clock) -> float:
    """A delay of these figures, in cycles less the clock's cost, which is taken off once.

    Trial-1 did not say whether the sender had done it. Those figures are told as they were then.
    """
    cycles = ns * clock.tsc_hz / 1e9
    return cycles if found.net else cycles - clock.cost_cycles


def ns_per_cycle(clock: Clock) -> float:
    """Nanoseconds per cycle, by the measured frequency if there is one."""
    return 1e9 / (clock.checked_hz or clock.tsc_hz)


def supported(quantiles: Mapping[str, float], count: int) -> dict[str, float]:
    """The quantiles that this number of frames supports."""
    return {name: value for name, value in quantiles.items() if supports(count, float(name))}


def latency_us(trial: Trial, quantile: str) -> float | None:
    """As the sender told it; None where it does not, or too few frames came back to tell."""
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
    """Cycles of the span that all can measure, if one queue sends; less the clock's cost.

    None where it is no longer than that: a ratio to it would be made up.
    """
    found = [each for each in trial.frames.spans or () if each.span == COMMON_SPAN]
    clock = trial.frames.clock
    if len(found) != 1 or clock is None:
        return None
    value = supported(found[0].quantiles_cycles, found[0].count).get(quantile)
    return None if value is None else above_cost(value, clock)


def above_cost(cycles: float, clock: Clock) -> float | None:
    """Less the clock's cost; None for what is no longer than that: it is not told apart from it."""
    return cycles - clock.cost_cycles if cycles > clock.cost_cycles else None


def spans_of(trial: Trial) -> dict[str, list[Span]]:
    """The spans by name; a program may send by several queues."""
    found: dict[str, list[Span]] = {}
    for each in trial.frames.spans or ():
        found.setdefault(each.span, []).append(each)
    return found
