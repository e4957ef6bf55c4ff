# SPDX-License-Identifier: BSD-3-Clause
"""The driver of bench/nearfree: it loads, forwards, counts, and leaves every pool whole."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from linerate.host.builds.bench_programs import bench_program, nearfree_obstacle, nearfree_plugin
from linerate.host.places import rust_binary
from linerate.host.process import Child, Command, RunDirectory
from linerate.telemetry.client import connect, socket_path

pytestmark = pytest.mark.skipif(nearfree_obstacle() is not None, reason=str(nearfree_obstacle()))
CPU = max(os.sched_getaffinity(0))
EAL = ["--lcores", f"0@{CPU}", "--no-pci", "--no-huge", "--no-shconf", "-m", "128"]


def start(
    run: RunDirectory, program: Path, ports: list[str], options: list[str]
) -> tuple[Child, str]:
    prefix = run.new_prefix("nearfree")
    argv = [str(program), *EAL, "--file-prefix", prefix, "-d", str(nearfree_plugin())]
    for port in ports:
        argv += ["--vdev", port]
    return Child(Command("forwarder", (*argv, "--", *options), (CPU,)), run), prefix


def ended(child: Child) -> str:
    """What it printed, once it has ended by SIGINT."""
    # Its log goes when it is stopped; a second name keeps it.
    kept = child.log.with_suffix(".kept")
    kept.hardlink_to(child.log)
    assert child.stop() == 0
    return kept.read_text(errors="replace")


@pytest.mark.parametrize("arguments", ["", ",dense=1", ",ring=1000,size=1514"])
@pytest.mark.parametrize("burst", [[], ["--burst-forwarding"]])
def test_counts_agree_and_pools_are_whole(arguments: str, burst: list[str]) -> None:
    plain = bench_program("plain", "plain")
    ports = [f"net_nearfree{n}{arguments}" for n in range(2)]
    with RunDirectory() as run:
        child, prefix = start(run, plain, ports, ["-p", "3", *burst])
        with child:
            path = socket_path(run.path, prefix)
            with connect(path, 20, child.check) as telemetry:
                child.wait_until(
                    lambda: telemetry.ask("/ethdev/stats,1")["ipackets"] >= 1_000_000,
                    20,
                    "no million packets",
                )
                assert telemetry.ask("/ethdev/link_status,0")["status"] == "UP"
                stats = telemetry.ask("/ethdev/stats,0")
                assert stats["rx_nombuf"] == stats["oerrors"] == 0
            text = ended(child)
    lines = re.findall(r"port (\d) to (\d): received (\d+) sent (\d+) dropped 0", text)
    assert [line[:2] for line in lines] == [("0", "1"), ("1", "0")], text
    assert all(int(received) == int(sent) > 0 for _, _, received, sent in lines)
    assert re.search(r"^pool: (\d+) of \1$", text, re.MULTILINE), text
    assert "did not come back" not in text


@pytest.mark.parametrize(
    "wrong",
    ["size=0", "ring=x", "dense=2", "colour=red", "frames=/nowhere", "size=59,frames=/dev/null"],
)
def test_wrong_arguments_are_refused_by_name(wrong: str) -> None:
    plain = bench_program("plain", "plain")
    with RunDirectory() as run:
        child, _ = start(run, plain, [f"net_nearfree0,{wrong}"], ["-p", "1"])
        with child:
            assert child.wait(20)
            text = child.output()
    assert wrong.rpartition("=")[0].rpartition(",")[2] in text


def test_one_port_forwards_to_itself() -> None:
    l2fwd = rust_binary("l2fwd")
    with RunDirectory() as run:
        child, prefix = start(run, l2fwd, ["net_nearfree0"], ["-p", "1", "-T", "0"])
        with child:
            with connect(socket_path(run.path, prefix), 20, child.check) as telemetry:
                child.wait_until(
                    lambda: telemetry.ask("/ethdev/stats,0")["opackets"] >= 100_000,
                    20,
                    "no 100,000 packets",
                )
            assert child.stop() == 0
