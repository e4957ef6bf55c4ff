# SPDX-License-Identifier: BSD-3-Clause
"""The charts of rfc2544's page."""

from __future__ import annotations

import csv
from typing import Any

import pytest
from chart_specs import specifications, valid_charts
from rfc2544_pages import ARMS, CSV, SIZES, Page, render, told, whole
from simulated_lab import CEILING_PPS, SimulatedLab

from linerate.experiments.rfc2544.page.charts import Point, by_size
from linerate.experiments.rfc2544.runs import Found
from linerate.records.summary import Summary
from linerate.records.trial import Trial


@pytest.fixture(scope="module")
def found() -> Found:
    return whole()


@pytest.fixture(scope="module")
def measured(found: Found) -> tuple[list[Trial], Summary]:
    return found.trials, found.summary


@pytest.fixture(scope="module")
def html(found: Found) -> str:
    return render(found)


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


def marks(spec: dict[str, Any]) -> list[str]:
    return [
        mark if isinstance(mark, str) else mark["type"]
        for mark in (layer["mark"] for layer in spec["layer"])
    ]


def values(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the values of all layers."""
    return [row for layer in spec["layer"] for row in layer["data"]["values"]]


def test_every_chart_is_valid_described_and_has_data(html: str, page: Page) -> None:
    # Throughput, ratios; five own, five published; bursts and recovery; six for each cell.
    assert valid_charts(html) == 2 + 10 + 2 + 6 * len(SIZES)
    assert sorted(page.charts) == sorted(specifications(html))


def test_ours_have_intervals_and_published_ones_none(html: str) -> None:
    for spec in specifications(html).values():
        rows = [row for row in values(spec) if "low" in row]
        if spec["description"].startswith("Published"):
            assert rows
            assert all(row["low"] is None for row in rows)
        else:
            assert any(row["low"] is not None for row in rows)
            assert {"rule", "area"} & set(marks(spec))


def chart(html: str, *words: str) -> dict[str, Any]:
    (found,) = [
        spec
        for spec in specifications(html).values()
        if all(word in spec["description"] for word in words)
    ]
    return found


def test_the_five_charts_hold_the_summary_s_figures(
    measured: tuple[list[Trial], Summary], html: str
) -> None:
    _, found = measured
    packets = values(chart(html, "This run", "Mpps"))
    bits = values(chart(html, "This run", "Gbit/s"))
    for cell in found.cells:
        for arm in cell.arms:
            goal = arm.search.goals[0].pps if arm.search else None
            assert goal is not None
            if arm.arm not in ARMS:
                assert all(row.get("what") != arm.arm for row in packets)
                continue
            mine = {"size": cell.size, "what": arm.arm}
            for rows, factor in ((packets, 1e-6), (bits, (cell.size + 20) * 8 / 1e9)):
                row = next(row for row in rows if mine.items() <= row.items())
                assert row["value"] == pytest.approx(goal.median * factor)
                assert row["low"] == pytest.approx((goal.low or 0) * factor)
        limit = {"size": cell.size, "what": "100 % (best peer)"}
        row = next(row for row in packets if limit.items() <= row.items())
        assert row["value"] == pytest.approx(CEILING_PPS / 1e6)
        ndr = next(c for c in found.comparisons if c.primary and c.size == cell.size)
        difference = next(
            row
            for row in values(chart(html, "This run", "in per cent"))
            if row.get("size") == cell.size
        )
        assert ndr.ratio is not None
        assert difference["value"] == pytest.approx((ndr.ratio - 1) * 100)


def test_where_cost_leads_the_difference_is_still_that_of_the_throughput() -> None:
    # Both carry all that can be offered, so the cost decides: 20 % less.
    limits = {"c-l2fwd": 12e6, "rust-l2fwd": 12e6}
    found = told(
        SimulatedLab(capacity=limits), tests=("throughput", "core-use"), sizes=[64, 512], blocks=8
    )
    comparisons = found.summary.comparisons
    assert {c.metric for c in comparisons if c.primary} == {"busy_cycles_per_packet"}
    ratios = {c.size: c.ratio for c in comparisons if c.metric == "ndr_pps"}
    spec = chart(render(found), "This run", "in per cent")
    drawn = {row["size"]: row["value"] for row in values(spec) if "size" in row}
    assert drawn.keys() == ratios.keys() == {64, 512}
    for size, ratio in ratios.items():
        assert ratio == pytest.approx(1, abs=0.02)
        assert ratio is not None
        assert drawn[size] == pytest.approx((ratio - 1) * 100)


def test_published_charts_hold_the_published_figures_and_the_line_rate(html: str) -> None:
    with CSV.open(encoding="utf-8") as file:
        raw = list(csv.DictReader(file))
    for words, column in (
        ("bit/s", "throughput_gibit_per_s"),
        ("packets/s", "throughput_mi_packets_per_s"),
        ("latency avg", "latency_avg_us"),
        ("jitter", "latency_jitter_us"),
    ):
        rows = {
            (row["what"], row["size"]): row["value"]
            for row in values(chart(html, "Published", words))
        }
        for row in raw:
            assert rows[row["language"], int(row["size_bytes"])] == float(row[column])
    limit = {
        row["size"]: row["value"]
        for row in values(chart(html, "Published", "packets/s"))
        if row["what"].startswith("line rate")
    }
    assert limit[64] == pytest.approx(37.202381e6 / 2**20, rel=1e-6)
    # From 128 B on the published throughput is the line rate.
    assert limit[1518] == pytest.approx(1.937637011, rel=1e-4)
    differences = {
        row["size"]: row["value"]
        for row in values(chart(html, "Published", "per cent"))
        if "size" in row
    }
    assert differences[64] == pytest.approx(-100 * 156 / 322613241)


def test_one_size_alone_has_points_intervals_and_the_limit() -> None:
    found = told(SimulatedLab(), tests=("throughput",), sizes=[64])
    spec = chart(render(found), "This run", "Mpps")
    assert {"rule", "point", "tick"} <= set(marks(spec))
    rows = [row for row in values(spec) if row.get("low") is not None]
    assert {row["what"] for row in rows} == set(ARMS)


def test_without_a_figure_there_is_no_chart() -> None:
    found = told(SimulatedLab(), tests=("throughput",), sizes=[64], blocks=2)
    html = render(found)
    descriptions = [spec["description"] for spec in specifications(html).values()]
    assert not [each for each in descriptions if "jitter" in each and "This run" in each]
    assert not [each for each in descriptions if each.startswith("memif, 64 B")]
    assert "has no such figure" in html


def test_a_legend_with_many_names_has_rows() -> None:
    def columns(names: list[str]) -> int:
        points = [Point(64, name, 1.0, 0.9, 1.1) for name in names]
        colours = dict.fromkeys(names, "#000000")
        spec = by_size(points, title="t", colours=colours, description="d")
        assert spec is not None
        legends = [layer["encoding"]["color"]["legend"] for layer in spec["layer"]]
        return int(legends[-1]["columns"])

    assert columns(["c-l2fwd", "rust-l2fwd"]) == 2
    assert columns([f"forwarder-number-{n}" for n in range(6)]) == 2
    assert columns(["a name that is as long as half the page is wide, and a little more", "b"]) == 1
