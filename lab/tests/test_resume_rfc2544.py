# SPDX-License-Identifier: BSD-3-Clause
"""A search continues after an interruption at any window: nothing is lost, nothing is sent
twice.
"""

from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from simulated import KilledError, printed
from simulated_lab import (
    CAPACITY,
    CEILING_PPS,
    QUICK,
    SimulatedLab,
    quiet,
    resume,
    start,
)
from trials import changed

from linerate.experiments.rfc2544.plan import Rfc2544
from linerate.host.errors import LabError, RunError
from linerate.records import run_file
from linerate.records import trial as records
from linerate.records.summary import SUMMARY
from linerate.records.trial import RECORDS, Trial
from linerate.traffic.other_generator import Named
from linerate.trial.search.simulated import Model

SHORT: dict[str, Any] = {"tests": ("throughput",), "blocks": 2}


def exact() -> SimulatedLab:
    """A forwarder's capacity does not depend on when it was started."""
    return SimulatedLab(noise=0)


def without_sessions(trials: list[Trial]) -> list[dict[str, Any]]:
    """Return what does not depend on when the forwarder was started, as its frames' delays do."""
    return [
        trial.model_dump(exclude={"identity": {"session", "run"}, "outcome": {"latency"}})
        for trial in trials
    ]


def kill_before(lab: SimulatedLab, window: int) -> Callable[[], None]:
    """Kill the lab before this window; the returned function restores it."""
    left = [window]

    def count(_: Trial) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise KilledError

    lab.before_window = count

    def spare() -> None:
        lab.before_window = lambda _: None

    return spare


def cut(directory: Path, whole: Path, kept: int, torn: int = 0) -> None:
    """Leave of a run what SIGKILL leaves: so many lines and some bytes, and no end of its
    session.
    """
    directory.mkdir()
    data = json.loads((whole / run_file.RUN).read_text())
    for name in ("end", "ended_at", "trials"):
        del data["sessions"][0][name]
    (directory / run_file.RUN).write_text(json.dumps(data))
    lines = (whole / RECORDS).read_bytes().splitlines(keepends=True)
    (directory / RECORDS).write_bytes(b"".join(lines[:kept]) + lines[kept][:torn])


# With the third the sender is late at most of the rates of the self-test.
@pytest.mark.parametrize(
    ("on_time_pps", "every"),
    [
        (math.inf, 4),
        pytest.param(math.inf, 1, marks=pytest.mark.second_tier),
        pytest.param(0.86 * CEILING_PPS, 1, marks=pytest.mark.second_tier),
    ],
)
def test_cut_after_any_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_time_pps: float, every: int
) -> None:
    def lab() -> SimulatedLab:
        return SimulatedLab(noise=0, late=lambda pps: float(pps > on_time_pps))

    whole = start(lab(), tmp_path / "whole", **SHORT)
    monkeypatch.setattr("linerate.runs.session.publish", lambda *_: whole)
    expected = without_sessions(whole.trials)
    # All of the self-test and of the first search, then here and there; or one in so many of these.
    for kept in [*range(60), *range(60, len(expected), 7)][::every]:
        directory = tmp_path / f"cut-{kept}"
        cut(directory, tmp_path / "whole", kept, torn=kept % 40)
        resume(lab(), directory)
        found = records.read(directory / RECORDS)
        assert without_sessions(found) == expected
        assert [t.session for t in found] == [1] * kept + [2] * (len(expected) - kept)
        assert run_file.load(directory).complete(len(found))


def test_cut_in_any_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = start(exact(), tmp_path / "whole", blocks=1)
    monkeypatch.setattr("linerate.runs.session.publish", lambda *_: whole)
    expected = without_sessions(whole.trials)
    seen = {trial.request.test for trial in whole.trials}
    assert {"throughput", "latency", "loss", "back-to-back", "recovery", "low-load"} <= seen
    for kept in range(3, len(expected), 23):
        directory = tmp_path / f"cut-{kept}"
        cut(directory, tmp_path / "whole", kept)
        resume(exact(), directory)
        assert without_sessions(records.read(directory / RECORDS)) == expected


