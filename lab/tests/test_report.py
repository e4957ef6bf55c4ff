# SPDX-License-Identifier: BSD-3-Clause
"""The report is one file that needs no network; a browser draws every chart."""

from __future__ import annotations

import copy
import io
import json
import re
from typing import Any

import pytest
from chart_specs import valid_charts
from conftest import at_lower_load, simulated_run
from pages import said
from rich.console import Console
from simulated import assert_nothing_wraps

from linerate.experiments.overload.page import render
from linerate.experiments.overload.summarise import summarise
from linerate.experiments.overload.table import beside_published, like_published, print_summary
from linerate.links import link
from linerate.records.cells import Cell
from linerate.records.summary import Summary
from linerate.records.trial import Invalid
from linerate.report import charts as report_charts
from linerate.report import page as report_page
from linerate.report.console import own_share
from linerate.report.in_short import in_short
from linerate.verdict import sentences
from linerate.verdict.ceiling import limits
from linerate.verdict.metrics import COST, METRICS, Metric


@pytest.fixture(scope="module")
def run() -> tuple[Summary, str]:
    setup, trials = simulated_run([Cell("null", 64, 8), Cell("memif", 64, 8)])
    found = summarise(setup, trials, interrupted=False)
    return found, render(found, trials, link)


def on_console(found: Summary) -> str:
    printed = io.StringIO()
    print_summary(Console(file=printed, width=110), found)
    return printed.getvalue()


def test_no_row_wraps_in_a_pipe(run: tuple[Summary, str]) -> None:
    assert_nothing_wraps(lambda console: print_summary(console, run[0]))


def test_every_sentence_is_there(run: tuple[Summary, str]) -> None:
    found, page = run
    text = page.replace("&#39;", "'")
    for comparison in found.comparisons:
        assert said(comparison) in text


def test_every_chart_is_valid() -> None:
    setup, trials = simulated_run([Cell("null", 64, 8), Cell("memif", 64, 8)])
    trials += at_lower_load([trial for trial in trials if trial.cell.name == "memif"])
    found = summarise(setup, trials, interrupted=False)
    # Charts: ratios; every trial of each cell; lower loads of one.
    assert valid_charts(render(found, trials, link)) == 1 + 2 + 1


def test_nothing_is_loaded(run: tuple[Summary, str]) -> None:
    head = run[1].split("<script>", 1)[0]
    assert not re.findall(r"""(?:src|href)=["'](?!#|data:)""", head)
    assert "@import" not in head
    assert not re.findall(r"url\((?!#)", head)


def test_published_figures_are_marked(run: tuple[Summary, str]) -> None:
    page = run[1]
    assert page.count('<tr class="published">') == 2
    assert "codilime" in page
    assert "35.91" in page
    assert "30.37" in page


def test_bursts_say_whether_empty_polls_count(run: tuple[Summary, str]) -> None:
    headings = re.findall(r'<th scope="col">([^<]*RX burst[^<]*)</th>', run[1])
    assert headings == [
        "average RX burst: all polls / non-empty",
        "average RX burst: all polls / non-empty",
        "average RX burst, all polls",
        "average RX burst, non-empty polls",
    ]
    assert run[1].count("<td>32.0/32.0</td>") >= 2


def test_the_console_keeps_every_figure_whole() -> None:
    setup, trials = simulated_run([Cell("memif", 1518, 8)])
    for trial in trials:
        for entry in trial.frames.polling or ():
            entry.polls *= 46
            entry.empty_polls = entry.polls - entry.packets // 32
    found = summarise(setup, trials, interrupted=False)
    printed = on_console(found)
    row = next(line for line in printed.splitlines() if "rust-l2fwd-burst " in line)
    assert "0.7/32.0" in row
    assert "50.00 %" in row
    assert row.rstrip().endswith("8/8")
    assert "…" not in printed


def test_every_rate_has_its_unit(run: tuple[Summary, str]) -> None:
    headings = re.findall(r'<th scope="col">((?:generator|forwarder) [RT]X[^<]*)</th>', run[1])
    assert len(headings) == 8
    assert all(heading.endswith(", Mpps") for heading in headings)


CYCLES_LEAD = "the verdict is that of cycles per packet at 25 % load"
COST_LEADS = "so the cost of a packet is compared first"
LOWER_TABLE = "load, share of the ceiling"


