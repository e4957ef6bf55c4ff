# SPDX-License-Identifier: BSD-3-Clause
"""`xdp-fwd --action fib` against the kernel alone: the same frames come out, whatever comes in."""

from __future__ import annotations

import random
import struct
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import TypeVar

import pytest
from programs import Forwarder, Program, need_bpf
from wires import LEFT, MIDDLE, RIGHT, End, end, eventually, ip, mac, set_gro, wires

XDP = Program("xdp-fwd", "net_xdp")
FRAMES = 10_000
NEIGHBOUR = "02:11:00:00:00:aa"
SENDER = bytes.fromhex("021100000002")
IPV4, IPV6 = b"\x08\x00", b"\x86\xdd"
T = TypeVar("T")
# What frames of a test carry, so that those that the kernel sends by itself are told apart.
MARK = b"fib-"


@pytest.fixture(autouse=True)
def _router() -> Iterator[None]:
    """`f0` and `f1` route between a near and a far net, with routes of every type."""
    need_bpf()
    with wires():
        set_gro(LEFT, "l0")
        set_gro(RIGHT, "r0")
        for key, value in (
            ("ipv4/conf/all/forwarding", 1),
            ("ipv4/conf/f0/forwarding", 1),
            ("ipv4/conf/f1/forwarding", 1),
            ("ipv6/conf/all/forwarding", 1),
            ("ipv6/conf/f0/disable_ipv6", 0),
            ("ipv6/conf/f1/disable_ipv6", 0),
        ):
            sysctl(key, value)
        for words in ROUTER:
            ip("-n", MIDDLE, *words.split())
        yield


ROUTER = [
    "addr add 10.1.0.1/24 dev f0",
    "addr add 10.2.0.1/24 dev f1",
    "addr add 2001:db8:1::1/64 dev f0 nodad",
    "addr add 2001:db8:2::1/64 dev f1 nodad",
    f"neigh add 10.2.0.2 lladdr {NEIGHBOUR} dev f1",
    f"neigh add 10.1.0.2 lladdr {NEIGHBOUR} dev f0",
    f"neigh add 2001:db8:2::2 lladdr {NEIGHBOUR} dev f1",
    f"neigh add 2001:db8:1::2 lladdr {NEIGHBOUR} dev f0",
    # Behind a gateway, back where it came from, nowhere.
    "route add 10.6.0.0/16 via 10.2.0.2",
    "route add 10.7.0.0/16 via 10.1.0.2",
    "route add 10.8.0.0/16 via 10.2.0.2 mtu lock 600",
    "route add blackhole 10.3.0.0/24",
    "route add unreachable 10.4.0.0/24",
    "route add prohibit 10.5.0.0/24",
    # Some would have everything, multicast as well.
    "route add 128.0.0.0/1 via 10.2.0.2",
    "route add 2001:db8:6::/48 via 2001:db8:2::2",
    "route add 2001:db8:7::/48 via 2001:db8:1::2",
    "route add blackhole 2001:db8:3::/48",
    "route add unreachable 2001:db8:4::/48",
    "route add default via 2001:db8:2::2",
    # Sources behind the far interface.
    "route add 172.16.0.0/12 via 10.2.0.2",
    # And behind the near one.
    "route add 192.168.0.0/16 via 10.1.0.2",
]
SOURCES4 = ["10.1.0.2", "10.1.0.9", "192.168.3.4"] * 4 + [
    *["10.1.0.1", "10.2.0.1", "10.2.0.9", "172.16.0.1", "10.6.0.1", "100.64.0.1", "10.1.0.255"],
    *["0.0.0.0", "0.1.2.3", "127.0.0.1", "224.0.0.5", "240.0.0.1", "255.255.255.255", "10.3.0.1"],
]
TARGETS4 = ["10.2.0.2", "10.6.1.2", "200.1.2.3"] * 4 + [
    *["10.1.0.1", "10.2.0.1", "10.2.0.9", "10.2.0.255", "10.7.0.1", "10.8.0.1", "10.3.0.1"],
    *["10.4.0.1", "10.5.0.1", "10.99.0.1", "0.0.0.0", "127.0.0.1", "224.0.0.5", "239.1.2.3"],
    *["240.0.0.1", "255.255.255.255"],
]
SOURCES6 = ["2001:db8:1::2", "2001:db8:1::9", "2001:db8:77::1"] * 4 + [
    *["2001:db8:1::1", "2001:db8:2::1", "2001:db8:6::1", "::", "::1", "fe80::2", "ff02::1"],
    *["::ffff:10.1.0.2", "fc00::1", "fec0::1", "2001:db8:3::1"],
]
TARGETS6 = ["2001:db8:2::2", "2001:db8:6::7", "2001:db8:99::1", "fd00::1"] * 4 + [
    *["2001:db8:1::1", "2001:db8:2::1", "2001:db8:2::", "2001:db8:2::9", "2001:db8:7::1"],
    *["2001:db8:3::1", "2001:db8:4::1", "::", "::1", "fe80::2", "ff02::1", "ff0e::1"],
    *["::ffff:10.2.0.2", "fec0::1"],
]