def test_killed_again_and_again_amid_void_windows(tmp_path: Path) -> None:
    """A void window stays void: the trial continues with the next, up to the same limit."""
    run = tmp_path / "run"
    lab = SimulatedLab(late=lambda _: 0.6)
    kill_before(lab, 40)
    with pytest.raises(KilledError):
        start(lab, run, **SHORT)
    for attempt in range(200):
        lab = SimulatedLab(late=lambda _: 0.6, seed=attempt + 2)
        spare = kill_before(lab, 41)
        try:
            found = resume(lab, run)
        except KilledError:
            spare()
            continue
        break
    trials = records.read(run / RECORDS)
    assert len({trial.session for trial in trials}) > 5
    assert [trial.position for trial in trials] == list(range(len(trials)))
    for before, after in itertools.pairwise(trials):
        if after.request.attempt and after.request.attempt > 1:
            assert before.request.attempt == after.request.attempt - 1
            assert before.invalid_code == "late"
            assert (before.arm, before.request.pps) == (after.arm, after.request.pps)
    assert not found.summary.interrupted
    for arm in found.summary.cells[0].arms:
        assert arm.search is not None
        assert (arm.search.unfinished, arm.search.reasons) == (0, {})
        assert arm.search.goals[0].pps is not None
    assert any("interrupted and finished in another" in text for text in found.summary.warnings)


def test_a_run_that_ended_before_its_searches_costs_them_no_pair(tmp_path: Path) -> None:
    """Blocks of the self-test and of the searches are both counted from 0."""
    lab = SimulatedLab()

    def kill(trial: Trial) -> None:
        if trial.role == "search":
            raise KilledError

    lab.before_window = kill
    run = tmp_path / "run"
    with pytest.raises(KilledError):
        start(lab, run, **SHORT)
    found = resume(SimulatedLab(), run)
    assert {t.session for t in found.trials if t.role == "self-test"} == {1}
    assert {t.session for t in found.trials if t.role == "search"} == {2}
    assert not any("interrupted" in text for text in found.summary.warnings)


def test_a_search_of_two_sessions_makes_no_pair(tmp_path: Path) -> None:
    """Its halves would be from different setups."""
    lab = SimulatedLab()
    # In the middle of the second block.
    kill_before(lab, 250)
    run = tmp_path / "run"
    with pytest.raises(KilledError):
        start(lab, run, tests=("throughput",), blocks=7)
    found = resume(SimulatedLab(), run)
    comparison = next(each for each in found.summary.comparisons if each.metric == "ndr_pps")
    assert comparison.n == 6
    arm = next(each for each in found.summary.cells[0].arms if each.arm == "rust-l2fwd")
    assert arm.search is not None
    assert arm.search.searches == 7


@pytest.mark.parametrize(
    ("halved", "paired"),
    [
        # The last of the pair: its throughput shares a setup with the other's, its loss does not.
        ("c-l2fwd", {"ndr_pps": 7, "latency_p50_us": 6, "pdv_p99_us": 6, "loss_ratio": 6}),
        # The first: its loss is measured with the other's, after the interruption.
        ("rust-l2fwd", {"ndr_pps": 6, "latency_p50_us": 6, "pdv_p99_us": 6, "loss_ratio": 7}),
    ],
)
def test_a_test_of_another_session_than_the_other_arm_s_makes_no_pair(
    tmp_path: Path, halved: str, paired: dict[str, int]
) -> None:
    """Killed during a search's latency test, in a block in which the baseline comes after
    the arm.
    """
    lab = SimulatedLab()
    left = [2]

    def kill(trial: Trial) -> None:
        if (trial.block, trial.arm, trial.request.test) == (1, halved, "latency"):
            left[0] -= 1
            if left[0] < 0:
                raise KilledError

    lab.before_window = kill
    run = tmp_path / "run"
    with pytest.raises(KilledError):
        start(lab, run, blocks=7, tests=("throughput", "latency", "loss"))
    found = resume(SimulatedLab(), run)
    order = [t.arm for t in found.trials if (t.role, t.block) == ("search", 1)]
    assert order.index("rust-l2fwd") < order.index("c-l2fwd")
    counts = {each.metric: each.n for each in found.summary.comparisons}
    assert {metric: counts[metric] for metric in paired} == paired


