# SPDX-License-Identifier: BSD-3-Clause
"""The page of experiment rfc2544, of a run on simulated forwarders whose capacity is known."""

from __future__ import annotations

import csv
import json
import re
import statistics
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import altair as alt
import pytest
from simulated import printed
from simulated_lab import CEILING_PPS, SimulatedLab, options, quiet, start

from linerate.metrics import words_of
from linerate.output import REPORT
from linerate.records import Process, Trial
from linerate.report import published_rfc2544
from linerate.report.published_rfc2544 import PublishedRow
from linerate.report.rfc2544_charts import Point, by_size
from linerate.rfc2544 import presets
from linerate.rfc2544.experiment import cells
from linerate.rfc2544.runs import Found
from linerate.summary import LossEnded, LowerLoad, Quartiles, Summary
from linerate.verdict import LOW_LOAD

SIZES = [64, 300, 1518]
BLOCKS = cells(options(sizes=SIZES))[0].blocks
ARMS = ["c-l2fwd", "rust-l2fwd"]
LOADS = (0.1, 0.5, 0.9)
RESULTS = "memif: throughput, and latency there, by frame size and forwarder"
REPRODUCED = "memif: this run by the published arithmetic"
SAME_SIZES = "memif: the published rows of the same sizes"
OTHERS = "The published rows of other sizes"
CSV = Path(published_rfc2544.__file__).parents[1] / "data" / "codilime-rfc2544.csv"


class Page(HTMLParser):
    """Tables by caption: headings and rows of texts, and the classes of rows. Text, too."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self.classes: dict[str, list[str]] = {}
        self.text = ""
        self.charts: list[str] = []
        self._caption = ""
        self._cell: str | None = None
        self._raw = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._raw = tag in ("script", "style")
        if tag == "table":
            self._caption = ""
            self.tables[""], self.classes[""] = [], []
        elif tag in ("caption", "td", "th"):
            self._cell = ""
        elif tag == "tr":
            self.tables[self._caption].append([])
            self.classes[self._caption].append(given.get("class") or "")
        if given.get("class") == "chart":
            self.charts.append(str(given["id"]))

    def handle_endtag(self, tag: str) -> None:
        self._raw = False
        found, self._cell = self._cell or "", None
        if tag == "caption":
            self._caption = found
            self.tables[found], self.classes[found] = [], []
        elif tag in ("td", "th"):
            self.tables[self._caption][-1].append(" ".join(found.split()))
        else:
            # Only a cell's own end ends it.
            self._cell = found if found else None

    def handle_data(self, data: str) -> None:
        if self._raw:
            return
        self.text += data
        if self._cell is not None:
            self._cell += data

    def rows(self, caption: str) -> list[dict[str, str]]:
        headings, *rows = self.tables[caption]
        assert all(len(row) == len(headings) for row in rows)
        return [dict(zip(headings, row, strict=True)) for row in rows]


def spread(middle: float) -> Quartiles:
    return Quartiles(
        n=6, median=middle, q1=middle * 0.97, q3=middle * 1.03, low=middle * 0.9, high=middle * 1.2
    )


def fill(found: Summary) -> None:
    """What a simulated forwarder does not have: jitter, and the figures of polls."""
    for cell in found.cells:
        polled: list[LowerLoad] = []
        for place, arm in enumerate(cell.arms):
            if arm.arm not in ARMS or arm.search is None:
                continue
            for entry in arm.search.latency:
                entry.jitter_us = spread(3.0 + place + cell.size / 1000)
                entry.ipdv_us = {"0.99": spread(5.5)}
            polled += [
                LowerLoad(
                    arm=arm.arm, load_share=share, offered_mpps=share * 10, trials=6, invalid=0,
                    loss_share=0.0, busy_cycles_per_packet=spread(40 + place),
                    average_rx_burst=spread(share), average_nonempty_rx_burst=spread(2.0),
                    busy_share=spread(share / 1.3), full_share=spread(0.01), rx_spin=spread(0.5),
                )
                for share in LOADS
            ]  # fmt: skip
        cell.lower_load = [entry for entry in cell.lower_load if entry.load_share == LOW_LOAD]
        cell.lower_load += polled


def told(lab: SimulatedLab, **given: object) -> Found:
    with tempfile.TemporaryDirectory() as scratch:
        return start(lab, Path(scratch) / "out", **given)


def render(found: Found, **changed: object) -> str:
    return replace(found, **changed).files()[REPORT]  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def found() -> Found:
    result = told(SimulatedLab(late=lambda _: 0.1), sizes=SIZES)
    fill(result.summary)
    return result


@pytest.fixture(scope="module")
def measured(found: Found) -> tuple[list[Trial], Summary]:
    return found.trials, found.summary


@pytest.fixture(scope="module")
def html(found: Found) -> str:
    return render(found)


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


def specifications(html: str) -> dict[str, dict[str, Any]]:
    begin = html.index('id="charts">') + len('id="charts">')
    return dict(json.loads(html[begin : html.index("</script>", begin)]))


def number(text: str) -> float:
    return float(text.split(maxsplit=1)[0].replace(",", ""))


def windows_at_the_throughput(trials: Iterable[Trial], arm: str, size: int) -> list[Trial]:
    """Found by another way than the page's: latency is measured at 100 % of the rate found."""
    mine = [t for t in trials if (t.arm, t.size, t.role) == (arm, size, "search")]
    rates = {
        block: max(t.asked_pps or 0 for t in mine if (t.block, t.test) == (block, "latency"))
        for block in {t.block for t in mine}
    }
    return [
        t
        for t in mine
        if t.valid and t.test == "throughput" and t.asked_pps == pytest.approx(rates[t.block])
    ]


