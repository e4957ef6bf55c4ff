# SPDX-License-Identifier: BSD-3-Clause
"""Real runs whose processes are killed at random moments, and which are resumed until they are
done.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import by_schema
import pytest
from conftest import wait_for
from test_e2e import Run, check_files, disturbed, need, runtime

from linerate.experiments.rfc2544.runs import Found
from linerate.host.leftovers.traces import Traces, left_behind
from linerate.records import run_file
from linerate.records.run_file import RUN
from linerate.records.trial import DISTURBED as VOID
from linerate.records.trial import InvalidCode, Trial
from linerate.runs.registry import find

pytestmark = pytest.mark.e2e

# `make kills` sets more.
KILLS = int(os.environ.get("LINERATE_KILLS", "4"))
# As many as are not measured before the last kill.
BLOCKS = {"overload": max(2, KILLS // 5), "rfc2544": max(1, KILLS // 12)}
# Low enough for any machine to send on time.
RATE = "100000"
OPTIONS = {
    "overload": (
        "--link", "null,memif", "--blocks", str(BLOCKS["overload"]),
        "--forwarders", "c-l2fwd,rust-l2fwd", "--line-rate", RATE, "--seed", "3",
        # Six pairs of programs that are killed together take minutes to restart.
        "--method", "fresh",
    ),
    "rfc2544": (
        "--link", "memif", "--blocks", str(BLOCKS["rfc2544"]),
        "--forwarders", "c-l2fwd,rust-l2fwd",
        "--tests", "throughput,latency,recovery", "--line-rate", RATE, "--seed", "3",
    ),
}  # fmt: skip
VICTIMS = ("lab", "generator", "forwarder")
# In the middle of measuring, or after some seconds, at startup or wherever that is.
MOMENTS = ("measuring", "anywhere")
CASES = list(itertools.product(MOMENTS, VICTIMS))
# What other work does to a window, and what a kill does to it.
DISTURBED: tuple[InvalidCode, ...] = ("late", "starved", "link")
KILLED: tuple[InvalidCode, ...] = ("ended", "generator", "telemetry")

__all__ = ["runtime"]


class Session(Run):
    """`linerate run EXPERIMENT`, or the same with `--resume` if there is a run."""

    def __init__(
        self, experiment: str, runtime: Path, out: Path, asked: Sequence[str] | None = None
    ) -> None:
        """`asked`: options of a run that begins; None: those of its experiment here."""
        self.out = out
        self.runtime = runtime
        options = ["--resume", str(out)]
        if not (out / RUN).exists():
            if asked is None:
                asked = OPTIONS[experiment]
            options = ["--out", str(out), "--keep-going", *asked]
        self.lab = subprocess.Popen(
            [sys.executable, "-m", "linerate", "run", experiment, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "XDG_RUNTIME_DIR": str(runtime)},
        )

    @property
    def running(self) -> bool:
        return self.lab.poll() is None

    def await_further(self, trials: int) -> None:
        """Wait until there are so many trials, or no more to come."""
        wait_for(f"{trials} trials", lambda: len(self.trials()) >= trials or not self.running, 180)

    def descendants(self) -> list[int]:
        tasks = Path(f"/proc/{self.lab.pid}/task").glob("*/children")
        return [int(word) for task in tasks for word in task.read_text().split()]

    def kill(self) -> None:
        """Kill the lab (SIGKILL); its processes end with it."""
        children = self.descendants() if self.running else []
        self.lab.kill()
        self.lab.communicate(timeout=30)
        wait_for(
            "the end of the lab's processes",
            lambda: not any(Path(f"/proc/{pid}").exists() for pid in children),
        )

    def kill_child(self, program: str) -> None:
        """Kill one of the lab's processes (SIGKILL); the lab continues."""
        for pid in self.children(program):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def place(trial: Trial) -> tuple[object, ...]:
    """Return a trial's key, unique in a run except in searches, which repeat requests."""
    return (
        *trial.cell.key, trial.role, trial.arm, trial.block, trial.request.load_share,
        trial.request.test, trial.request.attempt,
    )  # fmt: skip


def cases(experiment: str) -> list[tuple[str, str]]:
    """Yield moment and victim of each kill; when the first experiment ends, the next one
    continues.
    """
    first = list(OPTIONS).index(experiment) * KILLS
    return [CASES[(first + number) % len(CASES)] for number in range(KILLS)]


