# SPDX-License-Identifier: BSD-3-Clause
"""`linerate compare`: a slow-down is found, none is invented, and unknowns are named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import by_schema
import pytest
from simulated import Simulation, killed, printed, quiet, start

from linerate.cli.compare_screen import parse_margin, run, show
from linerate.host.errors import RunError, UsageError
from linerate.host.exit_status import ExitStatus
from linerate.host.machine import Hugepages
from linerate.records import run_file
from linerate.records import trial as records
from linerate.records.run_file import RUN
from linerate.records.trial import RECORDS, Trial
from linerate.runs import compare as regression
from linerate.runs import session
from linerate.runs.compare import Change, Regression, compare
from linerate.runs.experiment import Comparable
from linerate.runs.kept.stored import stored

MARGIN = 0.02


@pytest.fixture(autouse=True)
def unpublished(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the runs' reports, which nobody reads here and which take longer than the
    trials.
    """
    monkeypatch.setattr(session, "publish", lambda *_: None)


def two_runs(
    tmp_path: Path, simulation: Simulation, factor: float, **values: Any
) -> tuple[Path, Path]:
    """Make two runs with different noise; in the second rust-l2fwd is slower by this factor."""
    asked = {"blocks": 20, **values}
    start(tmp_path / "a", **asked)
    simulation.noise, simulation.slower = "2", {"rust-l2fwd": factor}
    start(tmp_path / "b", **{"seed": 2, **asked})
    return tmp_path / "a", tmp_path / "b"


def compared(before: Path, after: Path, margin: float = MARGIN) -> Regression:
    return compare(stored(before), stored(after), margin)


def by_rate(found: Regression) -> Change:
    (change,) = [each for each in found.changes if each.load_share is None]
    return change


def status(before: Path, after: Path, *, margin: str = "2%", strict: bool = True) -> int:
    return run(before, after, margin, strict=strict, json_output=False, console=quiet())


def test_a_slow_down_is_found(tmp_path: Path, simulation: Simulation) -> None:
    before, after = two_runs(tmp_path, simulation, 1.05)
    change = by_rate(compared(before, after))
    assert change.verdict == "slower"
    assert change.ratio == pytest.approx(1 / 1.05, rel=0.01)
    assert change.ci_high is not None
    assert change.ci_high < 1 - MARGIN
    assert "has become slower by more than 2 %" in change.sentence
    assert status(before, after) == ExitStatus.SLOWER
    assert status(before, after, margin="10%") == ExitStatus.DONE
    # Slower in the reverse order is faster.
    assert by_rate(compared(after, before)).verdict == "not slower"
    assert status(after, before) == ExitStatus.DONE


def test_nothing_is_found_where_nothing_changed(tmp_path: Path, simulation: Simulation) -> None:
    before, after = two_runs(tmp_path, simulation, 1.0)
    change = by_rate(compared(before, after))
    assert change.verdict == "not slower"
    assert "has not become slower by 2 %" in change.sentence
    assert status(before, after) == ExitStatus.DONE


def test_a_program_that_carried_nothing_in_a_block_is_not_told_to_be_no_slower(
    tmp_path: Path, simulation: Simulation
) -> None:
    """Its other blocks are unchanged, and this one has no ratio."""
    before, after = two_runs(tmp_path, simulation, 1.0)
    trials = records.read(after / RECORDS)
    victim = next(t for t in trials if (t.role, t.arm) == ("measure", "rust-l2fwd"))
    victim.frames.forwarder_rx = 0
    (after / RECORDS).write_text("".join(f"{records.dump(trial)}\n" for trial in trials))
    change = by_rate(compared(before, after))
    assert (change.verdict, change.n_after) == ("undecided", 19)
    assert "blocks left out because a value was 0, which has no logarithm: 1" in change.sentence


def spoil(run: Path, keep: int) -> None:
    """Leave the flood of rust-l2fwd valid in only this many blocks."""
    trials = records.read(run / RECORDS)
    for trial in trials:
        if (trial.role, trial.arm) == ("measure", "rust-l2fwd") and trial.block >= keep:
            trial.reject("error", "crashed")
    (run / RECORDS).write_text("".join(f"{records.dump(trial)}\n" for trial in trials))


