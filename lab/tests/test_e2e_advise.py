# SPDX-License-Identifier: BSD-3-Clause
"""Advice from real runs on this machine, and what the commands in it add."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import by_schema
import pytest
from conftest import Linerate
from test_e2e import LEAST, Ended, Run, need, runtime

from linerate.experiments.placement.record import Advice
from linerate.host.exit_status import ExitStatus
from linerate.records.trial import Trial

pytestmark = pytest.mark.e2e

__all__ = ["runtime"]
# 100 % is 200,000 frames/s.
LOAD = 50_000


def asked(linerate: Linerate, *directories: Path) -> Advice:
    """Ask for half a second of delay, which every link keeps."""
    done = linerate(
        "advise", "--rate", str(LOAD), "--loss", "1%", "--latency", "p99:500ms", "--json",
        *map(str, directories),
    )  # fmt: skip
    found = Advice.model_validate_json(done.stdout)
    by_schema.check(json.loads(done.stdout), "advice-1.json")
    assert (done.returncode == ExitStatus.DONE) == (found.answer == "yes"), done.stderr
    return found


def at_load(trials: list[Trial]) -> list[Trial]:
    """Return the arm's own valid trials."""
    return [
        each
        for each in trials
        if each.valid
        and each.arm == each.forwarder
        and each.role != "self-test"
        and each.request.test in ("core-use", "latency")
        and each.request.pps == pytest.approx(LOAD)
    ]


def measured(runtime: Path, out: Path) -> Run:
    """Make the smallest possible run."""
    need("l2fwd", "reflect", "generator")
    run = Run(
        runtime, out, *LEAST, "--link", "memif", "--line-rate", str(4 * LOAD), "--blocks", "1"
    )
    code, _, errors = run.finish()
    assert code == 0, errors
    return run


def test_one_block_is_read_and_decides_nothing(memif2_run: Ended, linerate: Linerate) -> None:
    run = memif2_run.run
    found = asked(linerate, run.out)
    (setting,) = found.settings
    assert (setting.link, setting.here, setting.beside) == ("memif2", True, "")
    placements = {each.forwarder: each for each in setting.placements}
    assert placements.keys() == {"c-l2fwd", "rust-l2fwd"}
    placement = placements["rust-l2fwd"]
    assert placement.cores == 1
    assert placement.answer in ("undecided", "not measured")
    assert placement.delays[0].answer == "not measured"
    (rate,) = placement.rates
    # On a busy machine the window may be void; then there is only the flood.
    if good := at_load([each for each in run.trials() if each.forwarder == "rust-l2fwd"]):
        assert (rate.source, rate.blocks, rate.begun) == ("fixed loads", 1, 1)
        sent, received = good[0].frames.attempted, good[0].frames.received
        assert sent
        assert received is not None
        assert rate.carried == (received >= 0.99 * sent)
        assert "an interval needs 6 blocks" in placement.sentence
    (command,) = found.commands
    assert command.startswith(
        "linerate run latency --frames udp --line-rate 55555.55556 --link memif2"
    )


@pytest.mark.second_tier
def test_its_command_measures_what_was_lacking(
    tmp_path: Path, runtime: Path, linerate: Linerate
) -> None:
    run = measured(runtime, tmp_path / "run")
    first = asked(linerate, run.out)
    rates = [rate for each in first.settings for one in each.placements for rate in one.rates]
    if any(rate.answer == "no" for rate in rates):
        # If others had the machine, frames were lost, and the delay does not matter.
        assert first.commands == []
        return
    (command,) = first.commands
    name, verb, experiment, *options = shlex.split(command)
    assert (name, verb) == ("linerate", "run")
    # The smallest possible run: only the offered loads are checked.
    least = ("--blocks", "1", "--packets", "1000")
    more = Run(runtime, tmp_path / "more", *options, *least, experiment=experiment)
    code, _, errors = more.finish()
    assert code == 0, errors
    (setting,) = asked(linerate, run.out, more.out).settings
    (placement,) = setting.placements
    blocks = {each.block for each in at_load(more.trials()) if each.frames.latency}
    delays = placement.delays[1]
    assert (delays.run, delays.blocks) == (2, len(blocks))
    # A busy machine may spoil the window.
    if blocks:
        assert delays.least_pps == pytest.approx(LOAD)
        assert delays.within == 1
