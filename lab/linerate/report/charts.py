# SPDX-License-Identifier: BSD-3-Clause
"""The charts of a report: Vega-Lite specifications built with Altair, each with its intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import altair as alt
from altair.utils.schemapi import disable_debug_mode

from linerate.records.cells import AA_SUFFIX, cell_words
from linerate.records.summary import CellSummary, Summary
from linerate.verdict.sentences import verdict_word

# Altair checks each part as it is made, which takes most of a report's time. What becomes of all
# the parts is checked by the tests, in a report of each experiment.
disable_debug_mode()

# All colours are distinguishable on light and on dark paper; the page replaces INK and MUTED in
# text.
INK, MUTED, GRID, BAND = "#1f2933", "#66727f", "#9aa5b14d", "#2f855a2e"
VERDICT_COLOURS = {
    "faster": "#0f766e",
    "slower": "#b45309",
    "equal": "#2f6fe0",
    "undecided": "#616e7c",
    "invalid": "#d0315f",
}
ARM_COLOURS = ("#4a6fa5", "#8593a1", "#c2410c", "#0d8a7f", "#8b5cf6", "#d6336c", "#5c8a14")
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"

# The configuration of every chart. Altair could join layers and this, but would copy and check all
# of them each time.
CONFIG = {
    "font": FONT,
    "background": "transparent",
    "view": {"stroke": None},
    "axis": {
        "labelColor": INK,
        "titleColor": MUTED,
        "gridColor": GRID,
        "domainColor": "#9aa5b1",
        "tickColor": "#9aa5b1",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelLimit": 260,
        "tickCount": 8,
    },
    "legend": {
        "labelColor": INK,
        "titleColor": MUTED,
        "labelFontSize": 12,
        "titleFontWeight": "normal",
        "orient": "top",
        "title": None,
    },
}

RATIO_TITLE = "ratio to the baseline, with its 95 % interval"


def inline(values: list[dict[str, Any]]) -> Any:
    return alt.Data(values=values)  # type: ignore[no-untyped-call]


def with_interval(rows: list[dict[str, Any]]) -> alt.Chart:
    """Return a chart of the rows that have an interval: with too few trials there is none to
    draw.
    """
    return alt.Chart(inline([row for row in rows if row["low"] is not None]))


def medians(
    rows: list[dict[str, Any]],
    along: Literal["x", "y"],
    *,
    title: str,
    scale: Any = alt.Undefined,
    axis: Any = alt.Undefined,
    width: int = 3,
    opacity: float = 1,
    size: int = 60,
    **encoding: Any,
) -> list[alt.Chart]:
    """Draw a line from each row's `low` to its `high`, if it has an interval, and a point of `size`
    at its `value`, along one axis of the chart. `width`, `opacity`: of the line.
    """
    channel, end = {"x": (alt.X, alt.X2), "y": (alt.Y, alt.Y2)}[along]

    def at(field: str) -> dict[str, Any]:
        return {along: channel(f"{field}:Q", title=title, scale=scale, axis=axis)}

    line = with_interval(rows).mark_rule(strokeWidth=width, opacity=opacity)
    point = alt.Chart(inline(rows)).mark_point(filled=True, size=size, opacity=1)
    return [
        line.encode(**at("low"), **{f"{along}2": end("high:Q")}, **encoding),
        point.encode(**at("value"), **encoding),
    ]


def styled(layers: Sequence[alt.Chart], height: int, description: str) -> dict[str, Any]:
    """Layer charts in the common style; the width follows the page.

    `description` is for readers who cannot see the chart: what is drawn, not the result.
    """
    drawn = [
        layer.to_dict(validate=False, context={"top_level": False})
        for layer in layers
        # Vega warns of an infinite extent for a layer without data.
        if layer.data["values"]
    ]
    return {
        "$schema": alt.SCHEMA_URL,
        "config": CONFIG,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "width": "container",
        "height": height,
        "description": description,
        "layer": drawn,
    }


def arms_of(cells: Iterable[CellSummary]) -> dict[str, str]:
    """Return the colour of each arm, the same in all charts; the control has a place and no
    line.
    """
    names = dict.fromkeys(arm.arm for cell in cells for arm in cell.arms)
    return {
        name: ARM_COLOURS[place % len(ARM_COLOURS)]
        for place, name in enumerate(names)
        if not name.endswith(AA_SUFFIX)
    }


def verdict_colour(field: str) -> alt.Color:
    """Return the colour of a verdict's name."""
    return alt.Color(
        f"{field}:N",
        scale=alt.Scale(domain=list(VERDICT_COLOURS), range=list(VERDICT_COLOURS.values())),
        legend=None,
    )