def test_the_cost_of_a_packet_leads_where_the_link_is_the_limit() -> None:
    setup, trials = simulated_run([Cell("memif", 64, 8)])
    found = summarise(setup, trials + at_lower_load(trials), interrupted=False)
    page, printed = render(found, trials, link), on_console(found)
    assert page.index(COST_LEADS) < page.index(LOWER_TABLE) < page.index("<h3>Flood</h3>")
    assert printed.index("fixed lower loads") < printed.index("flood")
    assert CYCLES_LEAD in printed


def test_without_a_valid_trial_at_lower_loads_one_line_says_so() -> None:
    setup, trials = simulated_run([Cell("memif", 64, 8)])
    paced = at_lower_load(trials)
    for share, trial in enumerate(paced):
        trial.reject("late", f"{share}% of the frames were sent late")
    paced[0].rejected = Invalid(code="ended", why="forwarder ended")
    found = summarise(setup, trials + paced, interrupted=False)
    assert found.limited_by
    page, printed = render(found, trials, link), on_console(found)
    for text in (page, printed):
        assert "None of the 9 trials at fixed lower loads is valid" in text
        assert "8 of them for a reason like this: 1% of the frames were sent late." in text
    assert LOWER_TABLE not in page
    assert COST_LEADS not in page
    assert CYCLES_LEAD not in printed
    assert "cycles/packet" not in printed


def test_an_unknown_cost_does_not_lead() -> None:
    setup, trials = simulated_run([Cell("memif", 64, 8)])
    paced = at_lower_load(trials)
    for trial in paced:
        trial.frames.polling = None
    found = summarise(setup, trials + paced, interrupted=False)
    assert found.limited_by
    page = render(found, trials, link)
    assert COST_LEADS not in page
    assert LOWER_TABLE in page
    assert '"Lost" is the share of all frames of all valid trials.' in page
    assert CYCLES_LEAD not in on_console(found)


def test_a_limited_control_alone_limits_no_cell() -> None:
    setup, trials = simulated_run([Cell("memif", 64, 8)])
    found = summarise(setup, trials + at_lower_load(trials), interrupted=False)
    cell = found.cells[0]
    for arm in cell.arms:
        arm.limited_by = "link" if arm.arm == "c-l2fwd-again" else None
    assert limits(cell) == {}
    assert COST_LEADS not in render(found, trials, link)
    printed = on_console(found)
    assert CYCLES_LEAD not in printed
    assert "limited by the link" not in printed[: printed.index("On memif at 64 B")]
    cell.arms[0].limited_by = "link"
    assert limits(cell) == {"link": ["c-l2fwd", "c-l2fwd-again"]}


def test_command_lines_are_escaped(run: tuple[Summary, str]) -> None:
    assert "prog -l 1 &#39;&lt;x&gt;&#39;" in run[1]


def test_charts_stay_json_and_in_their_element_whatever_is_in_them() -> None:
    found = {"title": "<!-- <script> </script>", "rows": [{"arm": "a<b", "value": 1}]}
    text = str(report_page._json_safe(found))
    assert json.loads(text) == found
    assert "<" not in text


def test_too_few_trials_show_no_interval() -> None:
    setup, trials = simulated_run([Cell("null", 64, 3), Cell("memif", 64, 3)])
    found = summarise(setup, trials + at_lower_load(trials), interrupted=False)
    page = render(found, trials, link)
    assert 'class="iv"' not in page
    assert "None" not in page.split("<script>", 1)[0]


def test_a_control_that_could_find_nothing_does_not_say_it_found_nothing() -> None:
    setup, trials = simulated_run([Cell("null", 64, 5)])
    found = summarise(setup, trials, interrupted=False)
    page = render(found, trials, link)
    assert page.count("too few blocks to tell") == 2
    assert "found nothing" not in page


def test_controls_of_a_run_in_one() -> None:
    setup, trials = simulated_run([Cell("null", 64, 5), Cell("null", 128, 8), Cell("null", 256, 8)])
    aa = summarise(setup, trials, interrupted=False).aa
    for each in aa:
        each.found_difference = False
    assert sentences.controls(aa[1:]) == "found nothing"
    assert sentences.controls(aa) == "found nothing in 2 of 3, too few blocks in the others"
    aa[1].found_difference = True
    assert sentences.controls(aa) == "1 of 3 differed"