def test_half_of_the_blocks_must_be_valid(tmp_path: Path, simulation: Simulation) -> None:
    before, after = two_runs(tmp_path, simulation, 1.0)
    spoil(after, 10)
    assert by_rate(compared(before, after)).verdict == "not slower"
    spoil(after, 9)
    change = by_rate(compared(before, after))
    assert (change.verdict, change.reason) == (
        "invalid",
        "in the second run only 9 of 20 blocks were valid",
    )
    assert status(before, after) == ExitStatus.UNDECIDED
    assert by_rate(compared(after, before)).verdict == "invalid"


def test_what_the_second_run_lacks_is_no_answer(tmp_path: Path, simulation: Simulation) -> None:
    before, after = two_runs(tmp_path, simulation, 1.0, links=["memif"], sizes=[64, 512])
    assert status(before, after) == ExitStatus.DONE
    simulation.noise = "3"
    start(tmp_path / "less", blocks=20, links=["memif"], sizes=[64])
    after = tmp_path / "less"
    found = compared(before, after)
    assert {(each.size, each.arm) for each in found.missing} == {(512, "rust-l2fwd")}
    assert any("not compared: rust-l2fwd on memif at 512 B" in note for note in found.notes)
    assert status(before, after) == ExitStatus.UNDECIDED
    assert status(before, after, strict=False) == ExitStatus.DONE
    # What only the second run has was not measured in the first.
    assert compared(after, before).missing == []


def test_a_load_that_the_second_run_lacks_is_no_answer(
    tmp_path: Path, simulation: Simulation
) -> None:
    """The program may have become slower at exactly this load."""
    before, after = two_runs(tmp_path, simulation, 1.0, links=["memif"])
    assert status(before, after) == ExitStatus.DONE
    trials = records.read(after / RECORDS)
    kept = [t for t in trials if (t.role, t.arm) != ("lower-load", "rust-l2fwd")]
    (after / RECORDS).write_text("".join(f"{records.dump(trial)}\n" for trial in kept))
    found = compared(before, after)
    assert {each.arm for each in found.missing} == {"rust-l2fwd"}
    assert all(each.load_share is not None for each in found.missing)
    assert any("rust-l2fwd on memif at 64 B by " in note for note in found.notes)
    assert status(before, after) == ExitStatus.UNDECIDED


def test_a_machine_that_is_slower_as_a_whole_is_no_regression(
    tmp_path: Path, simulation: Simulation
) -> None:
    start(tmp_path / "a", blocks=20)
    simulation.noise = "2"
    simulation.slower = dict.fromkeys(["c-l2fwd", "c-l2fwd-again", "rust-l2fwd"], 1.9)
    start(tmp_path / "b", blocks=20)
    assert by_rate(compared(tmp_path / "a", tmp_path / "b")).verdict == "not slower"


def test_too_few_blocks_cannot_tell(tmp_path: Path, simulation: Simulation) -> None:
    before, after = two_runs(tmp_path, simulation, 1.03, blocks=6)
    change = by_rate(compared(before, after))
    assert (change.verdict, change.reason) == ("undecided", "the interval holds the margin")
    assert "cannot tell" in change.sentence
    assert status(before, after) == ExitStatus.UNDECIDED
    assert status(before, after, strict=False) == ExitStatus.DONE
    few = by_rate(compared(*two_runs(tmp_path / "few", simulation, 1.0, blocks=5)))
    assert few.verdict == "invalid"
    assert "too few valid blocks" in few.reason


def test_a_control_that_differs_forbids_the_verdict(tmp_path: Path, simulation: Simulation) -> None:
    start(tmp_path / "a", blocks=20)
    simulation.noise, simulation.slower = "2", {"c-l2fwd-again": 1.05, "rust-l2fwd": 1.05}
    start(tmp_path / "b", blocks=20)
    change = by_rate(compared(tmp_path / "a", tmp_path / "b"))
    assert change.verdict == "invalid"
    assert "the A/A arm, one program against itself, differs between the runs" in change.sentence
    assert status(tmp_path / "a", tmp_path / "b") == ExitStatus.UNDECIDED


