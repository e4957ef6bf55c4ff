# SPDX-License-Identifier: BSD-3-Clause
"""Convert a tested statement for summary.json."""

from __future__ import annotations

import math
from typing import Literal

from linerate.experiments.cloud.analysis.observations import CloudMetric
from linerate.experiments.cloud.factorial.answers.takeaways import Takeaway
from linerate.experiments.cloud.page.places import link_to
from linerate.records.cloud_summary import TakeawayEntry

Origin = Literal["study", "tested"]


def entry(found: Takeaway, metric: CloudMetric, origin: Origin, part: str = "") -> TakeawayEntry:
    """Return the entry. `part`: of the design, if it has several."""
    return TakeawayEntry(
        origin=origin,
        statement=f"{found.statement} (part {part})" if part else found.statement,
        metric=metric.name,
        about=list(found.about),
        part=part or None,
        test=found.test,
        p=_known(found.p),
        measure=found.measure,
        effect=_known(found.effect),
        low=_known(found.low),
        high=_known(found.high),
        cliffs_delta=_known(found.cliffs_delta),
        compared=found.compared,
        detectable=_known(found.detectable),
        verdict=found.verdict,
        reason=found.reason,
        chart=link_to(metric.name, found.about),
    )


def _known(value: float | None) -> float | None:
    """Return None for NaN and infinite values, which are not written."""
    return value if value is not None and math.isfinite(value) else None


def size_of(found: TakeawayEntry) -> float:
    """Return the size of an effect: log of a ratio, a difference, a share of variance."""
    if found.effect is None:
        return 0.0
    if found.measure != "ratio":
        return abs(found.effect)
    return abs(math.log(found.effect)) if found.effect > 0 else math.inf


def ranked(found: list[TakeawayEntry]) -> list[TakeawayEntry]:
    """Sort: the study's first, then those that held by size of effect, then those that did not,
    then the rest.

    Sizes of one measure are comparable, those of two are not: ratios and differences, which say how
    much, come before shares of variance, which say that something matters.
    """
    verdicts = {"held": 0, "not held": 1, "undecided": 2}
    measures = {"ratio": 0, "difference": 1, "partial eta squared": 2}

    def order(each: TakeawayEntry) -> tuple[int, int, int, float]:
        if each.origin == "study":
            return 0, 0, 0, 0.0
        return 1, verdicts[each.verdict], measures[each.measure], -size_of(each)

    return sorted(found, key=order)