def test_a_figure_that_is_many_times_as_high_is_told_so(run: tuple[Summary, str]) -> None:
    found = copy.copy(next(each for each in run[0].comparisons if each.ratio is not None))
    found.verdict, found.metric, found.ci_low, found.ci_high = "slower", COST.name, 2.0, 13.0
    for ratio, told in [(2.9, "190.0 % more busy cycles"), (12.29, "12.3 times the busy cycles")]:
        found.ratio = ratio
        assert told in sentences.sentence(found), sentences.sentence(found)


def test_a_verdict_is_called_as_in_its_sentence() -> None:
    setup, trials = simulated_run([Cell("null", 64, 8), Cell("memif", 64, 8)])
    found = summarise(setup, trials + at_lower_load(trials), interrupted=False)
    cost = next(c for c in found.comparisons if c.metric == COST.name)
    cost.verdict, cost.ratio = "slower", 1.5
    cost.sentence = sentences.sentence(cost)
    assert "is dearer than" in cost.sentence
    page = render(found, trials, link)
    pill = page.split(cost.sentence.split("(")[0])[0].rsplit('<span class="verdict">', 1)[1]
    assert pill.startswith("dearer</span>")


@pytest.mark.parametrize("metric", METRICS.values(), ids=list(METRICS))
def test_words_of_verdicts_are_those_of_sentences(metric: Metric) -> None:
    assert metric.better_word in metric.wins
    assert metric.worse_word in metric.loses


def test_a_run_without_valid_trials_has_nothing_to_compare() -> None:
    setup, trials = simulated_run([Cell("null", 64, 8)])
    for trial in trials:
        trial.reject("ended", "no such luck")
    found = summarise(setup, trials, interrupted=False)
    page = render(found, trials, link)
    assert "<dt>A/A control</dt><dd>nothing to compare</dd>" in page
    assert "found nothing" not in page


def test_there_is_one_sign_for_no_value() -> None:
    setup, trials = simulated_run([Cell("null", 64, 3), Cell("memif", 64, 3)])
    found = summarise(setup, trials + at_lower_load(trials), interrupted=False)
    cells = re.findall(r">([-\u2013])</(?:td|dd|text)>", render(found, trials, link))
    assert set(cells) == {"-"}


def test_an_empty_run_renders() -> None:
    setup, _ = simulated_run([Cell("null", 64, 1)])
    assert "compared nothing" in render(summarise(setup, [], interrupted=True), [], link)


def test_the_answer_comes_first_in_one_sentence(run: tuple[Summary, str]) -> None:
    found, page = run
    told = in_short(found)
    assert told
    assert told.count(".\n") == 0
    assert told.endswith(".")
    text = page.replace("&#39;", "'")
    chart = text.index("The differences")
    assert text.index(f"<strong>{told}</strong>") < chart < text.index(said(found.comparisons[0]))
    assert on_console(found).count(told[:40]) == 1


def test_one_sentence_for_whatever_was_decided(run: tuple[Summary, str]) -> None:
    found = run[0].model_copy(deep=True)
    found.comparisons = found.comparisons[:1]
    (only,) = found.comparisons
    only.primary = True
    only.verdict, only.reason, only.ratio = "slower", "", 0.5
    told = in_short(found)
    assert told
    assert f"{only.arm} (ratio 0.50) is {sentences.verdict_word(only)}" in told
    assert only.baseline in told
    only.verdict, only.reason = "undecided", "too few blocks"
    assert in_short(found) == "This run did not decide what it compared: too few blocks."
    found.comparisons = [only, only]
    assert in_short(found) == (
        "This run decided none of its 2 comparisons, most often for this reason: too few blocks."
    )
    other = only.model_copy(update={"verdict": "equal"})
    found.comparisons = [only, other]
    told = in_short(found)
    assert told
    assert told.startswith("On ")
    assert f"{only.arm} is equal within 2 %; 1 of 2 comparisons could not be decided." in told
    found.comparisons = [other, other.model_copy(update={"link": "veth"})]
    assert "; on veth at 64 B, against" in (in_short(found) or "")
    found.comparisons = [
        other.model_copy(update={"link": name}) for name in ("null", "memif", "veth", "tap")
    ]
    assert in_short(found) == f"{only.arm} against {only.baseline}: equal in 4 of 4 decided."
    found.comparisons = []
    assert in_short(found) is None


