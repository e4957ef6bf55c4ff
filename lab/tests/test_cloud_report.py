# SPDX-License-Identifier: BSD-3-Clause
"""The page and the tables of experiment `cloud`, with made-up summaries."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import cloud_summaries as made
import pages
import pytest
from browser import Browser, Page
from chart_specs import specifications, valid_charts
from simulated import assert_nothing_wraps, printed, quiet

from linerate.experiments.cloud.design.levels import RATE, TENANTS
from linerate.experiments.cloud.design.settings import in_design_order
from linerate.experiments.cloud.page import page as cloud_page
from linerate.experiments.cloud.page.answer import answer, lost, untold
from linerate.experiments.cloud.page.averages import averaged
from linerate.experiments.cloud.page.metrics import shown
from linerate.experiments.cloud.page.sentences import control_words, effect_words, sentence
from linerate.experiments.cloud.page.table import MOST, answers, print_summary
from linerate.links import link
from linerate.records.cloud_summary import CloudAnswers
from linerate.records.summary import Summary
from linerate.report.page import commands

SHAPES: dict[str, Callable[[], Summary]] = {
    "full": made.full,
    "tiny": made.tiny,
    "nothing valid": made.nothing_valid,
    "no latency": lambda: made.summary([made.MAIN], latency=False, takeaways=made.study()),
    "no control": lambda: made.summary([made.KINDS], control=False, takeaways=made.tested()),
}


def rendered(summary: Summary) -> str:
    return cloud_page.render(summary, made.trials(), link).replace("&#39;", "'")


@pytest.fixture(scope="module")
def text() -> str:
    return rendered(made.full())


def section(text: str, caption: str) -> str:
    """Return a table by the beginning of its caption."""
    begin = text.index(f"<caption>{caption}")
    return text[begin : text.index("</table>", begin)]


# -- every shape ---------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_every_link_has_its_place(shape: str) -> None:
    """This holds for the links of the page and those of summary.json."""
    summary = SHAPES[shape]()
    text = rendered(summary)
    places = re.findall(r'\bid="([^"]+)"', text)
    assert len(places) == len(set(places))
    assert set(re.findall(r'href="#([^"]+)"', text)) <= set(places)
    assert {each.chart for each in summary.takeaways if each.chart} <= {
        f"report.html#{place}" for place in places
    }


@pytest.mark.parametrize("shape", SHAPES)
def test_every_chart_is_valid(shape: str) -> None:
    text = rendered(SHAPES[shape]())
    if 'id="charts"' not in text:
        assert shape == "nothing valid"
        return
    places = set(re.findall(r'class="chart" id="([^"]+)"', text))
    assert places == set(specifications(text))
    assert valid_charts(text) == len(places)


@pytest.mark.parametrize("shape", SHAPES)
def test_nothing_of_other_experiments_is_said(shape: str) -> None:
    body = rendered(SHAPES[shape]()).partition("</main>")[0]
    assert "<main>" in body
    assert re.findall(r"compared nothing|Every comparison|baseline|None|\bnan\b", body) == []


@pytest.mark.parametrize("shape", SHAPES)
def test_the_console_prints_every_shape(shape: str) -> None:
    summary = SHAPES[shape]()
    console = quiet()
    print_summary(console, summary)
    for entry in summary.takeaways:
        told = entry.verdict == "held" or (entry.origin, entry.verdict) == ("study", "not held")
        assert (sentence(entry) in printed(console)) is told
        if (entry.origin, entry.verdict) == ("study", "undecided"):
            assert f"undecided: {entry.reason}: {entry.statement}" in printed(console)
    assert_nothing_wraps(lambda wide: print_summary(wide, summary))


def test_without_answers_there_is_a_page() -> None:
    summary = made.full().model_copy(update={"cloud": None, "takeaways": []})
    assert "No conclusion of the study could be tested by this run" in rendered(summary)
    print_summary(quiet(), summary)


# -- what the page says --------------------------------------------------------------------------


def test_the_study_is_answered_first(text: str) -> None:
    """It appears as published, with its source, and without figures."""
    published = text.index('<span class="tag">published</span> The effect of neighbours')
    first = text.index('<li class="held"><span class="verdict">held</span>')
    assert published < first < text.index("<h2>The test bed</h2>")
    assert "10.33448/rsd-v11i12.34200" in text[published:first]
    assert '<li class="not-held"><span class="verdict">not held</span>' in text
    assert "<summary>1 statement of 5 could not be decided: why</summary>" in text
    assert "<li>The design has no &lt;size&gt; &amp; co: packet size matters for loss.</li>" in text


def test_the_answer_stands_first_and_the_chart_that_shows_it_second(text: str) -> None:
    summary = made.full()
    assert summary.cloud
    told = answer(summary.cloud, summary.takeaways)
    assert re.match(
        r"Offered 87 % of what it carries alone, beside the worst neighbours on a shared core, "
        r"\S+ keeps \d\d % of its throughput \(4 network containers, 64 B\), the other 2 between "
        r"and \S+ \d\d % \(4 network containers, 64 B\); ",
        told,
    )
    assert "of 5 conclusions of the published study, 3 held, 1 did not hold and 1 could not" in told
    assert (
        text.index(told)
        < text.index('<figure id="heat-left">')
        < text.index("published</span> The")
    )
    assert text.count('id="heat-left"') == 1
    nothing = made.nothing_valid()
    assert nothing.cloud
    assert "This run has no answer" in answer(nothing.cloud, nothing.takeaways)


def test_who_was_lost_is_said_before_the_answer() -> None:
    summary = made.full()
    assert summary.cloud
    assert [each.partition(":")[0] for each in lost(summary.cloud)] == [
        "af-xdp has no figures at 64 B", "af-xdp has no figures at 1518 B",
    ]  # fmt: skip
    for own in summary.cloud.own_rates:
        if (own.framework, own.size) == ("c-l2fwd", 1518):
            own.pps, own.note = None, "late; CPU 0: cc1 46%"
    first = "The reference c-l2fwd has no figures at 1518 B: late; CPU 0: cc1 46%."
    assert lost(summary.cloud)[0] == first
    text = rendered(summary)
    assert text.index(first) < text.index(answer(summary.cloud, summary.takeaways))
    console = quiet()
    print_summary(console, summary)
    assert printed(console).strip().startswith(first)
    assert not lost(summary.cloud.model_copy(update={"cells": []}))


def test_reasons_that_differ_by_figures_alone_are_one() -> None:
    several = [
        made.takeaway(f"thing {number}", "loss", ["load"], "undecided", reason=f"p 0.{number}")
        for number in (21, 34)
    ]
    other = made.takeaway("another", "loss", ["load"], "undecided", reason="all is void")
    first, second = untold([*several, other])
    assert first.words.startswith("p 0.21, and the like: thing 21 (ratio 0.613")
    assert second.words.startswith("all is void: another (")


def test_takeaways_have_effect_interval_p_test_reason_and_chart(text: str) -> None:
    place = text.index("Network load with small packets is worst in loss")
    item = text[place : text.index("</li>", place)]
    assert "p 0.0005; the effect shown is the largest of 12." in item
    assert "difference +21.00 percentage points (95 % interval +18.00 to +23.00)" in item
    assert "permutation within blocks and cells of the other factors" in item
    assert "such a run finds 1.00 percentage points in four of five cases" in item
    assert 'href="#loss-load-size"' in item


def test_undecided_ones_beside_the_study_s_are_folded_away(text: str) -> None:
    assert "<details><summary>1 statement could not be decided: why</summary>" in text


def test_of_each_metric_the_largest_effects_are_open() -> None:
    """The page lists all others below."""
    many = [
        made.takeaway(f"thing {number}", "loss", ["load"], verdict, origin="tested")
        for number, verdict in enumerate(["held"] * 9 + ["not held"] * 2)
    ]
    (group,) = cloud_page.groups(many)
    assert (group.title, len(group.held)) == ("Loss", cloud_page.SHOWN_HELD)
    assert [(count, verdict) for count, verdict, _ in group.folded] == [
        ("3 further statements", "held"),
        ("2 further statements", "not held"),
    ]
    told = answers(many)
    assert [len(each) for each in told.values()] == [MOST]


def test_cells_are_in_the_design_s_order() -> None:
    """In whatever order they were drawn and measured."""
    summary = made.full()
    assert summary.cloud
    asked = [cell for cell in summary.cloud.cells if cell.rate == 0.9]
    shuffled = summary.cloud.model_copy(update={"cells": asked[::-1]})
    ordered = in_design_order(shuffled)
    frameworks = list(dict.fromkeys(cell.framework for cell in ordered))
    assert frameworks == ["c-l2fwd", "c-l2fwd-again", "rust-l2fwd", "af-xdp", "xdp-tx"]
    first = [(cell.load, cell.tenants) for cell in ordered if cell.framework == "xdp-tx"][:5]
    assert first == [("none", 0), ("idle", 1), ("idle", 2), ("idle", 4), ("cpu", 1)]


def test_what_is_text_stays_text(text: str) -> None:
    assert "The design has no &lt;size&gt; &amp; co" in text
    assert "others had the &lt;CPU&gt;" in text
    assert "<size>" not in text


def test_figures_stand_in_the_tables(text: str) -> None:
    row = re.search(r"<tr><th scope=\"row\">xdp-tx</th><td.*?4 network containers.*?</tr>", text)
    assert row
    assert text.count('<td class="text">4 network containers</td>') == 3 * (4 + 1) * 2
    (cell,) = [
        each
        for each in (made.full().cloud or CloudAnswers(factors={}, reference="")).cells
        if (each.framework, each.load, each.tenants, each.size) == ("xdp-tx", "network", 4, 1518)
    ]
    assert cell.left
    assert cell.loss
    told = section(text, "Every cell: what came through")
    assert f"<td>{cell.left.median * 100:.1f} % <span" in told
    assert f"<td>{cell.loss.median * 100:.2f} % <span" in told
    assert "<td>0 %</td>" in told  # no run without loss
    assert "<td>12 of 12</td>" in told
    did = section(text, "Every cell: what the core did")
    assert "<td>1,234 <span" in did
    assert "<td>2.50 <span" in did  # cache misses, of I/O alone
    assert "<td>-</td>" in did
    done = section(text, "Every cell with tenants that work")
    assert "network, MB / s" in done
    assert "idle" not in done


def test_what_is_absent_is_a_dash() -> None:
    told = section(rendered(made.tiny()), "Every cell: what came through")
    row = next(row for row in told.split("<tr") if "1 cpu container" in row)
    assert "50.0 %" in row
    assert row.count("<td>-</td>") == 2  # latency
    told = section(rendered(made.nothing_valid()), "Every cell: what came through")
    row = next(row for row in told.split("<tr") if "1 cpu container" in row)
    assert row.count("<td>-</td>") == 8
    assert "<td>0 of 1</td>" in row


def test_what_was_not_drawn_says_so() -> None:
    text = rendered(made.nothing_valid())
    assert text.count("Not drawn: no valid trial tells this figure.") >= 4


def test_what_was_not_run_is_listed(text: str) -> None:
    told = section(text, "Requested cells that were not measured")
    assert "a core of the forwarder's own beside tenants" in told
    assert "<td>8</td><td>96</td>" in told
    assert "<dd>20 cells</dd>" in text
    assert "Nothing: all that was asked for was measured." in rendered(made.tiny())


def test_emulation_is_said(text: str) -> None:
    assert "Virtual machines: TCG: /dev/kvm is not there." in text
    assert "Virtual machines:" not in rendered(made.tiny())


def test_the_own_rates_and_the_control(text: str) -> None:
    rates = section(text, "What 100 % is for each framework")
    assert "<td>320.5</td><td>310.5</td>" in rates
    assert "The non-drop rate (NDR) of each framework was found in this run" in text
    assert '<td>-</td><td class="text prose">the search found no rate</td>' in rates
    control = section(text, "The A/A control: c-l2fwd against itself")
    assert "ratio 1.001 (95 % interval 0.995 to 1.006)" in control
    assert "found nothing" in control
    assert "The design has no A/A control." in rendered(made.tiny())


def test_rates_that_were_given_are_no_ndr() -> None:
    summary = made.full()
    assert summary.cloud
    for own in summary.cloud.own_rates:
        own.ndr_pps, own.pps = None, 10_000.0
    told = rendered(summary)
    assert "No NDR was searched for: <code>--line-rate</code> gave the 100&nbsp;% of all" in told
    assert "(NDR) of each framework was found" not in told


def test_what_late_is_stands_in_the_method(text: str) -> None:
    assert "Frames that a delay of the generator of more than 5 ms disturbed are left out" in text


def test_the_drawing_shows_who_shares_the_core(text: str) -> None:
    drawing = text[text.index('<svg class="bed"') : text.index("</svg>")]
    assert "CPU 0: no tenant" in drawing
    assert "CPU 1: forwarder and tenants share it" in drawing
    assert "container or VM" in drawing
    assert "4 of them" in drawing
    assert "A third CPU" not in drawing
    own = made.summary([made.replaced(made.SHARES, cpus=("shared", "own"))])
    assert "A third CPU: the tenants" in rendered(own)


def test_command_lines_of_searches_and_of_tenants_alone() -> None:
    where = [(each.where, each.arm) for each in commands(made.trials())]
    assert where == [
        ("veth, 64 B, tenants alone", "nobody"),
        ("veth, 64 B", "c-l2fwd"),
        ("veth, 64 B", "c-l2fwd"),
    ]


# -- what is drawn -------------------------------------------------------------------------------


def test_an_average_is_over_what_was_measured_alike() -> None:
    """Only one part has several rates: the others do not change the average at the rate that both
    have.
    """
    cells = (made.full().cloud or CloudAnswers(factors={}, reference="")).cells
    loss = shown("loss")
    assert loss
    found = averaged(cells, [RATE], loss.read)
    assert found.levels(RATE) == ["10 %", "25 %", "50 %", "75 %", "90 %", "120 %"]
    assert {each["size"] for each in found.settings} == {"64"}
    assert {each["load"] for each in found.settings} == {"none", "idle", "network"}
    assert {point.cells for point in found.points} == {len(found.settings)}


def test_a_cell_without_tenants_is_the_origin_of_every_line() -> None:
    cells = (made.full().cloud or CloudAnswers(factors={}, reference="")).cells
    loss = shown("loss")
    assert loss
    found = averaged(cells, ["load", TENANTS], loss.read)
    origins = [point.levels[0] for point in found.points if point.levels[1] == "0"]
    assert sorted(origins) == ["cpu", "idle", "io", "network"]
    assert all(point.cells == 8 for point in found.points)  # four frameworks, two sizes


def test_one_cell_has_its_interval_and_several_the_middle_half() -> None:
    cells = (made.tiny().cloud or CloudAnswers(factors={}, reference="")).cells
    loss = shown("loss")
    assert loss
    (first, second) = averaged(cells, [TENANTS], loss.read).points
    assert (first.low, first.cells, second.cells) == (None, 1, 1)


def test_the_control_is_in_no_chart(text: str) -> None:
    assert "c-l2fwd-again" not in str(specifications(text))


@pytest.mark.parametrize(
    ("metric", "title"),
    [
        ("latency_p999_us", "latency p99.9, us (less is better)"),
        ("work_left_io_bytes", "I/O bytes of tenants, share left"),
        ("loss_at_ingress", "lost at the link's ingress, share of the intended frames"),
    ],
)
def test_metrics_are_known_by_their_names(metric: str, title: str) -> None:
    found = shown(metric)
    assert found
    assert found.title == title
    assert shown("a_thing_that_nobody_measures") is None


# -- words ---------------------------------------------------------------------------------------


def test_effects_are_told_in_their_measure() -> None:
    entry = made.takeaway("a", "throughput", ["load"])
    assert effect_words(entry) == "ratio 0.613 (95 % interval 0.601 to 0.634)"
    bare = entry.model_copy(update={"low": None, "measure": "difference", "metric": "loss"})
    assert effect_words(bare) == "difference +61.30 percentage points"
    assert effect_words(entry.model_copy(update={"effect": None})) is None
    part = entry.model_copy(update={"part": "rates", "reason": "shown."})
    assert sentence(part) == (
        "held: a: shown (ratio 0.613 (95 % interval 0.601 to 0.634), load one against another; "
        "p 0.0005; permutation within blocks and cells of the other factors; of part rates)."
    )


def test_the_controls_say_together_what_they_found() -> None:
    def controls(*verdicts: str) -> str:
        return control_words([made.takeaway("a", "loss", ["load"], each) for each in verdicts])

    assert controls("not held", "not held") == "found nothing"
    assert controls("not held", "held") == "1 of 2 differed"
    assert controls("not held", "undecided") == "found nothing in 1 of 2, undecided in the others"
    assert controls("undecided", "undecided") == "undecided: too little to compare"
    assert controls() == "nothing to compare"


def test_the_console_has_the_grid_and_what_was_not_run() -> None:
    console = quiet()
    print_summary(console, made.full())
    told = printed(console)
    assert "100 % of c-l2fwd at 64 B: 310.5 kpps" in told
    assert "100 % of af-xdp at 64 B: not found (the search found no rate)" in told
    assert "xdp-tx at 90 % of its 100 %, CPU shared: left / lost / p99 us" in told
    assert re.search(r"64 B, network, container\s+\d+ % / [\d.]+ % / [\d,]+", told)
    assert "not run: block 12, 96 windows: the budget of 60 minutes was over" in told
    assert "A/A control by throughput: found nothing" in told
    assert "virtual machines: TCG" in told
    assert told.index("Conclusions of the published study") < told.index("Also tested here")
    assert told.index(
        "1 further statement in the report; all 15: 12 held, 1 not held, 2 undecided"
    ) < told.index("note: others had the <CPU>")


# -- in a browser --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("cloud") / "report.html"
    # As many cells as a page has open.
    summary = made.summary(
        [made.KINDS, made.SHARES, made.replaced(made.RATES, frameworks=("c-l2fwd",))],
        takeaways=[*made.study(), *made.tested()],
        not_run=made.NOT_RUN,
    )
    place.write_text(cloud_page.render(summary, made.trials(), link), encoding="utf-8")
    return place


@pytest.fixture(scope="module")
def page(browser: Browser, file: Path) -> Iterator[Page]:
    shown = browser.open(file)
    yield shown
    pages.assert_loads_nothing(shown, file)


def test_it_draws_and_loads_nothing(page: Page, file: Path) -> None:
    assert pages.assert_draws_every_chart(page) > 20
    pages.assert_loads_nothing(page, file)


def test_every_heading_sorts(page: Page) -> None:
    names = pages.assert_sorts_by_every_heading(page)
    for heading in ("left", "lost", "latency p50, us", "tenants' CPU", "beside it", "NDR, kpps"):
        assert any(name.endswith(f": {heading}") for name in names), heading


def test_it_fits_screens_and_can_be_read(page: Page) -> None:
    pages.assert_readable(page)


def test_it_fits_on_paper(page: Page, tmp_path: Path) -> None:
    pages.assert_fits_on_paper(page)
    pages.assert_prints(page, tmp_path, "result")


@pytest.mark.parametrize("shape", ["tiny", "nothing valid"])
def test_small_pages_are_whole_too(browser: Browser, tmp_path: Path, shape: str) -> None:
    file = tmp_path / "report.html"
    file.write_text(cloud_page.render(SHAPES[shape](), [], link), encoding="utf-8")
    page = browser.open(file)
    pages.assert_draws_every_chart(page)
    pages.assert_loads_nothing(page, file)
    pages.assert_fits(page)
    pages.assert_is_accessible(page)
