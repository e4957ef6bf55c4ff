# SPDX-License-Identifier: BSD-3-Clause
"""A forwarder that somebody watches ends cleanly and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest

RELEASE = Path(__file__).resolve().parents[1] / "target" / "release"
EAL = ["--no-pci", "--no-huge", "--no-shconf", "-m", "256", "--file-prefix", "watched"]
TIMEOUT_S = 15.0


def connect(path: Path) -> socket.socket:
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            peer.connect(str(path))
        except OSError:
            peer.close()
            assert time.monotonic() < deadline, f"no {path}"
            time.sleep(0.005)
        else:
            peer.settimeout(TIMEOUT_S)
            peer.recv(1 << 16)
            return peer


def watch(peer: socket.socket, asked: threading.Semaphore) -> None:
    """Ask until the program has ended."""
    commands = [b"/mempool/list", b"/ethdev/stats,0", b"/linerate/polling", b"/ethdev/list"]
    try:
        while True:
            for command in commands:
                peer.send(command)
                if not peer.recv(1 << 16):
                    return
                asked.release()
    except OSError:
        return


@pytest.mark.parametrize("program", ["l2fwd", "reflect", "impair", "l3fwd-graph"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_watched_forwarder_ends_cleanly(program: str, number: int, tmp_path: Path) -> None:
    command = [str(RELEASE / program), *EAL, "--vdev", "net_null0", "--", "-p", "1"]
    runtime = {"RUNTIME_DIRECTORY": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    process = subprocess.Popen(
        command,
        env={**os.environ, **runtime},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        with connect(tmp_path / "dpdk" / "watched" / "dpdk_telemetry.v2") as peer:
            asked = threading.Semaphore(0)
            watcher = threading.Thread(target=watch, args=(peer, asked))
            watcher.start()
            for _ in range(50):
                assert asked.acquire(timeout=TIMEOUT_S)
            process.send_signal(number)
            output, _ = process.communicate(timeout=TIMEOUT_S)
            watcher.join(TIMEOUT_S)
        assert process.returncode == 0, output
        assert not list((tmp_path / "dpdk").iterdir())
    finally:
        process.kill()
        process.wait()
