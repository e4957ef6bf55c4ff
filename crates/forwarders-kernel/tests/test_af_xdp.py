# SPDX-License-Identifier: BSD-3-Clause
"""af-xdp-fwd between two namespaces: frames come out as l2fwd sends them, or are counted."""

from __future__ import annotations

import json
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from programs import CPU, Forwarder, Program, check_spans, forwarded, frame, need_bpf, refused
from wires import LEFT, MIDDLE, RIGHT, TIMEOUT_S, end, eventually, ip, mac, wires

AF_XDP = Program("af-xdp-fwd", "net_af_xdp")
MODES = ("native", "generic")


@pytest.fixture(autouse=True)
def _between() -> Iterator[None]:
    need_bpf()
    with wires(queues=2):
        yield


@pytest.fixture
def directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="kio") as path:
        yield Path(path)


def program_on(interface: str) -> bool:
    (found,) = json.loads(ip("-n", MIDDLE, "-j", "link", "show", "dev", interface))
    return "xdp" in found


BOTH_QUEUES = ",queue_count=2"


def test_it_tells_how_long_frames_are_inside(directory: Path) -> None:
    with (
        end(LEFT, "l0") as left,
        end(RIGHT, "r0") as right,
        AF_XDP.running(directory, "--spans", "1", settings=BOTH_QUEUES) as running,
    ):
        check_spans(running, left, right)


@pytest.mark.parametrize("settings", ["", ",busy_budget=64"])
@pytest.mark.parametrize("idle", ["wait", "spin"])
@pytest.mark.parametrize("mode", MODES)
def test_frames_come_out_as_l2fwd_sends_them(
    directory: Path, mode: str, idle: str, settings: str
) -> None:
    sizes = [14, 60, 61, 64, 128, 500, 1500, 1514]
    sent = [frame(n, size) for n, size in enumerate(sizes * 8)]
    with (
        end(LEFT, "l0") as left,
        end(RIGHT, "r0") as right,
        AF_XDP.running(
            directory, "--mode", mode, "--idle", idle, settings=BOTH_QUEUES + settings
        ) as running,
    ):
        for one in sent:
            left.send(one)
            right.send(one)
        source = mac(MIDDLE, "f1"), mac(MIDDLE, "f0")
        # Two queues keep their order, and not each other's.
        expected = [
            sorted(forwarded(one, port, source[1 - port]) for one in sent) for port in (0, 1)
        ]
        assert sorted(right.await_frames(len(sent))) == expected[1]
        assert sorted(left.await_frames(len(sent))) == expected[0]
        octets = sum(map(len, sent))
        for port in (0, 1):
            eventually(lambda: running.stats(port)["opackets"] == len(sent))  # noqa: B023
            stats = running.stats(port)
            assert (stats["ipackets"], stats["ibytes"]) == (len(sent), octets)
            assert (stats["opackets"], stats["obytes"]) == (len(sent), octets)
            assert stats["imissed"] == 0
        polling = running.ask("/linerate/polling")
        assert {(each["port"], each["queue"]) for each in polling} == {
            (port, queue) for port in (0, 1) for queue in (0, 1)
        }
        assert sum(each["packets"] for each in polling) == 2 * len(sent)
        assert {each["lcore"] for each in polling} == {CPU}
        log = running.finish()
        poll = ", busy poll" if settings else ""
        assert f"Port 0: AF_XDP copy, XDP {mode}{poll}\n" in log
        assert not program_on("f0")


def test_a_burst_is_forwarded_or_counted(directory: Path) -> None:
    """Many frames at once, with the forwarder stopped meanwhile: what finds no room is missed."""
    count = 10_000
    with (
        end(LEFT, "l0") as left,
        end(RIGHT, "r0") as right,
        AF_XDP.running(directory, "--mode", "generic", settings=BOTH_QUEUES) as running,
    ):
        running.process.send_signal(signal.SIGSTOP)
        for number in range(count):
            left.send(frame(number % 64, 1000))
        running.process.send_signal(signal.SIGCONT)

        def settled() -> bool:
            stats = running.stats(0)
            return stats["ipackets"] + stats["imissed"] == count

        eventually(settled, lambda: running.stats(0))
        assert running.stats(0)["imissed"] > 0
        books(running)
        assert len(right.await_frames(running.stats(1)["opackets"])) == running.stats(1)["opackets"]


