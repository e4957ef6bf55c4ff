# SPDX-License-Identifier: BSD-3-Clause
"""The charts of experiment `paths`: a row for each path, in it a place for each size or load."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from linerate.records.cells import AA_SUFFIX
from linerate.records.summary import Band, CellSummary
from linerate.records.summary_figures import Quartiles
from linerate.report import charts

Spec = dict[str, Any]
PARTS = {"process": "#4a6fa5", "kernel's receiving threads (NAPI)": "#c2410c"}
PUBLISHED, OURS = "published, with its band", "this run, with its 95 % interval"
_ROW = 16


def throughput(cells: Sequence[CellSummary]) -> Spec | None:
    """Draw the received rate of each path of a link in a flood, by frame size."""
    rows = [
        _row(arm.arm, f"{cell.size} B", figure.scaled(1e3))
        for cell in cells
        for arm in cell.arms
        if not arm.arm.endswith(AA_SUFFIX) and (figure := arm.received_mpps)
    ]
    return _points(
        rows,
        [f"{cell.size} B" for cell in cells],
        "frames brought back in a flood, kpps of this machine (more is better)",
        "What each path brought back in a flood, by frame size: medians with 95 % intervals.",
    )


def cpu(cell: CellSummary) -> Spec | None:
    """Draw the CPU time of a packet, by its user, path and load."""
    rows = [
        {"path": entry.arm, "load": _load(entry.load_share), "part": part, "value": figure.median}
        for entry in cell.lower_load
        if not entry.arm.endswith(AA_SUFFIX) and entry.path
        for part, figure in zip(PARTS, (entry.path.process_ns, entry.path.napi_ns), strict=True)
        if figure
    ]
    if not rows:
        return None
    paths = list(dict.fromkeys(str(row["path"]) for row in rows))
    loads = list(dict.fromkeys(str(row["load"]) for row in rows))
    bars = (
        alt.Chart(charts.inline(rows))
        .mark_bar()
        .encode(
            x=alt.X("sum(value):Q", title="CPU time per packet, ns (less is better)"),
            y=alt.Y("path:N", title=None, sort=paths),
            yOffset=alt.YOffset("load:N", sort=loads),
            color=alt.Color(
                "part:N",
                scale=alt.Scale(domain=list(PARTS), range=list(PARTS.values())),
                legend=alt.Legend(labelLimit=320),
            ),
            order=alt.Order("part:N", sort="descending"),
            tooltip=[
                alt.Tooltip("path:N"),
                alt.Tooltip("load:N"),
                alt.Tooltip("part:N"),
                alt.Tooltip("value:Q", format=".0f"),
            ],
        )
    )
    return charts.styled(
        [bars],
        _ROW * len(loads) * len(paths),
        f"CPU time per packet of each path at {cell.size} B, a bar for each load from low to high, "
        "in two parts: the process and the kernel's threads that receive for it. Medians.",
    )


def latency(cell: CellSummary) -> Spec | None:
    """Draw delays from the median to the 99 % quantile, by path and load."""
    rows = [
        {
            "path": entry.arm,
            "load": _load(entry.load_share),
            "value": figures["0.5"].median,
            "high": figures["0.99"].median,
        }
        for entry in cell.lower_load
        if not entry.arm.endswith(AA_SUFFIX)
        and entry.path
        and {"0.5", "0.99"} <= (figures := entry.path.latency_us).keys()
        and figures["0.5"].median > 0
    ]
    if not rows:
        return None
    paths = list(dict.fromkeys(str(row["path"]) for row in rows))
    loads = list(dict.fromkeys(str(row["load"]) for row in rows))
    title = "latency, us: from the median to the 99 % quantile (less is better)"
    scale = alt.Scale(type="log")
    y = alt.Y("path:N", title=None, sort=paths)
    offset = alt.YOffset("load:N", sort=loads)
    colour = alt.Color("load:N", sort=loads, scale=charts.colours(loads))
    tips = [
        alt.Tooltip("path:N"),
        alt.Tooltip("load:N"),
        alt.Tooltip("value:Q", title="median", format=".1f"),
        alt.Tooltip("high:Q", title="99 %", format=".1f"),
    ]
    base = alt.Chart(charts.inline(rows))
    rule = base.mark_rule(strokeWidth=3).encode(
        x=alt.X("value:Q", title=title, scale=scale),
        x2=alt.X2("high:Q"),
        y=y,
        yOffset=offset,
        color=colour,
        tooltip=tips,
    )
    point = base.mark_point(filled=True, size=60, opacity=1).encode(
        x=alt.X("value:Q", title=title, scale=scale),
        y=y,
        yOffset=offset,
        color=colour,
        tooltip=tips,
    )
    return charts.styled(
        [rule, point],
        _ROW * len(loads) * len(paths),
        f"Latency of each path at {cell.size} B and at each load: a point at the median, a line "
        "from there to the 99 % quantile; medians over trials, on a logarithmic scale.",
    )


def ratio_bands(bands: Sequence[Band]) -> Spec | None:
    """Draw published ratios with their bands, and ours if there is one."""
    if not bands:
        return None
    title = "frames carried, ratio to DPDK"
    rows = [
        {"path": b.path, "what": PUBLISHED, "value": b.ratio, "low": b.low, "high": b.high}
        for b in bands
    ] + [
        {"path": b.path, "what": OURS, "value": b.ours, "low": b.ours_low, "high": b.ours_high}
        for b in bands
        if b.ours is not None
    ]
    names = list(dict.fromkeys(str(row["what"]) for row in rows))
    y = alt.Y("path:N", title=None, sort=[b.path for b in bands])
    offset = alt.YOffset("what:N", sort=names)
    colour = alt.Color(
        "what:N",
        sort=names,
        scale=alt.Scale(domain=[PUBLISHED, OURS], range=["#8a5a00", "#4a6fa5"]),
        legend=alt.Legend(labelLimit=320),
    )
    scale = alt.Scale(type="log")
    tips = [
        alt.Tooltip("path:N"),
        alt.Tooltip("what:N"),
        *(alt.Tooltip(f"{name}:Q", format=".3f") for name in ("value", "low", "high")),
    ]
    layers = charts.medians(
        rows, "x", title=title, scale=scale, width=4, size=90, y=y, yOffset=offset, color=colour,
        tooltip=tips,
    )  # fmt: skip
    return charts.styled(
        layers,
        56 * len(bands),
        "Published ratios of other paths to DPDK with bands of 25 % around them, as published, and "
        "beside each the ratio of this run, where there is one. The table below says the same.",
    )


def _load(share: float) -> str:
    return f"{share * 100:g} %"


def _row(path: str, place: str, figure: Quartiles) -> dict[str, Any]:
    return {
        "path": path,
        "place": place,
        "value": figure.median,
        "low": figure.low,
        "high": figure.high,
    }


def _points(
    rows: list[dict[str, Any]], places: list[str], title: str, description: str
) -> Spec | None:
    """Draw medians with their intervals; a row for each path, a colour for each place in it."""
    if not rows:
        return None
    paths = list(dict.fromkeys(row["path"] for row in rows))
    y = alt.Y("path:N", title=None, sort=paths)
    offset = alt.YOffset("place:N", sort=places)
    colour = alt.Color("place:N", sort=places, scale=charts.colours(places))
    tips = [
        alt.Tooltip("path:N"),
        alt.Tooltip("place:N"),
        *(alt.Tooltip(f"{name}:Q", format=".1f") for name in ("value", "low", "high")),
    ]
    layers = charts.medians(
        rows, "x", title=title, size=80, y=y, yOffset=offset, color=colour, tooltip=tips
    )
    return charts.styled(layers, (_ROW * len(places) + 12) * len(paths), description)
