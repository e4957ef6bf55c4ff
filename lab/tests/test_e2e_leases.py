# SPDX-License-Identifier: BSD-3-Clause
"""Several labs at once on one machine: none spoils a trial of another."""

from __future__ import annotations

import itertools
import os
import random
import re
import resource
import time
from datetime import datetime
from pathlib import Path

import pytest
from conftest import wait_for
from test_e2e import STARVED, Run, disturbed, need, runtime

from linerate.host.cores.cpus import CPUS
from linerate.host.host import LOCAL
from linerate.host.process import remove_stale
from linerate.records import run_file

pytestmark = pytest.mark.e2e

__all__ = ["runtime"]

OPTIONS = (
    "--link", "null", "--blocks", "6", "--no-probe", "--forwarders", "reflect,rust-l2fwd",
)  # fmt: skip
# The last lab waits for all others, and for anything else that measures on this machine.
TIMEOUT_S = 900
# Seconds of CPU time per second of all other processes: with less no trial is starved.
QUIET = 0.03


def busy_s() -> float:
    """Return the CPU time that this machine's processes used since it started."""
    return sum(each.busy for each in LOCAL.sample(CPUS).cpus.values()) / os.sysconf("SC_CLK_TCK")


def ours_s() -> float:
    """Return the CPU time of this process, of ended labs and of everything that they started."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in both)


def times(run: Run) -> list[float]:
    """Return when each trial began, in seconds."""
    return [datetime.fromisoformat(trial.started_at).timestamp() for trial in run.trials()]


@pytest.mark.second_tier
@pytest.mark.skipif(
    len(os.sched_getaffinity(0)) >= 4, reason="two labs have two CPUs each, and do not wait"
)
def test_two_labs_at_once_take_turns(runtime: Path, tmp_path: Path) -> None:
    need("reflect", "l2fwd")
    others, began = busy_s() - ours_s(), time.monotonic()
    labs = [Run(runtime, tmp_path / name, *OPTIONS) for name in ("one", "other")]
    wait_for("one's end", lambda: any(lab.lab.poll() is not None for lab in labs), TIMEOUT_S)
    first, second = sorted(labs, key=lambda lab: lab.lab.poll() is None)
    status, _, errors = first.finish()
    assert status == 0, errors
    status, _, errors = second.finish(TIMEOUT_S)
    assert status == 0, errors
    others = (busy_s() - ours_s() - others) / (time.monotonic() - began)
    assert re.search(
        rf"^linerate: waiting for free CPUs .*: pid {first.lab.pid} \(.*linerate run overload ",
        errors,
        re.MULTILINE,
    ), errors
    assert len(times(first)) == len(times(second)) > 0
    assert max(times(first)) < min(times(second))
    for trial in (*first.trials(), *second.trials()):
        assert trial.valid or (others > QUIET and disturbed(trial, STARVED)), trial.invalid


def measured(run: Run) -> tuple[float, float]:
    """Return when an ended run began to measure, and when it ended, in seconds."""
    (session,) = run_file.load(run.out).sessions
    assert session.ended_at
    began, ended = map(datetime.fromisoformat, (session.started_at, session.ended_at))
    return began.timestamp(), ended.timestamp()


@pytest.mark.second_tier
@pytest.mark.skipif(
    len(os.sched_getaffinity(0)) >= 4, reason="two labs have two CPUs each, and do not wait"
)
def test_of_ten_labs_killed_at_random_none_spoils_another_s_trials(
    runtime: Path, tmp_path: Path
) -> None:
    need("reflect")
    dice = random.Random(39)
    least = ("--link", "null", "--blocks", "2", "--no-probe", "--forwarders", "reflect")
    labs = [Run(runtime, tmp_path / f"{number}", *least) for number in range(10)]
    doomed = dice.sample(labs, 5)
    for lab in doomed:
        time.sleep(dice.uniform(0, 5))
        lab.lab.kill()
        lab.lab.communicate()
    others = [lab for lab in labs if lab not in doomed]
    for lab in others:
        status, _, errors = lab.finish(TIMEOUT_S)
        assert status == 0, errors
    turns = sorted(map(measured, others))
    for (_, ended), (began, _) in itertools.pairwise(turns):
        assert ended <= began
    for time_s in [each for lab in doomed for each in times(lab)]:
        assert not any(began <= time_s <= ended for began, ended in turns)
    # The last lab may have been killed when no other lab came to start.
    remove_stale(runtime)
