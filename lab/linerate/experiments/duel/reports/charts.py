# SPDX-License-Identifier: BSD-3-Clause
"""The chart of duels: the ratio on each link, with every round."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import altair as alt

from linerate.experiments.duel.record import DuelRecord
from linerate.experiments.duel.reports.report import Figures
from linerate.report.charts import INK, around_one, inline, medians, styled, verdict_colour

_TITLE = "B over A, packets in equal time"
# If the largest ratio is so many times the smallest, the axis is logarithmic.
_WIDE = 1.5


def forest(found: Sequence[tuple[DuelRecord, Figures]], margin: float) -> dict[str, Any] | None:
    """Draw the ratio, its interval and the rounds on each link, beside the margin."""
    if not found:
        return None
    rows: list[dict[str, Any]] = [
        {
            "link": record.link,
            "value": figures.ratio,
            "low": figures.between[0],
            "high": figures.between[1],
            "answer": record.answer,
        }
        for record, figures in found
    ]
    rounds: list[dict[str, Any]] = [
        {"link": record.link, "ratio": ratio, "answer": record.answer}
        for record, figures in found
        for ratio in figures.ratios
    ]
    inside = 1 - margin, 1 / (1 - margin)
    edges = [*inside]
    for row in rows:
        edges += [row["low"], row["high"]]
    edges += [row["ratio"] for row in rounds]
    low, high = math.log(min(edges)), math.log(max(edges))
    pad = (high - low) * 0.08
    x: dict[str, Any] = {
        "title": _TITLE,
        "scale": alt.Scale(
            domain=[math.exp(low - pad), math.exp(high + pad)],
            type="log" if high - low > math.log(_WIDE) else "linear",
            zero=False,
            nice=False,
        ),
        "axis": alt.Axis(format=".2~f"),
    }
    y = alt.Y("link:N", title=None, sort=None)
    colour = verdict_colour("answer")
    dots = (
        alt.Chart(inline(rounds))
        .mark_tick(thickness=1.5, height=16, opacity=0.45)
        .encode(x=alt.X("ratio:Q", **x), y=y, color=colour)
    )
    labels = (
        alt.Chart(inline(rows))
        .mark_text(dy=-17, fontSize=12, color=INK)
        .encode(x=alt.X("value:Q", **x), y=y, text=alt.Text("value:Q", format=".3f"))
    )
    return styled(
        [
            *around_one(*inside, **x),
            dots,
            *medians(rows, "x", **x, size=110, y=y, color=colour),
            labels,
        ],
        62 * len(rows) + 20,
        "Forest plot: for each link the ratio of B over A with its interval and the ratios of its "
        "rounds, beside a band of the margin around 1. The sentences above say the same in words.",
    )