def books(running: Forwarder) -> None:
    """Received is sent or named."""
    named = ("tx_full", "tx_too_long", "tx_down", "tx_refused")

    def closed() -> bool:
        there = running.ask("/ethdev/xstats,1")
        lost = sum(there[name] for name in named)
        return bool(running.stats(0)["ipackets"] == there["tx_good_packets"] + lost)

    eventually(closed, lambda: (running.stats(0), running.ask("/ethdev/xstats,1")))


def test_frames_too_long_for_the_other_side_are_counted(directory: Path) -> None:
    ip("-n", MIDDLE, "link", "set", "f1", "mtu", "1000")
    with (
        end(LEFT, "l0") as left,
        end(RIGHT, "r0") as right,
        AF_XDP.running(directory, settings=BOTH_QUEUES) as running,
    ):
        for size in (1014, 1515, 1514, 60):
            if size != 1515:
                left.send(frame(size, size))
        assert [len(one) for one in right.await_frames(2)] == [1014, 60]
        eventually(lambda: running.ask("/ethdev/xstats,1")["tx_too_long"] == 1)
        books(running)


def test_what_the_kernel_still_has_at_the_end_is_counted(directory: Path) -> None:
    """A socket's ring keeps what is to leave by an interface that is down."""
    statistics = directory / "stats.json"
    with (
        end(LEFT, "l0") as left,
        AF_XDP.running(directory, "--json-stats", str(statistics), settings=BOTH_QUEUES) as running,
    ):
        ip("-n", MIDDLE, "link", "set", "f1", "down")
        for number in range(5):
            left.send(frame(number, 60))
        eventually(lambda: running.stats(0)["ipackets"] == 5)
        assert running.stats(1)["opackets"] == 0
        running.finish()
    told = json.loads(statistics.read_text())
    assert told["total"]["received"] == told["total"]["dropped"] == 5


def test_longer_frames_have_larger_chunks(directory: Path) -> None:
    for namespace, interface in ((LEFT, "l0"), (MIDDLE, "f0"), (MIDDLE, "f1"), (RIGHT, "r0")):
        ip("-n", namespace, "link", "set", interface, "mtu", "3000")
    sent = [frame(n, 3014) for n in range(20)]
    with (
        end(LEFT, "l0") as left,
        end(RIGHT, "r0") as right,
        AF_XDP.running(directory, "--no-mac-updating", settings=BOTH_QUEUES),
    ):
        for one in sent:
            left.send(one)
        assert sorted(right.await_frames(len(sent))) == sorted(sent)


def test_an_interface_may_go_down_and_come_up_again(directory: Path) -> None:
    with (
        end(LEFT, "l0") as left,
        end(RIGHT, "r0") as right,
        AF_XDP.running(directory, settings=BOTH_QUEUES) as running,
    ):
        left.send(frame(1, 60))
        right.await_frames(1)
        ip("-n", MIDDLE, "link", "set", "f0", "down")
        assert running.ask("/ethdev/link_status,0") == {"status": "DOWN"}
        ip("-n", MIDDLE, "link", "set", "f0", "up")
        eventually(lambda: running.ask("/ethdev/link_status,0") == {"status": "UP"})

        def through() -> bool:
            left.send(frame(2, 60))
            return bool(right.received())

        eventually(through)
        running.finish()


@pytest.mark.parametrize("gone", ["f0", "f1"])
def test_an_interface_that_is_deleted_ends_it_with_its_name(directory: Path, gone: str) -> None:
    with AF_XDP.running(directory, settings=BOTH_QUEUES) as running:
        ip("-n", MIDDLE, "link", "del", gone)
        eventually(lambda: running.process.poll() is not None)
        assert running.process.returncode == 1
        assert f"network interface {gone} is gone" in running.log.read_text()
        assert not program_on({"f0": "f1", "f1": "f0"}[gone])


