# SPDX-License-Identifier: BSD-3-Clause
"""All statements of a run, each with its test, effect, interval, verdict and place in the report.

First the published study's conclusions (`study`), then all tests of forwarders (`tested`) and of
their neighbours (`tenants_side`). Statements about frameworks depend on the A/A control
(`control`), those about sizes or frameworks on their offered loads (`offered`). The same records
and seed give the same statements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linerate.experiments.cloud.analysis.control import control_of
from linerate.experiments.cloud.analysis.observations import METRICS, TESTED, WORK_LEFT
from linerate.experiments.cloud.analysis.offered import Offered
from linerate.experiments.cloud.analysis.statements import everything
from linerate.experiments.cloud.analysis.study import conclusions
from linerate.experiments.cloud.analysis.summary_entries import entry, ranked
from linerate.experiments.cloud.analysis.tenants_side import neighbours
from linerate.experiments.cloud.analysis.windows import Windows
from linerate.experiments.cloud.design.design import CloudDesign
from linerate.experiments.cloud.factorial.effects import PERMUTATIONS
from linerate.records.cloud_summary import TakeawayEntry


@dataclass(frozen=True)
class Takeaways:
    entries: list[TakeawayEntry]
    control: list[TakeawayEntry]


def takeaways(
    windows: Windows,
    design: CloudDesign,
    *,
    metrics: Sequence[str] = TESTED,
    permutations: int = PERMUTATIONS,
) -> Takeaways:
    """Return all statements. `metrics`: those to test."""
    control = control_of(windows, design, metrics)
    found = [
        entry(each, metric, "study")
        for metric, each in conclusions(windows, design, metrics, permutations=permutations)
    ]
    several = len(design.parts) > 1
    for name in metrics:
        told = everything(
            windows, design.parts, METRICS[name], permutations=permutations, seed=design.seed
        )
        found += [
            entry(each, METRICS[name], "tested", part.name if several else "")
            for each, part in told
        ]
    if WORK_LEFT in metrics:
        found += [entry(each, METRICS[WORK_LEFT], "tested") for each in neighbours(windows, design)]
    offered = Offered(windows)
    return Takeaways(
        ranked([offered.judged(control.judged(each)) for each in found]),
        list(control.entries.values()),
    )
