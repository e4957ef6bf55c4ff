# SPDX-License-Identifier: BSD-3-Clause
"""The page of rfc2544 in a real browser: it loads nothing, draws, sorts, prints and can be read."""

from __future__ import annotations

from pathlib import Path

import pages
import pytest
from browser import Browser, Page
from rfc2544_pages import fill, render, told
from simulated_lab import SimulatedLab


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = told(SimulatedLab(late=lambda _: 0.1), sizes=[64, 1518])
    fill(found.summary)
    place = tmp_path_factory.mktemp("report") / "report.html"
    place.write_text(render(found), encoding="utf-8")
    return place


@pytest.fixture(scope="module")
def page(browser: Browser, file: Path) -> Page:
    return browser.open(file)


def test_it_draws_and_loads_nothing(page: Page, file: Path) -> None:
    # Charts: the answer; ratios; five own, five published; bursts and recovery; six for each size.
    assert pages.assert_draws_every_chart(page) == 1 + 1 + 10 + 2 + 6 * 2
    pages.assert_loads_nothing(page, file)


def test_every_heading_sorts(page: Page) -> None:
    names = pages.assert_sorts_by_every_heading(page)
    for heading in ("throughput, Mpps", "rx pkts", "p99.9", "busy share"):
        assert any(name.endswith(f": {heading}") for name in names)


def test_it_fits_screens_and_can_be_read(page: Page) -> None:
    pages.assert_readable(page)


def test_it_fits_on_paper(page: Page, tmp_path: Path) -> None:
    pages.assert_fits_on_paper(page)
    pages.assert_prints(page, tmp_path, "A12")


def test_a_short_run_of_one_size_is_drawn_without_complaint(
    browser: Browser, tmp_path: Path
) -> None:
    found = told(SimulatedLab(), tests=("throughput",), sizes=[64], blocks=2)
    file = tmp_path / "report.html"
    file.write_text(render(found), encoding="utf-8")
    page = browser.open(file)
    # Charts: the answer; ratios; three own and five published.
    assert pages.assert_draws_every_chart(page) == 10
    pages.assert_loads_nothing(page, file)
