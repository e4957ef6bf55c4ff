# SPDX-License-Identifier: BSD-3-Clause
"""The published study's conclusions, by throughput and by loss: held, not held or undecided here.

Each is tested on the first part of the design that crosses framework, load and size, or, if none
does, on the first that has the factors that it is about. DPDK are the programs on DPDK's ports, XDP
those that forward in the kernel by XDP. AF_XDP hands frames to user space, with or without DPDK,
and is neither: the study compared the two.

The effect of the kind of load is tested without idle tenants, which are no load.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from linerate.experiments.cloud.analysis.observations import (
    IDLE,
    METRICS,
    NONE,
    CloudMetric,
    beside,
    crossed_part,
    has_values,
    observed,
    with_nobody,
)
from linerate.experiments.cloud.analysis.windows import Windows
from linerate.experiments.cloud.design.design import CloudDesign
from linerate.experiments.cloud.design.levels import FRAMEWORK, LOAD, SIZE
from linerate.experiments.cloud.design.parts import Part
from linerate.experiments.cloud.factorial.answers.hypotheses import Names, study
from linerate.experiments.cloud.factorial.answers.takeaways import Takeaway
from linerate.records.cells import Arm

ASKED = ("throughput", "loss")
# The factors of each of the four conclusions, in the order of `hypotheses.study`.
ABOUT = ((SIZE,), (LOAD,), (LOAD, SIZE), (FRAMEWORK,))
_NOTHING = Part("none", ("none",), ("container",), ("cpu",), (0,), ("shared",), (64,), (1.0,))


def names_of(arms: Sequence[Arm], windows: Windows) -> Names:
    """Return the labels of the frameworks of each kind."""
    kinds = {arm.label: windows.kind_of(arm.forwarder) for arm in arms}
    return Names(
        dpdk=[label for label, kind in kinds.items() if kind == "dpdk"],
        xdp=[label for label, kind in kinds.items() if kind == "xdp"],
    )


def conclusions(
    windows: Windows, design: CloudDesign, metrics: Sequence[str] = ASKED, *, permutations: int
) -> list[tuple[CloudMetric, Takeaway]]:
    """Return the study's conclusions, by the metrics that it had."""
    names = names_of(design.arms, windows)
    found = []
    for name in ASKED:
        if name not in metrics:
            continue
        metric = METRICS[name]
        answers: dict[str, list[Takeaway]] = {}
        for place, about in enumerate(ABOUT):
            part = _part_for(design.parts, metric, about)
            if part.name not in answers:
                answers[part.name] = _asked(
                    windows, part, metric, names, permutations=permutations, seed=design.seed
                )
            found.append((metric, answers[part.name][place]))
    return found


def _part_for(parts: Sequence[Part], metric: CloudMetric, about: Sequence[str]) -> Part:
    """Return the first part with two levels or more of all three factors, or of those named, or of
    any.
    """
    for wanted in ((FRAMEWORK, LOAD, SIZE), about):
        for part in parts:
            places = beside(part, metric)
            if all(len({place.level(factor) for place in places}) > 1 for factor in wanted):
                return part
    return parts[0] if parts else _NOTHING


def _asked(
    windows: Windows,
    part: Part,
    metric: CloudMetric,
    names: Names,
    *,
    permutations: int,
    seed: int,
) -> list[Takeaway]:
    if _nobody_stands(part):
        labels = with_nobody(part, NONE)
        names = replace(names, idle=NONE, unloaded="no load")
    else:
        labels = crossed_part(part, metric)
    found = observed(windows, metric, labels)
    answers = study(found, names, permutations=permutations, seed=seed)
    if has_values(found):
        return answers
    return [replace(each, reason=_without(each), detectable=None) for each in answers]


def _without(answer: Takeaway) -> str:
    """Return the reason for no answer; a gap in the design comes first, because more windows would
    not help.
    """
    lacks = answer.reason.startswith("the design has")
    return answer.reason if lacks else "no valid window tells it"


def _nobody_stands(part: Part) -> bool:
    """Return True if cells without tenants replace missing idle ones: comparable only if all other
    cells have equally many tenants.
    """
    numbers = [count for count in part.tenants if count]
    return IDLE not in part.loads and 0 in part.tenants and len(numbers) == 1 == len(part.kinds)
