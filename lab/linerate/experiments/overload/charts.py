# SPDX-License-Identifier: BSD-3-Clause
"""The charts of experiment `overload`."""

from __future__ import annotations

from typing import Any

import altair as alt

from linerate.records.summary import ArmSummary, CellSummary
from linerate.records.summary_figures import Quartiles
from linerate.records.trial import Trial
from linerate.report import charts


def trials_of_cell(cell: CellSummary, trials: list[Trial]) -> dict[str, Any] | None:
    """Draw every valid trial of a cell as a point, with the median and its interval per arm."""
    cycles = any(arm.cycles_per_packet for arm in cell.arms)
    title = (
        "cycles per packet (fewer is better)"
        if cycles
        else "frames carried there and back, Mpps of this machine (more is better)"
    )
    if not cycles and not any(arm.received_mpps for arm in cell.arms):
        title = "packets per second forwarded, Mpps of this machine (more is better)"

    def value(trial: Trial) -> float | None:
        if cycles:
            return trial.window_cycles_per_packet
        frames = trial.frames
        rate = frames.received_pps if frames.received is not None else frames.forwarder_rx_pps
        return rate / 1e6 if rate is not None else None

    def figure(arm: ArmSummary) -> Quartiles | None:
        return arm.cycles_per_packet if cycles else arm.received_mpps or arm.mpps

    labels = [arm.arm for arm in cell.arms]
    points = [
        {"arm": t.arm, "value": found, "block": t.block}
        for t in trials
        if (t.cell.key, t.role) == (cell.key, "measure")
        and t.valid
        and (found := value(t)) is not None
    ]
    medians = [
        {"arm": arm.arm, "value": f.median, "low": f.low, "high": f.high}
        for arm in cell.arms
        if (f := figure(arm)) is not None
    ]
    if not points:
        return None
    scale = alt.Scale(zero=False, padding=12)
    y = alt.Y("arm:N", title=None, sort=labels)
    colour = alt.Color("arm:N", scale=charts.colours(labels), legend=None)
    dots = (
        alt.Chart(charts.inline(points))
        .mark_circle(size=42, opacity=0.6)
        .encode(
            x=alt.X("value:Q", title=title, scale=scale),
            y=y,
            color=colour,
            tooltip=[
                alt.Tooltip("arm:N"),
                alt.Tooltip("value:Q", format=".3f"),
                alt.Tooltip("block:Q"),
            ],
        )
    )
    summary = alt.Chart(charts.inline(medians))
    tips = [
        alt.Tooltip("arm:N"),
        alt.Tooltip("value:Q", title="median", format=".3f"),
        alt.Tooltip("low:Q", format=".3f"),
        alt.Tooltip("high:Q", format=".3f"),
    ]
    rule = (
        charts.with_interval(medians)
        .mark_rule(strokeWidth=3, yOffset=15)
        .encode(
            x=alt.X("low:Q", title=title, scale=scale),
            x2=alt.X2("high:Q"),
            y=y,
            color=colour,
            tooltip=tips,
        )
    )
    tick = summary.mark_tick(thickness=3, size=16, yOffset=15).encode(
        x=alt.X("value:Q", title=title, scale=scale), y=y, color=colour, tooltip=tips
    )
    return charts.styled(
        [dots, rule, tick],
        54 * len(labels),
        f"Every valid trial on {cell.link} at {cell.size} B as a dot, a row for each forwarder, "
        f"with the median and its 95 % interval below: {title}. The table below has the medians.",
    )


def lower_loads(cell: CellSummary) -> dict[str, Any] | None:
    """Draw cycles per packet at fixed loads, of the programs that report busy cycles."""
    rows = [
        {
            "arm": entry.arm,
            "load": f"{entry.load_share:.0%}".replace("%", " %"),
            "value": f.median,
            "low": f.low,
            "high": f.high,
        }
        for entry in cell.lower_load
        if (f := entry.busy_cycles_per_packet) is not None
    ]
    if not rows:
        return None
    labels = [arm.arm for arm in cell.arms]
    title = "busy cycles per packet (fewer is better)"
    y = alt.Y("load:N", title="load, of the ceiling", sort=None)
    offset = alt.YOffset("arm:N", sort=labels)
    used = [label for label in labels if any(row["arm"] == label for row in rows)]
    places = {
        label: charts.ARM_COLOURS[i % len(charts.ARM_COLOURS)] for i, label in enumerate(labels)
    }
    colour = alt.Color(
        "arm:N", scale=alt.Scale(domain=used, range=[places[label] for label in used])
    )
    tips = [
        alt.Tooltip("arm:N"),
        alt.Tooltip("load:N"),
        alt.Tooltip("value:Q", title="median", format=".1f"),
        alt.Tooltip("low:Q", format=".1f"),
        alt.Tooltip("high:Q", format=".1f"),
    ]
    scale = alt.Scale(zero=False, padding=12)
    layers = charts.medians(
        rows, "x", title=title, scale=scale, size=90, y=y, yOffset=offset, color=colour,
        tooltip=tips,
    )  # fmt: skip
    return charts.styled(
        layers,
        44 * len({row["load"] for row in rows}) * max(1, len(used)),
        f"Busy cycles per packet of each forwarder at fixed loads on {cell.link} at {cell.size} B: "
        "medians with 95 % intervals, as in the table below.",
    )
