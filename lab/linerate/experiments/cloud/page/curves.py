# SPDX-License-Identifier: BSD-3-Clause
"""Charts of experiment `cloud` by one, two or more factors: main effects, interactions, curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import altair as alt

from linerate.experiments.cloud.design.levels import (
    CPU,
    FRAMEWORK,
    KIND,
    LOAD,
    RATE,
    SIZE,
    TENANTS,
    in_order,
)
from linerate.experiments.cloud.page.averages import X_ORDER, Averaged, Point, averaged
from linerate.experiments.cloud.page.metrics import Shown, shown
from linerate.experiments.cloud.page.places import anchor
from linerate.experiments.cloud.page.sentences import metric_words
from linerate.host.text import counted, listed
from linerate.records.cloud_summary import CloudCellFigures
from linerate.report import charts

Spec = dict[str, Any]
WORDS = {
    FRAMEWORK: "framework",
    KIND: "kind of tenants",
    LOAD: "load of the tenants",
    TENANTS: "number of tenants",
    CPU: "CPU: the forwarder's share of its core",
    SIZE: "frame size, B",
    RATE: "offered rate, share of the own 100 %",
}
_HEIGHT, _MANY = 240, 4
# The level of a cell without tenants.
_NONE = "none"
# The colour of a single line, and the factors whose levels are names.
_ONE, _NAMES = charts.ARM_COLOURS[0], (FRAMEWORK, KIND, LOAD)
# Lines also differ by shape.
_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
# Above this ratio of largest to smallest, latencies need a scale of powers.
_WIDE_RANGE = 20


@dataclass(frozen=True)
class Panel:
    """One chart. `title`: its levels; "" if it is the only one."""

    title: str
    spec: Spec


@dataclass(frozen=True)
class Figure:
    """A drawing of a metric over some factors. Empty if there was nothing to draw."""

    anchor: str
    metric: str
    about: tuple[str, ...]
    title: str
    caption: str
    panels: list[Panel]


def figure(
    cells: Sequence[CloudCellFigures], metric: str, about: Sequence[str], at: str | None = None
) -> Figure:
    """Draw a metric. `at`: its place in the page, if it is not the usual one."""
    read = shown(metric)
    found = averaged(cells, about, read.read) if read else Averaged(tuple(about), [], [])
    panels: list[Panel] = []
    if read and found.points:
        x, colour, split = _channels(found)
        drawn = _Drawn(found, read, metric, x, colour)
        for levels in product(*(found.levels(factor) for factor in split)):
            wanted = list(zip(split, levels, strict=True))
            here = [p for p in found.points if all(drawn.at(p, f) == level for f, level in wanted)]
            if here:
                title = ", ".join(_level(*each) for each in wanted)
                panels.append(Panel(title, drawn.chart(here, title)))
    names = listed([short_words(factor) for factor in found.about])
    return Figure(
        anchor=at or anchor(metric, about),
        metric=metric,
        about=found.about,
        title=f"{metric_words(metric)[:1].upper()}{metric_words(metric)[1:]} by {names}",
        caption=_caption(found) if panels else "Not drawn: no valid trial tells this figure.",
        panels=panels,
    )


def _level(factor: str, level: str) -> str:
    """Format a level for a place where its factor is not named."""
    return _together(factor, [level])


def _channels(found: Averaged) -> tuple[str, str | None, list[str]]:
    """Return the factor of the axis, the factor with a line for each level, and those with a chart
    for each.
    """
    ordered = sorted(found.about, key=X_ORDER.index)
    x, rest = ordered[0], ordered[1:]
    if len(rest) < 2:
        return x, rest[0] if rest else None, []
    # Lines are of the load, if it varies: it is the most important factor.
    colour = next((each for each in (LOAD, TENANTS, SIZE) if each in rest), rest[0])
    return x, colour, [each for each in found.about if each in rest and each != colour]


def _caption(found: Averaged) -> str:
    where = _settings(found)
    if max(point.cells for point in found.points) == 1:
        return f"{where}: medians over blocks of one cell each, with 95 % intervals."
    return (
        f"{where}: each point is the median of the medians of the cells that have its level, in "
        f"{counted(len(found.settings), 'setting')} of the other factors, the same for all points; "
        "its line is the middle half of these cells, no interval. Tests compare within blocks."
    )


def _settings(found: Averaged) -> str:
    """Format the levels of the other factors, such as `64 and 1518 B, CPU shared`."""
    told = []
    for factor in (SIZE, RATE, CPU, KIND, LOAD, TENANTS, FRAMEWORK):
        levels = in_order(factor, [each[factor] for each in found.settings if factor in each])
        if levels and levels != [_NONE]:
            told.append(_together(factor, [each for each in levels if each != _NONE]))
    return f"{'Over' if len(found.settings) > 1 else 'At'} {', '.join(told)}"


def _together(factor: str, levels: list[str]) -> str:
    every = listed(levels)
    return {
        SIZE: f"{every} B",
        RATE: f"{every} of the own 100 %",
        CPU: f"CPU {every}",
        LOAD: f"load {every}",
        TENANTS: f"{every} {'tenant' if every == '1' else 'tenants'}",
        KIND: f"{every} tenants",
    }.get(factor, every)


@dataclass(frozen=True)
class _Drawn:
    """All charts of one figure: the values, the axis, and the lines."""

    found: Averaged
    read: Shown
    metric: str
    x: str
    colour: str | None

    def at(self, point: Point, factor: str | None) -> str:
        return point.levels[self.found.about.index(factor)] if factor else ""

    def chart(self, points: Sequence[Point], title: str) -> Spec:
        rows = self._rows(points)
        x, tips = self._x(), self._tips()
        line_of, shape_of = self._lines()
        y = alt.Y("value:Q", title=self.read.title, scale=self._scale(), axis=self._axis())
        low = alt.Y("low:Q", title=self.read.title, scale=self._scale(), axis=self._axis())
        base = alt.Chart(charts.inline(rows))
        # Between names there is no continuous axis for a line; lines only show that they are
        # parallel.
        drawn = base if self.colour or self.x not in _NAMES else alt.Chart(charts.inline([]))
        line = drawn.mark_line(strokeWidth=1.5, opacity=0.7, color=_ONE).encode(x=x, y=y, **line_of)
        rule = (
            charts.with_interval(rows)
            .mark_rule(strokeWidth=3, opacity=0.8, color=_ONE)
            .encode(x=x, y=low, y2=alt.Y2("high:Q"), tooltip=tips, **line_of)
        )
        point = base.mark_point(filled=True, size=70, opacity=1, color=_ONE).encode(
            x=x, y=y, tooltip=tips, **line_of, **shape_of
        )
        about = listed([short_words(each) for each in self.found.about])
        return charts.styled(
            [line, rule, point],
            _HEIGHT,
            f"{metric_words(self.metric).capitalize()} by {about}{title and f': {title}'}; "
            "medians. The takeaways say which effects are significant.",
        )

    @property
    def _numeric(self) -> bool:
        """True for a share of the NDR, which is a number: curves are drawn over numbers."""
        return self.x == RATE

    def _rows(self, points: Sequence[Point]) -> list[dict[str, Any]]:
        order = self.found.levels(self.x)
        ordered = sorted(points, key=lambda point: order.index(self.at(point, self.x)))
        return [
            {
                "x": _number(level) if self._numeric else level,
                "of": self.at(point, self.colour),
                "value": point.value,
                "low": point.low,
                "high": point.high,
                "cells": point.cells,
            }
            for point in ordered
            for level in [self.at(point, self.x)]
        ]

    def _x(self) -> alt.X:
        if self._numeric:
            return alt.X("x:Q", title=f"{WORDS[RATE]}, %", scale=alt.Scale(zero=False, padding=12))
        return alt.X(
            "x:N",
            title=WORDS[self.x],
            sort=self.found.levels(self.x),
            axis=alt.Axis(labelAngle=-25 if self.x == FRAMEWORK else 0),
        )

    def _lines(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return colours and side-by-side offsets, and shapes, which points also have."""
        if not self.colour:
            return {}, {}
        names = self.found.levels(self.colour)
        legend = alt.Legend(columns=_MANY if len(names) > 2 * _MANY - 2 else 0)
        line: dict[str, Any] = {
            "color": alt.Color("of:N", sort=names, scale=charts.colours(names), legend=legend)
        }
        if not self._numeric:
            line["xOffset"] = alt.XOffset("of:N", sort=names)
        shapes = [_SHAPES[index % len(_SHAPES)] for index in range(len(names))]
        scale = alt.Scale(domain=names, range=shapes)
        return line, {"shape": alt.Shape("of:N", sort=names, scale=scale, legend=legend)}

    def _tips(self) -> list[alt.Tooltip]:
        style = ".2%" if self.read.share else ",.4~g"
        return [
            alt.Tooltip("x:Q" if self._numeric else "x:N", title=short_words(self.x)),
            *([alt.Tooltip("of:N", title=short_words(self.colour))] if self.colour else []),
            *(alt.Tooltip(f"{name}:Q", format=style) for name in ("value", "low", "high")),
            alt.Tooltip("cells:Q"),
        ]

    def _axis(self) -> alt.Axis:
        return alt.Axis(format=".0%" if self.read.share else "~s", tickCount=5)

    def _scale(self) -> alt.Scale:
        """Return the scale that all charts of a figure share."""
        points = self.found.points
        values = [v for p in points for v in (p.value, p.low, p.high) if v is not None]
        low, high = min(values), max(values)
        if self.metric.startswith("latency") and low > 0 and high / low > _WIDE_RANGE:
            return alt.Scale(type="log", domain=[low / 1.2, high * 1.2], nice=False)
        top = high + (high - min(low, 0)) * 0.05 or 1.0
        return alt.Scale(domain=[min(low, 0.0), top], nice=False)


def short_words(factor: str) -> str:
    return WORDS[factor].partition(",")[0]


def _number(level: str) -> float:
    return float(level.removesuffix(" %"))
