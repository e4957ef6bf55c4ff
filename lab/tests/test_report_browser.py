# SPDX-License-Identifier: BSD-3-Clause
"""Overload's page in a real browser: it loads nothing, draws, sorts, prints and can be read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pages
import pytest
from browser import Browser, Page
from conftest import at_lower_load, simulated_run

from linerate.experiments.overload.page import render
from linerate.experiments.overload.summarise import summarise
from linerate.links import link
from linerate.records.cells import Cell


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three cells; the lower loads have too few trials for intervals."""
    cells = [Cell("null", 64, 8), Cell("memif", 64, 8), Cell("memif", 1518, 8)]
    setup, trials = simulated_run(cells)
    trials += at_lower_load([trial for trial in trials if trial.cell.name == "memif"])
    found = summarise(setup, trials, interrupted=False)
    place = tmp_path_factory.mktemp("report") / "report.html"
    place.write_text(render(found, trials, link), encoding="utf-8")
    return place


@pytest.fixture(scope="module")
def page(browser: Browser, file: Path) -> Iterator[Page]:
    shown = browser.open(file)
    yield shown
    pages.assert_loads_nothing(shown, file)


def test_it_loads_nothing_and_complains_of_nothing(page: Page, file: Path) -> None:
    pages.assert_loads_nothing(page, file)


def test_every_chart_is_drawn(page: Page, file: Path) -> None:
    assert pages.assert_draws_every_chart(page) == 6
    pages.assert_loads_nothing(page, file)


def test_every_heading_sorts(page: Page) -> None:
    names = pages.assert_sorts_by_every_heading(page)
    assert len(names) > 50
    assert sum(name.endswith(": limited by") for name in names) == 2


def test_a_heading_is_a_button(page: Page) -> None:
    """With mouse and keyboard, as readers use it."""
    table = "document.querySelector('table')"
    button = f"{table}.tHead.querySelectorAll('th')[2].querySelector('button')"
    order = f"{table}.querySelector('[aria-sort]')?.ariaSort ?? 'none'"
    first = f"{table}.tBodies[0].rows[0].cells[0].textContent"
    page.click(button)
    assert page.evaluate(order) == "ascending"
    assert page.evaluate(first) == "rust-l2fwd-burst"
    page.press("Enter", button)
    assert page.evaluate(order) == "descending"
    assert page.evaluate(first) == "rust-l2fwd"
    page.press(" ", button)
    assert page.evaluate(order) == "none"
    assert page.evaluate(first) == "c-l2fwd"


def test_it_never_scrolls_sideways(page: Page) -> None:
    pages.assert_fits(page)


def test_its_structure_can_be_heard(page: Page) -> None:
    pages.assert_is_accessible(page)


def test_all_text_can_be_read_light_and_dark(page: Page) -> None:
    pages.assert_can_be_read(page)


def test_nothing_is_cut_on_paper(page: Page) -> None:
    pages.assert_fits_on_paper(page)


def test_it_prints_with_headings_on_every_sheet(
    browser: Browser, file: Path, tmp_path: Path
) -> None:
    page = browser.open(file)
    pages.assert_draws_every_chart(page)
    pages.assert_prints(page, tmp_path, "A12")


def test_the_browser_refuses_whatever_a_page_would_load(browser: Browser, tmp_path: Path) -> None:
    setup, _ = simulated_run([Cell("null", 64, 1)])
    empty = render(summarise(setup, [], interrupted=True), [], link)
    file = tmp_path / "report.html"
    added = '<img src="http://192.0.2.1/x.png"><script>document.title = "ran"</script></main>'
    file.write_text(empty.replace("</main>", added, 1), encoding="utf-8")
    page = browser.open(file)
    assert page.evaluate("document.title") != "ran"
    assert page.evaluate("fetch('http://192.0.2.1/').catch(() => 'refused')") == "refused"
    complaints = page.complaints()
    assert len(complaints) >= 3
    assert all("Content Security Policy" in complaint for complaint in complaints)
    failed = browser.events(page.session, "Network.loadingFailed")
    assert {event["blockedReason"] for event in failed} == {"csp"}
    assert len(failed) == len(page.requests()) - 1
