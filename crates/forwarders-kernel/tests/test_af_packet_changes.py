# SPDX-License-Identifier: BSD-3-Clause
"""af-packet-fwd while something changes: each frame leaves once, or is counted once."""

from __future__ import annotations

import json
import signal
import struct
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from programs import Forwarder, Program, books, forwarded, frame, refused
from wires import LEFT, MIDDLE, RIGHT, TIMEOUT_S, End, end, eventually, ip, mac, wires

AF_PACKET = Program("af-packet-fwd", "net_af_packet")
command, forwarder = AF_PACKET.command, AF_PACKET.running
WAYS = ("read-write", "mmsg", "mmap")


@pytest.fixture(autouse=True)
def _between() -> Iterator[None]:
    with wires():
        yield


@pytest.fixture
def directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="kio") as path:
        yield Path(path)


@pytest.mark.parametrize("way", WAYS)
def test_frames_for_an_interface_that_is_down_are_counted(directory: Path, way: str) -> None:
    count = 20
    with (
        end(LEFT, "l0") as left,
        end(RIGHT, "r0") as right,
        forwarder(directory, "--io", way) as running,
    ):
        ip("-n", MIDDLE, "link", "set", "f1", "down")
        for number in range(count):
            left.send(frame(number, 60))
        eventually(lambda: running.ask("/ethdev/xstats,1")["tx_down"] == count)
        assert running.stats(1)["opackets"] == 0
        ip("-n", MIDDLE, "link", "set", "f1", "up")

        found: list[bytes] = []

        def through() -> bool:
            left.send(frame(count, 60))
            found.extend(right.received())
            return bool(found)

        eventually(through)
        # Those of before do not leave late.
        assert set(found) == {forwarded(frame(count, 60), 1, mac(MIDDLE, "f1"))}
        books(running)
        running.finish()


@pytest.mark.parametrize("way", WAYS)
def test_a_lower_mtu_is_followed(directory: Path, way: str) -> None:
    """The kernel refuses what is too long for it among many frames; the others leave in order."""
    sizes = [60, 1514, 1014, 1015, 200, 1500, 1514] * 20
    with (
        end(LEFT, "l0") as left,
        end(RIGHT, "r0") as right,
        forwarder(directory, "--io", way) as running,
    ):
        ip("-n", MIDDLE, "link", "set", "f1", "mtu", "1000")
        sent = [frame(number, size) for number, size in enumerate(sizes)]
        running.process.send_signal(signal.SIGSTOP)
        for one in sent:
            left.send(one)
        running.process.send_signal(signal.SIGCONT)
        source = mac(MIDDLE, "f1")
        short = [forwarded(one, 1, source) for one in sent if len(one) <= 1014]
        assert right.await_frames(len(short)) == short
        assert running.ask("/ethdev/xstats,1")["tx_too_long"] == len(sent) - len(short)
        books(running)
        ip("-n", MIDDLE, "link", "set", "f1", "mtu", "1500")
        left.send(frame(9999, 1514))
        assert right.await_frames(1) == [forwarded(frame(9999, 1514), 1, source)]


def test_what_the_kernel_still_has_at_the_end_is_counted(directory: Path) -> None:
    """Frames that a queueing discipline holds longer than the program waits for them."""
    slow = ["tbf", "rate", "8kbit", "burst", "1600", "limit", "1000000"]
    made = subprocess.run(
        ["ip", "netns", "exec", MIDDLE, "tc", "qdisc", "add", "dev", "f1", "root", *slow],
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    if "unknown" in made.stderr:
        pytest.skip(f"this kernel has no queueing discipline tbf: {made.stderr.strip()}")
    assert made.returncode == 0, made.stderr
    file = directory / "stats.json"
    options = ("--io", "mmap", "--json-stats", str(file))
    with (
        end(LEFT, "l0") as left,
        forwarder(directory, *options, settings=",qdisc_bypass=0") as running,
    ):
        for number in range(20):
            left.send(frame(number, 1000))
        eventually(lambda: running.stats(0)["ipackets"] == 20)
        running.finish()
    total = json.loads(file.read_text())["total"]
    assert total["received"] == 20
    assert total["sent"] + total["dropped"] == 20
    assert total["dropped"] > 0


# Frames that a test sends at most, and those it sends at once.
MOST, BURST = 500_000, 256


@contextmanager
def numbered(sender: End) -> Iterator[None]:
    """Frames with numbers that begin at 0, no more than the test can receive meanwhile."""
    enough = threading.Event()

    def send() -> None:
        for number in range(MOST):
            if number % BURST == 0 and enough.wait(0.001):
                return
            sender.send(frame(0, 14) + struct.pack("!Q38x", number))

    sending = threading.Thread(target=send)
    sending.start()
    try:
        yield
    finally:
        enough.set()
        sending.join()


def number_of(received: bytes) -> int:
    (number,) = struct.unpack_from("!Q", received, 14)
    return int(number)


@pytest.mark.parametrize("way", WAYS)
def test_queues_that_open_under_traffic_receive_each_frame_once(directory: Path, way: str) -> None:
    options = ("--io", way, "--fanout", "lb")
    found: list[int] = []
    with (
        end(LEFT, "l0") as left,
        end(RIGHT, "r0") as right,
        numbered(left),
        forwarder(directory, *options, settings=",qpairs=16"),
    ):

        def enough() -> bool:
            found.extend(number_of(one) for one in right.received())
            return len(found) > 2000

        eventually(enough)
    assert len(set(found)) == len(found)


def differing(running: Forwarder) -> list[tuple[int, str, int, list[int]]]:
    """The ports' counts that are not the sum of their four queues' counts."""
    found = []
    for port in (0, 1):
        stats = running.ask(f"/ethdev/stats,{port}")
        for kind in ("ipackets", "opackets", "ibytes", "obytes"):
            queues = stats[f"q_{kind}"]
            assert len(queues) == 16
            if not sum(queues) == sum(queues[:4]) == stats[kind]:
                found.append((port, kind, stats[kind], queues))
    return found


@pytest.mark.parametrize("way", WAYS)
def test_several_queues_close_their_books(directory: Path, way: str) -> None:
    with (
        end(LEFT, "l0") as left,
        end(RIGHT, "r0") as right,
        forwarder(directory, "--io", way, settings=",qpairs=4") as running,
    ):
        with numbered(left), numbered(right):
            eventually(lambda: min(running.stats(port)["ipackets"] for port in (0, 1)) > 2000)
        for port in (0, 1):
            books(running, port)
        # Frames may still be under way: no count is asked for before all agree.
        eventually(lambda: not differing(running), lambda: differing(running))
        for port in (0, 1):
            assert running.ask(f"/ethdev/stats,{port}")["q_errors"] == [0] * 16


def test_blocks_that_are_too_small_for_the_interface_are_refused(directory: Path) -> None:
    ip("-n", MIDDLE, "link", "set", "f1", "mtu", "9000")
    told = refused(directory, command("--io", "mmap", settings=",blocksz=8192"))
    assert "net_af_packet1: blocksz=8192: f1 receives frames of 9018 bytes" in told
    assert "16384 bytes or more" in told
    with forwarder(directory, "--io", "mmap", settings=",blocksz=16384") as running:
        running.finish()
