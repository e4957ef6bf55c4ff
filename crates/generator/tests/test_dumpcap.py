# SPDX-License-Identifier: BSD-3-Clause
"""`dpdk-dumpcap` captures what a running generator sends and receives.

Needs root, the program (package dpdk) and 160 MiB of free hugepages; their file system is mounted
in a mount namespace of the generator's own.
"""

from __future__ import annotations

import os
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import CPUS, TIMEOUT_S, Generator, environment, eventually, generator
from traffic import flow_metrics, looped

pytest_plugins = ["rig"]
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts hugetlbfs; run by root")

DUMPCAP = Path("/usr/bin/dpdk-dumpcap")
PREFIX = "captured"
# Of 2 MiB: for the pools of both programs, the counters and the heaps.
PAGES = 80
FREE = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
MOUNT = 'mount -t hugetlbfs -o pagesize=2M nodev "$0" && exec "$@"'
WANTED = 400


@pytest.fixture
def captured(directory: Path) -> Iterator[Generator]:
    """A generator on hugepages that other processes can map."""
    if not DUMPCAP.exists():
        reason = f"{DUMPCAP} is missing (package dpdk)"
        assert "LINERATE_CI" not in os.environ, reason
        pytest.skip(reason)
    free = int(FREE.read_text()) if FREE.exists() else 0
    if free < PAGES:
        pytest.skip(f"{free} free hugepages of 2 MiB, {PAGES} are needed: sysctl vm.nr_hugepages")
    huge = directory / "huge"
    huge.mkdir()
    before = ["unshare", "--mount", "--propagation", "private", "sh", "-c", MOUNT, str(huge)]
    eal = ["-l", str(CPUS[-1]), "--no-pci", "--file-prefix", PREFIX, "--huge-dir", str(huge)]
    with generator(directory, eal=eal, before=before) as running:
        yield running


def dumpcap(running: Generator, file: Path) -> subprocess.CompletedProcess[str]:
    """Captures some packets, on another CPU, with access to the generator's memory."""
    command = ["nsenter", f"--mount=/proc/{running.process.pid}/ns/mnt"]
    command += ["taskset", "-c", str(CPUS[0]), str(DUMPCAP), "--file-prefix", PREFIX, "-q"]
    command += ["-i", "net_ring_r", "-c", str(WANTED), "-w", str(file)]
    return subprocess.run(
        command,
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=4 * TIMEOUT_S,
        env=environment(running.telemetry.parents[2]),
    )


def packets(file: Path) -> list[bytes]:
    """The packets of a pcapng file (enhanced packet blocks)."""
    content, at, found = file.read_bytes(), 0, []
    while at < len(content):
        kind, length = struct.unpack_from("<II", content, at)
        if kind == 6:
            (kept,) = struct.unpack_from("<I", content, at + 20)
            found.append(content[at + 28 : at + 28 + kept])
        at += length
    return found


def test_dumpcap_sees_what_passes(captured: Generator, directory: Path) -> None:
    config = looped(["f0"], pps=2000)
    config.flows[0].packet[0].src.value = "02:00:00:00:00:77"
    config.flows[0].duration.choice = "continuous"
    captured.api.set_config(config)
    captured.transmit("start")
    for number in range(2):
        file = directory / f"{number}.pcapng"
        ended = dumpcap(captured, file)
        assert ended.returncode == 0, ended.stderr
        assert "not permitted" not in ended.stderr
        found = packets(file)
        assert len(found) >= WANTED
        assert all(frame[6:12] == bytes.fromhex("020000000077") for frame in found)
    captured.transmit("stop")
    eventually(captured.stopped)
    metric = flow_metrics(captured.api)["f0"]
    assert metric.frames_rx == metric.frames_tx > 0
