# SPDX-License-Identifier: BSD-3-Clause
"""The command `linerate advise`, on simulated runs of several experiments."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import by_schema
import pytest
import simulated_paths
from advice_runs import each_block, run_of, written
from conftest import Linerate
from rfc2544_runs import measured_in
from simulated import Simulation, assert_nothing_wraps
from simulated_paths import Wire

from linerate.cli.advise_command import show
from linerate.experiments.placement.advise import advise
from linerate.experiments.placement.question import question
from linerate.experiments.placement.record import Advice
from linerate.host import machine
from linerate.host.exit_status import ExitStatus
from linerate.records.run_file import RUN
from linerate.records.summary_figures import GoalFigure
from linerate.runs.kept.stored import stored

MEGA = 1e6


def fast(tmp_path: Path, name: str = "out/fast") -> Path:
    """Return a run whose only program carries 3 Mpps."""
    return written(run_of(each_block("a", 3 * MEGA)), tmp_path / name)


@pytest.mark.parametrize(
    ("rate", "status", "words"),
    [
        ("2Mpps", ExitStatus.DONE, "Yes, on 1 core: a."),
        ("4Mpps", ExitStatus.UNDECIDED, "Not measured: the records do not say it of a."),
    ],
)
def test_runs_below_out_are_read_by_default(
    tmp_path: Path, linerate: Linerate, rate: str, status: ExitStatus, words: str
) -> None:
    fast(tmp_path)
    done = linerate("advise", "--rate", rate)
    assert done.returncode == status, done.stderr
    assert words in done.stdout
    assert "[1] out/fast: overload, " in done.stdout


def test_all_that_was_measured_does_not(tmp_path: Path, linerate: Linerate) -> None:
    written(run_of(each_block("a", 1 * MEGA, lost=0.1)), tmp_path / "slow")
    done = linerate("advise", "--rate", "2Mpps", "slow")
    assert done.returncode == ExitStatus.SLOWER
    assert "No: a does not, and nothing else was measured." in done.stdout


def test_json_is_by_its_schema(tmp_path: Path, linerate: Linerate) -> None:
    fast(tmp_path)
    done = linerate("advise", "--rate", "2Mpps", "--latency", "p99:50us", "--json")
    assert done.returncode == ExitStatus.UNDECIDED
    data = json.loads(done.stdout)
    by_schema.check(data, "advice-1.json")
    found = Advice.model_validate(data)
    assert found.asked.latency[0].us == 50
    assert found.settings[0].placements[0].rates[0].answer == "yes"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rate", "2Mpps"], "no run found below out"),
        (["--rate", "2Mpps", "absent"], "absent: there is no such directory"),
        (["--rate", "2Mpps", "."], ". holds no run"),
        (["--rate", "fast"], "--rate fast: not a number"),
        (["--rate", "1M", "--latency", "soon"], "--latency soon: not a percentile"),
        (["--rate", "1M", "--loss", "some"], "--loss some: not a share"),
        (["--rate", "1M", "--size", "9000"], "--size 9000: not within 64 to 1518"),
        ([], "Missing option"),
    ],
)
def test_wrong_arguments(
    tmp_path: Path, linerate: Linerate, arguments: list[str], message: str
) -> None:
    done = linerate("advise", *arguments)
    assert message in done.stderr
    assert (done.returncode, done.stdout) == (ExitStatus.USAGE, "")
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_was_named_must_be_whole(tmp_path: Path, linerate: Linerate) -> None:
    """An incomplete run that was found below a directory is left out, and named."""
    fast(tmp_path)
    broken = fast(tmp_path, "out/broken")
    (broken / "records.jsonl").write_text('{"schema":"linerate/trial-2"}\n')
    done = linerate("advise", "--rate", "2Mpps")
    assert done.returncode == ExitStatus.DONE
    assert "note: left out: out/broken/records.jsonl, line 1: no record of a trial" in done.stdout
    done = linerate("advise", "--rate", "2Mpps", "out/broken", "out/fast")
    assert done.returncode == ExitStatus.USAGE
    assert "out/broken/records.jsonl, line 1: no record of a trial" in done.stderr
    (broken / RUN).write_text("{}")
    done = linerate("advise", "--rate", "2Mpps", "out/broken")
    assert done.returncode == ExitStatus.USAGE
    assert "its schema is None" in done.stderr


def test_a_copy_of_a_run_counts_once(tmp_path: Path, linerate: Linerate) -> None:
    shutil.copytree(fast(tmp_path), tmp_path / "out" / "later")
    done = linerate("advise", "--rate", "2Mpps", "--json")
    found = Advice.model_validate_json(done.stdout)
    assert [run.directory for run in found.runs] == ["out/fast"]
    assert found.notes == ["left out: out/later holds trials that out/fast has as well"]


def test_a_search_answers_by_its_goals(tmp_path: Path) -> None:
    """Its answer about rates is that of the run's own summary."""
    run = measured_in(tmp_path / "run")
    (cell,) = run.summary.cells
    arm = next(each for each in cell.arms if each.search and each.arm == "rust-l2fwd")
    assert arm.search
    goals: dict[str, GoalFigure] = {each.goal: each for each in arm.search.goals}
    for goal, loss in (("NDR", "0"), ("PDR", "0.5%"), ("NDR", "0.1%")):
        figure = goals[goal].pps
        assert figure
        asked = question(f"{figure.median * 0.9:.0f}", cell.size, loss=loss)
        found = advise(asked, [stored(run.directory)], machine.facts(), [])
        (placement,) = [
            each for each in found.settings[0].placements if each.forwarder == "rust-l2fwd"
        ]
        assert placement.rates[0].source == "searches"
        assert placement.rates[0].reached_pps == figure
        assert placement.answer == "yes"
        above = question(f"{figure.median * 1.2:.0f}", cell.size, loss=loss)
        found = advise(above, [stored(run.directory)], machine.facts(), [])
        answers = {each.forwarder: each.answer for each in found.settings[0].placements}
        assert answers["rust-l2fwd"] == "no"


def test_paths_answer_by_their_fixed_loads(
    tmp_path: Path, simulation: Simulation, linerate: Linerate
) -> None:
    """The fastest path in a flood is not the one that is within the delay."""
    Wire().install(simulation)
    simulated_paths.start(tmp_path / "paths")
    done = linerate("advise", "--rate", "100kpps", "--latency", "p99:50us", "paths")
    assert done.returncode == ExitStatus.DONE, done.stderr
    assert "Yes, on 1 core: xdp-redirect." in done.stdout
    assert "c-l2fwd on 1 core carried 100 kpps in 9 of 9 blocks" in done.stdout
    assert "p99 was within 50 us in 0 of 9 blocks" in done.stdout
    asked = question("100kpps", 64, ["p99:50us"])
    found = advise(asked, [stored(tmp_path / "paths")], machine.facts(), [])
    assert_nothing_wraps(lambda console: show(asked, found, console))
    above = linerate("advise", "--rate", "2Mpps", "paths")
    assert above.returncode == ExitStatus.SLOWER
    assert "floods of " in above.stdout
