# SPDX-License-Identifier: BSD-3-Clause
"""The count of bisects: real `git bisect run`s, with a script instead of duels."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from linerate_bench.trust import bisects
from linerate_bench.trust.beside import attended
from linerate_bench.trust.bisects import COMMITS, Bisected, Plan, bisect, read, told
from linerate_bench.trust.repository import Repository

MADE = Bisected(0, 9, 20, 0.1, 9, 0, 5, 0, 0, 60.0)


def test_the_drawn_commits_can_be_told_apart() -> None:
    plans = [Plan.draw(seed) for seed in range(300)]
    assert Plan.draw(7) == plans[7]
    assert {each.slow for each in plans} == set(range(1, COMMITS))
    for each in plans:
        assert 0 < each.broken < COMMITS - 1
        assert each.broken not in (each.slow, each.slow - 1)


@pytest.fixture
def by_script(monkeypatch: pytest.MonkeyPatch) -> None:
    """Return a step that reads the commit's number of additions, and measures nothing."""
    script = "grep -q error version.h && exit 125; grep -q 'CHAIN 0$' version.h && exit 0; exit 1"
    monkeypatch.setattr(bisects, "step", lambda baseline: ["sh", "-c", script])

    def only_git(argv: Sequence[str], path: Path) -> int:
        return attended(argv, path) if "bisect" in argv else 0

    monkeypatch.setattr(bisects, "attended", only_git)


@pytest.mark.parametrize("plan", [Plan(0, 1, 17), Plan(0, 18, 15), Plan(0, 31, 15)])
def test_git_finds_the_commit(tmp_path: Path, by_script: None, plan: Plan) -> None:
    made = bisect(tmp_path, plan, 24, 0.1)
    assert (made.found, made.status, made.wrong, made.skipped) == (plan.slow, 0, 0, 0)
    assert 4 <= made.tested <= 7


def test_an_error_of_the_lab_ends_a_bisect(
    tmp_path: Path, by_script: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bisects, "step", lambda baseline: ["sh", "-c", "exit 204"])
    made = bisect(tmp_path, Plan(0, 9, 20), 24, 0.1)
    assert made.found is None
    assert made.status not in (0, bisects.ONLY_SKIPPED_LEFT)
    assert made.tested == 0


def test_commits_that_are_not_decided_may_hide_it(
    tmp_path: Path, by_script: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bisects, "step", lambda baseline: ["sh", "-c", "exit 125"])
    made = bisect(tmp_path, Plan(0, 9, 20), 24, 0.1)
    assert (made.found, made.status) == (None, bisects.ONLY_SKIPPED_LEFT)
    assert made.skipped == COMMITS - 3


def test_commits_differ_and_a_broken_one_does_not_build(tmp_path: Path) -> None:
    made = Repository.make(tmp_path / "r")
    made.commit("one", 7)
    text = (tmp_path / "r" / "version.h").read_text()
    assert "DEFAULT_CHAIN 7" in text
    assert "#error" not in text
    made.commit("two", 7, broken=True)
    assert "#error" in (tmp_path / "r" / "version.h").read_text()
    assert made.git("log", "--format=%s").split() == ["two", "one"]
    with pytest.raises(RuntimeError, match="git show nosuch: fatal"):
        made.git("show", "nosuch")


def test_bisects_are_read_back_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "bisects.jsonl"
    assert read(path) == []
    path.write_text(json.dumps(asdict(MADE)) + "\n")
    assert read(path) == [MADE]
    lost, other = replace(MADE, found=None, status=2, skipped=3), replace(MADE, found=8, wrong=1)
    assert told([MADE] * 19 + [lost]).endswith("goal 19 of 20 PASS")
    assert told([MADE] * 18 + [lost, other]).endswith("FAIL")
    assert "18 right (68% to 99%), 1 another commit, 1 none" in told([MADE] * 18 + [lost, other])
    assert "1 told wrong, 3 not decided" in told([MADE] * 18 + [lost, other])
    assert told([]) == "no bisect was made"


def test_what_runs_beside_a_compiler_ends_with_it(tmp_path: Path) -> None:
    """Processes that the command started end as well, although git passes no signals on to them."""
    script = "touch begun; sleep 3210 & sleep 3210"
    command = [sys.executable, "-m", "linerate_bench.trust.beside", "sh", "-c", script]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(command, cwd=tmp_path, env=variables) as running:
        deadline = time.monotonic() + 30
        while not (tmp_path / "begun").exists():
            assert running.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        running.terminate()
        assert running.wait(30) == 128 + signal.SIGTERM
    deadline = time.monotonic() + 5
    while any(os.path.realpath(each) == str(tmp_path) for each in Path("/proc").glob("[0-9]*/cwd")):
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(("script", "status"), [("exit 125", 125), ("kill -KILL $$", 137)])
def test_its_status_is_passed_on(script: str, status: int) -> None:
    assert attended(["sh", "-c", script]) == status