def test_the_share_of_100_per_cent_is_of_the_peer_on_the_same_bed(tmp_path: Path) -> None:
    """After the interruption the machine is slower by half, and so is the peer."""
    lab = SimulatedLab(noise=0)

    def kill(trial: Trial) -> None:
        if (trial.block, trial.arm) == (0, "reflect") and trial.role == "search":
            raise KilledError

    lab.before_window = kill
    run = tmp_path / "run"
    with pytest.raises(KilledError):
        start(lab, run, **SHORT)
    half = {name: capacity / 2 for name, capacity in CAPACITY.items()}
    found = resume(SimulatedLab(noise=0, capacity=half), run)
    first = {t.arm: t.session for t in found.trials if (t.role, t.block) == ("search", 0)}
    assert (first["c-l2fwd"], first["reflect"]) == (1, 2)
    arm = next(each for each in found.summary.cells[0].arms if each.arm == "c-l2fwd")
    # Based on the first block alone it would be twice that.
    assert arm.ceiling_share == pytest.approx(CAPACITY["c-l2fwd"] / CAPACITY["reflect"], rel=0.02)


def test_a_search_that_ran_out_of_time_is_not_gone_on_with(tmp_path: Path) -> None:
    """In the live run the clock ended it; in the records the next test shows that."""
    hasty = replace(QUICK, limit_s=1e-9)
    whole = start(
        exact(), tmp_path / "whole", preset=hasty, keep_going=True, tests=("throughput", "loss")
    )
    directory = tmp_path / "cut"
    kept = len(whole.trials) - 5
    cut(directory, tmp_path / "whole", kept)
    resume(exact(), directory)
    assert without_sessions(records.read(directory / RECORDS)) == without_sessions(whole.trials)


def test_a_failed_self_test_is_made_again(tmp_path: Path) -> None:
    lab = SimulatedLab()
    lab.peers_starve = True
    run = tmp_path / "run"
    with pytest.raises(LabError, match="no trial of a reference peer counts"):
        start(lab, run, **SHORT)
    failed = len(records.read(run / RECORDS))
    found = resume(SimulatedLab(), run)
    assert all(trial.valid for trial in found.trials[failed:])
    assert found.summary.comparisons[0].ratio is not None


def test_searches_that_all_failed_stay_and_those_after_them_are_made(tmp_path: Path) -> None:
    broken = SimulatedLab(model=Model(capacity_pps=1.0, max_pps=1.0, failing=0.9))
    run = tmp_path / "run"
    with pytest.raises(LabError, match="found no throughput"):
        start(broken, run, line_rate=CEILING_PPS, tests=("throughput",))
    before = (run / RECORDS).read_bytes()
    found = resume(SimulatedLab(), run)
    assert not found.summary.interrupted
    assert (run / RECORDS).read_bytes().startswith(before)
    failed = {(t.block, t.arm) for t in found.trials if t.role == "search" and t.session == 1}
    assert len(failed) >= Rfc2544.failures.most
    cell = found.summary.cells[0]
    figures = [arm.search for arm in [*cell.arms, *cell.references] if arm.search]
    assert sum(each.unfinished for each in figures) == len(failed)
    # Of 10 blocks, those of the second session have a throughput.
    assert {each.searches for each in figures} == {10}
    again = {(t.block, t.arm) for t in found.trials if t.role == "search" and t.session == 2}
    assert len(again) == 10 * 4 - len(failed)
    assert not again & failed


def test_a_complete_run_is_told_again(tmp_path: Path) -> None:
    start(exact(), tmp_path / "run", **SHORT)
    before = (tmp_path / "run" / RECORDS).read_bytes()
    console = quiet()
    lab = exact()
    kill_before(lab, 0)
    resume(lab, tmp_path / "run", console)
    assert "nothing is to be run" in printed(console)
    assert (tmp_path / "run" / RECORDS).read_bytes() == before


