# SPDX-License-Identifier: BSD-3-Clause
"""Charts of experiment `cloud` with a form of their own: heat maps, the core's time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from linerate.experiments.cloud.design.levels import KIND, LOAD, SIZE, TENANTS, in_order
from linerate.experiments.cloud.design.settings import levels_of, place_of
from linerate.experiments.cloud.page.metrics import METRICS
from linerate.experiments.cloud.page.sentences import beside_words
from linerate.records.cloud_summary import CloudCellFigures
from linerate.report import charts

Spec = dict[str, Any]
# The background of text in the page's ink, on light and on dark paper: never so dark that it hides
# the text.
HEAT, DARKEST = "#c2410c", 0.6
PARTS = {
    "forwarder": "#4a6fa5",
    "tenants": "#c2410c",
    "softirqs": "#0d8a7f",
    "stolen": "#8593a1",
}
_ROW, _BAR = 26, 20


def heat_map(cells: Sequence[CloudCellFigures], framework: str, metric: str) -> Spec | None:
    """Draw load by number of tenants, for one framework; rows are split by size and kind if it has
    many.

    The stronger the colour, the worse: less throughput left, or more loss.
    """
    mine = [cell for cell in cells if cell.framework == framework]
    beside = [cell for cell in mine if cell.tenants]
    split = [each for each in (KIND, SIZE) if len(levels_of(beside, each)) > 1]
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for cell in mine:
        if (figure := METRICS[metric].read(cell)) is None:
            continue
        for row in _rows(cell, beside, split):
            lost = 1 - figure.median if metric == "left" else figure.median
            rows[row, str(cell.tenants)] = {
                "row": row,
                "tenants": str(cell.tenants),
                "value": figure.median,
                "lost": min(max(lost, 0.0), 1.0),
                "words": share_words(figure.median),
                "low": figure.low,
                "high": figure.high,
            }
    if not beside or not rows:
        return None
    values = list(rows.values())
    order = [row for cell in _sorted(beside) for row in _rows(cell, beside, split)]
    x = alt.X(
        "tenants:O",
        title="tenants",
        sort=in_order(TENANTS, [str(cell.tenants) for cell in mine]),
        axis=alt.Axis(labelAngle=0, orient="top", domain=False, ticks=False),
    )
    y = alt.Y(
        "row:N",
        title=None,
        sort=list(dict.fromkeys(order)),
        axis=alt.Axis(domain=False, ticks=False),
    )
    tips = [
        alt.Tooltip("row:N", title="load"),
        alt.Tooltip("tenants:O"),
        *(alt.Tooltip(f"{name}:Q", format=".2%") for name in ("value", "low", "high")),
    ]
    base = alt.Chart(charts.inline(values))
    box = base.mark_rect(color=HEAT, stroke="#9aa5b1", strokeWidth=0.5).encode(
        x=x,
        y=y,
        fillOpacity=alt.FillOpacity(
            "lost:Q", scale=alt.Scale(domain=[0, 1], range=[0.02, DARKEST]), legend=None
        ),
        tooltip=tips,
    )
    text = base.mark_text(fontSize=12, color=charts.INK).encode(
        x=x, y=y, text=alt.Text("words:N"), tooltip=tips
    )
    what = "share of the throughput that is left" if metric == "left" else "loss"
    return charts.styled(
        [box, text],
        _ROW * len({row["row"] for row in values}),
        f"Heat map of {framework}: {what}, a row for each load of the tenants and a column for "
        "each number of them; medians over blocks. The tables below say the same.",
    )


def _sorted(cells: Sequence[CloudCellFigures]) -> list[CloudCellFigures]:
    """Return the cells, sorted by load, kind and size, in the orders of these factors."""
    order = {factor: levels_of(cells, factor) for factor in (LOAD, KIND, SIZE)}
    return sorted(
        cells,
        key=lambda cell: [order[f].index(place_of(cell).level(f)) for f in (LOAD, KIND, SIZE)],
    )


def _rows(
    cell: CloudCellFigures, beside: Sequence[CloudCellFigures], split: Sequence[str]
) -> list[str]:
    """Return the rows of a cell: one without tenants is in those of all loads."""
    loads = {(other.load, other.kind) for other in beside if other.size == cell.size}
    found = [(cell.load, cell.kind)] if cell.tenants else sorted(loads)
    words = []
    for load, kind in found:
        parts = {KIND: kind, SIZE: f"{cell.size} B"}
        words.append(", ".join([load, *(parts[each] for each in split)]))
    return words


def share_words(value: float) -> str:
    """Format a share, short enough for a box."""
    if value == 0:
        return "0 %"
    if abs(value) < 0.001:
        return "<0.1 %"
    return f"{value * 100:.1f} %" if abs(value) < 0.1 else f"{value * 100:.0f} %"


def cpu_time(cells: Sequence[CloudCellFigures], framework: str) -> Spec | None:
    """Draw the core's CPU time by user, a bar for each cell of one framework."""
    rows = []
    for cell in _sorted([cell for cell in cells if cell.framework == framework]):
        figures = (cell.forwarder_cpu, cell.tenants_cpu, cell.softirq, cell.steal)
        for part, figure in zip(PARTS, figures, strict=True):
            if figure:
                rows.append({"beside": beside_words(cell), "part": part, "value": figure.median})
    if not rows:
        return None
    names = list(dict.fromkeys(str(row["beside"]) for row in rows))
    bars = (
        alt.Chart(charts.inline(rows))
        .mark_bar()
        .encode(
            x=alt.X(
                "sum(value):Q", title="share of the core", axis=alt.Axis(format="%", tickCount=6)
            ),
            y=alt.Y("beside:N", title=None, sort=names),
            color=alt.Color(
                "part:N", scale=alt.Scale(domain=list(PARTS), range=list(PARTS.values()))
            ),
            order=alt.Order("order:Q"),
            tooltip=[
                alt.Tooltip("beside:N"),
                alt.Tooltip("part:N"),
                alt.Tooltip("value:Q", format=".1%"),
            ],
        )
        .transform_calculate(order=f"indexof({list(PARTS)!r}, datum.part)")
    )
    return charts.styled(
        [bars],
        _BAR * len(names),
        f"CPU time of the core that {framework} and the tenants share, a bar for each that is "
        "beside it, in parts: forwarder, tenants, softirqs and stolen time. Medians over blocks.",
    )
