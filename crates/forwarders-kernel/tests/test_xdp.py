# SPDX-License-Identifier: BSD-3-Clause
"""xdp-fwd between two namespaces: frames come out as they should, or are counted; nothing stays."""

from __future__ import annotations

import json
import signal
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from programs import CPU, Forwarder, Program, forwarded, frame, need_bpf, refused
from wires import LEFT, MIDDLE, RIGHT, TIMEOUT_S, end, eventually, ip, mac, set_gro, wires

XDP = Program("xdp-fwd", "net_xdp")
MODES = ("native", "generic")


@pytest.fixture(autouse=True)
def _between() -> Iterator[None]:
    need_bpf()
    with wires():
        # A veth takes frames from XDP only where its other end polls.
        set_gro(LEFT, "l0")
        set_gro(RIGHT, "r0")
        yield


@pytest.fixture
def directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="kio") as path:
        yield Path(path)


def program_on(interface: str) -> bool:
    (found,) = json.loads(ip("-n", MIDDLE, "-j", "link", "show", "dev", interface))
    return "xdp" in found


def xstats(running: Forwarder, port: int) -> dict[str, int]:
    return dict(running.ask(f"/ethdev/xstats,{port}"))


@pytest.mark.parametrize("mode", MODES)
def test_frames_leave_by_the_partner_as_l2fwd_sends_them(directory: Path, mode: str) -> None:
    sizes = [14, 60, 61, 64, 128, 500, 1500, 1514]
    sent = [frame(n, size) for n, size in enumerate(sizes * 8)]
    with (
        end(LEFT, "l0") as left,
        end(RIGHT, "r0") as right,
        XDP.running(directory, "--mode", mode) as running,
    ):
        for one in sent:
            left.send(one)
            right.send(one)
        source = mac(MIDDLE, "f1"), mac(MIDDLE, "f0")
        assert right.await_frames(len(sent)) == [forwarded(one, 1, source[0]) for one in sent]
        assert left.await_frames(len(sent)) == [forwarded(one, 0, source[1]) for one in sent]
        octets = sum(map(len, sent))
        for port in (0, 1):
            stats = running.stats(port)
            assert (stats["ipackets"], stats["ibytes"]) == (len(sent), octets)
            assert (stats["opackets"], stats["obytes"]) == (len(sent), octets)
            there = xstats(running, port)
            assert (there["tx_refused"], there["tx_given_bytes"]) == (0, octets)
        assert running.ask("/linerate/polling") == []
        expected = {"action": "redirect", "ports": [{"port": n, "mode": mode} for n in (0, 1)]}
        assert running.ask("/linerate/xdp") == expected
        log = running.finish()
        assert f"Port 1: XDP {mode}, action redirect" in log
        assert "Bye..." in log
        assert not program_on("f0")
        assert not program_on("f1")


@contextmanager
def polled_by_xdp() -> Iterator[Forwarder]:
    """A program at the far end that passes on what comes: a veth wakes its other end for XDP_TX
    only where there is one."""
    with (
        tempfile.TemporaryDirectory(prefix="kio") as path,
        XDP.running(Path(path), "--action", "pass", namespace=LEFT, interfaces=["l0"]) as far,
    ):
        yield far


@pytest.mark.parametrize("mode", MODES)
def test_tx_sends_back_what_came(directory: Path, mode: str) -> None:
    sent = [frame(n, 100) for n in range(70)]
    with (
        end(LEFT, "l0") as left,
        XDP.running(directory, "--mode", mode, "--action", "tx") as running,
        polled_by_xdp() as far,
    ):
        for one in sent:
            left.send(one)
        source = mac(MIDDLE, "f0")
        assert left.await_frames(len(sent)) == [forwarded(one, 0, source) for one in sent]
        stats = running.stats(0)
        assert (stats["ipackets"], stats["opackets"]) == (len(sent), len(sent))
        assert running.stats(1)["opackets"] == 0
        assert xstats(far, 0)["rx_passed"] == len(sent)


def test_no_frame_is_lost_while_the_action_changes(directory: Path) -> None:
    """Each of them meets the old program or the new one."""
    with (
        end(LEFT, "l0") as left,
        end(RIGHT, "r0") as right,
        XDP.running(directory, "--no-mac-updating") as running,
        polled_by_xdp(),
    ):
        sent, back, through = [], [], []
        for turn in range(40):
            action = "tx" if turn % 2 else "redirect"
            burst = [frame(turn * 100 + n, 64) for n in range(50)]
            for one in burst[:25]:
                left.send(one)
            assert running.ask(f"/linerate/xdp/replace,{action}")["action"] == action
            for one in burst[25:]:
                left.send(one)
            sent += burst

        def all_here() -> bool:
            back.extend(left.received())
            through.extend(right.received())
            return len(back) + len(through) >= len(sent)

        eventually(all_here, lambda: (len(back), len(through)))
        assert sorted(back + through) == sorted(sent)
        assert back
        assert through
        assert running.stats(0)["ipackets"] == len(sent)
        assert running.ask("/linerate/xdp/replace,drop") is None
        assert running.ask("/linerate/xdp")["action"] == "tx"


