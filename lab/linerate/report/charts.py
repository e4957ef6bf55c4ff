# SPDX-License-Identifier: BSD-3-Clause
"""The charts of a report: Vega-Lite specifications built with Altair, each with its intervals."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import altair as alt

from linerate.records import Trial
from linerate.summary import ArmSummary, CellSummary, Quartiles, Summary

INK, MUTED, GRID, BAND = "#1f2933", "#52606d", "#e4e7eb", "#d9e8dd"
VERDICT_COLOURS = {
    "faster": "#0f766e",
    "slower": "#b45309",
    "equal": "#1d4ed8",
    "undecided": "#7b8794",
    "invalid": "#9f1239",
}
ARM_COLOURS = ("#334e68", "#9fb3c8", "#c2410c", "#0f766e", "#7c3aed", "#be185d", "#4d7c0f")
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


RATIO_TITLE = "ratio to the baseline, with its 95 % interval"


def _rows(values: list[dict[str, Any]]) -> Any:
    return alt.Data(values=values)  # type: ignore[no-untyped-call]


def _with_interval(rows: list[dict[str, Any]]) -> alt.Chart:
    """Only what has an interval: too few trials give none, and none is drawn."""
    return alt.Chart(_rows([row for row in rows if row["low"] is not None]))


def _styled(chart: Any, height: int) -> dict[str, Any]:
    """One look for all charts; the width follows the page."""
    chart = (
        chart.properties(width="container", height=height)
        .configure(font=FONT, background="transparent")
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=INK,
            titleColor=MUTED,
            gridColor=GRID,
            domainColor="#9aa5b1",
            tickColor="#9aa5b1",
            labelFontSize=12,
            titleFontSize=12,
            titleFontWeight="normal",
            labelLimit=260,
            tickCount=8,
        )
        .configure_legend(
            labelColor=INK,
            titleColor=MUTED,
            labelFontSize=12,
            titleFontWeight="normal",
            orient="top",
            title=None,
        )
    )
    spec: dict[str, Any] = chart.to_dict()
    spec["autosize"] = {"type": "fit-x", "contains": "padding"}
    return spec


def ratios(summary: Summary) -> dict[str, Any] | None:
    """Forest plot: every primary comparison's ratio with its interval, and the +-2 % margin."""
    rows = [
        {
            "what": f"{c.arm} / {c.baseline}, {c.link} {c.size} B",
            "ratio": c.ratio,
            "low": c.ci_low,
            "high": c.ci_high,
            "verdict": c.verdict,
            "blocks": c.n,
        }
        for c in summary.comparisons
        if c.primary and c.ratio is not None
    ]
    if not rows:
        return None
    edges = [float(v) for row in rows for v in (row["low"], row["high"], row["ratio"]) if v]
    low, high = min([*edges, 0.97]), max([*edges, 1.03])
    pad = (high - low) * 0.06
    data = _rows(rows)
    x = alt.X(
        "ratio:Q",
        title=RATIO_TITLE,
        scale=alt.Scale(domain=[low - pad, high + pad], zero=False, nice=False),
    )
    y = alt.Y("what:N", title=None, sort=None)
    colour = alt.Color(
        "verdict:N",
        scale=alt.Scale(domain=list(VERDICT_COLOURS), range=list(VERDICT_COLOURS.values())),
        legend=None,
    )
    tips = [
        alt.Tooltip("what:N", title="comparison"),
        alt.Tooltip("ratio:Q", format=".4f"),
        alt.Tooltip("low:Q", format=".4f"),
        alt.Tooltip("high:Q", format=".4f"),
        "verdict:N",
        "blocks:Q",
    ]
    band = (
        alt.Chart(_rows([{"from": 0.98, "to": 1.02}]))
        .mark_rect(color=BAND)
        .encode(x=alt.X("from:Q", title=RATIO_TITLE), x2="to:Q")
    )
    one = alt.Chart(_rows([{"one": 1}])).mark_rule(color=MUTED, strokeDash=[4, 3]).encode(x="one:Q")
    base = alt.Chart(data)
    intervals = (
        _with_interval(rows)
        .mark_rule(strokeWidth=3)
        .encode(x=alt.X("low:Q"), x2="high:Q", y=y, color=colour, tooltip=tips)
    )
    points = base.mark_point(filled=True, size=110, opacity=1).encode(
        x=x, y=y, color=colour, tooltip=tips
    )
    labels = base.mark_text(dy=-13, fontSize=12, color=INK).encode(
        x=x, y=y, text=alt.Text("ratio:Q", format=".3f")
    )
    return _styled(band + one + intervals + points + labels, 56 * len(rows))


