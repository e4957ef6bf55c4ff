# SPDX-License-Identifier: BSD-3-Clause
"""`linerate top` against real programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import wait_for
from top_command import objects, top

from linerate.host.errors import TelemetryError
from linerate.host.places import rust_binary
from linerate.host.process import Child, Command, RunDirectory
from linerate.telemetry.client import Telemetry, socket_path

pytestmark = pytest.mark.e2e

NULL_PORTS = ["--vdev", "net_null0", "--vdev", "net_null1"]


@contextmanager
def running(*before: str) -> Iterator[tuple[Child, str, Path]]:
    """Run l2fwd on two null ports, in a runtime directory that only the kernel's list shows."""
    cpu = max(os.sched_getaffinity(0))
    with RunDirectory() as run:
        prefix = run.new_prefix("top")
        argv = [
            *before, str(rust_binary("l2fwd")), "--no-pci", "--no-huge", "--no-shconf", "-m", "256",
            "--file-prefix", prefix, "--lcores", f"0@{cpu}", *NULL_PORTS, "--",
            "-p", "3", "-q", "2", "-T", "0",
        ]  # fmt: skip
        with Child(Command("forwarder", tuple(argv), (cpu,)), run) as child:
            path = socket_path(run.path, prefix)
            wait_for("polling", lambda: _polls(child, path), 30)
            yield child, prefix, path


@pytest.fixture
def l2fwd() -> Iterator[tuple[Child, str, Path]]:
    with running() as started:
        yield started


def _polls(child: Child, path: Path) -> bool:
    child.check()
    try:
        with Telemetry(path) as telemetry:
            return bool(telemetry.ask("/linerate/polling"))
    except TelemetryError:
        return False


def test_our_l2fwd_without_the_probe(l2fwd: tuple[Child, str, Path]) -> None:
    child, prefix, _ = l2fwd
    done = top(prefix, "--json", "--interval", "0.2", "--count", "2")
    assert done.returncode == 0, done.stderr
    for one in objects(done):
        assert (one["pid"], one["program"]) == (child.pid, "l2fwd")
        assert one["rx_mpps"] > 0
        assert [port["name"] for port in one["ports"]] == ["net_null0", "net_null1"]
        assert "rx_gbps" not in one["ports"][0]
        (lcore,) = one["lcores"]
        assert lcore["average_nonempty_rx_burst"] == lcore["burst_limit"] == 32
        assert 0 < lcore["busy_share"] <= 1
        assert "latency" not in one
    table = top(prefix, "--interval", "0.2", "--count", "1").stdout
    assert "The probe would show latency" in table
    assert "1|     █|32" in table


def test_our_l2fwd_ends_while_it_is_watched(l2fwd: tuple[Child, str, Path]) -> None:
    child, prefix, path = l2fwd
    with subprocess.Popen(
        [sys.executable, "-m", "linerate", "top", str(path), "--json", "--interval", "0.2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["prefix"] == prefix
        child.stop()
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (0, f"{prefix} has ended\n")


def test_our_l2fwd_with_the_probe_in_it() -> None:
    attach = (sys.executable, "-m", "linerate", "attach", "--one-in", "4", "--")
    with running(*attach) as (child, prefix, path):
        wait_for("latency", lambda: _measures(path), 30)
        done = top(prefix, "--json", "--interval", "0.2", "--count", "2")
        assert done.returncode == 0, done.stderr
        for one in objects(done):
            assert (one["pid"], one["program"]) == (child.pid, "l2fwd")
            assert one["probe"]["one_in"] == 4
            (lcore,) = one["lcores"]
            assert len(lcore["queues"]) == 2
            assert 0 < lcore["busy_share"] <= 1
            for entry in one["latency"]:
                assert entry["packets"] > 0
                assert entry["p50_cycles"] <= entry["p999_cycles"] <= entry["max_cycles"]
        # The program ends as it does without the probe.
        assert child.stop() == 0


def _measures(path: Path) -> bool:
    with Telemetry(path) as telemetry:
        return all(entry["count"] for entry in telemetry.ask("/linerate/probe/latency"))
