# SPDX-License-Identifier: BSD-3-Clause
"""A search through `--generator URL`: our generator, started by hand, in the place of another."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests
from conftest import wait_for
from test_e2e import RELEASE, need, runtime
from test_e2e_rfc2544 import searches

from linerate.host.cores.cpus import Cores
from linerate.records.trial import DISTURBED

pytestmark = pytest.mark.e2e

__all__ = ["runtime"]
# A window's frames fit into the link's rings, so no pause of the machine delays them.
RATE = 8000


@dataclass
class ByHand:
    """A generator that a user has started, and its link."""

    url: str
    socket: Path

    def configuration(self) -> object:
        return requests.get(f"{self.url}/config", timeout=10).json()

    def lab(self, runtime: Path, out: Path, *options: str) -> subprocess.Popen[str]:
        vdev = f"net_memif0,role=client,socket={self.socket},socket-abstract=no"
        return subprocess.Popen(
            [sys.executable, "-m", "linerate", "run", "rfc2544", "--out", str(out),
             "--generator", self.url, "--line-rate", str(RATE), "--link", "ports",
             "--generator-port", f"memif:{self.socket}", "--forwarder-port", f"vdev:{vdev}",
             "--hugepages", "no", "--keep-going", "--blocks", "1",
             "--forwarders", "rust-l2fwd", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "XDG_RUNTIME_DIR": str(runtime)},
        )  # fmt: skip


@pytest.fixture
def by_hand(runtime: Path, tmp_path: Path) -> Iterator[ByHand]:
    need("l2fwd", "reflect", "generator")
    directory = Path(f"/tmp/lr-other-{os.getpid()}")
    directory.mkdir(mode=0o700)
    log = tmp_path / "generator.log"
    cpu = str(Cores.choose().control)
    with log.open("wb") as output:
        child = subprocess.Popen(
            [RELEASE / "generator", "--otg-listen", "127.0.0.1:0", "--cpus", cpu,
             "--socket-directory", directory, "--insecure"],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "XDG_RUNTIME_DIR": str(directory)},
        )  # fmt: skip

    def url() -> str | None:
        found = re.search(r"^OTG on (\S+)", log.read_text(), re.MULTILINE)
        return found and found.group(1)

    try:
        wait_for("the generator", lambda: url() or child.poll() is not None, 60)
        found = url()
        assert found, log.read_text()
        yield ByHand(found, directory / "link.sock")
    finally:
        child.terminate()
        child.wait(30)
        for path in sorted(directory.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        directory.rmdir()


@pytest.mark.second_tier
def test_a_search_with_another_generator(by_hand: ByHand, runtime: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    lab = by_hand.lab(runtime, out, "--tests", "latency")
    output, errors = lab.communicate(timeout=400)
    assert lab.returncode == 0, errors
    assert f"frames are sent by {by_hand.url}" in output
    assert "cut_through: whatever the mode" in output
    found = searches(out)
    assert {trial.arm for trial in found} == {"rust-l2fwd", "rust-l2fwd-again", "reflect"}
    for trial in found:
        assert trial.valid or trial.invalid_code in DISTURBED, trial.invalid
        # What OTG does not report is absent; with what it reports, the books close.
        assert (
            trial.frames.late
            is trial.frames.lost_at_ingress
            is trial.frames.pacing_error_ppm
            is None
        )
        assert trial.frames.refused is trial.frames.duration_s is None
        assert trial.frames.attempted == trial.frames.accepted is not None
        assert trial.frames.unattributed == 0
        assert [process.role for process in trial.program.processes] == ["forwarder"]
        if trial.valid:
            # OTG's rates are whole frames per second.
            asked = (trial.request.pps or 0) * (trial.request.seconds or 0)
            assert trial.frames.intended == trial.frames.attempted == pytest.approx(asked, abs=1.1)
    for trial in found:
        if trial.valid and trial.request.test == "latency":
            assert trial.frames.latency is not None
            assert (
                trial.frames.latency.minimum_ns
                <= trial.frames.latency.mean_ns
                <= trial.frames.latency.maximum_ns
            )
            assert (trial.frames.latency.quantiles_ns, trial.frames.latency.jitter_rfc3550_ns) == (
                {},
                None,
            )
    summary = json.loads((out / "summary.json").read_text())
    (cell,) = summary["cells"]
    assert cell["ceiling"] == {"pps": RATE, "peer": "--line-rate", "measured_mpps": {}}
    for arm in cell["arms"]:
        for goal in arm["search"]["goals"]:
            # Forwarders of this machine carry a thousand times that, if they have their CPU.
            assert goal.get("pps") is None or goal["pps"]["median"] == pytest.approx(RATE, rel=0.5)
    # The lab's own generator was not used.
    (session,) = json.loads((out / "run.json").read_text())["sessions"]
    assert {"l2fwd", "rust-l2fwd"} & set(session["programs"])
    assert "generator" not in session["programs"]
    assert by_hand.configuration() == {}


def test_an_interrupted_run_leaves_it_empty(by_hand: ByHand, runtime: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    lab = by_hand.lab(runtime, out)

    def sends() -> bool:
        # Between two forwarders there is nothing to send.
        return len(searches(out)) > 2 and by_hand.configuration() != {}

    wait_for("some trials", lambda: sends() or lab.poll() is not None, 120)
    assert lab.poll() is None, lab.communicate()
    lab.send_signal(signal.SIGINT)
    _, errors = lab.communicate(timeout=60)
    assert lab.returncode == 128 + signal.SIGINT, errors
    assert by_hand.configuration() == {}
