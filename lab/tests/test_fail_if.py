# SPDX-License-Identifier: BSD-3-Clause
"""The exit status of a run with the question whether something is slower."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import Linerate
from simulated import Simulation, install, start

from linerate.host.exit_status import ExitStatus
from linerate.records.summary import Comparison, Difference
from linerate.runs.fail_if import line_of, status_of


def comparison(verdict: str, low: float | None, high: float | None, **values: Any) -> Comparison:
    return Comparison.model_validate(
        {
            "metric": "received_pps",
            "better": "higher",
            "primary": True,
            "link": "memif",
            "size": 64,
            "baseline": "old",
            "arm": "new",
            "n": 20,
            "ci_low": low,
            "ci_high": high,
            "verdict": verdict,
            "reason": "",
            "sentence": "",
            **values,
        }
    )


SLOWER = comparison("slower", 0.74, 0.876)
FINE = comparison("equal", 0.99, 1.01)


@pytest.mark.parametrize(
    ("found", "status"),
    [
        ([SLOWER], ExitStatus.SLOWER),
        ([FINE], ExitStatus.DONE),
        ([comparison("faster", 1.1, 1.2)], ExitStatus.DONE),
        ([FINE, SLOWER], ExitStatus.SLOWER),
        # The direction is shown, but not that the difference exceeds the margin.
        ([comparison("slower", 0.96, 0.99)], ExitStatus.UNDECIDED),
        # Not slower is shown, though not which is faster.
        ([comparison("undecided", 0.985, 1.1)], ExitStatus.DONE),
        ([comparison("undecided", 0.9, 1.1)], ExitStatus.UNDECIDED),
        ([comparison("invalid", 0.74, 0.876)], ExitStatus.UNDECIDED),
        ([comparison("undecided", None, None)], ExitStatus.UNDECIDED),
        ([comparison("undecided", 0.99, 1.01, limited="both")], ExitStatus.UNDECIDED),
        # A block in which the arm carried nothing has no ratio, and may be the one that became
        # slower.
        ([comparison("equal", 0.99, 1.01, zero_blocks=1)], ExitStatus.UNDECIDED),
        ([comparison("slower", 0.74, 0.876, zero_blocks=1)], ExitStatus.SLOWER),
        # An arm limited by link or generator may be able to do more.
        ([comparison("slower", 0.8, 0.9, limited="arm")], ExitStatus.UNDECIDED),
        ([comparison("slower", 0.8, 0.9, limited="baseline")], ExitStatus.SLOWER),
        ([comparison("faster", 1.1, 1.2, limited="arm")], ExitStatus.DONE),
        ([comparison("faster", 1.1, 1.2, limited="baseline")], ExitStatus.UNDECIDED),
        # Costs: a higher cost is slower.
        ([comparison("slower", 1.03, 1.2, better="lower")], ExitStatus.SLOWER),
        ([comparison("faster", 0.8, 0.9, better="lower")], ExitStatus.DONE),
        ([comparison("slower", 1.01, 1.2, better="lower")], ExitStatus.UNDECIDED),
        # Results that do not answer the question do not count.
        ([FINE, comparison("slower", 0.7, 0.8, primary=False)], ExitStatus.DONE),
        ([comparison("slower", 0.7, 0.8, primary=False)], ExitStatus.UNDECIDED),
        ([], ExitStatus.UNDECIDED),
    ],
)
def test_the_status(found: list[Comparison], status: ExitStatus) -> None:
    assert status_of(found) == status
    assert line_of(found).endswith(f"exit status {int(status)}")


@pytest.mark.parametrize(
    ("verdict", "status"),
    [("slower", 1), ("faster", 0), ("equal", 0), ("undecided", 3)],
)
def test_a_difference_that_allows_no_ratio(verdict: str, status: int) -> None:
    zeros = Difference(
        shift=0.1, low=0.05, high=0.2, cliffs_delta=0.5, arm_zeros=0.0, baseline_zeros=0.5
    )
    assert status_of([comparison(verdict, None, None, difference=zeros)]) == status


def test_the_line_counts() -> None:
    unclear = comparison("undecided", 0.9, 1.1)
    assert line_of([SLOWER, FINE, unclear]) == (
        "--fail-if slower: 3 comparisons, 1 slower by more than 2 % and 1 undecided: exit status 1"
    )


@pytest.mark.parametrize(("factor", "status"), [(1.0, 0), (1.2, 1)])
def test_a_run_ends_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, factor: float, status: int
) -> None:
    simulation: Simulation = install(monkeypatch)
    simulation.slower = {"rust-l2fwd": factor}
    found = start(tmp_path / "run", blocks=20, forwarders=["c-l2fwd", "rust-l2fwd"])
    assert status_of(found.summary.comparisons) == status


def test_a_run_without_a_question_ends_with_0(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, linerate: Linerate
) -> None:
    simulation = install(monkeypatch)
    simulation.slower = {"rust-l2fwd": 1.2}
    asked = ["run", "overload", "--link", "null", "--forwarders", "c-l2fwd,rust-l2fwd"]
    # The simulated machine runs trials one by one.
    run = [*asked, "--blocks", "20", "--method", "fresh", "--out"]
    assert linerate(*run, "plain").returncode == 0
    done = linerate(*run, "asked", "--fail-if", "slower")
    assert done.returncode == 1
    assert "--fail-if slower: 1 comparison, 1 slower by more than 2 %" in done.stdout
    again = linerate("run", "overload", "--resume", "asked", "--fail-if", "slower")
    assert again.returncode == 1
    refused = linerate(*run, "refused", "--fail-if", "faster")
    assert refused.returncode == 2
    assert "--fail-if faster: no such condition" in refused.stderr
    assert not (tmp_path / "refused").exists()
