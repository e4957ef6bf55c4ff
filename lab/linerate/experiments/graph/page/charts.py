# SPDX-License-Identifier: BSD-3-Clause
"""The charts of experiment `graph`, like the article's.

Throughput by mechanism, shape and batch size, and the per cent change of each doubling of the ways.
An arm that is missing in a cell has no mark there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import altair as alt

from linerate.experiments.graph.cells import FAMILIES, WAYS, GraphCell, families, parse
from linerate.records.summary import CellSummary
from linerate.records.summary_figures import Splitting
from linerate.report import charts
from linerate.verdict.ratios import shown_arms

Spec = dict[str, Any]
_X = "million objects per second, of this machine (more is better)"
_ROW = 16


def _arms(rows: list[dict[str, Any]]) -> list[str]:
    """Return the arms that this build knows, measured or not, so that each keeps its colour."""
    return families([*FAMILIES, *(str(row["arm"]) for row in rows)])


def _colours(rows: list[dict[str, Any]]) -> alt.Scale:
    return alt.Scale(domain=_arms(rows), range=list(charts.ARM_COLOURS))


def passing(cells: Sequence[CellSummary], title: str) -> Spec | None:
    return _by(cells, lambda cell: cell.passing, "passing mechanism", title)


def shapes(cells: Sequence[CellSummary], title: str) -> Spec | None:
    def words(cell: GraphCell) -> str:
        return f"{cell.shape} {cell.passing}" + (", one object" if cell.batch == 1 else "")

    return _by(cells, words, "shape", title)


def _by(
    cells: Sequence[CellSummary], words: Callable[[GraphCell], str], of: str, title: str
) -> Spec | None:
    """Draw a row for each, in it a place for each arm: the median with its interval."""
    rows = _rows(cells, lambda cell: {"what": words(cell)})
    if not rows:
        return None
    names = list(dict.fromkeys(str(row["what"]) for row in rows))
    y = alt.Y("what:N", title=None, sort=names)
    return _points(
        rows,
        {"y": y, "yOffset": alt.YOffset("arm:N", sort=_arms(rows))},
        _ROW * len(names) * len({row["arm"] for row in rows}) + 20,
        f"Throughput by {of} ({title}), a point for each arm: medians with 95 % intervals.",
        title,
    )


def _rows(
    cells: Sequence[CellSummary], place: Callable[[GraphCell], dict[str, Any]]
) -> list[dict[str, Any]]:
    return [
        {
            **place(parse(cell.link)),
            "arm": arm.arm,
            "value": rate.median,
            "low": rate.low,
            "high": rate.high,
            "cell": cell.link,
        }
        for cell in cells
        for arm in shown_arms(cell)
        if arm.graph and (rate := arm.graph.mobjects_per_s)
    ]


def _points(
    rows: list[dict[str, Any]],
    place: dict[str, Any],
    height: int,
    description: str,
    title: str,
) -> Spec:
    colour = alt.Color("arm:N", scale=_colours(rows))
    tips = [alt.Tooltip("cell:N"), alt.Tooltip("arm:N"), alt.Tooltip("value:Q", format=".1f")]
    layers = charts.medians(
        rows, "x", title=f"{title}: {_X}", scale=alt.Scale(zero=True), color=colour, tooltip=tips,
        **place,
    )  # fmt: skip
    return charts.styled(layers, height, description)


def batches(cells: Sequence[CellSummary], title: str) -> Spec | None:
    """Draw a curve for each arm, over the batch size."""
    rows = _rows(cells, lambda cell: {"batch": cell.batch})
    if len({row["batch"] for row in rows}) < 2:
        return None
    x = alt.X("batch:Q", title="objects in a batch", scale=alt.Scale(type="log", base=2))
    title_y, zero = "million objects per second", alt.Scale(zero=True)
    y = alt.Y("value:Q", title=title_y, scale=zero)
    colour = alt.Color("arm:N", scale=_colours(rows))
    tips = [alt.Tooltip("cell:N"), alt.Tooltip("arm:N"), alt.Tooltip("value:Q", format=".1f")]
    lines = alt.Chart(charts.inline(rows)).mark_line().encode(x=x, y=y, color=colour)
    layers = charts.medians(rows, "y", title=title_y, scale=zero, x=x, color=colour, tooltip=tips)
    return charts.styled(
        [lines, *layers],
        260,
        f"Throughput by the number of objects in a batch ({title}), a curve for each arm: medians "
        "with 95 % intervals.",
    )


def doublings(splitting: Sequence[Splitting]) -> Spec | None:
    """Draw the per cent change of each doubling of the ways that a batch is split."""
    rows = []
    counts = {shape: count for count, shape in WAYS.items()}
    for each in splitting:
        for step in each.doublings:
            if step.ratio is None:
                continue
            first, second = parse(step.second), parse(step.first)
            low = None if step.ci_low is None else (step.ci_low - 1) * 100
            high = None if step.ci_high is None else (step.ci_high - 1) * 100
            rows.append(
                {
                    "what": f"{each.passing}, {each.work}, {each.stats}: "
                    f"{counts[first.shape]} to {counts[second.shape]}",
                    "arm": each.arm,
                    "value": (step.ratio - 1) * 100,
                    "low": low,
                    "high": high,
                    "cell": f"{step.second} to {step.first}",
                }
            )
    if not rows:
        return None
    names = list(dict.fromkeys(str(row["what"]) for row in rows))
    place: dict[str, Any] = {
        "y": alt.Y("what:N", title=None, sort=names),
        "yOffset": alt.YOffset("arm:N", sort=_arms(rows)),
    }
    title = "change of objects per second with twice the ways, %"
    colour = alt.Color("arm:N", scale=_colours(rows))
    tips = [alt.Tooltip("cell:N"), alt.Tooltip("arm:N"), alt.Tooltip("value:Q", format="+.1f")]
    layers = charts.medians(rows, "x", title=title, color=colour, tooltip=tips, **place)
    return charts.styled(
        layers,
        _ROW * len(names) * len({row["arm"] for row in rows}) + 20,
        "The per cent change of the throughput as a batch is split into twice as many, for each "
        "arm, with 95 % intervals.",
    )
