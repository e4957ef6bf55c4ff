# SPDX-License-Identifier: BSD-3-Clause
"""The figures in charts of experiment `cloud`, by the names that analyses use."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from linerate.experiments.cloud.page.sentences import WORK_UNITS
from linerate.records.cloud_summary import CloudCellFigures
from linerate.records.summary_figures import Quartiles

# The kinds of a tenant's work, in the order of preference if the request does not name one.
_FIRST_WORK = ("bogo_ops", "io_bytes", "io_operations", "network_bytes")


@dataclass(frozen=True)
class Shown:
    """A figure. `title`: of the axis. `share`: drawn in per cent. `read`: None if a cell has no
    figure.
    """

    title: str
    read: Callable[[CloudCellFigures], Quartiles | None]
    share: bool = False

    @property
    def format(self) -> str:
        return "%" if self.share else "~s"


def _of(name: str, scale: float = 1.0) -> Callable[[CloudCellFigures], Quartiles | None]:
    def read(cell: CloudCellFigures) -> Quartiles | None:
        found: Quartiles | None = getattr(cell, name)
        return found.scaled(scale) if found else None

    return read


def _first(name: str) -> Callable[[CloudCellFigures], Quartiles | None]:
    def read(cell: CloudCellFigures) -> Quartiles | None:
        found: dict[str, Quartiles] = getattr(cell, name)
        return next((found[kind] for kind in _FIRST_WORK if kind in found), None)

    return read


def _loss_free(cell: CloudCellFigures) -> Quartiles | None:
    share = cell.loss_free
    return None if share is None else Quartiles(n=cell.trials, median=share, q1=share, q3=share)


METRICS = {
    "throughput": Shown("frames received, per second (more is better)", _of("received_pps")),
    "offered_pps": Shown("frames offered, per second", _of("offered_pps")),
    "left": Shown("share of the throughput left (more is better)", _of("left"), share=True),
    "loss": Shown("loss, share of the intended frames (less is better)", _of("loss"), share=True),
    "loss_at_ingress": Shown(
        "lost at the link's ingress, share of the intended frames", _of("lost_at_ingress"), True
    ),
    "loss_free": Shown("share of the runs without loss (more is better)", _loss_free, share=True),
    "forwarder_cpu": Shown(
        "CPU time of the forwarder, share of the core", _of("forwarder_cpu"), True
    ),
    "throttled": Shown("time in which the quota was used up", _of("throttled"), share=True),
    "tenants_cpu": Shown(
        "CPU time of all tenants, share of the core", _of("tenants_cpu"), share=True
    ),
    "steal": Shown("stolen time of the core", _of("steal"), share=True),
    "softirq": Shown("softirq time of the core", _of("softirq"), share=True),
    "switches_per_s": Shown("context switches of the forwarder/s", _of("switches_per_s")),
    "cache_misses_per_s": Shown("last-level cache misses/s", _of("cache_misses_per_s")),
    "memory_bytes_per_s": Shown("memory bandwidth, bytes/s", _of("memory_bytes_per_s")),
    "work": Shown("work of all tenants per second (more is better)", _first("work")),
    "work_left": Shown(
        "share of the tenants' work left (more is better)", _first("work_left"), share=True
    ),
}


def shown(metric: str) -> Shown | None:
    """Return the figure; None if the summary has no such figure of a cell."""
    if metric in METRICS:
        return METRICS[metric]
    if f"{metric}_per_s" in METRICS:
        return METRICS[f"{metric}_per_s"]
    if found := re.fullmatch(r"latency_p(\d+)_us", metric):
        digits = found[1]
        quantile = f"0.{digits}".rstrip("0") if digits != "100" else "1"
        words = f"p{digits[:2]}.{digits[2:]}" if len(digits) > 2 else f"p{digits}"
        return Shown(f"latency {words}, us (less is better)", _quantile(quantile))
    for prefix in ("work_left_", "work_"):
        kind = metric.removeprefix(prefix)
        if metric.startswith(prefix) and kind in WORK_UNITS:
            return _work(prefix.rstrip("_"), kind)
    return None


def _quantile(name: str) -> Callable[[CloudCellFigures], Quartiles | None]:
    return lambda cell: cell.latency_us.get(name)


def _work(field: str, kind: str) -> Shown:
    def read(cell: CloudCellFigures) -> Quartiles | None:
        found: dict[str, Quartiles] = getattr(cell, field)
        return found.get(kind)

    if field == "work_left":
        return Shown(f"{WORK_UNITS[kind].what} of tenants, share left", read, share=True)
    return Shown(f"{WORK_UNITS[kind].what} of tenants per second", read)