def test_the_few_kills_of_all_experiments_cover_every_case() -> None:
    made = [case for experiment in OPTIONS for case in cases(experiment)]
    assert set(made) == set(CASES[: len(made)])
    for experiment in OPTIONS:
        # Otherwise nothing could be resumed.
        assert len(VICTIMS) > KILLS or "lab" in {victim for _, victim in cases(experiment)}


@pytest.mark.second_tier
@pytest.mark.parametrize("experiment", ["overload", "rfc2544"])
def test_killed_at_random_moments(tmp_path: Path, runtime: Path, experiment: str) -> None:
    need("l2fwd", "reflect", "generator")
    moments = random.Random(f"6:{experiment}")
    out = tmp_path / "run"
    before = Traces.of(runtime)
    run = Session(experiment, runtime, out)
    seen: list[Trial] = []
    killed_after = []
    for moment, victim in cases(experiment):
        more = moments.randint(1, 5) if moment == "measuring" else 0
        run.await_further(len(seen) + more)
        time.sleep(moments.uniform(0, 1) if more else moments.uniform(0.2, 4))
        if victim == "lab" or not run.running:
            run.kill()
            killed_after.append(len(run.trials()))
            run = Session(experiment, runtime, out)
        else:
            for program in ("generator",) if victim == "generator" else ("l2fwd", "reflect"):
                run.kill_child(program)
        done = run.trials()
        # What was finished stays, as it was.
        assert done[: len(seen)] == seen
        seen = done
    code, _, errors = run.finish()
    assert code == 0, errors
    check_files(run)
    by_schema.check(json.loads((out / RUN).read_text()), "run-1.json")
    trials = run.trials()
    assert trials[: len(seen)] == seen
    # Each trial of the order exactly once.
    assert [trial.position for trial in trials] == list(range(len(trials)))
    places = [place(trial) for trial in trials if trial.role != "search"]
    assert len(set(places)) == len(places)
    kept = run_file.load(out)
    if experiment == "overload":
        check_arms(trials)
    else:
        check_searches(kept, trials)
    sessions = {trial.session for trial in trials}
    # A lab that is killed before its first trial, or after its last, leaves no records.
    if any(0 < count < len(trials) for count in killed_after):
        assert len(sessions) > 1
    for trial in trials:
        assert trial.valid or disturbed(trial, *DISTURBED, *KILLED), trial.invalid
        if trial.frames.accepted is not None and trial.valid:
            assert trial.frames.accepted == (trial.frames.received or 0) + (
                trial.frames.forwarder_drops or 0
            )
    assert kept.complete(len(trials))
    assert sessions <= {each.session for each in kept.sessions}
    assert run.summary()["interrupted"] is False
    assert left_behind(runtime, before) == []


def check_arms(trials: list[Trial]) -> None:
    """Check that every arm had its trials."""
    for link in ("null", "memif"):
        arms = [t.arm for t in trials if (t.cell.name, t.role) == (link, "measure")]
        assert {arms.count(arm) for arm in ("c-l2fwd", "c-l2fwd-again", "rust-l2fwd")} == {
            BLOCKS["overload"]
        }


def check_searches(kept: run_file.Run, trials: list[Trial]) -> None:
    """Check that every search was made, window by window, and that a new search with these results
    asks for the same windows.
    """
    told = find(kept.experiment).findings(kept, trials)
    assert isinstance(told, Found)
    for each in itertools.chain(*told.searches.values()):
        assert each.mismatch is None
        # A search that ran out of time has no record of that.
        assert each.complete or each.cut_in == "throughput"
    found = [trial for trial in trials if trial.role == "search"]
    searches = [(trial.block, trial.arm) for trial in found]
    assert searches == sorted(searches, key=list(dict.fromkeys(searches)).index)
    for block in range(BLOCKS["rfc2544"]):
        labels = {arm for of, arm in searches if of == block}
        assert {"c-l2fwd", "c-l2fwd-again", "rust-l2fwd"} < labels
    for one, after in itertools.pairwise(found):
        if (after.request.attempt or 1) > 1:
            assert (one.arm, one.request.pps, one.request.attempt) == (
                after.arm, after.request.pps, (after.request.attempt or 1) - 1,
            )  # fmt: skip
            assert not one.valid
        elif one.invalid_code in VOID:
            # All windows that it may use were void.
            assert one.request.attempt == told.asked.search.terms.windows
