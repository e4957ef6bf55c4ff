# SPDX-License-Identifier: BSD-3-Clause
"""The tenants' side: the share of their work that forwarders leave to them.

For each framework, load and kind of work; a block's value is the geometric mean over cells of the
tenants' work beside the forwarder over their work alone, on the same setup. If the design has cells
in which forwarder and tenants share a core by equal weights, those are used, because they show the
forwarder's effect; quotas and cores of its own show the effect of the limits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from linerate.experiments.cloud.analysis.observations import (
    METRICS,
    WORK_LEFT,
    CloudMetric,
    observed,
)
from linerate.experiments.cloud.analysis.statements import ANSWERS, as_far_as_counted
from linerate.experiments.cloud.analysis.study import names_of
from linerate.experiments.cloud.analysis.windows import Windows
from linerate.experiments.cloud.analysis.work import WORDS, left
from linerate.experiments.cloud.design.design import CloudDesign
from linerate.experiments.cloud.design.levels import FRAMEWORK, LOAD, SHARED, WORK_OF, Place
from linerate.experiments.cloud.factorial.answers.hypotheses import Names
from linerate.experiments.cloud.factorial.answers.takeaways import (
    Takeaway,
    caveats,
    delta_of,
    estimate,
)
from linerate.experiments.cloud.factorial.contrasts import Contrast, block_means, contrasts, judged
from linerate.experiments.cloud.factorial.design import Observations, pooled
from linerate.records.trial import Kind, Trial
from linerate.verdict import stats

_ALONE = "alone"
_DPDK, _XDP = "DPDK", "XDP"


@dataclass(frozen=True)
class _Asked:
    """One kind of work of the tenants of one load, in all cells."""

    load: str
    counter: str
    found: Observations

    @property
    def words(self) -> str:
        return f"{self.load} tenants"

    @property
    def work(self) -> str:
        """Name the kind of work, if the load does several."""
        return WORDS[self.counter] if len(WORK_OF[self.load]) > 1 else "work"


def neighbours(windows: Windows, design: CloudDesign) -> list[Takeaway]:
    """Return the statements on the work that each framework leaves to tenants, then XDP against
    DPDK; each corrected together.
    """
    asked = [
        _Asked(load, counter, _observed(windows, places, counter))
        for load, places in _places(design).items()
        for counter in WORK_OF[load]
    ]
    return [
        *_each_framework(asked, design, windows),
        *_xdp_against_dpdk(asked, names_of(design.arms, windows)),
    ]


def _places(design: CloudDesign) -> dict[str, list[Place]]:
    """Return the frameworks' own cells with tenants that have some work, by load."""
    labels = {arm.label for arm in design.arms if arm.label == arm.forwarder}
    found: dict[str, list[Place]] = {}
    for place in design.places:
        if place.cell.tenants and place.cell.load in WORK_OF and place.framework in labels:
            found.setdefault(place.cell.load, []).append(place)
    return {
        load: [place for place in places if place.cell.cpu == SHARED] or places
        for load, places in found.items()
    }


def _observed(windows: Windows, places: Sequence[Place], counter: str) -> Observations:
    metric = METRICS[WORK_LEFT]
    value = _value(counter)
    own = CloudMetric(metric.name, metric.words, metric.scale, metric.unit, value)
    return observed(windows, own, {place: [place.levels] for place in places})


def _value(counter: str) -> Callable[[Windows, Trial], float | None]:
    return lambda windows, trial: left(windows, trial, counter)


def _each_framework(
    asked: Sequence[_Asked], design: CloudDesign, windows: Windows
) -> list[Takeaway]:
    kinds = {arm.label: windows.kind_of(arm.forwarder) for arm in design.arms}
    places, compared, of = [], [], []
    for each in asked:
        for framework in each.found.factor(FRAMEWORK).levels:
            at = {FRAMEWORK: framework, LOAD: each.load}
            shares = np.exp(block_means(each.found, [at]))[:, 0].tolist()
            places.append((each.load, _ALONE, {FRAMEWORK: framework}))
            compared.append(stats.compare(shares, [1.0] * len(shares)) if shares else None)
            of.append(each)
    return [
        _takeaway(contrast, each, _left_words(contrast, each, kinds), f"{each.work} of {_ALONE}")
        for contrast, each in zip(judged(LOAD, places, compared), of, strict=True)
    ]


def _left_words(found: Contrast, asked: _Asked, kinds: Mapping[str, Kind | None]) -> str:
    framework = dict(found.within)[FRAMEWORK]
    who = framework
    if kinds[framework] in {"dpdk", "dpdk-af-xdp"}:
        who = f"{framework}, which polls,"
    if found.found is None or found.verdict == "undecided":
        return f"{who} takes from the {asked.work} of {asked.words}"
    if found.verdict == "higher":
        return f"beside {framework} {asked.words} get more {asked.work} done than alone"
    if found.verdict == "equal":
        return f"{who} takes from the {asked.work} of {asked.words}"
    return f"{who} leaves {asked.words} {found.found.ratio:.2f} of their {asked.work}"


def _xdp_against_dpdk(asked: Sequence[_Asked], names: Names) -> list[Takeaway]:
    places, compared, of = [], [], []
    for each in asked:
        there = each.found.factor(FRAMEWORK).levels
        groups = {
            _DPDK: [level for level in there if level in names.dpdk],
            _XDP: [level for level in there if level in names.xdp],
        }
        if all(groups.values()):
            (pair,) = contrasts(pooled(each.found, FRAMEWORK, groups), FRAMEWORK)
            places.append((_XDP, _DPDK, {LOAD: each.load}))
            compared.append(pair.found)
            of.append(each)
    return [
        _takeaway(
            contrast, each, _against_words(contrast, each), f"{each.work} beside {_XDP} and {_DPDK}"
        )
        for contrast, each in zip(judged(FRAMEWORK, places, compared), of, strict=True)
    ]


def _against_words(found: Contrast, asked: _Asked) -> str:
    if found.found is None or found.verdict in {"undecided", "equal"}:
        return f"{_XDP} and {_DPDK} leave {asked.words} different shares of their {asked.work}"
    more, other, ratio = _XDP, _DPDK, found.found.ratio
    if ratio < 1:
        more, other, ratio = other, more, 1 / ratio
    return f"{more} leaves {asked.words} {ratio:.3g} times as much of their {asked.work} as {other}"


def _takeaway(found: Contrast, asked: _Asked, statement: str, compared: str) -> Takeaway:
    effect, low, high = estimate(found.found)
    told = Takeaway(
        statement,
        METRICS[WORK_LEFT].words,
        (FRAMEWORK, LOAD),
        f"Wilcoxon signed rank in blocks, Holm over {found.family}",
        ANSWERS[found.verdict],
        found.reason + caveats(asked.found),
        p=found.p_holm if found.found else None,
        measure="ratio",
        effect=effect,
        low=low,
        high=high,
        compared=f"{asked.words}: {compared}" if found.found else "",
        detectable=found.detectable,
        cliffs_delta=delta_of(found.found),
    )
    return as_far_as_counted(told, asked.found)
