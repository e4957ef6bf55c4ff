# SPDX-License-Identifier: BSD-3-Clause
"""A run continues after an interruption at any point: nothing is lost, nothing is run twice."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import by_schema
import pytest
from simulated import Simulation, killed, killed_at, printed, quiet, resume, start

from linerate.host.errors import Interrupted, LabError, OutputError, RunError, UsageError
from linerate.records import run_file
from linerate.records import trial as records
from linerate.records.output import FILES, OutputDirectory
from linerate.records.run_file import RUN
from linerate.records.trial import RECORDS, Trial
from linerate.runs import session
from linerate.runs.provenance import deciding
from linerate.trial.trial import Plan

BOTH: dict[str, Any] = {"links": ["null", "memif"]}


def order(trials: list[Trial]) -> list[tuple[Any, ...]]:
    """Return the identity of each trial, in words that do not depend on its session."""
    return [(*t.cell.key, t.role, t.arm, t.block, t.request.load_share, t.position) for t in trials]


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def without_sessions(line: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(line)
    # Each run has an id of its own.
    del found["identity"]["session"], found["identity"]["run"]
    return found


def test_a_run_keeps_what_it_was_asked(tmp_path: Path, simulation: Simulation) -> None:
    start(tmp_path / "run", **BOTH)
    assert names(tmp_path / "run") == set(FILES)
    data = json.loads((tmp_path / "run" / RUN).read_text())
    by_schema.check(data, "run-1.json")
    run = run_file.load(tmp_path / "run")
    assert run.complete(len(simulation.ran))
    assert [each.end for each in run.sessions] == ["complete"]
    assert run.sessions[0].programs == simulation.digests


def cuts(lines: list[bytes]) -> list[int]:
    """Return cuts at the start of the first line, in its middle, and around the end of each
    line.
    """
    ends = list(itertools.accumulate(map(len, lines)))
    near = {end + beside for end in ends for beside in (-2, -1, 0, 1, 2)}
    return sorted({0, 1, ends[0] // 2, *(each for each in near if each <= ends[-1])})


def test_cut_at_any_byte(tmp_path: Path, simulation: Simulation) -> None:
    """Whatever SIGKILL leaves of records.jsonl: complete lines are read and stay, and no others."""
    start(tmp_path / "whole", forwarders=["c-l2fwd"], blocks=1, probe=False)
    expected = (tmp_path / "whole" / RECORDS).read_bytes()
    trials = records.read(tmp_path / "whole" / RECORDS)
    cut = tmp_path / RECORDS
    # All lines are equal.
    for length in range(len(expected.splitlines(keepends=True)[0]) + 2):
        cut.write_bytes(expected[:length])
        whole = expected.rfind(b"\n", 0, length) + 1
        found = records.scan(cut)
        assert found.trials == trials[: expected.count(b"\n", 0, length)]
        writer = records.RecordWriter(cut)
        writer.close()
        assert writer.torn == found.torn == length - whole
        assert cut.read_bytes() == expected[:whole]


def test_resumed_wherever_it_was_cut(
    tmp_path: Path, simulation: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The complete lines stay and the other trials are run."""
    monkeypatch.setattr(session, "publish", lambda *_: None)
    whole = tmp_path / "whole"
    start(whole, forwarders=["c-l2fwd"], blocks=1, probe=False)
    expected = (whole / RECORDS).read_bytes()
    lines = expected.decode().splitlines()
    assert len(lines) == 4
    kept = json.loads((whole / RUN).read_text())
    for name in ("end", "ended_at"):
        del kept["sessions"][0][name]
    cut = tmp_path / "cut"
    cut.mkdir()
    for length in cuts(expected.splitlines(keepends=True)):
        (cut / RUN).write_text(json.dumps(kept))
        (cut / RECORDS).write_bytes(expected[:length])
        done = expected[:length].count(b"\n")
        simulation.ran.clear()
        console = quiet()
        resume(cut, console)
        found = (cut / RECORDS).read_bytes()
        assert found.startswith(expected[: expected[:length].rfind(b"\n") + 1])
        assert [without_sessions(line) for line in found.decode().splitlines()] == [
            without_sessions(line) for line in lines
        ]
        assert len(simulation.ran) == 4 - done
        torn = length - (expected[:length].rfind(b"\n") + 1)
        assert (f"cut off in the middle ({torn} bytes)" in printed(console)) == (torn > 0)
        assert run_file.load(cut).complete(4)


