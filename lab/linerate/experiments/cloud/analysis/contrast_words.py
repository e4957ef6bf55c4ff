# SPDX-License-Identifier: BSD-3-Clause
"""Describe contrasts: sentences about the effect of tenants on a forwarder, decided by the data.

A significant contrast is described with its direction and size; otherwise the sentence states the
question, and its verdict that it does not hold or is unknown.
"""

from __future__ import annotations

from linerate.experiments.cloud.analysis.observations import IDLE, WORK_LEFT, CloudMetric
from linerate.experiments.cloud.design.levels import FRAMEWORK
from linerate.experiments.cloud.factorial.contrasts import Contrast
from linerate.experiments.cloud.factorial.losses import LossContrast
from linerate.verdict.stats import Paired, Shifted


def load_told(found: Contrast | LossContrast, metric: CloudMetric) -> str:
    """Return the sentence for a load against idle tenants or none."""
    framework = dict(found.within)[FRAMEWORK]
    tenants = f"{found.level} tenants"
    baseline = "idle ones" if found.against == IDLE else "none"
    without = "beside idle ones" if found.against == IDLE else "without any"
    if found.verdict not in {"higher", "lower"} or found.found is None:
        return f"{tenants} change the {metric.words} of {framework}, against {baseline}"
    if isinstance(found.found, Shifted):
        verb = "raise" if found.found.shift > 0 else "lower"
        size = points(found.found)
        return f"{tenants} {verb} the {metric.words} of {framework} by {size}, against {baseline}"
    if metric.higher_is_better and found.found.ratio < 1:
        return (
            f"{tenants} leave {framework} {found.found.ratio:.2f} of the {metric.words} that it "
            f"has {without}"
        )
    verb = "raise" if found.found.ratio > 1 else "lower"
    return (
        f"{tenants} {verb} the {metric.words} of {framework} to {times(found.found)} what it is "
        f"{without}"
    )


def kinds_told(found: Contrast | LossContrast, metric: CloudMetric) -> str:
    """Return the sentence for virtual machines against containers."""
    framework = dict(found.within)[FRAMEWORK]
    whose = f"the {metric.words} of {framework}"
    shown = found.verdict in {"higher", "lower"}
    if metric.name == WORK_LEFT and isinstance(found.found, Paired) and shown:
        return (
            f"{framework} leaves virtual machines {times(found.found)} the share of their work "
            "that it leaves containers"
        )
    if metric.name == WORK_LEFT:
        return f"{framework} leaves virtual machines and containers different shares of their work"
    if not shown or found.found is None:
        return f"virtual machines and containers differ in {whose}"
    if isinstance(found.found, Shifted):
        side = "higher" if found.found.shift > 0 else "lower"
        return f"{whose} is {points(found.found)} {side} beside virtual machines than containers"
    return f"{whose} is {times(found.found)} as high beside virtual machines as beside containers"


def times(found: Paired) -> str:
    """Format a ratio, such as `2.31 times`."""
    return f"{found.ratio:.3g} times"


def points(found: Shifted) -> str:
    """Format a difference of shares."""
    return f"{abs(found.shift) * 100:.3g} percentage points"
