# SPDX-License-Identifier: BSD-3-Clause
"""The tables of rfc2544's page: every published column, and the published arithmetic separately."""

from __future__ import annotations

import csv
import json
import statistics
from collections.abc import Iterable

import pytest
from chart_specs import specifications
from rfc2544_pages import (
    ARMS,
    BLOCKS,
    CSV,
    REPRODUCED,
    RESULTS,
    SIZES,
    Page,
    number,
    render,
    told,
    whole,
)
from simulated_lab import CEILING_PPS, SimulatedLab

from linerate.experiments.rfc2544.page import published as published_rfc2544
from linerate.experiments.rfc2544.page.published import PublishedRow
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


SAME_SIZES = "memif: the published rows of the same sizes"


OTHERS = "The published rows of other sizes"


def windows_at_the_throughput(trials: Iterable[Trial], arm: str, size: int) -> list[Trial]:
    """Find them in another way than the page: latency is measured at 100 % of the rate found."""
    mine = [t for t in trials if (t.arm, t.cell.key[1], t.role) == (arm, size, "search")]
    rates = {
        block: max(
            t.request.pps or 0 for t in mine if (t.block, t.request.test) == (block, "latency")
        )
        for block in {t.block for t in mine}
    }
    return [
        t
        for t in mine
        if t.valid
        and t.request.test == "throughput"
        and t.request.pps == pytest.approx(rates[t.block])
    ]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("arm", ARMS)
def test_every_published_column_is_there_made_right(
    measured: tuple[list[Trial], Summary], page: Page, arm: str, size: int
) -> None:
    trials, _ = measured
    (row,) = [
        row for row in page.rows(RESULTS) if (row["size, B"], row["forwarder"]) == (str(size), arm)
    ]
    windows = windows_at_the_throughput(trials, arm, size)
    blocks = {t.block for t in windows}
    assert len(blocks) == BLOCKS
    sent = sum(t.frames.intended or 0 for t in windows)
    received = sum(t.frames.received or 0 for t in windows)
    assert row["duration, s"] == (
        f"{sum(t.frames.duration_s or 0 for t in windows):.1f} {len(windows)} windows"
    )
    assert number(row["frames sent"]) == sent
    assert number(row["frames received"]) == received
    assert number(row["bytes sent"]) == sent * size
    assert number(row["loss"]) == pytest.approx(100 * (sent - received) / sent, abs=1e-4)
    rate = statistics.median(
        next(t.request.pps or 0 for t in windows if t.block == block) for block in blocks
    )
    assert number(row["throughput, Mpps"]) == pytest.approx(rate / 1e6, abs=5e-4)
    assert "–" in row["throughput, Mpps"]  # from - to
    assert number(row["L1, Gbit/s"]) == pytest.approx(rate * (size + 20) * 8 / 1e9, abs=5e-4)
    assert number(row["L2, Gbit/s"]) == pytest.approx(rate * size * 8 / 1e9, abs=5e-4)
    assert row["of 100 %"] == f"{100 * rate / CEILING_PPS:.1f} %"
    latencies = [
        t.frames.latency
        for t in trials
        if (t.arm, t.cell.key[1], t.request.test, t.valid) == (arm, size, "latency", True)
        and t.frames.latency
        and t.request.pps in {w.request.pps for w in windows if w.block == t.block}
    ]
    assert len(latencies) == BLOCKS
    mean = statistics.median(each.mean_ns for each in latencies) / 1e3
    assert number(row["latency average, us"]) == pytest.approx(mean, abs=0.051)
    most = max(each.maximum_ns for each in latencies) / 1e3
    assert number(row["latency max, us"]) == pytest.approx(most, abs=0.051)
    place = 0 if arm == "c-l2fwd" else 2
    assert number(row["jitter, us"]) == pytest.approx(3 + place + size / 1000, abs=0.051)


def test_control_and_reference_are_told_apart(page: Page) -> None:
    rows = page.rows(RESULTS)
    kinds = dict(zip([row["forwarder"] for row in rows], page.classes[RESULTS][1:], strict=False))
    assert kinds == {
        "c-l2fwd": "", "c-l2fwd-again": "control", "rust-l2fwd": "",
        "reflect reference": "reference",
    }  # fmt: skip
    assert len(rows) == 4 * len(SIZES)
    # Only its throughput was measured.
    reference = [row for row in rows if row["forwarder"] == "reflect reference"]
    assert {row["latency average, us"] for row in reference} == {"-"}