def ipv4(source: str, destination: str, ttl: int, mac_to: bytes) -> bytes:
    addresses = b"".join(bytes(map(int, text.split("."))) for text in (source, destination))
    header = struct.pack("!BBHHHBBH", 0x45, 0, 46, 7, 0, ttl, 17, 0) + addresses
    total = sum(struct.unpack("!10H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    header = header[:10] + struct.pack("!H", ~total & 0xFFFF) + header[12:]
    return mac_to + bytes.fromhex("021100000002") + b"\x08\x00" + header + bytes(26)


def let_the_kernel_route() -> None:
    for name in ("all", "f0", "f1"):
        path = f"/proc/sys/net/ipv4/conf/{name}/forwarding"
        ip("netns", "exec", MIDDLE, "sh", "-c", f"echo 1 > {path}")


@pytest.mark.parametrize("mode", MODES)
def test_fib_routes_as_the_kernel_would(directory: Path, mode: str) -> None:
    ip("-n", MIDDLE, "addr", "add", "10.1.0.1/24", "dev", "f0")
    ip("-n", MIDDLE, "addr", "add", "10.2.0.1/24", "dev", "f1")
    let_the_kernel_route()
    neighbour = bytes.fromhex("0211000000aa")
    ip("-n", MIDDLE, "neigh", "add", "10.2.0.2", "lladdr", neighbour.hex(":"), "dev", "f1")
    ip("-n", MIDDLE, "route", "add", "blackhole", "10.3.0.0/24")
    to = mac(MIDDLE, "f0")
    with (
        end(LEFT, "l0") as left,
        end(RIGHT, "r0") as right,
        XDP.running(directory, "--mode", mode, "--action", "fib") as running,
    ):
        ours = mac(MIDDLE, "f1")
        for ttl in (2, 64, 255):
            left.send(ipv4("10.1.0.2", "10.2.0.2", ttl, to))
        expected = [
            neighbour + ours + ipv4("10.1.0.2", "10.2.0.2", ttl - 1, to)[12:]
            for ttl in (2, 64, 255)
        ]
        assert right.await_frames(3) == expected
        left.send(ipv4("10.1.0.2", "10.3.0.2", 64, to))
        left.send(frame(1, 60))
        left.send(ipv4("10.1.0.2", "10.2.0.2", 1, to))

        def counted() -> bool:
            there = xstats(running, 0)
            return there["rx_unroutable"] == 1 and there["rx_passed"] == 2

        eventually(counted, lambda: xstats(running, 0))
        assert running.stats(0)["ipackets"] == 6
        assert running.stats(1)["opackets"] == 3


def test_what_is_routed_to_a_port_that_is_not_forwarded_is_the_kernels(directory: Path) -> None:
    """A port that `-p` leaves out has no counters, so that its frames would be in none."""
    ip("-n", MIDDLE, "addr", "add", "10.2.0.1/24", "dev", "f1")
    let_the_kernel_route()
    ip("-n", MIDDLE, "neigh", "add", "10.2.0.2", "lladdr", "02:11:00:00:00:aa", "dev", "f1")
    with (
        end(LEFT, "l0") as left,
        XDP.running(directory, "--action", "fib", "-p", "1") as running,
    ):
        left.send(ipv4("10.1.0.2", "10.2.0.2", 64, mac(MIDDLE, "f0")))
        eventually(lambda: xstats(running, 0)["rx_passed"] == 1, lambda: xstats(running, 0))


def test_what_the_other_interface_refuses_is_counted(directory: Path) -> None:
    """Frames that are longer than its MTU, or that it cannot take at all."""
    ip("-n", MIDDLE, "link", "set", "f1", "mtu", "1000")
    with (
        end(LEFT, "l0") as left,
        end(RIGHT, "r0") as right,
        XDP.running(directory) as running,
    ):
        for size in (1014, 1514, 1400, 60):
            left.send(frame(size, size))
        assert [len(one) for one in right.await_frames(2)] == [1014, 60]
        eventually(lambda: xstats(running, 1)["tx_refused"] == 2, lambda: xstats(running, 1))
        # The lengths of refused frames are unknown.
        assert "obytes" not in running.stats(1)
        assert xstats(running, 1)["tx_given_bytes"] == 1014 + 1514 + 1400 + 60
        assert running.stats(0)["obytes"] == 0
        ip("-n", MIDDLE, "link", "set", "f1", "down")
        left.send(frame(7, 60))
        eventually(lambda: xstats(running, 1)["tx_refused"] == 3, lambda: xstats(running, 1))
        assert running.stats(1)["opackets"] == 2
        assert running.stats(0)["ipackets"] == 5


def test_a_veth_whose_other_end_does_not_poll_is_told_of(directory: Path) -> None:
    set_gro(RIGHT, "r0", on=False)
    with end(LEFT, "l0") as left, XDP.running(directory) as running:
        for number in range(10):
            left.send(frame(number, 60))
        eventually(lambda: xstats(running, 1)["tx_refused"] == 10, lambda: xstats(running, 1))
        assert running.stats(1)["opackets"] == 0
        eventually(lambda: "ethtool -K PEER gro on" in running.log.read_text())
        running.finish()


@pytest.mark.parametrize("gone", ["f0", "f1"])
def test_an_interface_that_is_deleted_ends_it_with_its_name(directory: Path, gone: str) -> None:
    with XDP.running(directory) as running:
        ip("-n", MIDDLE, "link", "del", gone)
        eventually(lambda: running.process.poll() is not None)
        assert running.process.returncode == 1
        assert f"network interface {gone} is gone" in running.log.read_text()
        assert not running.socket.parent.exists()
        assert not program_on({"f0": "f1", "f1": "f0"}[gone])


def test_an_interface_that_leaves_and_comes_back_ends_it(directory: Path) -> None:
    """Nothing would be sent there any more."""
    with XDP.running(directory) as running:
        ip("-n", MIDDLE, "link", "set", "f1", "netns", RIGHT)
        ip("-n", RIGHT, "link", "set", "f1", "netns", MIDDLE)
        eventually(lambda: running.process.poll() is not None)
        assert running.process.returncode == 1
        assert "network interface f1 is gone" in running.log.read_text()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_programs_go_with_the_process(directory: Path, number: signal.Signals) -> None:
    with XDP.running(directory) as running:
        assert program_on("f0")
        running.process.send_signal(number)
        running.process.wait(TIMEOUT_S)
        eventually(lambda: not program_on("f0") and not program_on("f1"))


def test_an_interface_has_one_program(directory: Path) -> None:
    with XDP.running(directory) as running:
        words = XDP.command()
        done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        assert done.returncode == 1
        said = "net_xdp0: f0 has an XDP program already; see ip link show f0, or use --shared"
        assert said in done.stderr
        assert program_on("f0")
        running.finish()


def test_without_native_xdp_the_stack_runs_it(directory: Path) -> None:
    """Bridges have no native XDP."""
    for number in (0, 1):
        ip("-n", MIDDLE, "link", "add", f"b{number}", "type", "bridge")
        ip("-n", MIDDLE, "link", "set", f"b{number}", "up")
    words = [word.replace("iface=f", "iface=b") for word in XDP.command()]
    told = refused(directory, [*words, "--mode", "native"])
    assert "net_xdp0: the driver of b0 does not support native XDP; use --mode generic" in told
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        generic = "Port 1: XDP generic (native: Operation not supported"
        assert any(generic in line for line in lines)
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == 0
    finally:
        process.kill()
        process.communicate()


def test_a_frame_too_long_for_native_xdp_is_named(directory: Path) -> None:
    for namespace, interface in ((LEFT, "l0"), (MIDDLE, "f0")):
        ip("-n", namespace, "link", "set", interface, "mtu", "9000")
    told = refused(directory, XDP.command("--mode", "native"))
    assert "net_xdp0: native XDP on f0 is refused" in told
    assert "its MTU of 9000 or" in told
    with XDP.running(directory) as running:
        assert running.ask("/linerate/xdp")["ports"][0]["mode"] == "generic"
        assert "Port 0: XDP generic (native: " in running.finish()


def test_without_privileges_it_says_what_is_wanted(directory: Path) -> None:
    words = XDP.command()
    program = words.index(str(XDP.path))
    bounds = "--bounding-set=-sys_admin,-bpf,-net_admin,-perfmon"
    without = [*words[:program], "setpriv", bounds, *words[program:]]
    assert "CAP_BPF" in refused(directory, without)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--vdev", "net_xdp2,iface=f0,turbo=1"], "turbo=1"),
        (["--vdev", "net_af_packet2,iface=f0"], "devices net_xdp0, net_xdp1"),
        (["-l", f"{CPU},9999"], "-l 9999"),
    ],
)
def test_what_cannot_be_is_refused_by_name(directory: Path, words: list[str], told: str) -> None:
    whole = XDP.command()
    place = whole.index("--")
    assert told in refused(directory, [*whole[:place], *words, *whole[place:]])