def sysctl(key: str, value: int) -> None:
    ip("netns", "exec", MIDDLE, "sh", "-c", f"echo {value} > /proc/sys/net/{key}")


def folded(header: bytes) -> int:
    total: int = sum(struct.unpack(f"!{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


@dataclass
class Maker:
    """Frames at random, each with a number that no other one has."""

    rng: random.Random
    ours: bytes
    other: bytes

    def often(self, usual: T, *rare: T, share: float) -> T:
        return usual if self.rng.random() < share else self.rng.choice(rare)

    def frame(self, number: int) -> bytes:
        rng = self.rng
        strange = [bytes.fromhex("02deadbeef01"), b"\xff" * 6, self.other, bytes(6)]
        strange += [bytes.fromhex("01005e000005"), bytes.fromhex("333300000001")]
        to = self.often(self.ours, *strange, share=0.8)
        tag = b""
        if rng.random() < 0.03:
            tag = rng.choice([b"\x81\x00\x00\x05", b"\x88\xa8\x00\x07", b"\x81\x00\x00\x00"])
        payload = MARK + struct.pack("!I", number)
        payload += rng.randbytes(rng.choice([0, 1, 10, 100, 700, 1400]))
        kind, packet = (
            (IPV4, self.ipv4(payload)) if rng.random() < 0.6 else (IPV6, self.ipv6(payload))
        )
        if rng.random() < 0.02:
            kind = rng.choice([IPV4, IPV6, b"\x08\x06", b"\x00\x2e"])
        whole = to + SENDER + tag + kind + packet
        dice = rng.random()
        if dice < 0.1:
            whole += bytes(rng.choice([1, 7, 40]))
        elif dice < 0.13:
            whole = whole[: rng.randrange(14, len(whole))]
        return whole[:1514]

    def udp(self, payload: bytes) -> bytes:
        """Nobody on the way looks at its checksum."""
        return struct.pack("!HHHH", 1000, 2000, 8 + len(payload), 0) + payload

    def ipv4(self, payload: bytes) -> bytes:
        rng = self.rng
        options = (
            b"" if rng.random() < 0.95 else rng.choice([b"\1\1\1\1", b"\x44\4\5\0", b"\x94\4\0\0"])
        )
        body = self.udp(payload)
        words = 5 + len(options) // 4
        length = 4 * words + len(body)
        header = struct.pack(
            "!BBHHHBBH",
            self.often(4, 0, 5, 6, 15, share=0.98) << 4
            | self.often(words, 0, 4, 6, 15, share=0.98),
            rng.choice([0, 0, 0x10, 0xFF]),
            self.often(length, 0, 19, 20, length - 1, length + 1, 65535, share=0.95),
            rng.randrange(65536),
            self.often(0, 0x4000, 0x2000, 0x2003, 0x8000, share=0.8),
            self.often(64, 0, 1, 2, 255, share=0.8),
            self.often(17, 6, 1, 47, 255, share=0.8),
            0,
        )
        header += IPv4Address(rng.choice(SOURCES4)).packed
        header += IPv4Address(rng.choice(TARGETS4)).packed + options
        right = 0xFFFF - folded(header)
        check = self.often(right, 0, 0xFFFF, right ^ 1, share=0.95)
        return header[:10] + struct.pack("!H", check) + header[12:] + body

    def ipv6(self, payload: bytes) -> bytes:
        rng = self.rng
        body, follows = self.udp(payload), 17
        if rng.random() < 0.08:
            follows = rng.choice([0, 43, 44, 60])
            body = bytes([17, 0, 1, 4, 0, 0, 0, 0]) + body
        length = len(body)
        header = struct.pack(
            "!IHBB",
            self.often(6, 0, 4, 7, share=0.98) << 28 | rng.choice([0, 0xABCDE]),
            self.often(length, 0, length - 1, length + 1, 65535, share=0.95),
            follows,
            self.often(64, 0, 1, 2, 255, share=0.8),
        )
        header += IPv6Address(rng.choice(SOURCES6)).packed
        return header + IPv6Address(rng.choice(TARGETS6)).packed + body


def without_padding(frame: bytes) -> bytes:
    """The packet alone: Ethernet pads short frames, and the kernel takes the padding off."""
    if frame[12:14] == IPV4:
        return frame[: 14 + int.from_bytes(frame[16:18], "big")]
    return frame[: 54 + int.from_bytes(frame[18:20], "big")]


def ours(frames: Sequence[bytes]) -> Counter[bytes]:
    """Forwarded frames: not what the kernel sends by itself, such as errors and redirects."""

    def is_forwarded(frame: bytes) -> bool:
        """The mark is behind the first headers, and not behind those that an error repeats."""
        at = 14 + 4 * (frame[14] & 15) if frame[12:14] == IPV4 else 54
        return MARK in frame[at + 8 : at + 8 + len(MARK) + (8 if at == 54 else 0)]

    return Counter(filter(is_forwarded, map(without_padding, frames)))


def send(frames: Sequence[bytes], left: End, right: End) -> list[Counter[bytes]]:
    """What comes out at both ends. Slowly enough for every queue on the way."""
    came: list[list[bytes]] = [[], []]

    def drain() -> int:
        for found, at in zip(came, (left, right), strict=True):
            found.extend(at.received())
        return sum(map(len, came))

    for start in range(0, len(frames), 50):
        for one in frames[start : start + 50]:
            left.send(one)
        drain()
    quiet, before = 0, -1
    while quiet < 10:
        time.sleep(0.02)
        now = drain()
        quiet, before = (quiet + 1 if now == before else 0), now
    return [ours(each) for each in came]


def kernel_and_fib(
    directory: Path, frames: Sequence[bytes], *options: str
) -> tuple[list[Counter[bytes]], list[Counter[bytes]], dict[str, int]]:
    """What the kernel alone lets out, what it does with `fib`, and what that counted."""
    found = []
    counted: dict[str, int] = {}
    for program in (nullcontext(), XDP.running(directory, "--action", "fib", *options)):
        with end(LEFT, "l0") as left, end(RIGHT, "r0") as right, program as running:
            found.append(send(frames, left, right))
            if isinstance(running, Forwarder):
                counted = dict(running.ask("/ethdev/xstats,0"))
                counted["forwarded"] = running.ask("/ethdev/xstats,1")["tx_good_packets"]
    return found[0], found[1], counted


@pytest.fixture
def directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="kio") as path:
        yield Path(path)


@pytest.mark.parametrize("rp_filter", [0, 1, 2])
@pytest.mark.parametrize("mode", ["native", "generic"])
def test_the_same_frames_come_out_as_of_the_kernel_alone(
    directory: Path, mode: str, rp_filter: int
) -> None:
    for name in ("all", "f0"):
        sysctl(f"ipv4/conf/{name}/rp_filter", rp_filter)
    rng = random.Random(f"{mode} {rp_filter}")
    maker = Maker(rng, mac(MIDDLE, "f0"), mac(MIDDLE, "f1"))
    frames = [maker.frame(number) for number in range(FRAMES)]
    alone, fib, counted = kernel_and_fib(directory, frames, "--mode", mode)
    for side in (0, 1):
        only_one = [alone[side] - fib[side], fib[side] - alone[side]]
        shown = [[frame[:80].hex() for frame in list(only)[:3]] for only in only_one]
        assert shown == [[], []], "frames that only the kernel or only fib forwards"
    out = sum(alone[1].values())
    assert out > FRAMES / 10, "the test has frames that are forwarded"
    # Most of them by the program, not by the kernel behind it.
    assert counted["forwarded"] > out / 2
    assert counted["rx_passed"] > 0
    assert counted["rx_unroutable"] > 0
    # And what the other end says by itself.
    assert counted["rx_good_packets"] >= FRAMES


@dataclass(frozen=True)
class One:
    """A frame that is forwarded unless something about it is not as it should be."""

    to: bytes | None = None
    source: str = "10.1.0.2"
    target: str = "10.2.0.2"
    wrong_checksum: bool = False

    def frame(self, ours: bytes) -> bytes:
        maker = Maker(random.Random(0), ours, ours)
        body = maker.udp(MARK.ljust(26, b"x"))
        header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(body), 1, 0, 64, 17, 0)
        header += IPv4Address(self.source).packed + IPv4Address(self.target).packed
        check = 0xFFFF - folded(header) ^ self.wrong_checksum
        packet = header[:10] + struct.pack("!H", check) + header[12:] + body
        return (self.to or ours) + SENDER + IPV4 + packet