def test_costs_answer_where_rates_are_held_back(tmp_path: Path, simulation: Simulation) -> None:
    """On this memif all are near the ceiling; the cost of a packet still shows the difference."""
    values = {"links": ["memif"]}
    found = compared(*two_runs(tmp_path, simulation, 1.03, **values))
    rate = by_rate(found)
    assert (rate.verdict, rate.held_back) == ("undecided", True)
    assert "limited by the" in rate.sentence
    costs = [each for each in found.changes if each.load_share is not None]
    assert [(each.load_share, each.better) for each in costs] == [(0.25, "lower"), (0.5, "lower")]
    assert all(each.ratio is not None and each.ratio > 1.02 for each in costs)
    assert all("busy cycles per packet at" in each.sentence for each in costs)
    # The rate has no answer and is not waited for; the costs have one, or --strict reports it.
    assert found.undecided == any(each.verdict == "undecided" for each in costs)


def test_a_packet_that_costs_more_is_slower(tmp_path: Path, simulation: Simulation) -> None:
    before, after = two_runs(tmp_path, simulation, 1.1, links=["memif"])
    costs = [each for each in compared(before, after).changes if each.load_share is not None]
    assert {each.verdict for each in costs} == {"slower"}
    assert status(before, after) == ExitStatus.SLOWER
    back = [each for each in compared(after, before).changes if each.load_share is not None]
    assert {each.verdict for each in back} == {"not slower"}


def costs_by_load(found: Regression) -> dict[float, Change]:
    return {each.load_share: each for each in found.changes if each.load_share is not None}


def change_lower_loads(directory: Path, change: Callable[[Trial], None]) -> None:
    """Edit the records as if the run had measured something else there."""
    path = directory / RECORDS
    trials = records.read(path)
    for trial in trials:
        if trial.role == "lower-load":
            change(trial)
    path.write_text("".join(f"{records.dump(trial)}\n" for trial in trials))


def dearer(trial: Trial, factor: float) -> None:
    for entry in trial.frames.polling or ():
        entry.busy_tsc = round(entry.busy_tsc * factor)


@pytest.mark.parametrize("told", [True, False], ids=["own", "another"])
def test_loads_that_differ_do_not_compare(
    tmp_path: Path, simulation: Simulation, told: bool
) -> None:
    """Nor can those of another generator, which does not report how long it sent."""
    before, after = two_runs(tmp_path, simulation, 1.0, links=["memif"])

    def double(trial: Trial) -> None:
        assert trial.frames.attempted is not None
        assert trial.request.pps is not None
        trial.frames.attempted = trial.frames.received = trial.frames.accepted = (
            trial.frames.attempted * 2
        )
        trial.request.pps *= 2

    def untold(trial: Trial) -> None:
        trial.frames.duration_s = None

    change_lower_loads(after, double)
    if not told:
        for each in (before, after):
            change_lower_loads(each, untold)
    costs = costs_by_load(compared(before, after))
    assert costs.keys() == {0.25, 0.5}
    assert {each.verdict for each in costs.values()} == {"undecided"}
    assert all("the loads are not alike" in each.reason for each in costs.values())


def test_each_load_has_a_control_of_its_own(tmp_path: Path, simulation: Simulation) -> None:
    before, after = two_runs(tmp_path, simulation, 1.0, links=["memif"])
    assert {each.verdict for each in costs_by_load(compared(before, after)).values()} == {
        "not slower"
    }

    def change(trial: Trial) -> None:
        if (trial.arm, trial.request.load_share) == ("c-l2fwd-again", 0.25):
            dearer(trial, 1.1)

    change_lower_loads(after, change)
    costs = costs_by_load(compared(before, after))
    assert (costs[0.25].verdict, costs[0.5].verdict) == ("invalid", "not slower")
    assert "the A/A arm, one program against itself, differs" in costs[0.25].reason


