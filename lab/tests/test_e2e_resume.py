# SPDX-License-Identifier: BSD-3-Clause
"""Real runs whose lab is killed at random moments, and which go on until they are complete."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest
from conftest import wait_for
from test_e2e import Run, check_files, disturbed, need, runtime

from linerate import run_file, schemas
from linerate.records import Trial
from linerate.run_file import RUN

pytestmark = pytest.mark.e2e

# A soak asks for more.
KILLS = int(os.environ.get("LINERATE_KILLS", "5"))
OPTIONS = (
    "--link", "null,memif", "--blocks", "3", "--forwarders", "c-l2fwd,rust-l2fwd", "--seed", "3",
)  # fmt: skip

__all__ = ["runtime"]


class Again(Run):
    """`linerate run overload --resume`."""

    def __init__(self, runtime: Path, out: Path) -> None:
        self.out = out
        self.runtime = runtime
        self.lab = subprocess.Popen(
            [sys.executable, "-m", "linerate", "run", "overload", "--resume", str(out)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "XDG_RUNTIME_DIR": str(runtime)},
        )


def descendants(run: Run) -> list[int]:
    tasks = Path(f"/proc/{run.lab.pid}/task").glob("*/children")
    return [int(word) for task in tasks for word in task.read_text().split()]


def kill(run: Run, trials: int, after_s: float) -> bool:
    """SIGKILL the lab so long after it has so many trials; its processes end with it.

    False: it was done before.
    """
    wait_for(
        f"{trials} trials", lambda: len(run.trials()) >= trials or run.lab.poll() is not None, 180
    )
    time.sleep(after_s)
    children = descendants(run) if run.lab.poll() is None else []
    run.lab.kill()
    run.lab.communicate(timeout=30)
    wait_for(
        "the end of the lab's processes",
        lambda: not any(Path(f"/proc/{pid}").exists() for pid in children),
    )
    return run.lab.returncode == -9


def place(trial: Trial) -> tuple[object, ...]:
    return trial.link, trial.size, trial.role, trial.arm, trial.block, trial.load_share


def test_killed_at_random_moments(tmp_path: Path, runtime: Path) -> None:
    need("l2fwd", "reflect", "generator")
    moments = random.Random(6)
    out = tmp_path / "run"
    run: Run = Run(runtime, out, *OPTIONS)
    killed = 0
    seen: list[Trial] = []
    for number in range(KILLS):
        # Every other time while it starts, else in the midst of measuring.
        if number % 2:
            killed += kill(run, len(seen), moments.uniform(0.2, 4))
        else:
            killed += kill(run, len(seen) + moments.randint(1, 5), moments.uniform(0, 1))
        done = run.trials()
        # What was finished stays, as it was.
        assert done[: len(seen)] == seen
        seen = done
        run = Again(runtime, out) if (out / RUN).exists() else Run(runtime, out, *OPTIONS)
    code, _, errors = run.finish()
    assert code == 0, errors
    assert killed > 0
    check_files(run)
    jsonschema.validate(json.loads((out / RUN).read_text()), schemas.stored("run-1.json"))
    trials = run.trials()
    assert trials[: len(seen)] == seen
    # Each trial of the order once, and all of them.
    assert [trial.position for trial in trials] == list(range(len(trials)))
    places = [place(trial) for trial in trials]
    assert len(set(places)) == len(places)
    for link in ("null", "memif"):
        arms = [t.arm for t in trials if (t.link, t.role) == (link, "measure")]
        assert {arms.count(arm) for arm in ("c-l2fwd", "c-l2fwd-again", "rust-l2fwd")} == {3}
    sessions = {trial.session for trial in trials}
    assert len(sessions) > 1
    # A link may be late once on a machine with other work; a bed that was not cleared would be
    # late in every trial.
    assert sum(trial.invalid_code == "link" for trial in trials) <= 1
    for trial in trials:
        assert trial.valid or disturbed(trial, "late", "starved", "link"), trial.invalid
        if trial.accepted is not None:
            assert trial.accepted == (trial.received or 0) + (trial.forwarder_drops or 0)
    kept = run_file.load(out)
    assert kept.complete(len(trials))
    assert sessions <= {each.session for each in kept.sessions}
    assert run.summary()["interrupted"] is False
