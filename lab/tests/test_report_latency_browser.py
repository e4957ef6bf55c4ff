# SPDX-License-Identifier: BSD-3-Clause
"""The page of latency in a real browser: it loads nothing, draws, sorts, prints and can be read."""

from __future__ import annotations

from pathlib import Path

import pages
import pytest
import simulated_latency
from browser import Browser, Page


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report") / "run"
    with pytest.MonkeyPatch.context() as patch:
        simulated_latency.install(patch)
        simulated_latency.start(out)
    return out / "report.html"


@pytest.fixture(scope="module")
def page(browser: Browser, file: Path) -> Page:
    return browser.open(file)


def test_it_draws_and_loads_nothing(page: Page, file: Path) -> None:
    # Charts: ratios; for both kinds of frames the round trips, and the span inside.
    assert pages.assert_draws_every_chart(page) == 1 + 2 + 2
    pages.assert_loads_nothing(page, file)


def test_every_heading_sorts(page: Page) -> None:
    names = pages.assert_sorts_by_every_heading(page)
    for heading in (
        "p99.9, us",
        "p99.9, cycles",
        "theoretical rate, Mpps",
        "TX buffer holds up to, us",
    ):
        assert any(name.endswith(f": {heading}") for name in names)


def test_it_fits_screens_and_can_be_read(page: Page) -> None:
    pages.assert_readable(page)


def test_it_fits_on_paper(page: Page, tmp_path: Path) -> None:
    pages.assert_fits_on_paper(page)
    pages.assert_prints(page, tmp_path, "A12")