@pytest.mark.parametrize("after", [0, 1, 6, 23, 40, 67])
def test_killed_after_any_trial(tmp_path: Path, simulation: Simulation, after: int) -> None:
    start(tmp_path / "whole", **BOTH)
    expected = records.read(tmp_path / "whole" / RECORDS)
    simulation.ran.clear()
    run = tmp_path / "run"
    killed(run, simulation, after, **BOTH)
    if after == 0:
        # Nothing was measured: nothing stays, and the same command starts again.
        assert not run.exists()
        return
    assert run_file.load(run).sessions[0].end is None
    resume(run)
    found = records.read(run / RECORDS)
    assert order(found) == order(expected)
    assert [t.session for t in found] == [1] * after + [2] * (len(expected) - after)
    assert order(simulation.ran) == order(expected)
    summary = json.loads((run / "summary.json").read_text())
    assert summary["interrupted"] is False
    assert summary["trials"] == len(expected)


@pytest.mark.parametrize("left", ["no session", "no records", "no trial"])
def test_killed_before_the_first_trial(tmp_path: Path, simulation: Simulation, left: str) -> None:
    run = tmp_path / "run"
    killed(run, simulation, 1)
    kept = run_file.load(run)
    if left == "no session":
        kept.sessions = []
        (run / RUN).write_text(run_file.dump(kept))
    (run / RECORDS).write_bytes(b"")
    if left == "no records":
        (run / RECORDS).unlink()
    simulation.ran.clear()
    resume(run)
    start(tmp_path / "whole")
    found = records.read(run / RECORDS)
    assert order(found) == order(records.read(tmp_path / "whole" / RECORDS))
    assert {t.session for t in found} == {1 if left == "no session" else 2}


def test_killed_again_and_again(tmp_path: Path, simulation: Simulation) -> None:
    start(tmp_path / "whole", **BOTH)
    expected = records.read(tmp_path / "whole" / RECORDS)
    simulation.ran.clear()
    run = tmp_path / "run"
    killed(run, simulation, 3, **BOTH)
    for stop in range(8, len(expected), 5):
        with killed_at(simulation, stop):
            resume(run)
    resume(run)
    assert order(records.read(run / RECORDS)) == order(expected)
    assert order(simulation.ran) == order(expected)
    sessions = run_file.load(run).sessions
    assert [each.session for each in sessions] == list(range(1, len(sessions) + 1))
    assert [each.end for each in sessions] == [None] * (len(sessions) - 1) + ["complete"]


def test_a_cut_block_makes_pairs_only_within_a_session(
    tmp_path: Path, simulation: Simulation
) -> None:
    """The new setup is half as fast: across setups the ratio would be wrong by a factor of two."""
    start(tmp_path / "whole", blocks=8)
    whole = json.loads((tmp_path / "whole" / "summary.json").read_text())
    first = [t for t in simulation.ran if t.block == 3]
    place = {t.arm: n for n, t in enumerate(first) if t.role == "measure"}
    baseline, other = place["c-l2fwd"], place["rust-l2fwd"]
    cut = first[0].position + min(baseline, other) + 1
    run = tmp_path / "run"
    killed(run, simulation, cut, blocks=8)
    simulation.slower = dict.fromkeys(place, 2.0)
    resume(run)
    found = json.loads((run / "summary.json").read_text())
    was, is_now = (
        next(c for c in each["comparisons"] if c["arm"] == "rust-l2fwd") for each in (whole, found)
    )
    assert (was["n"], is_now["n"]) == (8, 7)
    assert is_now["ratio"] == pytest.approx(was["ratio"], rel=0.02)
    assert is_now["spread"] < 0.1
    assert any("1 of 8 blocks were interrupted" in text for text in found["warnings"])