@pytest.mark.parametrize(
    ("one", "forwarded"),
    [
        (One(), 1),
        (One(to=bytes.fromhex("02deadbeef01")), 0),
        (One(to=b"\xff" * 6), 0),
        (One(wrong_checksum=True), 0),
        (One(source="127.0.0.1"), 0),
        (One(source="224.0.0.1"), 0),
        (One(source="10.2.0.1"), 0),
        (One(source="172.16.0.1"), 0),
        (One(target="224.0.0.1"), 0),
    ],
    ids=[
        "right",
        "other-mac",
        "broadcast",
        "checksum",
        "loopback",
        "multicast",
        "own",
        "rp_filter",
        "group",
    ],
)
def test_what_the_kernel_does_not_forward_is_left_to_it(
    directory: Path, one: One, forwarded: int
) -> None:
    """`rx_passed` counts it, and nothing comes out."""
    sysctl("ipv4/conf/f0/rp_filter", 1)
    frames = [one.frame(mac(MIDDLE, "f0"))] * 3
    alone, fib, counted = kernel_and_fib(directory, frames)
    assert alone == fib
    assert fib[1].total() == counted["forwarded"] == 3 * forwarded
    assert counted["rx_passed"] == 3 * (1 - forwarded)


def test_a_new_address_of_the_interface_is_noticed(directory: Path) -> None:
    with (
        end(LEFT, "l0") as left,
        end(RIGHT, "r0") as right,
        XDP.running(directory, "--action", "fib") as running,
    ):
        old = One().frame(mac(MIDDLE, "f0"))
        left.send(old)
        right.await_frames(1)
        ip("-n", MIDDLE, "link", "set", "f0", "address", "02:11:00:00:00:77")

        def is_known() -> bool:
            before = running.ask("/ethdev/xstats,1")["tx_good_packets"]
            left.send(One().frame(mac(MIDDLE, "f0")))
            right.await_frames(1)
            return bool(running.ask("/ethdev/xstats,1")["tx_good_packets"] > before)

        eventually(is_known)
        left.send(old)
        time.sleep(0.2)
        assert not ours(right.received())


def test_ipv6_is_forwarded_only_where_the_kernel_forwards_it(directory: Path) -> None:
    """The kernel asks `all`, and the helper that programs ask the interface."""
    maker = Maker(random.Random(1), mac(MIDDLE, "f0"), b"")
    body = maker.udp(MARK.ljust(20, b"x"))
    header = struct.pack("!IHBB", 6 << 28, len(body), 17, 64)
    addresses = IPv6Address("2001:db8:1::2").packed + IPv6Address("2001:db8:2::2").packed
    frames = [mac(MIDDLE, "f0") + SENDER + IPV6 + header + addresses + body] * 3
    alone, fib, counted = kernel_and_fib(directory, frames)
    assert alone == fib
    assert fib[1].total() == counted["forwarded"] == 3
    for name, value in (("all", 0), ("f0", 1), ("f1", 1)):
        sysctl(f"ipv6/conf/{name}/forwarding", value)
    alone, fib, counted = kernel_and_fib(directory, frames)
    assert alone == fib
    assert fib[1].total() == counted["forwarded"] == 0
