# SPDX-License-Identifier: BSD-3-Clause
"""The text of rfc2544's page: sentences, gates, the method, each test as in its RFC."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from pages import said
from rfc2544_pages import BLOCKS, SIZES, Page, number, render, told, whole
from simulated import assert_nothing_wraps, printed
from simulated_lab import SimulatedLab, quiet

from linerate.experiments.rfc2544 import presets
from linerate.experiments.rfc2544.page import published as published_rfc2544
from linerate.experiments.rfc2544.runs import Found
from linerate.records.summary import Summary
from linerate.records.summary_figures import LossEnded
from linerate.records.trial import Process, Trial
from linerate.records.types import LOW_LOAD
from linerate.verdict.metrics import words_of


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


def test_every_sentence_of_the_summary_is_there_and_the_conformity(
    measured: tuple[list[Trial], Summary], page: Page
) -> None:
    _, found = measured
    assert len(found.comparisons) >= 2 * len(SIZES)
    for comparison in found.comparisons:
        assert said(comparison) in page.text
    answers = page.text.index(said(found.comparisons[0]))
    conformity = page.text.index("Preset quick, NOT conforming to RFC 2544: ")
    assert answers < conformity < page.text.index("The differences")
    for deviation in found.cells[0].arms[0].search.deviations:  # type: ignore[union-attr]
        assert page.text.count(deviation) >= 2


def test_void_windows_and_gates_are_told(measured: tuple[list[Trial], Summary], page: Page) -> None:
    trials, _ = measured
    for row in page.rows(GATES):
        size = int(row["cell"].split()[1])
        of_cell = [t for t in trials if (t.cell.key[1], t.role) == (size, "search")]
        late = sum(t.invalid_code == "late" for t in of_cell)
        assert late > 10
        assert row["void windows"] == f"{late:,} of {len(of_cell):,}"
        assert row["lost at a low load"] == "0 %"
    per_arm = page.rows("Searches, and windows that were void")
    assert len(per_arm) == 4 * len(SIZES)
    void = sum(t.role == "search" and not t.valid for t in trials)
    assert sum(int(row["void"]) for row in per_arm) == void
    assert {row["searches"] for row in per_arm} == {str(BLOCKS)}


def test_the_method_is_that_of_the_tests_that_were_run(found: Found, page: Page) -> None:
    for words in (
        "Latency (RFC 2544, 26.2), in windows of 0.1 s at 10 %, 50 %, 90 % and 100 % of",
        "Frame loss (RFC 2544, 26.3)",
        "RFC 9004",
        "System recovery (RFC 2544, 26.5): 0.05 s at 110 %",
        "Core use, in windows of 0.1 s at 10 %, 20 %, 35 %, 50 %, 75 % and 90 % of 100 %",
        "and at that throughput, with the probe",
        "Holm's correction is over the frame sizes and loads of one arm",
        "median latency at 10 %, 50 % and 90 % of the own throughput;",
        "with a sign-flip permutation test",
        "frames lost at 100 % of 100 %",
    ):
        assert words in page.text
    short = told(SimulatedLab(), tests=("throughput",), sizes=[64], blocks=6)
    text = Page(render(short)).text
    assert "in windows of 0.1 s" in text
    assert "by MLRsearch (RFC 9971)" in text
    assert "Wilcoxon's signed-rank test" in text
    for words in ("26.2", "26.3", "9004", "26.5", "Core use", "sign-flip", "Holm's correction is"):
        assert words not in text.split("How it was measured")[1]
    # From a run that ended before its second test.
    early = [t for t in found.trials if t.request.test in (None, "low-load", "throughput")]
    assert "Latency (RFC 2544" not in Page(render(found, trials=early)).text


def test_windows_are_told_as_long_as_they_were() -> None:
    preset = presets.preset("conforming")
    found = told(SimulatedLab(), preset=preset, tests=("throughput",), sizes=[64], blocks=1)
    text = Page(render(found)).text
    assert "by MLRsearch (RFC 9971) in windows of 1 to 60 s" in text
    assert "2 s are waited for late frames; 5 s pass before the next trial" in text
    assert "lose nothing" in text
    assert "at least half of them" not in text
    assert "tolerates" not in text


def test_a_goal_that_forgives_says_so(found: Found, page: Page) -> None:
    trials = "trials of 0.1 s, together 0.5 s, were made, and at least half of them lose"
    assert f"NDR: {trials} nothing." in page.text
    assert f"PDR: {trials} at most 0.5 %." in page.text
    rows = page.rows("memif: the rates found for each goal")
    assert {(row["goal"], row["exceed ratio"]) for row in rows} == {
        ("NDR", "50 %"), ("PDR", "50 %"),
    }  # fmt: skip
    assert "frames per second at the non-drop rate" in page.text
    console = quiet()
    found.show(console)
    text = printed(console)
    assert f"A load reaches NDR when {trials} nothing." in text
    assert text.index("A load reaches PDR when") < text.index("throughput")
    assert_nothing_wraps(found.show)


def test_comparisons_are_told_with_their_load_and_as_differences(found: Found, page: Page) -> None:
    comparisons = found.summary.comparisons
    rows = page.rows("Every comparison")
    assert [row["by"] for row in rows] == [words_of(c.metric, c.load_share) for c in comparisons]
    assert "median latency at 50 % of the own throughput" in {row["by"] for row in rows}
    by_difference = [each for each in zip(rows, comparisons, strict=True) if each[1].difference]
    assert by_difference
    for row, comparison in by_difference:
        difference = comparison.difference
        assert difference is not None
        # Differences of shares in percentage points, as in the sentence.
        scale, unit = {"loss_ratio": (100, " points"), "recovery_s": (1e3, " ms")}[
            comparison.metric
        ]
        assert row["ratio"] == row["A12"] == "-"
        assert row["difference"] == f"{difference.shift * scale:+.3g}{unit}"
        assert row["difference"] in comparison.sentence
        assert difference.low is not None
        assert row["95 % interval"].startswith(f"{difference.low * scale:+.3g}{unit} to ")
        assert row["Cliff's delta"] == f"{difference.cliffs_delta:.2f}"
    for row, comparison in zip(rows, comparisons, strict=True):
        if comparison.ratio is not None:
            assert number(row["ratio"]) == pytest.approx(comparison.ratio, abs=5e-5)
            assert (row["difference"], row["Cliff's delta"]) == ("-", "-")
    controls = page.rows("The baseline against itself")
    assert [row["by"] for row in controls] == [
        words_of(a.metric, a.load_share) for a in found.summary.aa
    ]
    assert {row["difference"][0] for row in controls} > {"-"}


def test_only_a_generator_of_the_lab_is_known_to_keep_off(found: Found) -> None:
    both = "The lab, the generator and all their threads stay off the forwarder's CPU"
    assert both not in Page(render(found)).text
    first = found.trials[0].model_copy(deep=True)
    first.program.processes.append(Process(role="generator", argv=["generator"], cpus=[0]))
    assert both in Page(render(found, trials=[first, *found.trials[1:]])).text


def test_what_the_published_rows_show_is_computed() -> None:
    published = published_rfc2544.rows()
    told = " ".join(published_rfc2544.findings(published))
    for words in (
        "52 of 52 rows come out as they were published",
        "every size from 128 B up is 24.999 to 25.000 Gbit/s",
        "at 64, 68, 72 B are 37, 39, 40 parts in 64",
        "of 6 steps, which cannot see a smaller difference than 1.56 %",
        "up to 3126 frames were lost",
        "once in each language, for 15 s",
    ):
        assert words in told
    changed = [
        replace(row, rx_packets=row.rx_packets - 5000, published_pps="1")
        if row.size == 128
        else row
        for row in published
        if row.size not in (68, 72)
    ]
    told = " ".join(published_rfc2544.findings(changed))
    assert "46 of 48 rows" in told
    assert "at 64 B are 37 parts in 64" in told
    assert "up to 7079 frames were lost" in told
    slower = [replace(row, rx_packets=row.rx_packets // 3 * 2) for row in published]
    told = " ".join(published_rfc2544.findings(slower))
    assert "line rate of the port" not in told
    assert "bisection" not in told
    assert published_rfc2544.findings([]) == []


GATES = "How stable each cell was"


SPREAD = "spread of ratios"


def test_the_page_shows_how_stable_each_cell_was(found: Found) -> None:
    """Also if the control has the largest spread, and if frames are lost at another load."""
    noisy = told(SimulatedLab(noise=0.3), tests=("throughput",), sizes=[64], blocks=6)
    (ndr,) = [c for c in noisy.summary.comparisons if c.primary]
    control = next(a for a in noisy.summary.aa if a.metric == ndr.metric)
    assert (control.spread or 0) > (ndr.spread or 0)
    (row,) = Page(render(noisy)).rows(GATES)
    assert row[SPREAD] == f"{(control.spread or 0) * 100:.1f} %"
    assert ndr.verdict != "invalid"

    changed = found.summary.model_copy(deep=True)
    lossy = next(each for each in changed.cells[0].lower_load if each.load_share < LOW_LOAD)
    lossy.loss_share = 0.5
    rows = Page(render(found, summary=changed)).rows(GATES)
    assert {row["lost at a low load"] for row in rows} == {"0 %"}


def test_the_tests_are_told_as_their_rfcs_report_them(found: Found, page: Page) -> None:
    """Averages are over all repetitions; some loads were not reached by every search."""
    cell = found.summary.cells[0]
    searched = {arm.arm: arm.search for arm in cell.arms if arm.search}
    assert "recovery after 110 % of it" in page.text

    def row(test: str, arm: str, **also: str) -> dict[str, str]:
        rows = page.rows(f"memif, {cell.size} B: {test}")
        (mine,) = [each for each in rows if each.items() >= also.items() and arm in each.values()]
        return mine

    for arm, figures in searched.items():
        latency = next(each for each in figures.latency if each.share == 0.5)
        told = row("latency by load", arm, **{"load, of own throughput": "50 %"})
        assert number(told["average"]) == pytest.approx(latency.average_us, abs=0.051)
        burst, told = figures.back_to_back, row("longest burst without loss", arm)
        assert burst is not None
        assert number(told["average, frames"]) == pytest.approx(burst.average, abs=0.51)
        assert (number(told["least"]), number(told["greatest"])) == (burst.minimum, burst.maximum)
        assert burst.deviation is not None
        assert number(told["standard deviation"]) == pytest.approx(burst.deviation, abs=0.51)
        recovery, told = figures.recovery, row("recovery from an overload", arm)
        assert recovery is not None
        assert recovery.average_s is not None
        assert number(told["time to the last lost frame, average, ms"]) == pytest.approx(
            recovery.average_s * 1e3, abs=0.0051
        )
        assert figures.at_throughput is not None
        assert figures.latency_definition is not None
        assert figures.latency_definition in page.text
        own = [
            each
            for each in page.rows(f"memif, {cell.size} B: core use and cost by load")
            if each["load, of 100 %"].endswith(" own") and each["core use and cost"] == arm
        ]
        assert len(own) == 1
        assert number(own[0]["offered, Mpps"]) == pytest.approx(
            figures.at_throughput.offered_mpps or 0, abs=5e-4
        )


def test_a_load_that_some_searches_did_not_come_to_has_no_median(found: Found) -> None:
    changed = found.summary.model_copy(deep=True)
    figures = changed.cells[0].arms[0].search
    assert figures is not None
    figures.loss_ended = [LossEnded(share=0.3, tried=2, ended=5)]
    rows = Page(render(found, summary=changed)).rows("memif, 64 B: frame loss by offered load")
    (row,) = [each for each in rows if each["searches"] == "2 of 7"]
    assert (row["load, of 100 %"], row["lost (95 %)"]) == ("30 %", "-")


def test_bursts_without_a_limit_sort_as_numbers() -> None:
    found = told(
        SimulatedLab(capacity={"c-l2fwd": 12e6}), tests=("throughput", "back-to-back"), sizes=[64]
    )
    cells = re.findall(r'<td data-sort="([\d.]+)">(at least )?([\d,]+)<', render(found))
    assert {least for _, least, _ in cells} == {"at least ", ""}
    assert all(float(value) == pytest.approx(number(shown), abs=0.5) for value, _, shown in cells)


def test_text_is_escaped(found: Found) -> None:
    sharp = "<b onclick=x>&"
    changed = found.summary.model_copy(update={"command": sharp, "warnings": [sharp]}, deep=True)
    figures = changed.cells[0].arms[0].search
    assert figures is not None
    figures.reasons = {sharp: 1}
    figures.deviations = [sharp]
    html = render(found, summary=changed)
    assert sharp not in html
    # Command, warning, reason, and the deviation twice: with the answer and in its list.
    assert html.count("&lt;b onclick=x&gt;&amp;") == 5


def test_an_empty_and_a_short_run_render(found: Found) -> None:
    nothing = found.summary.model_copy(
        update={"cells": [], "comparisons": [], "aa": [], "conforming": None}
    )
    assert "compared nothing" in render(found, summary=nothing, trials=[], searches={})
    short = told(SimulatedLab(), tests=("throughput",), sizes=[64], blocks=2)
    head = render(short).split("<script", 1)[0]
    assert "None" not in head
    # Only the numbers of windows are printed there: two searches have no interval.
    assert {re.sub(r"\d+", "", text) for text in re.findall(r'class="iv">([^<]*)<', head)} == {
        " windows"
    }