def _colours(labels: Iterable[str]) -> alt.Scale:
    names = list(labels)
    colours = [ARM_COLOURS[index % len(ARM_COLOURS)] for index in range(len(names))]
    return alt.Scale(domain=names, range=colours)


def trials_of_cell(cell: CellSummary, trials: list[Trial]) -> dict[str, Any] | None:
    """Every valid trial of a cell as a point, with the median and its interval per arm."""
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
        rate = trial.received_pps if trial.received is not None else trial.forwarder_rx_pps
        return rate / 1e6 if rate is not None else None

    def figure(arm: ArmSummary) -> Quartiles | None:
        return arm.cycles_per_packet if cycles else arm.received_mpps or arm.mpps

    labels = [arm.arm for arm in cell.arms]
    points = [
        {"arm": t.arm, "value": found, "block": t.block}
        for t in trials
        if (t.link, t.size, t.role) == (cell.link, cell.size, "measure")
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
    colour = alt.Color("arm:N", scale=_colours(labels), legend=None)
    dots = (
        alt.Chart(_rows(points))
        .mark_circle(size=42, opacity=0.45)
        .encode(
            x=alt.X("value:Q", title=title, scale=scale),
            y=y,
            color=colour,
            tooltip=["arm:N", alt.Tooltip("value:Q", format=".3f"), "block:Q"],
        )
    )
    summary = alt.Chart(_rows(medians))
    tips = [
        "arm:N",
        alt.Tooltip("value:Q", title="median", format=".3f"),
        alt.Tooltip("low:Q", format=".3f"),
        alt.Tooltip("high:Q", format=".3f"),
    ]
    rule = (
        _with_interval(medians)
        .mark_rule(strokeWidth=3, yOffset=15)
        .encode(
            x=alt.X("low:Q", title=title, scale=scale), x2="high:Q", y=y, color=colour, tooltip=tips
        )
    )
    tick = summary.mark_tick(thickness=3, size=16, yOffset=15).encode(
        x=alt.X("value:Q", title=title, scale=scale), y=y, color=colour, tooltip=tips
    )
    return _styled(dots + rule + tick, 54 * len(labels))


def lower_loads(cell: CellSummary) -> dict[str, Any] | None:
    """Cycles per packet at fixed loads, of the programs that report busy cycles."""
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
    base = alt.Chart(_rows(rows))
    title = "busy cycles per packet (fewer is better)"
    x = alt.X("value:Q", title=title, scale=alt.Scale(zero=False, padding=12))
    y = alt.Y("load:N", title="load, of the ceiling", sort=None)
    offset = alt.YOffset("arm:N", sort=labels)
    used = [label for label in labels if any(row["arm"] == label for row in rows)]
    places = {label: ARM_COLOURS[i % len(ARM_COLOURS)] for i, label in enumerate(labels)}
    colour = alt.Color(
        "arm:N", scale=alt.Scale(domain=used, range=[places[label] for label in used])
    )
    tips = [
        "arm:N",
        "load:N",
        alt.Tooltip("value:Q", title="median", format=".1f"),
        alt.Tooltip("low:Q", format=".1f"),
        alt.Tooltip("high:Q", format=".1f"),
    ]
    rule = (
        _with_interval(rows)
        .mark_rule(strokeWidth=3)
        .encode(
            x=alt.X("low:Q", title=title, scale=alt.Scale(zero=False, padding=12)),
            x2="high:Q",
            y=y,
            yOffset=offset,
            color=colour,
            tooltip=tips,
        )
    )
    point = base.mark_point(filled=True, size=90, opacity=1).encode(
        x=x, y=y, yOffset=offset, color=colour, tooltip=tips
    )
    return _styled(rule + point, 44 * len({row["load"] for row in rows}) * max(1, len(used)))
