# SPDX-License-Identifier: BSD-3-Clause
"""The charts of experiment `l3fwd`: cycles per packet over the size of the tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from linerate.experiments.l3fwd.table import level
from linerate.records.summary import CellSummary
from linerate.report import charts
from linerate.verdict.ratios import shown_arms

_Y = "cycles per packet (fewer is better)"


def levels(of: str, on: str, cells: Sequence[CellSummary]) -> dict[str, Any] | None:
    """Draw a curve for each forwarder."""
    rows: list[dict[str, Any]] = [
        {
            "level": level(of, cell),
            "arm": arm.arm,
            "value": cost.median,
            "low": cost.low,
            "high": cost.high,
        }
        for cell in cells
        for arm in shown_arms(cell)
        if (cost := arm.cycles_per_packet)
    ]
    there = sorted({row["level"] for row in rows})
    if len(there) < 2:
        return None
    names = list(dict.fromkeys(str(row["arm"]) for row in rows))
    # 0 has a place on a scale that is linear there.
    scale = alt.Scale(type="log" if there[0] else "symlog")
    x = alt.X("level:Q", title=of, scale=scale, axis=alt.Axis(values=there, format=","))
    zero = alt.Scale(zero=True)
    y = alt.Y("value:Q", title=_Y, scale=zero)
    colour = alt.Color("arm:N", scale=charts.colours(names), sort=names)
    tips = [
        alt.Tooltip("arm:N"),
        alt.Tooltip("level:Q", title=of, format=","),
        alt.Tooltip("value:Q", title="median", format=".1f"),
        alt.Tooltip("low:Q", format=".1f"),
        alt.Tooltip("high:Q", format=".1f"),
    ]
    lines = alt.Chart(charts.inline(rows)).mark_line().encode(x=x, y=y, color=colour)
    layers = charts.medians(rows, "y", title=_Y, scale=zero, x=x, color=colour, tooltip=tips)
    return charts.styled(
        [lines, *layers],
        300,
        f"Cycles per packet by the number of {of} on {on}, a curve for each forwarder: medians "
        "with 95 % intervals, as in the table below.",
    )