def test_a_line_rate_is_named_as_one() -> None:
    found = told(SimulatedLab(), tests=("throughput",), line_rate=CEILING_PPS, sizes=[64], blocks=2)
    html = render(found)
    assert "of line rate" in Page(html).tables[RESULTS][0]
    assert "line rate, as given" in json.dumps(specifications(html))
    assert 'best reference peer"' not in json.dumps(specifications(html))


def test_what_is_not_known_is_a_dash(found: Found) -> None:
    for row in Page(render(found, searches={})).rows(RESULTS):
        assert (row["frames sent"], row["duration, s"], row["bytes sent"]) == ("-", "-", "-")
        assert number(row["throughput, Mpps"]) > 1


def test_the_arithmetic_reproduces_all_published_rows() -> None:
    published = published_rfc2544.rows()
    with CSV.open(encoding="utf-8") as file:
        raw = list(csv.DictReader(file))
    assert len(published) == len(raw) == 52
    for theirs, row in zip(published, raw, strict=True):
        counted = PublishedRow(
            language=row["language"],
            size=int(row["size_bytes"]),
            duration_s=15,
            tx_packets=int(row["tx_packets"]),
            rx_packets=int(row["rx_packets"]),
            latency_avg_us=float(row["latency_avg_us"]),
            latency_max_us=float(row["latency_max_us"]),
            latency_jitter_us=float(row["latency_jitter_us"]),
        )
        as_they_are = tuple(row[name] for name in raw[0] if name != "language")
        assert counted.printed() == theirs.printed() == as_they_are


def test_our_runs_by_the_published_arithmetic(
    measured: tuple[list[Trial], Summary], page: Page
) -> None:
    trials, _ = measured
    rows = page.rows(REPRODUCED)
    assert {row["source"] for row in rows} == {"this run"}
    assert [(row["size"], row["l2fwd"]) for row in rows] == [
        (str(size), arm) for size in SIZES for arm in ARMS
    ]
    for row in rows:
        size = int(row["size"])
        windows = windows_at_the_throughput(trials, row["l2fwd"], size)
        received = sum(t.frames.received or 0 for t in windows)
        seconds = sum(t.frames.duration_s or 0 for t in windows)
        assert row["real size"] == str(size + 13)
        assert row["rx pkts"] == str(received)
        assert row["tx bytes"] == str(size * sum(t.frames.intended or 0 for t in windows))
        assert float(row["throughput pps"]) == pytest.approx(received / seconds / 1048576, rel=1e-8)
        assert float(row["throughput bps"]) == pytest.approx(
            received * (size + 13) * 8 / seconds / 1073741824, rel=1e-8
        )
        assert row["latency jitter"] == f"{3 + 2 * (row['l2fwd'] == 'rust-l2fwd') + size / 1e3:.0f}"


def test_published_rows_are_apart_and_as_they_were(page: Page) -> None:
    with CSV.open(encoding="utf-8") as file:
        raw = {
            (row["language"], row["size_bytes"]): list(row.values())[1:]
            for row in csv.DictReader(file)
        }
    seen = []
    assert page.tables[REPRODUCED][0][2:] == list(published_rfc2544.COLUMNS)
    for caption in (SAME_SIZES, OTHERS):
        headings, *rows = page.tables[caption]
        assert headings[2:] == list(published_rfc2544.COLUMNS)
        for row, kind in zip(rows, page.classes[caption][1:], strict=True):
            assert row[0] == kind == "published"
            assert row[2:] == raw[row[1], row[2]]
            seen.append((caption, row[1], row[2]))
    # There is no published value for 300 B: the row has only this run's.
    assert [each[1:] for each in seen if each[0] == SAME_SIZES] == [
        ("C", "64"), ("Rust", "64"), ("C", "1518"), ("Rust", "1518"),
    ]  # fmt: skip
    assert len({each[1:] for each in seen}) == len(seen) == 52
    assert "published" not in json.dumps(page.tables[RESULTS])
