# SPDX-License-Identifier: BSD-3-Clause
"""The page and the tables of experiment `paths`, on a simulated link."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pages
import pytest
from browser import Browser, Page
from chart_specs import valid_charts
from pages import said
from simulated import assert_nothing_wraps, install, printed, quiet
from simulated_paths import Wire, start

from linerate.experiments.paths.runs import Found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Found, Path]]:
    """Two sizes; one has too few blocks for intervals."""
    with pytest.MonkeyPatch.context() as patch:
        Wire().install(install(patch))
        out = tmp_path_factory.mktemp("paths") / "run"
        found = start(out, sizes=[64, 512], blocks=7)
        yield found, out / "report.html"


@pytest.fixture(scope="module")
def text(run: tuple[Found, Path]) -> str:
    return run[1].read_text(encoding="utf-8").replace("&#39;", "'")


def test_every_sentence_is_there(run: tuple[Found, Path], text: str) -> None:
    for comparison in run[0].summary.comparisons:
        assert said(comparison) in text


def test_every_chart_is_valid(text: str) -> None:
    assert valid_charts(text) == 7


def test_published_ratios_are_marked_and_not_mixed(text: str) -> None:
    assert text.count('<tr class="published">') == 3
    assert "CoNEXT 2018" in text
    assert "E5-1650 v4" in text
    row = re.search(r'<tr class="published">.*?XDP_REDIRECT.*?</tr>', text, re.DOTALL)
    assert row
    assert "xdp-redirect" not in row.group()


def test_it_says_who_pays_and_who_counted_the_lost(text: str) -> None:
    assert "threads that receive for it (NAPI, CPU 1)" in text
    assert "forwarder port 0 imissed 71." in text


def test_the_console_says_the_same(run: tuple[Found, Path]) -> None:
    console = quiet()
    run[0].show(console)
    told = printed(console)
    for comparison in run[0].summary.comparisons:
        assert (comparison.sentence in told) is comparison.primary
    assert "100 % of the common rate is 13" in told
    assert "the generator put up to 700.0 kpps on the wire" in told
    assert told.count("published: ") == 3
    assert_nothing_wraps(run[0].show)


@pytest.fixture(scope="module")
def page(browser: Browser, run: tuple[Found, Path]) -> Iterator[Page]:
    shown = browser.open(run[1])
    yield shown
    pages.assert_loads_nothing(shown, run[1])


def test_every_chart_is_drawn(page: Page, run: tuple[Found, Path]) -> None:
    # Charts: throughput, CPU time and latency of two cells, bands, and the differences.
    assert pages.assert_draws_every_chart(page) == 7
    pages.assert_loads_nothing(page, run[1])


def test_every_heading_sorts(page: Page) -> None:
    pages.assert_sorts_by_every_heading(page)


def test_it_can_be_read(page: Page) -> None:
    pages.assert_readable(page)