def test_a_wide_spread_forbids_nothing(tmp_path: Path, simulation: Simulation) -> None:
    before, after = two_runs(tmp_path, simulation, 1.0, links=["memif"])

    def change(trial: Trial) -> None:
        if (trial.arm, trial.request.load_share) == ("rust-l2fwd", 0.5):
            dearer(trial, 1.6 if trial.block % 2 else 1.0)

    def change_more(trial: Trial) -> None:
        if (trial.arm, trial.request.load_share) == ("rust-l2fwd", 0.5):
            dearer(trial, 4.8 if trial.block % 2 else 3.0)

    change_lower_loads(before, change)
    change_lower_loads(after, change_more)
    costs = costs_by_load(compared(before, after))
    assert (costs[0.25].verdict, costs[0.5].verdict) == ("not slower", "slower")


def test_loss_at_a_load_takes_the_cost_there_alone(tmp_path: Path, simulation: Simulation) -> None:
    before, after = two_runs(tmp_path, simulation, 1.0, links=["memif"])

    def change(trial: Trial) -> None:
        if (trial.arm, trial.request.load_share) == ("rust-l2fwd", 0.5) and trial.frames.attempted:
            lost = trial.frames.attempted // 20
            trial.frames.received = (trial.frames.received or 0) - lost
            trial.frames.forwarder_drops = (trial.frames.forwarder_drops or 0) + lost

    change_lower_loads(after, change)
    costs = costs_by_load(compared(before, after))
    assert (costs[0.25].verdict, costs[0.5].verdict) == ("not slower", "invalid")
    assert costs[0.5].reason.startswith("in the second run one of the two lost")


def test_a_control_of_the_rates_says_nothing_of_the_costs(
    tmp_path: Path, simulation: Simulation
) -> None:
    before, after = two_runs(tmp_path, simulation, 1.0, links=["memif"])
    path = after / RECORDS
    trials = records.read(path)
    for trial in trials:
        if (trial.role, trial.arm) == ("measure", "c-l2fwd-again") and trial.frames.received:
            trial.frames.received = trial.frames.received * 9 // 10
    path.write_text("".join(f"{records.dump(trial)}\n" for trial in trials))
    found = compared(before, after)
    assert by_rate(found).verdict == "invalid"
    assert {each.verdict for each in costs_by_load(found).values()} == {"not slower"}


def test_what_else_differs_is_named(tmp_path: Path, simulation: Simulation) -> None:
    start(tmp_path / "a", forwarders=["c-l2fwd", "rust-l2fwd", "rust-l2fwd-burst"])
    simulation.digests["rust-l2fwd"] = "new"
    simulation.machine = simulation.machine.model_copy(update={"dpdk_version": "24.11"})
    killed(tmp_path / "b", simulation, 20, seed=2)
    notes = compared(tmp_path / "a", tmp_path / "b").notes
    assert "rust-l2fwd is another build in the second run" in notes
    assert "the runs differ in dpdk version: 22.11 and 24.11" in notes
    assert any("b ended early" in note for note in notes)
    assert any(
        "not compared: rust-l2fwd-burst on null at 64 B" in note and "/a has" in note
        for note in notes
    )


def test_huge_pages_that_changed_are_named(tmp_path: Path, simulation: Simulation) -> None:
    """Neither run used them, so their ratios can be compared."""
    pools = [Hugepages(size_kib=2048, total=0, free=0)]
    simulation.machine = simulation.machine.model_copy(update={"hugepages": pools})
    start(tmp_path / "a")
    pools = [Hugepages(size_kib=2048, total=640, free=600)]
    simulation.machine = simulation.machine.model_copy(update={"hugepages": pools})
    start(tmp_path / "b", seed=2)
    notes = compared(tmp_path / "a", tmp_path / "b").notes
    assert "the runs differ in reserved huge pages: none and 640 x 2048 KiB" in notes
    # Another number of free pages is not another set-up.
    pools = [Hugepages(size_kib=2048, total=640, free=5)]
    simulation.machine = simulation.machine.model_copy(update={"hugepages": pools})
    start(tmp_path / "c", seed=3)
    assert compared(tmp_path / "b", tmp_path / "c").notes == []