def test_a_run_cut_between_blocks_says_the_same(tmp_path: Path, simulation: Simulation) -> None:
    start(tmp_path / "whole")
    trials = list(simulation.ran)
    boundary = next(t.position for t in trials if t.block == 2)
    killed(tmp_path / "run", simulation, boundary)
    resume(tmp_path / "run")
    whole, found = (
        json.loads((tmp_path / name / "summary.json").read_text()) for name in ("whole", "run")
    )
    for name in ("comparisons", "aa", "cells"):
        assert found[name] == whole[name]
    assert not any("interrupted" in text for text in found["warnings"])


def test_an_interrupt_is_no_end(tmp_path: Path, simulation: Simulation) -> None:
    def before(plan: Plan) -> None:
        if plan.position == 5:
            raise Interrupted(2)

    simulation.before = before
    with pytest.raises(Interrupted):
        start(tmp_path / "run")
    simulation.before = lambda plan: None
    assert run_file.load(tmp_path / "run").sessions[0].end == "interrupted"
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["interrupted"] is True
    resume(tmp_path / "run")
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["interrupted"] is False


def test_a_run_that_stopped_names_the_command_that_goes_on(
    tmp_path: Path, simulation: Simulation
) -> None:
    real = simulation.trial

    def spoilt(*arguments: Any) -> Trial:
        found = real(*arguments)
        found.reject("ended", "no such luck")
        return found

    run = tmp_path / "a run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulation, "trial", spoilt)
        with pytest.raises(LabError, match="8 trials in a row were invalid") as stopped:
            start(run)
    assert f"to go on with this run: linerate run overload --resume '{run}'" in str(stopped.value)
    resume(run)
    assert run_file.load(run).sessions[1].end == "complete"


def test_records_of_another_order_have_no_way_on(tmp_path: Path, simulation: Simulation) -> None:
    killed(tmp_path / "run", simulation, 3)
    path = tmp_path / "run" / RECORDS
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(reversed(lines)))
    with pytest.raises(RunError, match="where the order of this run has") as refused:
        resume(tmp_path / "run")
    assert "--resume" not in str(refused.value)


def test_a_complete_run_has_nothing_to_go_on_with(tmp_path: Path, simulation: Simulation) -> None:
    start(tmp_path / "run")
    simulation.ran.clear()
    before = (tmp_path / "run" / "summary.json").read_bytes()
    console = quiet()
    resume(tmp_path / "run", console)
    assert "nothing is to be run" in printed(console)
    assert simulation.ran == []
    assert (tmp_path / "run" / "summary.json").read_bytes() == before
    assert len(run_file.load(tmp_path / "run").sessions) == 1


def test_a_complete_run_that_lost_lines_is_completed_again(
    tmp_path: Path, simulation: Simulation
) -> None:
    start(tmp_path / "run")
    path = tmp_path / "run" / RECORDS
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-2]))
    simulation.ran.clear()
    resume(tmp_path / "run")
    assert len(simulation.ran) == 2
    assert order(records.read(path)) == order([records.parse(line) for line in lines])


def test_lower_loads_that_were_given_up_stay_so(tmp_path: Path, simulation: Simulation) -> None:
    real = simulation.trial

    def spoilt(*arguments: Any) -> Trial:
        found = real(*arguments)
        if found.role == "lower-load" and found.cell.name == "memif":
            found.reject("late", "the sender was late")
        return found

    values: dict[str, Any] = {"links": ["memif", "memif2"]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulation, "trial", spoilt)
        killed(tmp_path / "run", simulation, 115, **values)
        resume(tmp_path / "run")
    found = records.read(tmp_path / "run" / RECORDS)
    paced = [t for t in found if t.role == "lower-load" and t.cell.name == "memif"]
    # Eight levels, each with all the windows that it may use.
    assert [(t.request.attempt or 0) for t in paced] == list(range(1, 9)) * 8
    assert {t.session for t in paced} == {1}
    assert len([t for t in found if t.role == "lower-load" and t.cell.name == "memif2"]) == 36


