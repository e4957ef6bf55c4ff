# SPDX-License-Identifier: BSD-3-Clause
"""All tests of the effects of tenants on forwarders, by one metric, corrected together.

effects     which factors matter and which interact, in each part of the design
contrasts   each load against idle tenants, or none, and virtual machines against containers, for
            each framework
trends      over the number of tenants of a load, over quotas, frame sizes and offered rates

The offered load is a share of each framework's own capacity at a size. So throughput by framework,
size and rate alone shows the offered load and not the effect of tenants: there is no such statement
if these levels were offered different rates.

Holm's correction is over the effects of a part, over the contrasts of a part and factor, and over
all trends by a metric.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from linerate.experiments.cloud.analysis.contrast_words import kinds_told, load_told
from linerate.experiments.cloud.analysis.observations import (
    IDLE,
    NONE,
    THROUGHPUT,
    WORK_LEFT,
    CloudMetric,
    beside,
    crossed_part,
    has_values,
    observed,
    over_tenants,
    with_nobody,
)
from linerate.experiments.cloud.analysis.windows import Windows
from linerate.experiments.cloud.analysis.work import all_work
from linerate.experiments.cloud.design.levels import (
    CPU,
    FRAMEWORK,
    KIND,
    LOAD,
    RATE,
    SIZE,
    TENANTS,
    in_order,
    quota_of,
)
from linerate.experiments.cloud.design.parts import Part
from linerate.experiments.cloud.factorial.answers.generated import effects_found, trends_found
from linerate.experiments.cloud.factorial.answers.takeaways import (
    Answer,
    Takeaway,
    caveats,
    compared_words,
    delta_of,
    estimate,
)
from linerate.experiments.cloud.factorial.contrasts import Contrast, Verdict, contrasts
from linerate.experiments.cloud.factorial.design import Observations
from linerate.experiments.cloud.factorial.effects import PERMUTATIONS, analyse
from linerate.experiments.cloud.factorial.losses import LossContrast, loss_contrasts
from linerate.experiments.cloud.factorial.space import terms
from linerate.experiments.cloud.factorial.trends import Trend, trend
from linerate.host.errors import DesignError
from linerate.verdict.stats import ALPHA

# Interactions of three factors are tested for up to so many factors; for more there are too many.
_THREE = 3
# The number of permuted values for all effects of an analysis: some seconds.
_WORK = 60_000_000
# The factor of permutations that lets the least p be well below ALPHA after Holm's correction.
_BEYOND = 5
# "Levels differ" is held if one is shown to be higher, and not held if they are equal.
ANSWERS: dict[Verdict, Answer] = {
    "higher": "held", "lower": "held", "equal": "not held", "undecided": "undecided",
}  # fmt: skip
# The factors with which tenants were measured alone.
_ALONE = frozenset({KIND, LOAD, TENANTS})
# A statement and the part of the design that it is of.
Told = tuple[Takeaway, Part]


def everything(
    windows: Windows,
    parts: Sequence[Part],
    metric: CloudMetric,
    *,
    permutations: int = PERMUTATIONS,
    seed: int = 1,
) -> list[Told]:
    found: list[Told] = []
    for part in parts:
        for each in effects(windows, part, metric, permutations=permutations, seed=seed):
            found.append((each, part))
        for each in [*loads(windows, part, metric), *kinds(windows, part, metric)]:
            found.append((each, part))
    return [*found, *trends(windows, parts, metric)]


# -- effects -------------------------------------------------------------------------------------


def effects(
    windows: Windows, part: Part, metric: CloudMetric, *, permutations: int, seed: int
) -> list[Takeaway]:
    """Return main effects and interactions of a part's factors; empty if it crosses none.

    The share of work left to tenants has, for each load, number and kind of them, one denominator
    in a block, whose noise all cells with it share: no test of cells can be about these factors
    alone. The other factors do not depend on it, and so their effects are those on the work itself.
    """
    if not beside(part, metric):
        return []
    of_work = metric.name == WORK_LEFT
    own = replace(metric, value=lambda _, trial: all_work(trial)) if of_work else metric
    found = observed(windows, own, crossed_part(part, metric))
    order = _THREE if sum(len(each.levels) > 1 for each in found.factors) <= _THREE else 2
    family = len(terms(found, order))
    if not family:
        return []
    try:
        count = affordable(permutations, family, found.values.size)
        told = effects_found(analyse(found, order=order, permutations=count, seed=seed), found)
        trivial = _ALONE if of_work else _offered_by(windows, part, metric)
        told = [each for each in told if not trivial.issuperset(each.about)]
        return [as_far_as_counted(each, found) for each in told] if of_work else told
    except DesignError as error:
        about = tuple(each.name for each in found.factors if len(each.levels) > 1)
        reason = error.message if has_values(found) else "no valid window tells it"
        return [
            Takeaway(
                f"{metric.words} depends on {' or '.join(about)}",
                metric.words,
                about,
                "Freedman-Lane permutation within blocks",
                "undecided",
                reason,
                measure="partial eta squared",
            )
        ]


def _offered_by(windows: Windows, part: Part, metric: CloudMetric) -> frozenset[str]:
    """Return the factors whose levels were offered different rates, if the metric follows the
    rate.
    """
    if metric.name != THROUGHPUT:
        return frozenset()
    places = set(part.places)
    found = set()
    for factor in (FRAMEWORK, SIZE, RATE):
        offered: dict[tuple[object, ...], set[float]] = {}
        for place, trial in windows.measured:
            full_pps = trial.request.maximum_pps
            if place in places and full_pps is not None:
                rest = (level for name, level in place.levels.items() if name != factor)
                rate = full_pps * place.cell.rate
                offered.setdefault((trial.pairing, *rest), set()).add(rate)
        if any(len(rates) > 1 for rates in offered.values()):
            found.add(factor)
    return frozenset(found)


def as_far_as_counted(told: Takeaway, observations: Observations) -> Takeaway:
    """Return the statement, undecided if some work was too little to be counted.

    Work is counted when a slice of it ends, so that 0 means less than a slice: not a figure, but
    among the least. The mean of the rest would be too high.
    """
    if not observations.zeros or told.verdict == "undecided":
        return told
    reason = f"some work was less than is counted (without that: {told.verdict}; {told.reason})"
    return replace(told, verdict="undecided", reason=reason)


def affordable(permutations: int, family: int, values: int) -> int:
    """Return the number of permutations: fewer for many values, but enough to reject after Holm's
    correction.
    """
    needed = math.ceil(_BEYOND * family / ALPHA)
    return max(needed, min(permutations, _WORK // max(1, values * family)))


# -- contrasts -----------------------------------------------------------------------------------


def loads(windows: Windows, part: Part, metric: CloudMetric) -> list[Takeaway]:
    """Return the effect of each load on each framework, against idle tenants if there are some,
    else none.

    Empty for the tenants' own work: that is compared with their work alone.
    """
    busy = [load for load in part.loads if load != IDLE]
    if metric.name == WORK_LEFT or not any(part.tenants) or not busy:
        return []
    if IDLE not in part.loads and 0 not in part.tenants:
        return []
    against = IDLE if IDLE in part.loads else NONE
    labels = crossed_part(part, metric) if against == IDLE else with_nobody(part, NONE)
    found = observed(windows, metric, labels)
    compared = _compare(found, LOAD, against)
    return [_contrast(each, metric, found, load_told) for each in compared]


def kinds(windows: Windows, part: Part, metric: CloudMetric) -> list[Takeaway]:
    """Return virtual machines against containers with the same loads, for each framework."""
    if len(part.kinds) < 2 or not beside(part, metric) or not any(part.tenants):
        return []
    found = observed(windows, metric, crossed_part(part, metric))
    compared = _compare(found, KIND, "container")
    told = [_contrast(each, metric, found, kinds_told) for each in compared]
    return [as_far_as_counted(e, found) for e in told] if metric.name == WORK_LEFT else told


def _compare(found: Observations, factor: str, against: str) -> Sequence[Contrast | LossContrast]:
    if found.scale == "log":
        return contrasts(found, factor, [FRAMEWORK], against=against)
    return loss_contrasts(found, factor, [FRAMEWORK], against=against)


def _contrast(
    each: Contrast | LossContrast,
    metric: CloudMetric,
    observations: Observations,
    told: Callable[[Contrast | LossContrast, CloudMetric], str],
) -> Takeaway:
    effect, low, high = estimate(each.found)
    relative = observations.scale == "log"
    return Takeaway(
        told(each, metric),
        metric.words,
        (each.factor, *(name for name, _ in each.within)),
        f"{'Wilcoxon signed rank' if relative else 'sign flips'} in blocks, Holm over "
        f"{each.family}",
        ANSWERS[each.verdict],
        each.reason + (caveats(observations) if relative else ""),
        p=each.p_holm if each.found else None,
        measure="ratio" if relative else "difference",
        effect=effect,
        low=low,
        high=high,
        compared=compared_words(each) if each.found else "",
        detectable=each.detectable,
        cliffs_delta=delta_of(each.found),
    )


# -- trends --------------------------------------------------------------------------------------


def trends(windows: Windows, parts: Sequence[Part], metric: CloudMetric) -> list[Told]:
    """Return all trends by a metric that the design has the levels for."""
    found: list[tuple[Trend, str, Part]] = []
    for part in parts:
        found += [(each, over, part) for each, over in _trends(windows, part, metric)]
    told = trends_found(
        [each for each, _, _ in found], metric.words, [over for _, over, _ in found]
    )
    return [(each, part) for each, (_, _, part) in zip(told, found, strict=True)]


def _trends(windows: Windows, part: Part, metric: CloudMetric) -> list[tuple[Trend, str]]:
    found = []
    places = beside(part, metric)
    numbers = {place.cell.tenants for place in places}
    if metric.name != WORK_LEFT and 0 in part.tenants:
        numbers.add(0)
    for load in dict.fromkeys(place.cell.load for place in places if place.cell.tenants):
        if len(numbers) > 2:
            labels = over_tenants(part, load)
            if metric.name == WORK_LEFT:
                labels = {place: each for place, each in labels.items() if place.cell.tenants}
            counts = observed(windows, metric, labels)
            found.append((trend(counts, TENANTS, {LOAD: load}), f"the number of {load} tenants"))
    return [*found, *_over_levels(windows, part, metric)] if places else found


def _over_levels(windows: Windows, part: Part, metric: CloudMetric) -> list[tuple[Trend, str]]:
    """Return trends over levels that all cells cross, three or more of them."""
    trivial = _offered_by(windows, part, metric)
    quotas = [cpu for cpu in in_order(CPU, part.cpus) if quota_of(cpu) is not None]
    asked = [
        (factor, words)
        for factor, levels, words in (
            (CPU, quotas, "the forwarder's CPU quota"),
            (SIZE, part.sizes, "the frame size"),
            (RATE, part.rates, "the offered rate"),
        )
        if len(levels) > 2 and factor not in trivial
    ]
    if not asked:
        return []
    every = observed(windows, metric, crossed_part(part, metric))
    return [
        (trend(every.keeping(CPU, quotas) if factor == CPU else every, factor), words)
        for factor, words in asked
    ]