def test_runs_without_figures_to_compare_are_not_said_to_differ(
    tmp_path: Path, simulation: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(tmp_path / "a")
    start(tmp_path / "b")
    monkeypatch.setattr(regression, "_comparable", lambda *_: Comparable())
    with pytest.raises(RunError, match="neither has one that runs of experiment overload are"):
        compared(tmp_path / "a", tmp_path / "b")


def test_what_does_not_compare_is_refused(tmp_path: Path, simulation: Simulation) -> None:
    start(tmp_path / "a")
    with pytest.raises(RunError, match="hold the same run"):
        compared(tmp_path / "a", tmp_path / "a")
    start(tmp_path / "b", links=["null2"])
    with pytest.raises(RunError, match="no figure in common"):
        compared(tmp_path / "a", tmp_path / "b")
    simulation.machine = simulation.machine.model_copy(update={"cpu_model": "other"})
    start(tmp_path / "c")
    with pytest.raises(RunError, match=r"different machines.*cpu model: simulated and other"):
        compared(tmp_path / "a", tmp_path / "c")
    simulation.machine = simulation.machine.model_copy(update={"cpu_model": "simulated"})
    start(tmp_path / "d", hugepages="yes")
    with pytest.raises(RunError, match=r"one machine .*two ways: memory: small pages and huge"):
        compared(tmp_path / "a", tmp_path / "d")
    for path in ("absent", "a"):
        with pytest.raises(RunError) as caught:
            status(tmp_path / "a", tmp_path / path)
        assert caught.value.exit_code == ExitStatus.USAGE


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_an_answer_that_nobody_reads_is_no_regression(
    tmp_path: Path, simulation: Simulation, options: list[str]
) -> None:
    before, after = two_runs(tmp_path, simulation, 1.05)
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "linerate", "compare", str(before), str(after), *options]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (ExitStatus.CANNOT_RUN, b"")


@pytest.mark.parametrize(
    ("text", "share"), [("2%", 0.02), ("0.02", 0.02), (" 2.5 % ", 0.025), (".05", 0.05)]
)
def test_margins(text: str, share: float) -> None:
    assert parse_margin(text) == pytest.approx(share)


@pytest.mark.parametrize("text", ["", "two", "-1%", "0", "2", "60%", "1e-2", "2%%", "nan"])
def test_wrong_margins(text: str) -> None:
    with pytest.raises(UsageError, match="--margin"):
        parse_margin(text)


def test_the_screen_and_the_json(tmp_path: Path, simulation: Simulation) -> None:
    before, after = two_runs(tmp_path, simulation, 1.05)
    found = compared(before, after)
    console = quiet()
    show(found, console)
    assert all(change.sentence in printed(console) for change in found.changes)
    assert "0.95" in printed(console)
    command = [sys.executable, "-m", "linerate", "compare", str(before), str(after)]
    done = subprocess.run(
        [*command, "--json"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == ExitStatus.SLOWER, done.stderr
    data = json.loads(done.stdout)
    by_schema.check(data, "compare-1.json")
    assert Regression.model_validate(data) == found


def test_the_command_refuses_with_two(tmp_path: Path, simulation: Simulation) -> None:
    start(tmp_path / "a")
    kept = run_file.load(tmp_path / "a")
    (tmp_path / "a" / RUN).write_text(
        run_file.dump(kept).replace("linerate/run-1", "linerate/run-9")
    )
    command = [sys.executable, "-m", "linerate", "compare", str(tmp_path / "a"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == ExitStatus.USAGE
    assert "its schema is 'linerate/run-9'" in done.stderr
    assert "Traceback" not in done.stderr


def test_false_alarms_are_rare_and_slow_downs_are_found(
    tmp_path: Path, simulation: Simulation
) -> None:
    """20 blocks with 1 % noise: of 20 pairs each, none is called wrong, and 5 % is always found."""
    start(tmp_path / "a", blocks=20, probe=False)
    first = stored(tmp_path / "a")
    verdicts: dict[float, list[str]] = {1.0: [], 1.05: []}
    for number in range(20):
        for factor, found in verdicts.items():
            simulation.noise, simulation.slower = f"n{number}{factor}", {"rust-l2fwd": factor}
            out = tmp_path / f"{number}-{factor}"
            start(out, blocks=20, probe=False)
            found.append(by_rate(compare(first, stored(out), MARGIN)).verdict)
    assert "slower" not in verdicts[1.0]
    assert "not slower" not in verdicts[1.05]
    assert verdicts[1.0].count("not slower") >= 12
    assert verdicts[1.05].count("slower") >= 12