def around_one(low: float, high: float, **x: Any) -> list[alt.Chart]:
    """Draw a band from `low` to `high` and a line at 1, below ratios along x; `x`: of its axis."""
    band = alt.Chart(inline([{"from": low, "to": high}])).mark_rect(color=BAND)
    one = alt.Chart(inline([{"one": 1}])).mark_rule(color=MUTED, strokeDash=[4, 3])
    return [
        band.encode(x=alt.X("from:Q", **x), x2=alt.X2("to:Q")),
        one.encode(x=alt.X("one:Q")),
    ]


def ratios(summary: Summary) -> dict[str, Any] | None:
    """Return a forest plot: every primary comparison's ratio with its interval, and the +-2 %
    margin.
    """
    rows = [
        {
            "what": f"{c.arm} / {c.baseline}, {cell_words(c.link, c.size)}" + _load(c.load_share),
            "ratio": c.ratio,
            "low": c.ci_low,
            "high": c.ci_high,
            "verdict": c.verdict,
            "told": verdict_word(c),
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
    data = inline(rows)
    x = alt.X(
        "ratio:Q",
        title=RATIO_TITLE,
        scale=alt.Scale(domain=[low - pad, high + pad], zero=False, nice=False),
    )
    # The cell below the two names: labels are half as wide.
    in_lines = alt.Axis(labelExpr="split(datum.label, ', ')", labelOffset=-7)
    # By name: rows without an interval are missing in the first layer, and would come last.
    order = [str(row["what"]) for row in rows]
    y = alt.Y("what:N", title=None, sort=order, axis=in_lines)
    colour = verdict_colour("verdict")
    tips = [
        alt.Tooltip("what:N", title="comparison"),
        alt.Tooltip("ratio:Q", format=".4f"),
        alt.Tooltip("low:Q", format=".4f"),
        alt.Tooltip("high:Q", format=".4f"),
        alt.Tooltip("told:N", title="verdict"),
        alt.Tooltip("blocks:Q"),
    ]
    base = alt.Chart(data)
    intervals = (
        with_interval(rows)
        .mark_rule(strokeWidth=3)
        .encode(x=alt.X("low:Q"), x2=alt.X2("high:Q"), y=y, color=colour, tooltip=tips)
    )
    points = base.mark_point(filled=True, size=110, opacity=1).encode(
        x=x, y=y, color=colour, tooltip=tips
    )
    labels = base.mark_text(dy=-13, fontSize=12, color=INK).encode(
        x=x, y=y, text=alt.Text("ratio:Q", format=".3f")
    )
    return styled(
        [*around_one(0.98, 1.02, title=RATIO_TITLE), intervals, points, labels],
        56 * len(rows),
        "Forest plot: for each comparison the ratio to the baseline with its 95 % interval, beside "
        "a band of 2 % around 1. The sentences above say the same in words.",
    )


def _load(share: float | None) -> str:
    if share is None:
        return ""
    return f", {share * 100:g} % load" if share else ", idle"


def colours(labels: Iterable[str]) -> alt.Scale:
    names = list(labels)
    colours = [ARM_COLOURS[index % len(ARM_COLOURS)] for index in range(len(names))]
    return alt.Scale(domain=names, range=colours)