def test_killed_it_leaves_nothing(directory: Path) -> None:
    with AF_XDP.running(directory, settings=BOTH_QUEUES) as running:
        assert program_on("f0")
        running.process.kill()
        running.process.wait(TIMEOUT_S)
        eventually(lambda: not program_on("f0") and not program_on("f1"))
    with (
        end(LEFT, "l0") as left,
        end(RIGHT, "r0") as right,
        AF_XDP.running(directory, settings=BOTH_QUEUES) as running,
    ):
        left.send(frame(1, 60))
        right.await_frames(1)
        running.finish()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_it_can_be_started_anew_at_once(directory: Path, number: signal.Signals) -> None:
    """The kernel lets go of a queue only some time after its socket was closed."""
    for _ in range(10):
        with AF_XDP.running(directory, settings=BOTH_QUEUES) as running:
            running.process.send_signal(number)
            running.process.wait(TIMEOUT_S)


def test_queues_that_are_not_polled_are_told_and_counted(directory: Path) -> None:
    """The kernel's stack has what comes by them: about half of the flows here."""
    header = bytes.fromhex("02110000000102110000000208004500002e00010000401100000a0000")
    # The kernel deals flows of UDP to queues.
    sent = [(header + bytes([n]) + bytes.fromhex("0a000002") + bytes(26)) for n in range(200)]
    with (
        end(LEFT, "l0") as left,
        end(RIGHT, "r0") as right,
        AF_XDP.running(directory) as running,
    ):
        for one in sent:
            left.send(one)

        def counts() -> tuple[int, int]:
            told = running.ask("/ethdev/xstats,0")
            return told["rx_good_packets"], told["rx_unpolled"]

        eventually(lambda: sum(counts()) == len(sent), counts)
        forwarded_here, unpolled = counts()
        assert unpolled > 0
        right.await_frames(forwarded_here)
        log = running.finish()
    warning = "af-xdp-fwd: warning: net_af_xdp0: f0 receives by 2 queues"
    assert f"{warning}, of which only queue 0 is polled." in log
    assert "rx_unpolled): set queue_count=2, or ethtool -L f0 rx 1" in log
    with AF_XDP.running(directory, settings=BOTH_QUEUES) as running:
        assert running.ask("/ethdev/xstats,0")["rx_unpolled"] == 0
        assert "warning" not in running.finish()


def test_another_program_on_the_interface_is_told_of(directory: Path) -> None:
    """By advice that this program can follow: it has no `--shared`."""
    other = Program("xdp-fwd", "net_xdp")
    with tempfile.TemporaryDirectory(prefix="kio") as path, other.running(Path(path)):
        told = refused(directory, AF_XDP.command())
        assert "net_af_xdp0: f0 has an XDP program already; see ip link show f0" in told
        assert "--shared" not in told


def test_an_interface_has_one_of_them(directory: Path) -> None:
    with AF_XDP.running(directory) as running:
        done = subprocess.run(
            AF_XDP.command(), capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
        assert done.returncode == 1
        assert "net_af_xdp0: queue 0 of f0 has an AF_XDP socket already" in done.stderr
        running.finish()


@pytest.mark.parametrize(
    ("settings", "options", "told"),
    [
        ("", ["--copy", "zero"], "the driver of f0 does not support zero-copy"),
        (",queue_count=3", [], "f0 has no queue 2"),
        (",start_queue=2", [], "f0 has no queue 2"),
        (",queue_count=65", [], "queue_count=65: not a number from 1 to 64"),
        (",force_copy=1", ["--copy", "zero"], "force_copy=1"),
        (",turbo=1", [], "turbo=1"),
    ],
)
def test_what_cannot_be_is_refused_by_name(
    directory: Path, settings: str, options: list[str], told: str
) -> None:
    assert told in refused(directory, AF_XDP.command(*options, settings=settings))
    assert not program_on("f0")


def test_frames_longer_than_any_chunk_are_refused(directory: Path) -> None:
    ip("-n", MIDDLE, "link", "set", "f1", "mtu", "9000")
    told = refused(directory, AF_XDP.command())
    assert "net_af_xdp1: f1 has frames of up to 9018 bytes; AF_XDP takes 3840 at most" in told


def test_without_privileges_it_says_what_is_wanted(directory: Path) -> None:
    words = AF_XDP.command()
    program = words.index(str(AF_XDP.path))
    without = [*words[:program], "setpriv", "--bounding-set=-net_raw", *words[program:]]
    assert "CAP_NET_RAW" in refused(directory, without)
