# SPDX-License-Identifier: BSD-3-Clause
"""Experiment rfc2544 on real forwarders, generator and links of this machine, one block each."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import by_schema
import pytest
from conftest import wait_for
from test_e2e import need, runtime

from linerate.forwarders import forwarder
from linerate.host.builds.plugins import PROBE
from linerate.host.cores.cpus import Cores
from linerate.host.errors import DisturbedError
from linerate.host.process import RunDirectory
from linerate.links import LinkContext, Wire, link
from linerate.links.eal import Memory
from linerate.records import trial as records
from linerate.records.cells import Arm
from linerate.records.trial import DISTURBED, Test, Trial
from linerate.traffic.generator import Generator
from linerate.trial.link_setup import LinkSetup
from linerate.trial.search.setup_device import SetupDevice, Terms
from linerate.trial.trial import Bench

pytestmark = pytest.mark.e2e

__all__ = ["runtime"]
# Low enough for any machine to send on time, and for a ring to hold the frames of a long pause.
RATE = 100_000


def start(runtime: Path, out: Path, *options: str) -> subprocess.Popen[str]:
    always = ["--out", str(out), "--hugepages", "no", "--keep-going", "--blocks", "1"]
    return subprocess.Popen(
        [sys.executable, "-m", "linerate", "run", "rfc2544", *always, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "XDG_RUNTIME_DIR": str(runtime)},
    )


def searches(out: Path) -> list[Trial]:
    path = out / "records.jsonl"
    return [t for t in records.read(path) if t.role == "search"] if path.exists() else []


def check(out: Path) -> list[Trial]:
    summary = json.loads((out / "summary.json").read_text())
    by_schema.check(summary, "summary-1.json")
    for line in (out / "records.jsonl").read_text().splitlines():
        by_schema.check(json.loads(line), "trial-2.json")
    found = searches(out)
    for trial in found:
        # The books close in each trial, even if the machine disturbed it.
        assert trial.valid or trial.invalid_code in DISTURBED, trial.invalid
        assert (
            trial.frames.attempted
            == (trial.frames.accepted or 0) + (trial.frames.lost_at_ingress or 0)
            > 0
        )
        assert trial.frames.unattributed == 0
        assert trial.frames.intended == trial.frames.attempted
        if trial.frames.change:
            # The generator reports the disturbed share at each rate.
            assert trial.frames.change.before_disturbed is not None
            assert trial.frames.change.after_disturbed is not None
        if trial.request.frames:
            assert trial.frames.intended == trial.request.frames
    return found


@pytest.mark.parametrize(
    ("link", "options"),
    [
        pytest.param(
            "memif",
            ["--sizes", "1518", "--tests", "latency,loss,recovery,core-use"],
            marks=pytest.mark.second_tier,
        ),
        pytest.param(
            "memif2",
            ["--ip", "6", "--directions", "one", "--tests", "latency,back-to-back"],
            marks=pytest.mark.second_tier,
        ),
    ],
)
def test_every_test_on_a_real_bed(
    tmp_path: Path, runtime: Path, link: str, options: list[str]
) -> None:
    need("l2fwd", "reflect", "generator")
    out = tmp_path / "run"
    names = ["--forwarders", "rust-l2fwd", "--line-rate", str(RATE)]
    lab = start(runtime, out, "--link", link, *names, *options)
    output, errors = lab.communicate(timeout=400)
    assert lab.returncode == 0, errors
    found = check(out)
    assert {trial.arm for trial in found} >= {"rust-l2fwd", "rust-l2fwd-again"}
    for arm in ("rust-l2fwd", "rust-l2fwd-again"):
        for size in {trial.cell.key[1] for trial in found}:
            mine = [trial for trial in found if (trial.arm, trial.cell.key[1]) == (arm, size)]
            # One process from the first trial to the last: there is no gap of a restart in between.
            assert len({tuple(trial.program.processes[0].argv) for trial in mine}) == 1
    assert "NOT conforming to RFC 2544" in output
    assert "throughput" in output
    delays = [
        trial.frames.latency for trial in found if trial.valid and trial.request.test == "latency"
    ]
    for delay in delays:
        assert delay is not None
        assert 0 < delay.minimum_ns <= delay.mean_ns <= delay.maximum_ns
        assert delay.minimum_ns <= delay.quantiles_ns["0.5"] <= delay.quantiles_ns["0.999"]
    if "one" in options:
        assert {trial.request.directions for trial in found} == {"one"}


def test_the_probe_looks_at_core_use_alone(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does so for C and Rust. Even a window that the machine disturbed has its polls."""
    need("l2fwd", "generator", PROBE)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    tests: tuple[Test, ...] = ("throughput", "core-use", "latency")
    found: list[Trial] = []
    with RunDirectory() as run:
        memory = Memory(hugepages=False)
        bench = Bench(run, Cores.choose(), memory, "rfc2544", seed=1, window_s=0.1)
        for name in ("c-l2fwd", "rust-l2fwd"):
            forwarder(name).prepare()
            context = LinkContext(run.path, 64, memory.hugepages, bench.cores)

            def sender(wire: Wire) -> Generator:
                return Generator(run, bench.cores.control, memory, wire, flood=False)

            with (
                LinkSetup(link("memif"), context, sender) as setup,
                SetupDevice(
                    bench, setup, Arm(name, name), block=0, max_pps=RATE, terms=Terms(windows=1),
                    record=found.append, probe=True,
                ) as device,
            ):  # fmt: skip
                for device.test in tests:
                    with contextlib.suppress(DisturbedError):
                        device.send(RATE, 0.1)
    assert [trial.request.test for trial in found] == [*tests, *tests]
    for trial in found:
        assert trial.valid or trial.invalid_code in DISTURBED, trial.invalid
        assert (
            trial.program.probe
            == (trial.frames.polling is not None)
            == (trial.request.test == "core-use")
        )
        if trial.frames.polling is not None:
            assert sum(entry.packets for entry in trial.frames.polling) == trial.frames.forwarder_rx
            assert all(sum(each.burst_histogram) == each.polls for each in trial.frames.polling)
            assert trial.frames.busy_cycles_per_packet is not None
            assert trial.frames.busy_share is not None
            assert 0 < trial.frames.busy_share <= 1


def test_an_interrupted_run_tells_what_it_has(tmp_path: Path, runtime: Path) -> None:
    need("l2fwd", "reflect", "generator")
    out = tmp_path / "run"
    lab = start(runtime, out, "--forwarders", "rust-l2fwd", "--line-rate", str(RATE))
    wait_for("some trials", lambda: len(searches(out)) > 4 or lab.poll() is not None, 120)
    lab.send_signal(signal.SIGINT)
    output, errors = lab.communicate(timeout=60)
    assert lab.returncode == 128 + signal.SIGINT, errors
    check(out)
    assert "Ended early" in output