def test_comparisons_open_for_one_reason_are_one_statement_for_all_sizes(
    run: tuple[Summary, str],
) -> None:
    (first, *_) = run[0].comparisons
    open_at = {"verdict": "undecided", "reason": "too few blocks", "link": "memif"}
    cells = [
        first.model_copy(update={**open_at, "size": size, "ratio": ratio, "smallest_detectable": d})
        for size, ratio, d in ((64, 1.0, None), (128, 1.004, 0.03), (1518, 0.99, 0.05))
    ]
    (found,) = report_page.untold([*cells, cells[0].model_copy(update={"link": "veth"})])
    told = f"{first.arm} against {first.baseline} on "
    by = f"by {METRICS[first.metric].words}"
    assert found.statements == [
        f"{told}memif at 64, 128 and 1518 B {by} "
        "(ratios 0.990 to 1.004; could find 3.00 % to 5.00 %)",
        f"{told}veth at 64 B {by} (ratio 1.000)",
    ]
    # A graph's cell has a name, which says everything.
    graph = cells[0].model_copy(update={"link": "linear/4", "size": 0, "ratio": None})
    (found,) = report_page.untold([graph])
    assert found.statements == [f"{told}linear/4 {by}"]


def test_rows_without_an_interval_keep_their_place(run: tuple[Summary, str]) -> None:
    found = run[0].model_copy(deep=True)
    found.comparisons = [
        found.comparisons[0].model_copy(update={"size": size, "primary": True, "ci_low": low})
        for size, low in ((64, 0.9), (128, None), (256, 0.9))
    ]
    chart = report_charts.ratios(found)
    assert chart
    (order,) = {tuple(y["sort"]) for y in _encodings(chart, "y") if y.get("field") == "what"}
    assert [each.rsplit(" ", 2)[1] for each in order] == ["64", "128", "256"]


def _encodings(chart: dict[str, Any], channel: str) -> list[dict[str, Any]]:
    layers = chart.get("layer", [chart])
    return [each["encoding"][channel] for each in layers if channel in each.get("encoding", {})]


def flooded_veth() -> Summary:
    """A link on which the generator waits, and one that loses half before each forwarder."""
    setup, trials = simulated_run([Cell("memif", 64, 8), Cell("veth", 64, 8)])
    found = summarise(setup, trials, interrupted=False)
    (veth,) = [cell for cell in found.cells if cell.link == "veth"]
    for arm in veth.arms:
        arm.lost_before_share = 0.5
    return found


def test_a_flood_that_drops_stands_beside_the_published_one() -> None:
    found = flooded_veth()
    cell = like_published(found.cells)
    assert cell
    assert cell.link == "veth"
    printed = io.StringIO()
    Console(file=printed, width=130).print(beside_published(cell))
    (published,) = [line for line in printed.getvalue().splitlines() if "l2fwd in C" in line]
    assert published.endswith("-  ")
    for figure in ("37.20", "35.91", "21.67", "3.48 %", "39.64 %", "24.5"):
        assert figure in published
    ours = [line for line in printed.getvalue().splitlines() if "this run  " in line]
    assert len(ours) == len([arm for arm in cell.arms if not arm.arm.endswith("-again")])
    assert all("50.00 %" in line for line in ours)
    page = render(found, [], link)
    assert "This run: veth, 64 B. " in page
    found.cells = [each for each in found.cells if each.link == "memif"]
    assert "64 B, where the generator waits: no frames are lost before the forwarder" in render(
        found, [], link
    )
    found.cells = []
    assert like_published(found.cells) is None


def test_fixed_loads_are_shares_of_what_each_carries_itself() -> None:
    setup, trials = simulated_run([Cell("memif", 64, 8)])
    found = summarise(setup, trials + at_lower_load(trials), interrupted=False)
    (cell,) = found.cells
    entry = cell.lower_load[0]
    arm = next(each for each in cell.arms if each.arm == entry.arm)
    assert arm.received_mpps
    entry.offered_mpps = arm.received_mpps.median / 4
    arm.limited_by = None
    arm.ceiling_unproven = False
    assert own_share(cell, entry) == "25 %"
    # It carries more if nothing else holds it back.
    arm.limited_by = "link"
    assert own_share(cell, entry) == "<= 25 %"
    arm.ceiling_unproven = True
    assert own_share(cell, entry) == "-"
    cell.arms = []
    assert own_share(cell, entry) == "-"
