# SPDX-License-Identifier: BSD-3-Clause
"""The charts of experiment `rfc2544`: by frame size, like the published ones, and by load.

Each has the 95 % intervals of its figures; published figures have none, because they ran once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from linerate.records.summary import CellSummary
from linerate.records.summary_figures import LatencyFigure, LowerLoad, Quartiles
from linerate.report import charts
from linerate.verdict.judgement import MARGIN

PUBLISHED_COLOURS = {"C": "#8a5a00", "Rust": "#e0a021"}
HEIGHT = 260
# With more sizes than this the labels are vertical.
UPRIGHT = 12
QUANTILES = {"0.5": "p50", "0.9": "p90", "0.99": "p99", "0.999": "p99.9"}
# Sizes in legends, in pixels: a letter, a symbol with its gaps, and the whole width.
_LETTER, _SYMBOL, _LEGEND = 7, 28, 380
_SHAPES = ("circle", "square", "triangle-up", "diamond")
Spec = dict[str, Any]


@dataclass(frozen=True)
class Point:
    """A figure of one forwarder at one frame size, with its interval if it has one."""

    size: int
    series: str
    value: float
    low: float | None = None
    high: float | None = None
    # True: a lower bound.
    least: bool = False

    @classmethod
    def of(cls, size: int, series: str, figure: Quartiles, *, least: bool = False) -> Point:
        return cls(size, series, figure.median, figure.low, figure.high, least)


@dataclass(frozen=True)
class Theory:
    """The theoretical maximum, by frame size."""

    label: str
    by_size: dict[int, float]


def by_size(
    points: Sequence[Point],
    *,
    title: str,
    colours: dict[str, str],
    description: str,
    theory: Theory | None = None,
    margin: bool = False,
) -> Spec | None:
    """Draw series side by side over the frame sizes. `margin`: values are per cent, 0 is no
    difference.

    Sizes have a place each, not a scale: the published ones are dense in one range.
    """
    if not points:
        return None
    used = [name for name in colours if any(point.series == name for point in points)]
    sizes = sorted({point.size for point in points})
    data = [
        {"size": p.size, "what": p.series, "value": p.value, "low": p.low, "high": p.high}
        for p in points
    ]
    x = alt.X(
        "size:O",
        title="frame size with FCS, bytes",
        sort=sizes,
        axis=alt.Axis(labelAngle=-90 if len(sizes) > UPRIGHT else 0, grid=False),
    )
    # Leaves a gap between places, so that neighbours visibly belong together.
    offset = alt.XOffset("what:N", sort=used, scale=alt.Scale(paddingOuter=1))
    scale = _linear(data, zero=not margin)
    y = alt.Y("value:Q", title=title, scale=scale)
    names, ranges = list(used), [colours[name] for name in used]
    if theory:
        names, ranges = [*names, theory.label], [*ranges, charts.MUTED]
    colour = alt.Color(
        "what:N",
        scale=alt.Scale(domain=names, range=ranges),
        legend=_legend(names),
    )
    tips = _tips([alt.Tooltip("what:N", title="forwarder"), alt.Tooltip("size:O")])
    layers: list[Any] = _margin() if margin else []
    if theory:
        layers += _theory(theory, sizes, x, y, colour)
    base = alt.Chart(charts.inline(data))
    if not margin:
        layers.append(
            base.mark_line(strokeWidth=1.5, opacity=0.35).encode(
                x=x, y=y, xOffset=offset, color=colour
            )
        )
    few = len(sizes) <= UPRIGHT
    layers += charts.medians(
        data, "y", title=title, scale=scale, width=3 if few else 2, size=70 if few else 30, x=x,
        xOffset=offset, color=colour, tooltip=tips,
    )  # fmt: skip
    if bounds := [row for row, p in zip(data, points, strict=True) if p.least]:
        layers.append(
            alt.Chart(charts.inline(bounds))
            .mark_text(text="≥", dx=-9, fontSize=13)
            .encode(x=x, y=y, xOffset=offset, color=colour)
        )
    return charts.styled(layers, HEIGHT, description)


def _theory(theory: Theory, sizes: list[int], x: Any, y: Any, colour: Any) -> list[Any]:
    """Draw a line through all sizes, with a dash at each: a single size has no line."""
    data = [
        {"size": size, "what": theory.label, "value": theory.by_size[size]}
        for size in sizes
        if size in theory.by_size
    ]
    base = alt.Chart(charts.inline(data))
    tips = [
        alt.Tooltip("what:N", title="limit"),
        alt.Tooltip("size:O"),
        alt.Tooltip("value:Q", format=",.4~f"),
    ]
    return [
        base.mark_line(strokeWidth=1.5, strokeDash=[5, 4]).encode(x=x, y=y, color=colour),
        base.mark_tick(orient="horizontal", thickness=2, size=14).encode(
            x=x, y=y, color=colour, tooltip=tips
        ),
    ]


def _margin() -> list[Any]:
    percent = MARGIN * 100
    return [
        alt.Chart(charts.inline([{"from": -percent, "to": percent}]))
        .mark_rect(color=charts.BAND)
        .encode(y=alt.Y("from:Q"), y2=alt.Y2("to:Q")),
        alt.Chart(charts.inline([{"none": 0}]))
        .mark_rule(color=charts.MUTED, strokeDash=[4, 3])
        .encode(y=alt.Y("none:Q")),
    ]


@dataclass(frozen=True)
class AtLoad:
    """A figure of one forwarder at one load; `what` distinguishes several figures of one chart."""

    load_share: float
    arm: str
    figure: Quartiles
    what: str = ""


def quantiles_by_load(
    cell: CellSummary,
    colours: dict[str, str],
    values: Callable[[LatencyFigure], dict[str, Quartiles] | None],
    *,
    title: str,
    description: str,
) -> Spec | None:
    """Draw quantiles of a delay at each share of the own throughput, on a logarithmic scale."""
    found = [
        AtLoad(entry.share, arm.arm, figure, name)
        for arm in cell.arms
        if arm.search
        for entry in arm.search.latency
        for quantile, name in QUANTILES.items()
        # A variation of 0 has no place on such a scale.
        if (figure := (values(entry) or {}).get(quantile)) is not None
        and min(figure.median, figure.median if figure.low is None else figure.low) > 0
    ]
    return by_load(
        found,
        title=title,
        load="load, share of the forwarder's own throughput",
        colours=colours,
        description=description,
        log=True,
    )


def lower_load(
    cell: CellSummary,
    colours: dict[str, str],
    value: Callable[[LowerLoad], Quartiles | None],
    *,
    title: str,
    description: str,
) -> Spec | None:
    """Draw a figure of polling or cost at each fixed share of 100 %."""
    found = [
        AtLoad(entry.load_share, entry.arm, figure)
        for entry in cell.lower_load
        if (figure := value(entry)) is not None
    ]
    return by_load(
        found, title=title, load="load, of 100 %", colours=colours, description=description
    )


def by_load(
    found: Sequence[AtLoad],
    *,
    title: str,
    load: str,
    colours: dict[str, str],
    description: str,
    log: bool = False,
) -> Spec | None:
    """Draw forwarders side by side at each load; several figures have a shape each."""
    used = [name for name in colours if any(each.arm == name for each in found)]
    if not used:
        return None
    # In the order given, before the loads are sorted.
    kinds = list(dict.fromkeys(each.what for each in found))
    found = sorted(found, key=lambda each: each.load_share)
    data: list[dict[str, Any]] = [
        {
            "load": f"{each.load_share * 100:g} %",
            "arm": each.arm,
            "what": each.what,
            "slot": f"{each.what} {each.arm}",
            "value": each.figure.median,
            "low": each.figure.low,
            "high": each.figure.high,
        }
        for each in found
        if each.arm in used
    ]
    scale, axis = _powers(data) if log else (_linear(data), alt.Axis())
    loads = list(dict.fromkeys(row["load"] for row in data))
    x = alt.X("load:O", title=load, sort=loads, axis=alt.Axis(labelAngle=0, grid=False))
    offset = alt.XOffset("slot:N", sort=[f"{kind} {arm}" for kind in kinds for arm in used])
    colour = _of_arms(used, colours)
    tips = _tips(
        [alt.Tooltip("arm:N"), alt.Tooltip("load:O")]
        + ([alt.Tooltip("what:N")] if len(kinds) > 1 else [])
    )
    rule, point = charts.medians(
        data, "y", title=title, scale=scale, axis=axis, opacity=0.55, x=x, xOffset=offset,
        color=colour, tooltip=tips,
    )  # fmt: skip
    if len(kinds) > 1:
        point = point.encode(
            shape=alt.Shape(
                "what:N",
                scale=alt.Scale(domain=kinds, range=_SHAPES[: len(kinds)]),
                legend=alt.Legend(
                    orient="bottom",
                    symbolFillColor=charts.MUTED,
                    symbolStrokeColor=charts.MUTED,
                    symbolOpacity=1,
                ),
            )
        )
    return charts.styled([rule, point], HEIGHT, description)


def loss_curve(cell: CellSummary, colours: dict[str, str], description: str) -> Spec | None:
    """Draw frames lost by offered load, from 100 % down (RFC 2544, 26.3)."""
    data = [
        {
            "load": entry.share * 100,
            "arm": arm.arm,
            "value": entry.loss_ratio.median * 100,
            "low": None if entry.loss_ratio.low is None else entry.loss_ratio.low * 100,
            "high": None if entry.loss_ratio.high is None else entry.loss_ratio.high * 100,
        }
        for arm in cell.arms
        if arm.search
        for entry in arm.search.loss
    ]
    used = [name for name in colours if any(row["arm"] == name for row in data)]
    if not used:
        return None
    title = "frames lost, %"
    x = alt.X("load:Q", title="offered load, % of 100 %", scale=alt.Scale(zero=False))
    y = alt.Y("value:Q", title=title, scale=_linear(data))
    colour = _of_arms(used, colours)
    tips = _tips([alt.Tooltip("arm:N"), alt.Tooltip("load:Q")])
    band = (
        charts.with_interval(data)
        .mark_area(opacity=0.18)
        .encode(x=x, y=alt.Y("low:Q", title=title), y2=alt.Y2("high:Q"), color=colour)
    )
    base = alt.Chart(charts.inline(data))
    line = base.mark_line(strokeWidth=1.5).encode(x=x, y=y, color=colour)
    point = base.mark_point(filled=True, size=45, opacity=1).encode(
        x=x, y=y, color=colour, tooltip=tips
    )
    return charts.styled([band, line, point], HEIGHT, description)


def _of_arms(used: list[str], colours: dict[str, str]) -> alt.Color:
    return alt.Color(
        "arm:N",
        scale=alt.Scale(domain=used, range=[colours[name] for name in used]),
        legend=_legend(used),
    )


def _legend(names: Sequence[str]) -> alt.Legend:
    """Return a legend in one row if half the page's width has room for it, else in columns: none is
    cut off.
    """
    widths = [len(name) * _LETTER + _SYMBOL for name in names]
    columns = len(names) if sum(widths) <= _LEGEND else max(1, _LEGEND // max(widths))
    return alt.Legend(symbolOpacity=1, labelLimit=_LEGEND, columns=columns)


def _ends(data: list[dict[str, Any]]) -> list[float]:
    return [row[name] for row in data for name in ("value", "low", "high") if row[name] is not None]


def _linear(data: list[dict[str, Any]], *, zero: bool = True) -> alt.Scale:
    """Return a linear scale from 0, even if all values are 0."""
    return alt.Scale(domain=[0, 1]) if zero and not any(_ends(data)) else alt.Scale(zero=zero)


def _powers(data: list[dict[str, Any]]) -> tuple[alt.Scale, alt.Axis]:
    """Return a logarithmic scale just around the data, with a line at 1, 2 and 5 of each decade."""
    ends = [value for value in _ends(data) if value > 0]
    low, high = min(ends) / 1.15, max(ends) * 1.15
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    marks = [step * 10.0**decade for decade in decades for step in (1, 2, 5)]
    inside = [mark for mark in marks if low <= mark <= high]
    # Vega leaves out every other one where there are more than tickCount.
    axis = alt.Axis(values=inside, tickCount=len(inside), format=",~r", labelOverlap=False)
    return alt.Scale(type="log", domain=[low, high], nice=False), axis


def _tips(first: list[Any]) -> list[Any]:
    return [
        *first,
        alt.Tooltip("value:Q", title="median", format=",.4~f"),
        alt.Tooltip("low:Q", title="95 % from", format=",.4~f"),
        alt.Tooltip("high:Q", title="to", format=",.4~f"),
    ]
