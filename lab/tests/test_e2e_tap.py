# SPDX-License-Identifier: BSD-3-Clause
"""Real runs over tap interfaces: every frame is received or named, and no interface stays."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from test_e2e import LATE, STARVED, Run, disturbed, need, runtime

from linerate.host.errors import LabError
from linerate.host.process import NAMESPACES
from linerate.links import link

pytestmark = pytest.mark.e2e

__all__ = ["runtime"]
# Low enough for any machine to send on time.
RATE = "5000"


def start(runtime: Path, out: Path, blocks: int) -> Run:
    need("l2fwd", "reflect", "generator")
    try:
        link("tap").prepare()
    except LabError as error:
        pytest.skip(str(error))
    return Run(
        runtime, out, "--link", "tap", "--blocks", str(blocks), "--no-probe",
        "--forwarders", "c-l2fwd,rust-l2fwd", "--line-rate", RATE,
    )  # fmt: skip


def left_by(run: Run) -> list[Path]:
    """Return what this process left behind; other processes may test at the same time."""
    return list(NAMESPACES.glob(f"linerate-{run.lab.pid}-*"))


@pytest.mark.second_tier
def test_forwarders_on_net_tap_close_their_books(tmp_path: Path, runtime: Path) -> None:
    """One sender serves several forwarders, each of which opens the same interfaces."""
    run = start(runtime, tmp_path / "run", 1)
    code, _, errors = run.finish()
    assert code == 0, errors
    trials = run.trials()
    assert {trial.forwarder for trial in trials} >= {"c-l2fwd", "rust-l2fwd"}
    for trial in trials:
        assert trial.valid or disturbed(trial, LATE, STARVED), (trial.forwarder, trial.invalid)
        assert (trial.frames.forwarder_rx or 0) > 100
        assert trial.frames.accepted
        assert trial.frames.unattributed == 0, (
            trial.forwarder,
            trial.request.load,
            trial.frames.link_drops,
        )
        (argv,) = (each.argv for each in trial.program.processes if each.role == "forwarder")
        assert any(word.startswith("net_tap1,iface=") for word in argv)
    assert not left_by(run)


@pytest.mark.second_tier
def test_an_interrupted_run_leaves_no_interface(tmp_path: Path, runtime: Path) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        run = start(runtime, tmp_path / number.name, 50)
        run.await_trials(1)
        assert left_by(run)
        run.lab.send_signal(number)
        run.finish()
        assert not left_by(run)
