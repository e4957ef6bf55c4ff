# SPDX-License-Identifier: BSD-3-Clause
"""The figures of an arm over its trials: each trial is one value.

The rule: docs/how-it-measures.md#independent-starts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from linerate.experiments.latency.loads import LOADS, Step, step_of
from linerate.records.cells import Cell
from linerate.records.summary_figures import Delayed, Delays, Inside, LowerLoad, RoundTrip
from linerate.records.trial import Protocol, Trial, TxBuffer
from linerate.verdict.arms import last_windows, lower_load, median_of, quartiles
from linerate.verdict.delays import above_cost, cycles_of, ns_per_cycle, spans_of, supported


@dataclass(frozen=True)
class _Value:
    """A value of one trial, in cycles less the clock's cost; `scale` converts to nanoseconds."""

    count: int
    mean: float
    quantiles: dict[str, float]
    scale: float
    minimum: float | None = None
    maximum: float | None = None


def flood_pps(trials: Sequence[Trial], cell: Cell, name: str) -> float | None:
    """Return the rate received in the floods of a forwarder, in frames per second: the median."""
    return median_of(
        t.frames.received_pps
        for t in trials
        if t.valid and t.request.load == "flood" and (t.cell.key, t.forwarder) == (cell.key, name)
    )


def trials_at(trials: Sequence[Trial], step: Step) -> list[Trial]:
    """Return one window of each trial of this step: the valid one, or the last void one."""
    return last_windows([trial for trial in trials if step_of(trial) == step])


def round_trips(
    trials: Sequence[Trial], protocols: Sequence[Protocol], buffer: TxBuffer | None
) -> list[RoundTrip]:
    """Return the round trips. `trials`: those of one arm for its round trips."""
    result = []
    for step in (Step(protocol, load) for protocol in protocols for load in LOADS):
        mine = trials_at(trials, step)
        if not mine:
            continue
        values = [found for t in mine if t.valid and (found := _round_trip(t))]
        loads = lower_load(mine[0].arm, step.load, mine)
        asked = median_of(t.request.pps for t in mine)
        result.append(
            RoundTrip(
                **vars(_delayed(step, mine, values)),
                loss_share=loads.loss_share,
                buffered_ns=buffer.longest_s(asked) * 1e9 if buffer and asked else None,
            )
        )
    return result


def insides(trials: Sequence[Trial], protocols: Sequence[Protocol]) -> list[Inside]:
    """Return the spans inside. `trials`: those of one arm with spans measured."""
    result = []
    for step in (Step(protocol, load) for protocol in protocols for load in LOADS):
        mine = trials_at(trials, step)
        valid = [t for t in mine if t.valid and t.frames.clock]
        for name in sorted({name for t in valid for name in spans_of(t)}):
            # With several queues there are no quantiles over all of them.
            inside = [_inside(t, name) for t in valid if len(spans_of(t).get(name, ())) == 1]
            # If one is below the clock's cost, the others would be only the longer ones.
            values = [each for each in inside if each] if all(inside) else []
            rates = {each.one_in for t in valid for each in spans_of(t).get(name, ())}
            result.append(
                Inside(
                    **vars(_delayed(step, mine, values)),
                    span=name,
                    one_in=max(rates),
                )
            )
    return result


def low_loads(trials: Sequence[Trial], arm: str) -> list[LowerLoad]:
    """Return the shares that came back at low loads, over all kinds of frames."""
    result = []
    for load in LOADS:
        mine = [
            each
            for protocol in dict.fromkeys(t.request.protocol for t in trials)
            for each in trials_at(trials, Step(protocol or "udp", load))
        ]
        if mine:
            result.append(lower_load(arm, load, mine))
    return result


def _delayed(step: Step, trials: list[Trial], values: list[_Value]) -> Delayed:
    valid = [trial for trial in trials if trial.valid]
    return Delayed(
        protocol=step.protocol,
        load_share=step.load,
        asked_pps=median_of(trial.request.pps for trial in trials),
        trials=len(trials),
        invalid=len(trials) - len(valid),
        packets=sum(value.count for value in values),
        cycles=_delays(values),
        ns=_delays([_in_ns(value) for value in values]),
    )


def _round_trip(trial: Trial) -> _Value | None:
    found, clock = trial.frames.latency, trial.frames.clock
    if found is None or clock is None:
        return None
    cycles: Callable[[float], float] = lambda ns: cycles_of(ns, found, clock)  # noqa: E731
    return _Value(
        count=found.count,
        mean=cycles(found.mean_ns),
        quantiles={
            name: cycles(value)
            for name, value in supported(found.quantiles_ns, found.count).items()
        },
        scale=ns_per_cycle(clock),
        minimum=cycles(found.minimum_ns),
        maximum=cycles(found.maximum_ns),
    )


def _inside(trial: Trial, name: str) -> _Value | None:
    clock, (found,) = trial.frames.clock, spans_of(trial)[name]
    mean = above_cost(found.mean_cycles, clock) if clock else None
    if clock is None or mean is None:
        return None
    return _Value(
        count=found.count,
        mean=mean,
        quantiles={
            quantile: above
            for quantile, value in supported(found.quantiles_cycles, found.count).items()
            if (above := above_cost(value, clock)) is not None
        },
        scale=ns_per_cycle(clock),
    )


def _in_ns(value: _Value) -> _Value:
    def scaled(cycles: float | None) -> float | None:
        return None if cycles is None else cycles * value.scale

    return replace(
        value,
        mean=value.mean * value.scale,
        quantiles={name: cycles * value.scale for name, cycles in value.quantiles.items()},
        minimum=scaled(value.minimum),
        maximum=scaled(value.maximum),
    )


def _delays(values: list[_Value]) -> Delays | None:
    mean = quartiles(value.mean for value in values)
    if mean is None:
        return None
    # A quantile that some trial has too few frames for would be that of the others.
    known = set.intersection(*(set(value.quantiles) for value in values))
    least = [value.minimum for value in values if value.minimum is not None]
    greatest = [value.maximum for value in values if value.maximum is not None]
    return Delays(
        minimum=min(least, default=None),
        mean=mean,
        quantiles={
            name: found
            for name in sorted(known, key=float)
            if (found := quartiles(value.quantiles[name] for value in values))
        },
        maximum=max(greatest, default=None),
    )