# -- our own table -----------------------------------------------------------------------------


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
    sent = sum(t.intended or 0 for t in windows)
    received = sum(t.received or 0 for t in windows)
    assert row["duration, s"] == (
        f"{sum(t.duration_s or 0 for t in windows):.1f} {len(windows)} windows"
    )
    assert number(row["frames sent"]) == sent
    assert number(row["frames received"]) == received
    assert number(row["bytes sent"]) == sent * size
    assert number(row["loss"]) == pytest.approx(100 * (sent - received) / sent, abs=1e-4)
    rate = statistics.median(
        next(t.asked_pps or 0 for t in windows if t.block == block) for block in blocks
    )
    assert number(row["throughput, Mpps"]) == pytest.approx(rate / 1e6, abs=5e-4)
    assert "–" in row["throughput, Mpps"]  # from - to
    assert number(row["L1, Gbit/s"]) == pytest.approx(rate * (size + 20) * 8 / 1e9, abs=5e-4)
    assert number(row["L2, Gbit/s"]) == pytest.approx(rate * size * 8 / 1e9, abs=5e-4)
    assert row["of 100 %"] == f"{100 * rate / CEILING_PPS:.1f} %"
    latencies = [
        t.latency
        for t in trials
        if (t.arm, t.size, t.test, t.valid) == (arm, size, "latency", True)
        and t.latency
        and t.asked_pps in {w.asked_pps for w in windows if w.block == t.block}
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
    assert {row["latency average, us"] for row in reference} == {"–"}


def test_a_line_rate_is_named_as_one() -> None:
    found = told(SimulatedLab(), tests=("throughput",), line_rate=CEILING_PPS, sizes=[64], blocks=2)
    html = render(found)
    assert "of line rate" in Page(html).tables[RESULTS][0]
    assert "line rate, as given" in json.dumps(specifications(html))
    assert 'best reference peer"' not in json.dumps(specifications(html))


def test_what_is_not_known_is_a_dash(found: Found) -> None:
    for row in Page(render(found, searches={})).rows(RESULTS):
        assert (row["frames sent"], row["duration, s"], row["bytes sent"]) == ("–", "–", "–")
        assert number(row["throughput, Mpps"]) > 1


# -- the published arithmetic ------------------------------------------------------------------


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
        received = sum(t.received or 0 for t in windows)
        seconds = sum(t.duration_s or 0 for t in windows)
        assert row["real size"] == str(size + 13)
        assert row["rx pkts"] == str(received)
        assert row["tx bytes"] == str(size * sum(t.intended or 0 for t in windows))
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
    # 300 B was not published: our row stands alone.
    assert [each[1:] for each in seen if each[0] == SAME_SIZES] == [
        ("C", "64"), ("Rust", "64"), ("C", "1518"), ("Rust", "1518"),
    ]  # fmt: skip
    assert len({each[1:] for each in seen}) == len(seen) == 52
    assert "published" not in json.dumps(page.tables[RESULTS])


# -- what is said ------------------------------------------------------------------------------


def test_every_sentence_of_the_summary_is_there_and_the_conformity(
    measured: tuple[list[Trial], Summary], page: Page
) -> None:
    _, found = measured
    assert len(found.comparisons) >= 2 * len(SIZES)
    for comparison in found.comparisons:
        assert comparison.sentence in page.text
    answers = page.text.index(found.comparisons[0].sentence)
    conformity = page.text.index("Preset quick, NOT conforming to RFC 2544: ")
    assert answers < conformity < page.text.index("The differences")
    for deviation in found.cells[0].arms[0].search.deviations:  # type: ignore[union-attr]
        assert page.text.count(deviation) >= 2


def test_void_windows_and_gates_are_told(measured: tuple[list[Trial], Summary], page: Page) -> None:
    trials, _ = measured
    for row in page.rows("What may take the verdict from a cell"):
        size = int(row["cell"].split()[1])
        of_cell = [t for t in trials if (t.size, t.role) == (size, "search")]
        late = sum(t.invalid_code == "late" for t in of_cell)
        assert late > 10
        assert row["void windows"] == f"{late:,} of {len(of_cell):,}"
        assert row["lost at a low load (limit 0.10 %)"] == "0 %"
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
    # Of a run that ended before its second test.
    early = [t for t in found.trials if t.test in (None, "low-load", "throughput")]
    assert "Latency (RFC 2544" not in Page(render(found, trials=early)).text


def test_windows_are_told_as_long_as_they_were() -> None:
    preset = presets.preset("conforming")
    found = told(SimulatedLab(), preset=preset, tests=("throughput",), sizes=[64], blocks=1)
    text = Page(render(found)).text
    assert "by MLRsearch (RFC 9971) in windows of 1 to 60 s" in text
    assert "2 s are waited for late frames; 5 s pass before the next trial" in text
    assert "lose nothing" in text
    assert "at least half of them" not in text
    assert "forgives" not in text


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
        # Shares in points, as in the sentence.
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
            assert (row["difference"], row["Cliff's delta"]) == ("–", "–")
    controls = page.rows("The baseline against itself")
    assert [row["by"] for row in controls] == [
        words_of(a.metric, a.load_share) for a in found.summary.aa
    ]
    assert {row["difference"][0] for row in controls} > {"–"}


def test_only_a_generator_of_the_lab_is_known_to_keep_off(found: Found) -> None:
    both = "The lab, the generator and all their threads stay off the forwarder's CPU"
    assert both not in Page(render(found)).text
    first = found.trials[0].model_copy(deep=True)
    first.processes.append(Process(role="generator", argv=["generator"], cpus=[0]))
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


GATES = "What may take the verdict from a cell"
SPREAD = "spread of ratios (limit 15 %)"


def test_the_gates_are_those_of_the_verdicts(found: Found) -> None:
    """Also where the control is what spreads most, and where frames are lost at another load."""
    noisy = told(SimulatedLab(noise=0.3), tests=("throughput",), sizes=[64], blocks=6)
    (ndr,) = [c for c in noisy.summary.comparisons if c.primary]
    control = next(a for a in noisy.summary.aa if a.metric == ndr.metric)
    assert (control.spread or 0) > (ndr.spread or 0)
    (row,) = Page(render(noisy)).rows(GATES)
    assert row[SPREAD] == f"{(control.spread or 0) * 100:.1f} %"
    assert f"spread by {control.spread:.0%} " in ndr.reason

    changed = found.summary.model_copy(deep=True)
    lossy = next(each for each in changed.cells[0].lower_load if each.load_share < LOW_LOAD)
    lossy.loss_share = 0.5
    rows = Page(render(found, summary=changed)).rows(GATES)
    assert {row["lost at a low load (limit 0.10 %)"] for row in rows} == {"0 %"}


def test_the_tests_are_told_as_their_rfcs_report_them(found: Found, page: Page) -> None:
    """Averages over all repetitions, and loads that not every search came to."""
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
        assert number(told["to the last lost frame, average, ms"]) == pytest.approx(
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
    assert (row["load, of 100 %"], row["lost (95 %)"]) == ("30 %", "–")


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
    # Nothing but the numbers of windows stands there: two searches have no interval.
    assert {re.sub(r"\d+", "", text) for text in re.findall(r'class="iv">([^<]*)<', head)} == {
        " windows"
    }


# -- charts ------------------------------------------------------------------------------------


def marks(spec: dict[str, Any]) -> list[str]:
    return [
        mark if isinstance(mark, str) else mark["type"]
        for mark in (layer["mark"] for layer in spec["layer"])
    ]


def values(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Of all layers, whether they hold their data or name it."""
    sources = [layer["data"] for layer in spec["layer"]]
    named = spec.get("datasets", {})
    return [row for data in sources for row in data.get("values", named.get(data.get("name"), []))]


def test_every_chart_is_valid_described_and_has_data(html: str, page: Page) -> None:
    found = specifications(html)
    assert sorted(page.charts) == sorted(found)
    assert len({spec["description"] for spec in found.values()}) == len(found)
    # Ratios; five of ours, five published; bursts and recovery; six of each cell.
    assert len(found) == 1 + 10 + 2 + 6 * len(SIZES)
    for spec in found.values():
        alt.Chart.from_dict(spec, validate=True)
        for layer in spec["layer"]:
            assert values({**spec, "layer": [layer]})


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
    # Both carry all that can be offered, so that what leads is the cost: 20 % less.
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
    # From 128 B up the published throughput is the line rate.
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
