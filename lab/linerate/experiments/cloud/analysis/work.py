# SPDX-License-Identifier: BSD-3-Clause
"""The work of tenants, and the share of it that they still do beside a forwarder.

Work is counted per second and over all tenants of a window. The share left is the same tenants'
work beside a forwarder over their work alone, on the same setup.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from linerate.experiments.cloud.analysis.windows import Windows
from linerate.experiments.cloud.design.levels import WORK_OF
from linerate.experiments.cloud.window import TenantWindow, beside_of, levels_of
from linerate.records.trial import Trial

COUNTERS = ("bogo_ops", "io_operations", "io_bytes", "network_bytes")
WORDS = {
    "bogo_ops": "computing",
    "io_operations": "disk operations",
    "io_bytes": "disk traffic",
    "network_bytes": "network traffic",
}


def work_per_s(trial: Trial, counter: str) -> float | None:
    """The work of all tenants per second; None if one of them did not report it."""
    found = beside_of(trial)
    tenants = found.tenants if found else []
    rates = [_rate(each, counter) for each in tenants]
    known = [rate for rate in rates if rate is not None]
    return sum(known) if known and len(known) == len(rates) else None


def _rate(tenant: TenantWindow, counter: str) -> float | None:
    count: int | None = getattr(tenant, counter)
    return count / tenant.seconds if count is not None and tenant.seconds else None


def left(windows: Windows, trial: Trial, counter: str) -> float | None:
    """Return the share of the work; None if it is unknown, or if they did no work alone."""
    alone = windows.beside_nobody(trial)
    mine = work_per_s(trial, counter)
    whole = work_per_s(alone, counter) if alone else None
    return mine / whole if mine is not None and whole else None


def all_work(trial: Trial) -> float | None:
    """Return the work per second, without a unit: for a load with several kinds of work, their
    geometric mean.
    """
    load = _load(trial)
    return _mean([work_per_s(trial, counter) for counter in WORK_OF.get(load, ())])


def all_left(windows: Windows, trial: Trial) -> float | None:
    """Return the share of work left; for several kinds of work the geometric mean of their
    shares.
    """
    load = _load(trial)
    return _mean([left(windows, trial, counter) for counter in WORK_OF.get(load, ())])


def _load(trial: Trial) -> str:
    levels = levels_of(trial)
    return levels.load if levels else ""


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the geometric mean; None if a value is unknown, or if there is none."""
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    return math.prod(known) ** (1 / len(known))
