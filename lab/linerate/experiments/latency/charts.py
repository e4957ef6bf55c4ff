# SPDX-License-Identifier: BSD-3-Clause
"""The charts of experiment `latency`: percentiles by load, and the spans inside side by side."""

from __future__ import annotations

from linerate.experiments.rfc2544.page.charts import QUANTILES, AtLoad, Spec, by_load
from linerate.records.summary import CellSummary
from linerate.records.summary_figures import Inside

_LOAD = "load, share of the forwarder's own capacity (0 %: idle)"


def round_trips(cell: CellSummary, protocol: str, colours: dict[str, str]) -> Spec | None:
    """Draw quantiles in microseconds, on a logarithmic scale."""
    found = [
        AtLoad(entry.load_share, arm.arm, figure.scaled(1e-3), name)
        for arm in cell.arms
        if arm.latency
        for entry in arm.latency.round_trips
        if entry.protocol == protocol and entry.ns
        for quantile, name in QUANTILES.items()
        if (figure := entry.ns.quantiles.get(quantile)) is not None
    ]
    return by_load(
        found,
        title="round trip, us (less is better)",
        load=_LOAD,
        colours=colours,
        description=f"{cell.link}, {cell.size} B, {protocol.upper()}: quantiles of the round trip, "
        "by load and forwarder, as in the table below.",
        log=True,
    )


def inside(cell: CellSummary, span: str, protocol: str, colours: dict[str, str]) -> Spec | None:
    """Draw median and 99 % quantile of one span of all programs that have it, in cycles."""
    found = [
        AtLoad(entry.load_share, arm.arm, figure, QUANTILES[quantile])
        for arm in cell.arms
        if arm.latency
        for entry in arm.latency.inside
        if (entry.span, entry.protocol) == (span, protocol) and entry.cycles
        for quantile in ("0.5", "0.99")
        if (figure := entry.cycles.quantiles.get(quantile)) is not None
        and _drawable(entry, quantile)
    ]
    return by_load(
        found,
        title=f"{span}, cycles less the clock's (fewer is better)",
        load=_LOAD,
        colours=colours,
        description=f"{cell.link}, {cell.size} B, {protocol.upper()}: cycles inside, {span}, "
        "by load and forwarder, as in the table below.",
        log=True,
    )


def _drawable(entry: Inside, quantile: str) -> bool:
    """Return True if a figure can be drawn on a logarithmic scale: it exceeds the clock's cost."""
    figure = entry.cycles.quantiles[quantile] if entry.cycles else None
    if figure is None:
        return False
    return min(figure.median, figure.median if figure.low is None else figure.low) > 0
