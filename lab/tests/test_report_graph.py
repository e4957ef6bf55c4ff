# SPDX-License-Identifier: BSD-3-Clause
"""The page and the tables of experiment `graph`, with a program whose figures are drawn."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pages
import pytest
from browser import Browser, Page
from chart_specs import valid_charts
from pages import said
from simulated import assert_nothing_wraps, printed, quiet
from simulated_graph import Fake, start

from linerate.experiments.graph.page.table import headline
from linerate.experiments.graph.runs import Found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Found, Path]]:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("graph")
        Fake(patch, folder)
        yield start(folder / "run"), folder / "run" / "report.html"


@pytest.fixture(scope="module")
def text(run: tuple[Found, Path]) -> str:
    return run[1].read_text(encoding="utf-8").replace("&#39;", "'")


def test_every_sentence_is_there(run: tuple[Found, Path], text: str) -> None:
    for comparison in run[0].summary.comparisons:
        assert said(comparison) in text
        # A graph has no frames.
        assert f"{comparison.link} 256 B" not in text


def test_what_decides_an_ordering_is_told(run: tuple[Found, Path], text: str) -> None:
    graph = run[0].summary.graph
    assert graph
    reasons = {each.reason for each in graph.orderings if each.reason}
    reasons |= {each.reason for each in graph.splitting if each.reason}
    assert any(reason.startswith("the doubling to split4 over that to") for reason in reasons)
    assert not [reason for reason in reasons if reason not in text]


def test_the_answer_comes_first_in_one_sentence(run: tuple[Found, Path], text: str) -> None:
    told = headline(run[0].summary)
    assert told
    assert told.startswith("In chain4/swap/hash5/nostats/256 an object costs ")
    assert " in fused (faster) and " in told
    assert "; published orderings that hold here: " in told
    assert text.index(told) < text.index('class="answers"')
    console = quiet()
    run[0].show(console)
    assert told in " ".join(printed(console).split())
    assert "Others had the CPU in 0.00 % of the slices" in text


def test_every_chart_is_valid(text: str) -> None:
    assert valid_charts(text) == 5


def test_what_was_published_is_named_and_has_no_figures(text: str) -> None:
    assert "Published: pointer swap &gt; memory copy &gt; pointer assignment" in text
    assert "Xeon 8336C" in text


def test_the_console_says_the_same(run: tuple[Found, Path]) -> None:
    console = quiet()
    run[0].show(console)
    told = printed(console)
    for comparison in run[0].summary.comparisons:
        assert (comparison.sentence in told) is comparison.primary
    assert "c-graph, hash5, nostats: holds here: swap / copy8 1.4" in told
    assert "chain1 to split2 -1" in told
    # An arm that a cell lacks has no row.
    _, _, behind = told.partition("chain4/copy8/hash5/nostats/256")
    rows = behind.partition("chain4/")[0]
    assert "c-graph" in rows
    assert "rust-graph" in rows
    assert "fused" not in rows


def test_no_row_wraps_in_a_pipe(run: tuple[Found, Path]) -> None:
    assert_nothing_wraps(run[0].show)


@pytest.fixture(scope="module")
def page(browser: Browser, run: tuple[Found, Path]) -> Iterator[Page]:
    shown = browser.open(run[1])
    yield shown
    pages.assert_loads_nothing(shown, run[1])


def test_every_chart_is_drawn(page: Page) -> None:
    # Charts: mechanisms, doublings, shapes, batch sizes, and the differences.
    assert pages.assert_draws_every_chart(page) == 5


def test_every_heading_sorts(page: Page) -> None:
    pages.assert_sorts_by_every_heading(page)


def test_it_can_be_read(page: Page) -> None:
    pages.assert_readable(page)
