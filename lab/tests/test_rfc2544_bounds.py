# SPDX-License-Identifier: BSD-3-Clause
"""Whole runs of rfc2544 on a machine that is too busy for some loads: no cell of a table is empty
if anything was carried, and a lower bound is called one.
"""

from __future__ import annotations

import re
from io import StringIO
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace

import pytest
from rfc2544_pages import render
from rfc2544_runs import arm, run, verdict
from rich.console import Console
from simulated import printed
from simulated_lab import CAPACITY, CEILING_PPS, SimulatedLab, options, quiet, resume, start

from linerate.experiments.rfc2544 import presets
from linerate.experiments.rfc2544.answer import answers
from linerate.experiments.rfc2544.plan import cells
from linerate.experiments.rfc2544.runs import Found
from linerate.experiments.rfc2544.table import print_rfc2544
from linerate.records.trial import Trial
from linerate.runs.engine import ledger
from linerate.runs.kept import rebuild

PUBLISHED = presets.preset("published")
KEPT_PPS = 3e6


def busy(kept_pps: float) -> SimulatedLab:
    """Return a machine that is quiet only in the self-test; later the sender keeps this share."""
    lab = SimulatedLab()
    searching = [False]

    def note(trial: Trial) -> None:
        searching[0] = trial.role == "search"

    lab.before_window = note
    lab.late = lambda pps: float(searching[0] and pps > kept_pps)
    lab.windows = 3
    return lab


@pytest.fixture(scope="module")
def bounded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Found]:
    out = tmp_path_factory.mktemp("bounded") / "out"
    return out, start(busy(KEPT_PPS), out, tests=("throughput", "latency"))


def test_what_the_sender_kept_is_a_lower_bound(bounded: tuple[Path, Found]) -> None:
    _, found = bounded
    for name in ("c-l2fwd", "rust-l2fwd"):
        figures = arm(found.summary, name).search
        assert figures is not None
        for goal in figures.goals:
            assert (goal.pps, goal.searches, goal.is_bound) == (None, 0, True)
            bound = goal.at_least
            assert bound is not None
            assert bound.kind == "disturbed"
            assert bound.pps.n == figures.searches
            assert KEPT_PPS * 0.97 < bound.pps.median <= KEPT_PPS < CAPACITY[name]
            assert bound.share == pytest.approx(bound.pps.median / CEILING_PPS)
            assert bound.l1_bps == pytest.approx(bound.pps.median * 84 * 8)
        # The other tests are run at it.
        assert [each.share for each in figures.latency] == list(
            presets.preset("quick").latency_loads
        )
        assert "throughput: in all windows at greater loads the sender was disturbed" in (
            figures.reasons
        )


def test_no_verdict_is_by_a_bound(bounded: tuple[Path, Found]) -> None:
    _, found = bounded
    for metric in ("ndr_pps", "pdr_pps"):
        assert verdict(found.summary, metric).verdict == "invalid"
    assert found.summary.conforming is False


def test_console_and_page_call_it_a_lower_bound(bounded: tuple[Path, Found]) -> None:
    _, found = bounded
    shown = StringIO()
    print_rfc2544(Console(file=shown, width=150), found.summary, verdicts=True)
    text = shown.getvalue()
    assert "c-l2fwd carries at least 2.9" in text
    assert text.count("greater loads: no quiet window") >= 4
    html = render(found)
    assert html.count(">at least</small>") >= 4
    assert "greater loads: no quiet window" in html
    assert "≥" in html


def test_the_records_say_so_again(bounded: tuple[Path, Found]) -> None:
    out, found = bounded
    assert rebuild.report([out], None, quiet()).summary == found.summary


def test_a_capacity_below_what_the_sender_keeps_is_found() -> None:
    _, found = run(busy(5e6), tests=("throughput",))
    assert verdict(found).verdict == "faster"
    figures = arm(found, "c-l2fwd").search
    assert figures is not None
    assert all(goal.pps and goal.at_least is None for goal in figures.goals)


def test_preset_published_has_the_published_sizes_and_is_not_refused() -> None:
    asked = options(preset=PUBLISHED, tests=PUBLISHED.tests, sizes=list(presets.published_sizes()))
    assert {cell.blocks for cell in cells(asked)} == {PUBLISHED.blocks}
    assert len(cells(asked)) == 26


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Trial], Found, str]:
    console = quiet()
    out = tmp_path_factory.mktemp("published") / "out"
    asked = {"preset": PUBLISHED, "tests": PUBLISHED.tests, "sizes": [64, 512]}
    found = start(SimulatedLab(), out, console, **asked)
    return found.trials, found, printed(console)


def test_its_sizes_take_turns_so_that_each_is_there_when_time_is_up(
    published: tuple[list[Trial], Found, str],
) -> None:
    trials, _, _ = published
    searched = [(t.block, t.cell.key[1]) for t in trials if t.role == "search"]
    turns = [each for each, _ in groupby(searched)]
    assert turns == [(block, size) for block in range(PUBLISHED.blocks) for size in (64, 512)]


def test_a_budget_that_is_over_leaves_all_sizes_and_can_be_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr(ledger, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    lab = SimulatedLab()

    def note(trial: Trial) -> None:
        if (trial.role, trial.block) == ("search", 2):
            clock[0] = 3600.0

    lab.before_window = note
    console = quiet()
    asked = {"preset": PUBLISHED, "tests": ("throughput",), "sizes": [64, 512], "minutes": 1.0}
    cut = start(lab, tmp_path / "out", console, **asked).summary
    assert cut.interrupted is True
    assert "All sizes take turns" in printed(console)
    for cell in cut.cells:
        searches = [each.search.searches for each in cell.arms if each.search]
        assert len(searches) == 3
        assert set(searches) <= {2, 3}
    whole = resume(SimulatedLab(), tmp_path / "out").summary
    assert whole.interrupted is False
    for cell in whole.cells:
        assert [each.search.searches for each in cell.arms if each.search] == [6, 6, 6]


def test_it_gives_tables_and_no_verdicts(published: tuple[list[Trial], Found, str]) -> None:
    _, found, text = published
    (answer,) = answers(found.summary, verdicts=False)
    assert answer.endswith("this preset gives tables and no verdicts.")
    assert "at 2 frame sizes from 64 to 512 B" in answer
    assert answer in text.replace("\n", " ")
    assert "cannot show any difference" in text
    # All of what the published tables have.
    html = render(found)
    assert html.count('<span class="tag ours">this run</span></td>') == 4
    for cell in found.summary.cells:
        for each in cell.arms:
            assert each.search is not None
            assert each.search.goals[0].pps is not None
            (latency,) = each.search.latency
            assert (latency.share, latency.jitter_us is not None) == (1, True)


def test_with_one_size_its_blocks_can_decide() -> None:
    _, found = run(SimulatedLab(), preset=PUBLISHED, tests=("throughput",), sizes=[64])
    assert verdict(found).verdict == "faster"
    (answer,) = answers(found, verdicts=False)
    assert "rust-l2fwd is faster than c-l2fwd" in answer
    rate = r"carries \d\.\d{3} Mpps \(95 % interval \d\.\d{3} to \d\.\d{3}\)"
    assert re.search(f"c-l2fwd {rate}, rust-l2fwd {rate};", answer), answer
    # With fewer searches there is no interval, and the sentence says so.
    for each in found.cells[0].arms:
        assert each.search is not None
        pps = each.search.goals[0].pps
        assert pps is not None
        pps.n, pps.low, pps.high = 3, None, None
    (answer,) = answers(found, verdicts=False)
    assert answer.count(" Mpps (3 searches: too few for an interval)") == 2
