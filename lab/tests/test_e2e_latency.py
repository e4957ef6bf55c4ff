# SPDX-License-Identifier: BSD-3-Clause
"""Experiment latency on real forwarders and links of this machine, one block."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import by_schema
import pytest
from conftest import need_veth
from test_e2e import need, runtime

from linerate.host.builds.plugins import PROBE
from linerate.records import trial as records
from linerate.records.trial import DISTURBED, Trial

pytestmark = pytest.mark.e2e

__all__ = ["runtime"]
# Low enough for any machine to send on time.
RATE = "20000"


def run(runtime: Path, out: Path, *options: str) -> list[Trial]:
    """Run one block to its end and return its trials. All are valid unless the machine disturbed
    them.
    """
    done = subprocess.run(
        [sys.executable, "-m", "linerate", "run", "latency", "--out", str(out), "--blocks", "1",
         "--hugepages", "no", "--keep-going", "--line-rate", RATE, "--packets", "100", *options],
        capture_output=True, text=True, timeout=400, check=False,
        env={**os.environ, "XDG_RUNTIME_DIR": str(runtime)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Clock: the sender assumes" in done.stdout
    by_schema.check(json.loads((out / "summary.json").read_text()), "summary-1.json")
    trials = records.read(out / "records.jsonl")
    for trial in trials:
        assert trial.valid or trial.invalid_code in DISTURBED, trial.invalid
        assert trial.frames.received
        assert trial.frames.clock
        assert trial.frames.clock.checked_hz
        if trial.request.test in {"latency", "ping"}:
            assert trial.frames.latency
            assert 0 < trial.frames.latency.minimum_ns <= trial.frames.latency.mean_ns
        else:
            assert trial.frames.spans
    return trials


def test_one_forwarder_gives_frames_back_with_their_delay(tmp_path: Path, runtime: Path) -> None:
    need("reflect", "generator", PROBE)
    options = ("--link", "memif", "--forwarders", "reflect", "--frames", "arp")
    trials = run(runtime, tmp_path / "run", *options)
    assert {trial.request.protocol for trial in trials} == {"arp"}


@pytest.mark.second_tier
def test_frames_of_both_kinds_come_back_with_their_delay(tmp_path: Path, runtime: Path) -> None:
    need("l2fwd", "reflect", "generator", PROBE)
    trials = run(runtime, tmp_path / "run", "--link", "memif", "--forwarders", "reflect,c-l2fwd")
    assert {trial.request.protocol for trial in trials} == {"udp", "arp"}
    for trial in trials:
        for span in trial.frames.spans or ():
            assert span.span == "rx-return_tx-call"
            assert span.count == trial.frames.forwarder_tx
    buffered = [t for t in trials if t.forwarder == "c-l2fwd" and t.frames.latency and t.valid]
    for trial in buffered:
        # At such a rate the TX buffer is never full: no packet waits much longer than the drain
        # interval,
        # and some packets wait as long.
        assert trial.frames.latency
        assert trial.frames.latency.maximum_ns > 50_000


@pytest.mark.second_tier
def test_the_kernels_forwarders_tell_every_span(tmp_path: Path, runtime: Path) -> None:
    # The clock is checked with `reflect`.
    need("reflect", "generator", "af-packet-fwd", PROBE)
    need_veth()
    names = "af-packet-read-write,af-packet-mmap,reflect"
    out = tmp_path / "run"
    trials = run(runtime, out, "--link", "veth1", "--forwarders", names, "--frames", "arp")
    pings = [t for t in trials if t.request.test == "ping"]
    # For each arm, also on DPDK: a valid window, or only void ones because of the machine.
    assert {t.arm for t in pings} == {t.arm for t in trials if t.request.test == "latency"}
    for trial in pings:
        assert trial.frames.unattributed == 0
        assert trial.frames.received == trial.frames.attempted
        assert {p.role for p in trial.program.processes} >= {"forwarder"}
    kernel = [t for t in trials if t.forwarder.startswith("af-packet") and t.frames.spans]
    assert kernel
    for trial in kernel:
        assert {each.span for each in trial.frames.spans or ()} == {
            "rx-return_tx-call", "rx-return_tx-return", "rx-call_tx-return", "tx-call_tx-return",
        }  # fmt: skip
        (inside,) = (e for e in trial.frames.spans or () if e.span == "rx-return_tx-call")
        (whole,) = (e for e in trial.frames.spans or () if e.span == "rx-call_tx-return")
        assert inside.mean_cycles < whole.mean_cycles