# -- options -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"--seed": 7}, "--seed 7: the run in .* has --seed 1"),
        ({"--link": ["memif"]}, "--link memif: the run in .* has --link null"),
        ({"--blocks": 40}, "--blocks 40: the run in .* has not ended"),
        ({"--probe": False}, "--no-probe: the run in .* has --probe"),
        ({"--keep-going": True}, "--keep-going: the run in .* has no --keep-going"),
        ({"--line-rate": 5.0}, "--line-rate 5.0: the run in .* has no --line-rate"),
        ({"--out": None}, "--out: not together with --resume"),
    ],
)
def test_an_option_that_contradicts_is_refused(
    tmp_path: Path, simulation: Simulation, given: dict[str, object], message: str
) -> None:
    killed(tmp_path / "run", simulation, 3)
    with pytest.raises(UsageError, match=message):
        session.resume("overload", tmp_path / "run", given, quiet(), "")
    same = {"--seed": 1, "--link": ["null"], "--sizes": [64], "--blocks": 6}
    session.resume("overload", tmp_path / "run", same, quiet(), "")


def test_the_command_line_s_own_options_are_told_from_defaults(
    tmp_path: Path, simulation: Simulation
) -> None:
    killed(tmp_path / "run", simulation, 3, seed=5)
    run = [sys.executable, "-m", "linerate", "run", "overload", "--resume", str(tmp_path / "run")]
    done = subprocess.run(
        [*run, "--seed", "1"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert "--seed 1: the run in" in done.stderr
    done = subprocess.run(
        [*run, "--out", "x"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert "--out: not together with --resume" in done.stderr


def test_the_memory_is_that_of_the_beginning(tmp_path: Path, simulation: Simulation) -> None:
    killed(tmp_path / "run", simulation, 3, hugepages="yes")
    run = run_file.load(tmp_path / "run")
    assert run.sessions[0].memory == "hugepages"
    run.options["hugepages"] = "auto"
    (tmp_path / "run" / RUN).write_text(run_file.dump(run))
    resume(tmp_path / "run")
    assert run_file.load(tmp_path / "run").sessions[1].memory == "hugepages"


# -- runs that cannot be resumed -----------------------------------------------------------------


def test_another_build_cannot_go_on(tmp_path: Path, simulation: Simulation) -> None:
    killed(tmp_path / "run", simulation, 3)
    before = {name: (tmp_path / "run" / name).read_bytes() for name in (RUN, RECORDS)}
    simulation.digests["rust-l2fwd"] = "other"
    with pytest.raises(RunError, match="rust-l2fwd: not the program"):
        resume(tmp_path / "run")
    assert {name: (tmp_path / "run" / name).read_bytes() for name in before} == before


def test_another_machine_cannot_go_on(tmp_path: Path, simulation: Simulation) -> None:
    killed(tmp_path / "run", simulation, 3)
    simulation.machine = simulation.machine.model_copy(update={"cpu_model": "faster"})
    with pytest.raises(RunError, match="cpu model: simulated and faster"):
        resume(tmp_path / "run")


def test_one_hypervisor_written_in_two_ways_is_one_machine(
    tmp_path: Path, simulation: Simulation
) -> None:
    simulation.machine = simulation.machine.model_copy(update={"hypervisor": "kvm"})
    killed(tmp_path / "run", simulation, 3)
    simulation.machine = simulation.machine.model_copy(update={"hypervisor": "KVM"})
    resume(tmp_path / "run")
    sessions = run_file.load(tmp_path / "run").sessions
    assert deciding(sessions[0], sessions[1]) == []
    assert run_file.load(tmp_path / "run").warnings == sessions[0].warnings


def test_another_kernel_is_told(tmp_path: Path, simulation: Simulation) -> None:
    killed(tmp_path / "run", simulation, 3)
    simulation.machine = simulation.machine.model_copy(update={"kernel": "6.1"})
    resume(tmp_path / "run")
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    expected = "session 2 was not quite like the first: kernel: 6.0 and 6.1"
    assert expected in summary["warnings"]


def test_records_of_another_order_are_named(tmp_path: Path, simulation: Simulation) -> None:
    killed(tmp_path / "run", simulation, 5)
    path = tmp_path / "run" / RECORDS
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:2], lines[3], lines[2], *lines[4:]]))
    with pytest.raises(RunError, match=r"line 3: a trial with .*, where the order of this run"):
        resume(tmp_path / "run")
    assert len(records.read(path)) == 5


