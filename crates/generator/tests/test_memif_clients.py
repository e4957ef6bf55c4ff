# SPDX-License-Identifier: BSD-3-Clause
"""Servers of memif live on while their clients come, send, leave, and die at any step."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import snappi
from farend import Forwarder, forwarder
from harness import TIMEOUT_S, eventually, generator
from memif_client import SLOTS, MemifClient, Step

pytest_plugins = ["rig"]

SOAK = int(os.environ.get("LINERATE_MEMIF_CLIENTS", "3400"))
"""Clients of each server in the second tier: 10,000 in all."""
CLIENTS = [200, pytest.param(SOAK, marks=pytest.mark.second_tier)]


def arrive(path: Path) -> MemifClient:
    """The server accepts one at a time: others are told to come again."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            return MemifClient(path, timeout_s=TIMEOUT_S)
        except BlockingIOError:
            assert time.monotonic() < deadline, "the server does not accept clients any more"
            time.sleep(0.001)


def go(path: Path, last: Step, how: str) -> int | None:
    """One client; how many of its frames came back, `None` if another one was still there."""
    client = arrive(path)
    try:
        back = client.go_to(last)
    except OSError:
        back = None
    client.leave(politely=how == "politely")
    return back


def die(path: Path, last: Step) -> None:
    """A client that ends by SIGKILL at that step."""
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            arrive(path).go_to(last)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)


def storm(path: Path, clients: int, seed: int, alive: Callable[[], object]) -> None:
    """Clients, one after the other; who stays to the end gets all frames back."""
    draw = random.Random(seed)
    whole = 0
    for number in range(clients):
        last = draw.choice([*Step, Step.SENT, Step.SENT])
        how = draw.choice(["politely", "silently", "killed"])
        if how == "killed":
            die(path, last)
        else:
            back = go(path, last, how)
            if last is Step.SENT and back is not None:
                assert back == SLOTS // 2, f"client {number} of seed {seed}"
                whole += 1
        assert alive(), f"the server died after client {number} of seed {seed}"
    assert whole > clients // 20
    # The last one finds the server as the first one did.
    eventually(lambda: go(path, Step.SENT, "politely") == SLOTS // 2)


def files(process: int) -> int:
    return len(list(Path(f"/proc/{process}/fd").iterdir()))


def settled(process: int, at_most: int) -> None:
    eventually(lambda: files(process) <= at_most, lambda: f"{files(process)} files, not {at_most}")


def check_forwarder(far: Forwarder, path: Path, clients: int) -> None:
    eventually(path.exists, far.log.read_text)
    go(path, Step.SENT, "politely")
    time.sleep(0.2)
    before = files(far.process.pid)
    storm(path, clients, 1, lambda: far.process.poll() is None)
    settled(far.process.pid, before)
    assert far.process.poll() is None, far.log.read_text()
    far.stop()


@pytest.mark.parametrize("clients", CLIENTS)
@pytest.mark.parametrize("program", ["l2fwd", "reflect"])
def test_forwarders_outlive_their_clients(directory: Path, program: str, clients: int) -> None:
    path = directory / "clients"
    device = f"net_memif0,role=server,socket={path},socket-abstract=no"
    options = ["-p", "1", "-T", "0"] if program == "l2fwd" else []
    with forwarder(directory, program, [device], options) as far:
        check_forwarder(far, path, clients)


@pytest.mark.parametrize("clients", CLIENTS)
def test_the_generator_outlives_its_clients(directory: Path, clients: int) -> None:
    with generator(directory) as running:
        config = snappi.Config()
        path = directory / "clients"
        config.ports.port(name="p1", location=f"memif:{path},role=server")
        running.api.set_config(config)
        eventually(path.exists)
        before = None
        draw = random.Random(2)
        for _ in range(clients):
            # It sends nothing back: up to the link is all that there is.
            last = Step(draw.randrange(Step.SENT))
            die(path, last) if draw.random() < 0.3 else go(path, last, "silently")
            assert running.process.poll() is None, running.log.read_text()
            before = before or files(running.process.pid)
        settled(running.process.pid, before or 0)
        # A server that was removed listens no more, and can be made again.
        for _ in range(20):
            waiting = arrive(path)
            running.api.set_config(snappi.Config())
            assert not path.exists()
            with contextlib.suppress(OSError):
                while waiting.socket.recv(128):
                    pass
            waiting.leave(politely=False)
            running.api.set_config(config)
            eventually(lambda: running.process.poll() is None and path.exists())
        settled(running.process.pid, before or 0)


def test_many_who_leave_before_they_are_greeted_end_nothing(directory: Path) -> None:
    path = directory / "clients"
    device = f"net_memif0,role=server,socket={path},socket-abstract=no"
    with forwarder(directory, "reflect", [device]) as far:
        eventually(path.exists, far.log.read_text)
        for _ in range(4000):
            with (
                contextlib.suppress(OSError),
                socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer,
            ):
                peer.setblocking(False)
                peer.connect(str(path))
        assert far.process.poll() is None, far.log.read_text()
        eventually(lambda: go(path, Step.SENT, "politely") == SLOTS // 2, far.log.read_text)
        far.stop()