@pytest.mark.parametrize(
    ("change", "message"),
    [({"pps": 1.0}, "was of frames/s"), ({"arm": "reflect"}, "where the order of this run")],
)
def test_records_of_another_run_are_refused(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    start(exact(), tmp_path / "whole", **SHORT)
    cut(tmp_path / "cut", tmp_path / "whole", 40)
    path = tmp_path / "cut" / RECORDS
    others = [
        changed(trial, **change) if trial.role == "search" else trial
        for trial in records.read(path)
    ]
    path.write_text("".join(records.dump(trial) + "\n" for trial in others))
    before = path.read_bytes()
    with pytest.raises(RunError, match=message):
        resume(exact(), tmp_path / "cut")
    assert path.read_bytes() == before


def test_a_record_of_another_search_amid_a_test_is_named(tmp_path: Path) -> None:
    """Only a search for the throughput can run out of time."""
    start(exact(), tmp_path / "whole", tests=("throughput", "latency"), blocks=1)
    trials = records.read(tmp_path / "whole" / RECORDS)
    first, second, *_ = (trial for trial in trials if trial.request.test == "latency")
    assert first.arm == second.arm
    cut(tmp_path / "cut", tmp_path / "whole", second.position + 1)
    path = tmp_path / "cut" / RECORDS
    kept = records.read(path)
    kept[-1].identity.arm = "testpmd-io"
    path.write_text("".join(records.dump(trial) + "\n" for trial in kept))
    message = f"line {len(kept)}: a trial with arm testpmd-io, where the order of this run has arm"
    with pytest.raises(RunError, match=message):
        resume(exact(), tmp_path / "cut")


TWO_PORTS: dict[str, Any] = {
    "links": ["ports"],
    "generator_ports": ["ring:a", "ring:b"],
    "forwarder_ports": ["tap:a", "tap:b"],
}


@pytest.mark.parametrize("directions", ["one", "both"])
def test_a_run_on_devices_goes_on_in_another_process(tmp_path: Path, directions: str) -> None:
    lab = exact()
    kill_before(lab, 40)
    with pytest.raises(KilledError):
        start(lab, tmp_path / "run", **SHORT, **TWO_PORTS, directions=directions)
    assert resume(exact(), tmp_path / "run").summary.interrupted is False


@pytest.mark.parametrize(
    ("asked", "given", "theirs"),
    [
        (
            {"links": ["memif2"], "directions": "one"},
            "--directions both",
            "--directions one",
        ),
        (
            {**TWO_PORTS, "generator": Named("http://127.0.0.1:1"), "line_rate": 3e6},
            "--generator http://127.0.0.1:2",
            "--generator http://127.0.0.1:1",
        ),
    ],
)
def test_options_are_held_against_those_of_the_run(
    tmp_path: Path, asked: dict[str, Any], given: str, theirs: str
) -> None:
    """They are not compared with the defaults of a new run, which would refuse these for other
    reasons.
    """
    lab = exact()
    kill_before(lab, 10)
    run = tmp_path / "run"
    with pytest.raises(KilledError):
        start(lab, run, **SHORT, **asked)
    command = ["run", "rfc2544", "--resume", str(run), *given.split()]
    done = subprocess.run(
        [sys.executable, "-m", "linerate", *command],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert f"{given}: the run in {run} has {theirs}" in done.stderr


def test_a_run_can_be_doubled_and_takes_no_other_number_of_blocks(tmp_path: Path) -> None:
    """The repetitions of its tests are spread over its blocks."""
    start(SimulatedLab(seed=1), tmp_path, **SHORT)
    lab = SimulatedLab(seed=2)
    with pytest.raises(RunError, match="the runs have different options"):
        resume(lab, tmp_path, None, **{"--blocks": 3})
    assert not (tmp_path / "more-1").exists()
    resume(lab, tmp_path, None, **{"--blocks": 4})
    found = json.loads((tmp_path / SUMMARY).read_text())
    assert [cell["blocks"] for cell in found["cells"]] == [4]
    (arm, *_) = found["cells"][0]["arms"]
    assert arm["search"]["searches"] == 4
