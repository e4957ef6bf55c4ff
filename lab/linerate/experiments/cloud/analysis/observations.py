# SPDX-License-Identifier: BSD-3-Clause
"""Convert a run's windows to the input of the factorial analysis: values by block and cell.

The unit is a window of a forwarder that was started for it. An interrupted block counts as two:
values of two sessions are never paired (`Trial.pairing`). Void windows are missing values. Cells
that the design does not have, and those that the machine does not support, are empty; the analysis
leaves their levels out and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from linerate.experiments.cloud.analysis.windows import Windows
from linerate.experiments.cloud.analysis.work import all_left
from linerate.experiments.cloud.design.levels import (
    CPU,
    FACTORS,
    FRAMEWORK,
    KIND,
    LOAD,
    RATE,
    SIZE,
    TENANTS,
    WORK_OF,
    Place,
    in_order,
)
from linerate.experiments.cloud.design.parts import Part
from linerate.experiments.cloud.factorial.design import Factor, Observations, Row, Scale, observe
from linerate.records.cloud_summary import LoadName
from linerate.records.trial import Trial
from linerate.verdict.delays import latency_us

# The levels of these rise; those of `cpu` do from one quota to the next.
ORDERED = (TENANTS, CPU, SIZE, RATE)
# Factors of all observations, even with one level: hypotheses name them.
ALWAYS = (FRAMEWORK, LOAD, SIZE)
THROUGHPUT, WORK_LEFT = "throughput", "work_left"
IDLE: LoadName = "idle"
NONE: LoadName = "none"
Value = Callable[[Windows, Trial], float | None]


@dataclass(frozen=True)
class CloudMetric:
    """A metric. `words`: its name in statements. The logarithmic ones have ratios."""

    name: str
    words: str
    scale: Scale
    unit: str
    value: Value
    higher_is_better: bool = False


def loss(trial: Trial) -> float | None:
    """Return the share of intended frames that did not come back.

    The rule: docs/how-it-measures.md#paced-and-flood.
    """
    frames = trial.frames
    if not frames.intended or frames.undisturbed is None:
        return None
    intended, received = frames.undisturbed
    return max(0, intended - received) / intended if intended > 0 else None


def loss_at_ingress(trial: Trial) -> float | None:
    """Return the part of it that the link's ingress refused."""
    frames = trial.frames
    if not frames.intended or frames.lost_at_ingress is None:
        return None
    return frames.lost_at_ingress / frames.intended


METRICS = {
    each.name: each
    for each in (
        CloudMetric(
            THROUGHPUT, "throughput", "log", "frames/s", lambda _, t: t.frames.received_pps, True
        ),
        CloudMetric("loss", "loss", "linear", "share", lambda _, t: loss(t)),
        CloudMetric(
            "loss_at_ingress", "loss at ingress", "linear", "share", lambda _, t: loss_at_ingress(t)
        ),
        CloudMetric(
            "latency_p50_us", "median latency", "log", "us", lambda _, t: latency_us(t, "0.5")
        ),
        CloudMetric(
            "latency_p99_us", "99 % latency", "log", "us", lambda _, t: latency_us(t, "0.99")
        ),
        CloudMetric(WORK_LEFT, "work left to tenants", "log", "share", all_left, True),
    )
}
# The metrics that are tested. Loss at ingress is a part of the loss.
TESTED = ("throughput", "loss", "latency_p50_us", "latency_p99_us", WORK_LEFT)

# The levels for which a cell's value counts: several if the cell has no level of a factor, such as
# one without tenants.
Labels = Mapping[Place, Sequence[Mapping[str, str]]]


def pairing_of(trial: Trial) -> str:
    block, session = trial.pairing
    return f"block {block}, session {session}"


def observed(windows: Windows, metric: CloudMetric, labels: Labels) -> Observations:
    """Return the metric of some cells, with a block for each pairing; at least one block, even if
    empty.
    """
    factors = _factors(labels)
    names = [factor.name for factor in factors]
    every = _rows(windows, metric, labels)
    rows = [
        (setup, {name: levels[name] for name in names}, value) for setup, levels, value in every
    ]
    found = observe(metric.words, factors, rows, scale=metric.scale, unit=metric.unit)
    if found.blocks:
        return found
    return replace(found, blocks=("none",), values=np.full((1, *found.shape), np.nan))


def _factors(labels: Labels) -> list[Factor]:
    every = [each for several in labels.values() for each in several]
    found = []
    for name in FACTORS:
        levels = in_order(name, [each[name] for each in every])
        if len(levels) > 1 or name in ALWAYS:
            found.append(Factor(name, tuple(levels), ordered=name in ORDERED))
    return found


def _rows(windows: Windows, metric: CloudMetric, labels: Labels) -> Iterator[Row]:
    for place, trial in windows.measured:
        for levels in labels.get(place, ()):
            value = metric.value(windows, trial) if trial.valid else None
            yield pairing_of(trial), levels, value


def has_values(observations: Observations) -> bool:
    return bool(np.isfinite(observations.scaled).any())


# -- which cells ---------------------------------------------------------------------------------


def beside(part: Part, metric: CloudMetric) -> list[Place]:
    """Return the part's cells with tenants, whose factors are all crossed; without any, all cells.

    For the tenants' own work: those that have some to do.
    """
    places = [place for place in part.places if place.cell.tenants]
    if metric.name == WORK_LEFT:
        return [place for place in places if place.cell.load in WORK_OF]
    return places or part.places


def crossed_part(part: Part, metric: CloudMetric) -> Labels:
    """Return all factors of a part: `none` is no level of load."""
    return {place: [place.levels] for place in beside(part, metric)}


def with_nobody(part: Part, load: str) -> Labels:
    """Return the same with the cells without tenants as a further load of that name, under every
    kind and number of tenants: they are the same for each.
    """
    found: dict[Place, list[Mapping[str, str]]] = {}
    numbers = [str(count) for count in part.tenants if count]
    for place in part.places:
        own = place.levels
        if place.cell.tenants:
            found[place] = [own]
        else:
            found[place] = [
                {**own, LOAD: load, KIND: kind, TENANTS: number}
                for kind in part.kinds
                for number in numbers
            ]
    return found


def over_tenants(part: Part, load: str) -> Labels:
    """Return one load over the number of tenants, starting with 0, under every kind."""
    found: dict[Place, list[Mapping[str, str]]] = {}
    for place in part.places:
        own = place.levels
        if not place.cell.tenants:
            found[place] = [{**own, LOAD: load, KIND: kind} for kind in part.kinds]
        elif place.cell.load == load:
            found[place] = [own]
    return found


def of_control(places: Sequence[Place], reference: str, again: str) -> Labels:
    """Return the cells of the reference and of its second label."""
    return {place: [place.levels] for place in places if place.framework in {reference, again}}