def test_an_unreadable_line_is_named(tmp_path: Path, simulation: Simulation) -> None:
    killed(tmp_path / "run", simulation, 4)
    path = tmp_path / "run" / RECORDS
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], '{"schema":"linerate/trial-2"}\n', *lines[2:]]))
    with pytest.raises(RunError, match=r"records.jsonl, line 2: .*identity: Field required"):
        resume(tmp_path / "run")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "holds no run"),
        ("{", "cannot read"),
        ("[]", "its schema is None"),
        ('{"schema":"linerate/run-2"}', "its schema is 'linerate/run-2', not 'linerate/run-1'"),
        ('{"schema":"linerate/run-1"}', "run.json: experiment: Field required"),
    ],
)
def test_what_is_no_run_is_said(tmp_path: Path, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / RUN).write_text(content)
    with pytest.raises(RunError, match=message):
        resume(tmp_path)
    with pytest.raises(RunError, match="no such directory"):
        resume(tmp_path / "absent")


def test_another_experiment_is_named(tmp_path: Path, simulation: Simulation) -> None:
    killed(tmp_path / "run", simulation, 2)
    run = run_file.load(tmp_path / "run")
    run.experiment = "juggling"
    (tmp_path / "run" / RUN).write_text(run_file.dump(run))
    with pytest.raises(RunError, match="experiment 'juggling' is unknown"):
        resume(tmp_path / "run")


def test_another_design_is_no_way_on(tmp_path: Path, simulation: Simulation) -> None:
    killed(tmp_path / "run", simulation, 2)
    run = run_file.load(tmp_path / "run")
    run.design["cells"][0]["blocks"] = 3
    (tmp_path / "run" / RUN).write_text(run_file.dump(run))
    with pytest.raises(RunError, match="another design"):
        resume(tmp_path / "run")


# -- the lock ------------------------------------------------------------------------------------


def test_two_labs_cannot_write_to_one_directory(tmp_path: Path, simulation: Simulation) -> None:
    killed(tmp_path / "run", simulation, 3)
    with OutputDirectory.existing(tmp_path / "run"), pytest.raises(OutputError, match="in use"):
        resume(tmp_path / "run")
    resume(tmp_path / "run")


def test_the_lock_goes_with_its_owner(tmp_path: Path) -> None:
    script = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from linerate.records.output import OutputDirectory\n"
        f"held = OutputDirectory(Path({str(tmp_path / 'run')!r}))\n"
        "print('held', flush=True)\n"
        "time.sleep(60)\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "held\n"
        with pytest.raises(OutputError, match="in use"):
            OutputDirectory(tmp_path / "run")
    finally:
        owner.kill()
        owner.communicate(timeout=30)
    OutputDirectory(tmp_path / "run").close()


def test_what_a_killed_lab_was_writing_goes(tmp_path: Path, simulation: Simulation) -> None:
    killed(tmp_path / "run", simulation, 3)
    (tmp_path / "run" / f".{RUN}.12345").write_text("{")
    resume(tmp_path / "run")
    assert names(tmp_path / "run") == set(FILES)


def test_a_copy_goes_on_as_well(tmp_path: Path, simulation: Simulation) -> None:
    killed(tmp_path / "run", simulation, 3)
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    resume(tmp_path / "copy")
    assert run_file.load(tmp_path / "copy").id == run_file.load(tmp_path / "run").id
