# SPDX-License-Identifier: BSD-3-Clause
"""af-packet-fwd between two namespaces: frames come out as l2fwd sends them, or are counted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from programs import (
    CPU,
    PREFIX,
    Forwarder,
    Program,
    books,
    check_spans,
    environment,
    forwarded,
    frame,
    refused,
)
from wires import LEFT, MIDDLE, RIGHT, TIMEOUT_S, end, eventually, ip, mac, wires

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


@pytest.mark.parametrize("idle", ["wait", "spin"])
@pytest.mark.parametrize("way", WAYS)
def test_frames_come_out_as_l2fwd_sends_them(directory: Path, way: str, idle: str) -> None:
    sizes = [14, 60, 61, 64, 128, 500, 1500, 1514]
    sent = [frame(n, size) for n, size in enumerate(sizes * 8)]
    with (
        end(LEFT, "l0") as left,
        end(RIGHT, "r0") as right,
        forwarder(directory, "--io", way, "--idle", idle) as running,
    ):
        for one in sent:
            left.send(one)
            right.send(one)
        source = mac(MIDDLE, "f1"), mac(MIDDLE, "f0")
        assert right.await_frames(len(sent)) == [forwarded(one, 1, source[0]) for one in sent]
        assert left.await_frames(len(sent)) == [forwarded(one, 0, source[1]) for one in sent]
        octets = sum(map(len, sent))
        for port in (0, 1):
            eventually(lambda: running.stats(port)["opackets"] == len(sent))  # noqa: B023
            stats = running.stats(port)
            assert (stats["ipackets"], stats["ibytes"]) == (len(sent), octets)
            assert (stats["opackets"], stats["obytes"]) == (len(sent), octets)
            assert stats["imissed"] == 0
        polling = running.ask("/linerate/polling")
        assert [entry["packets"] for entry in polling] == [len(sent)] * 2
        assert {entry["lcore"] for entry in polling} == {CPU}
        for entry in polling:
            assert sum(entry["burst_histogram"]) == entry["polls"]
            assert 0 < entry["busy_tsc"] <= entry["total_tsc"]
        assert running.ask("/linerate/clock")["tsc_hz"] > 1_000_000
        assert "Bye..." in running.finish()
        assert not running.socket.parent.exists()


@pytest.mark.parametrize("way", WAYS)
def test_it_tells_how_long_frames_are_inside(directory: Path, way: str) -> None:
    with (
        end(LEFT, "l0") as left,
        end(RIGHT, "r0") as right,
        forwarder(directory, "--io", way, "--spans", "1") as running,
    ):
        check_spans(running, left, right)


def test_it_measures_no_spans_unless_it_is_asked_to(directory: Path) -> None:
    with forwarder(directory) as running:
        assert running.ask("/linerate/latency") == []


@pytest.mark.parametrize("way", WAYS)
def test_tags_of_vlans_stay(directory: Path, way: str) -> None:
    """The kernel takes the outer one out; it has to be put back."""
    tags = [b"\x81\x00\x20\x07", b"\x88\xa8\x00\x64", b"\x81\x00\x00\x01\x81\x00\x00\x02"]
    sent = [frame(n, 200, tag) for n, tag in enumerate(tags)] + [frame(9, 1518, tags[0])]
    with (
        end(LEFT, "l0") as left,
        end(RIGHT, "r0") as right,
        forwarder(directory, "--io", way, "--no-mac-updating"),
    ):
        for one in sent:
            left.send(one)
        assert right.await_frames(len(sent)) == sent


@pytest.mark.parametrize("way", WAYS)
def test_a_burst_is_forwarded_or_counted(directory: Path, way: str) -> None:
    """Many frames at once, with the forwarder stopped meanwhile: what finds no room is missed."""
    count = 40_000
    with (
        end(LEFT, "l0") as left,
        end(RIGHT, "r0"),
        forwarder(directory, "--io", way) as running,
    ):
        running.process.send_signal(signal.SIGSTOP)
        for number in range(count):
            left.send(frame(number % 64, 1000))
        running.process.send_signal(signal.SIGCONT)

        def settled() -> bool:
            before = running.stats(0)
            return before["ipackets"] + before["imissed"] == count

        eventually(settled, lambda: running.stats(0))
        assert running.stats(0)["imissed"] > 0
        books(running)


@pytest.mark.parametrize("way", WAYS)
def test_frames_too_long_for_the_other_side_are_counted(directory: Path, way: str) -> None:
    ip("-n", MIDDLE, "link", "set", "f1", "mtu", "1000")
    with (
        end(LEFT, "l0") as left,
        end(RIGHT, "r0") as right,
        forwarder(directory, "--io", way) as running,
    ):
        for size in (1014, 1015, 1514, 60):
            left.send(frame(size, size))
        assert [len(one) for one in right.await_frames(2)] == [1014, 60]
        assert running.ask("/ethdev/xstats,1")["tx_too_long"] == 2
        books(running)


@pytest.mark.parametrize("way", WAYS)
def test_an_interface_may_go_down_and_come_up_again(directory: Path, way: str) -> None:
    with (
        end(LEFT, "l0") as left,
        end(RIGHT, "r0") as right,
        forwarder(directory, "--io", way) as running,
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


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("gone", ["f0", "f1"])
def test_an_interface_that_is_deleted_ends_it_with_its_name(
    directory: Path, way: str, gone: str
) -> None:
    with end(LEFT, "l0") as left, forwarder(directory, "--io", way) as running:
        ip("-n", MIDDLE, "link", "del", gone)

        def ended() -> bool:
            # The other interface's end is noticed at once, or by a frame that is to leave there.
            if gone == "f1":
                left.send(frame(1, 60))
            return running.process.poll() is not None

        eventually(ended)
        assert running.process.returncode == 1
        assert f"network interface {gone} is gone" in running.log.read_text()
        assert not running.socket.parent.exists()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("gone", ["f0", "f1"])
def test_an_interface_that_was_down_when_it_was_deleted_ends_it_too(
    directory: Path, way: str, gone: str
) -> None:
    """No call tells of that, and no frame comes or has to leave."""
    with forwarder(directory, "--io", way) as running:
        ip("-n", MIDDLE, "link", "set", gone, "down")
        # The error of going down is taken by then.
        polls = running.ask("/linerate/polling")[0]["polls"]
        eventually(lambda: running.ask("/linerate/polling")[0]["polls"] > polls + 2)
        ip("-n", MIDDLE, "link", "del", gone)
        eventually(lambda: running.process.poll() is not None)
        assert running.process.returncode == 1
        assert f"network interface {gone} is gone" in running.log.read_text()


def test_several_queues_share_the_frames(directory: Path) -> None:
    with (
        end(LEFT, "l0") as left,
        end(RIGHT, "r0") as right,
        forwarder(directory, "--fanout", "lb", settings=",qpairs=3") as running,
    ):
        sent = [frame(number, 100) for number in range(90)]
        for one in sent:
            left.send(one)
        source = mac(MIDDLE, "f1")
        expected = sorted(forwarded(one, 1, source) for one in sent)
        assert sorted(right.await_frames(len(sent))) == expected
        polling = running.ask("/linerate/polling")
        packets = {(e["port"], e["queue"]): e["packets"] for e in polling}
        assert [packets[0, queue] for queue in range(3)] == [30, 30, 30]
        assert [packets[1, queue] for queue in range(3)] == [0, 0, 0]
        assert running.ask("/ethdev/info,0")["nb_rx_queues"] == 3


def test_statistics_are_those_of_l2fwd(directory: Path) -> None:
    file = directory / "stats.json"
    with end(LEFT, "l0") as left, forwarder(directory, "--json-stats", str(file)) as running:
        for number in range(50):
            left.send(frame(number, 60))
        eventually(lambda: running.stats(1)["opackets"] == 50)
        asked = (
            subprocess.run(
                [sys.executable, "/usr/bin/dpdk-telemetry.py", "-f", PREFIX],
                input="/ethdev/stats,0\n/ethdev/list\nquit\n",
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
                check=False,
                env=environment(directory),
            )
            if Path("/usr/bin/dpdk-telemetry.py").exists()
            else None
        )
        running.finish(signal.SIGINT)
    document = json.loads(file.read_text())
    assert (document["schema"], document["state"]) == ("linerate/l2fwd-stats-1", "ended")
    assert document["total"] == {"sent": 50, "received": 50, "dropped": 0}
    assert document["ports"][0]["ethdev"]["ipackets"] == 50
    if asked is None:
        pytest.skip("dpdk-telemetry.py is not installed: make setup (Debian: dpdk)")
    assert '"ipackets": 50' in asked.stdout, (asked.stdout, asked.stderr)


def test_a_killed_one_leaves_nothing_that_the_next_one_minds(directory: Path) -> None:
    with forwarder(directory) as running:
        running.process.kill()
        running.process.wait()
        assert running.socket.exists()
    with end(LEFT, "l0") as left, end(RIGHT, "r0") as right, forwarder(directory) as running:
        left.send(frame(1, 60))
        right.await_frames(1)
        told = refused_beside(running)
        assert f"--file-prefix {PREFIX}" in told
        running.finish()


def refused_beside(running: Forwarder) -> str:
    """What a second program with the same prefix says."""
    done = subprocess.run(
        command(), capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
        env=environment(running.directory),
    )  # fmt: skip
    assert done.returncode == 1
    assert running.socket.exists()
    return done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--vdev", "net_af_packet2,iface=none"], "no network interface none"),
        (["--vdev", f"net_af_packet2,iface={'n' * 16}"], f"no network interface {'n' * 16}"),
        (["--vdev", "net_af_packet2,iface=lo"], "lo has no Ethernet address"),
        (["--vdev", "net_af_packet2,iface=f0"], "f0 is the interface of net_af_packet0 already"),
        (["--vdev", "net_af_packet2,iface=f0,blocksz=5000"], "blocksz=5000"),
        (["--vdev", "net_af_packet2,iface=f0,turbo=1"], "turbo=1"),
        (["-l", "9999"], "-l 9999"),
        (["--file-prefix", "a/b"], "--file-prefix"),
    ],
)
def test_what_cannot_be_is_refused_by_name(directory: Path, words: list[str], told: str) -> None:
    whole = command()
    place = whole.index("--")
    assert told in refused(directory, [*whole[:place], *words, *whole[place:]])


def test_without_privileges_it_says_what_is_wanted(directory: Path) -> None:
    words = command()
    program = words.index(str(AF_PACKET.path))
    without = [*words[:program], "setpriv", "--bounding-set=-net_raw", *words[program:]]
    assert "CAP_NET_RAW" in refused(directory, without)


def test_it_keeps_out_of_a_directory_of_another_user(directory: Path) -> None:
    """Who could move the program's own directory away, and put another in its place."""
    shared = directory / "dpdk"
    shared.mkdir()
    os.chown(shared, 65534, 65534)
    assert f"{shared}: it belongs to user 65534, who" in refused(directory, command())
    assert not list(shared.iterdir())
