# SPDX-License-Identifier: BSD-3-Clause
"""Checksums that senders left to a veth: whoever is behind a forwarder gets the right ones."""

from __future__ import annotations

import random
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from programs import Forwarder, Program, need_bpf
from wires import (
    LEFT,
    RIGHT,
    TIMEOUT_S,
    clear_tx_checksums,
    end,
    eventually,
    inside,
    ip,
    set_gro,
    wires,
)

AF_PACKET = Program("af-packet-fwd", "net_af_packet")
AF_XDP = Program("af-xdp-fwd", "net_af_xdp")
XDP = Program("xdp-fwd", "net_xdp")
PORT = 5001
# As the kernel of the near end and that of the far end have them.
HOSTS = {
    socket.AF_INET: ("10.0.0.1", "10.0.0.2"),
    socket.AF_INET6: ("2001:db8::1", "2001:db8::2"),
}


@pytest.fixture(autouse=True)
def _hosts() -> Iterator[None]:
    need_bpf()
    with wires():
        for namespace, interface, host in ((LEFT, "l0", 0), (RIGHT, "r0", 1)):
            set_gro(namespace, interface)
            off = f"/proc/sys/net/ipv6/conf/{interface}/disable_ipv6"
            ip("netns", "exec", namespace, "sh", "-c", f"echo 0 > {off}")
            for family, bits in ((socket.AF_INET, 24), (socket.AF_INET6, 64)):
                words = ["addr", "add", f"{HOSTS[family][host]}/{bits}", "dev", interface]
                ip("-n", namespace, *words, *(["nodad"] if bits == 64 else []))
        yield


@pytest.fixture
def directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="kio") as path:
        yield Path(path)


def talk(family: socket.AddressFamily) -> None:
    """TCP and UDP in both directions, with messages of even and odd lengths."""
    near, far = HOSTS[family]
    with inside(RIGHT):
        server = socket.create_server((far, PORT), family=family)
        peer = socket.socket(family, socket.SOCK_DGRAM)
        peer.bind((far, PORT))
    with inside(LEFT):
        client = socket.socket(family, socket.SOCK_DGRAM)
        client.bind((near, PORT))
        tcp = socket.create_connection((far, PORT), TIMEOUT_S)
    with server, peer, client, tcp:
        server.settimeout(TIMEOUT_S)
        accepted, _ = server.accept()
        with accepted:
            for one, other in ((tcp, accepted), (accepted, tcp)):
                other.settimeout(TIMEOUT_S)
                for length in (1000, 999):
                    message = random.Random(length).randbytes(length)
                    one.sendall(message)
                    assert other.recv(length, socket.MSG_WAITALL) == message
        for one, to, other in ((client, far, peer), (peer, near, client)):
            other.settimeout(TIMEOUT_S)
            for message in (b"", b"1", b"22", bytes(777)):
                one.sendto(message, (to, PORT))
                assert other.recv(2000) == message


def counted(running: Forwarder) -> list[tuple[int, int]]:
    """How many were left and completed, of both ports."""
    told = [running.ask(f"/ethdev/xstats,{port}") for port in (0, 1)]
    return [(each["rx_checksum_left"], each["rx_checksum_completed"]) for each in told]


@pytest.mark.parametrize("family", list(HOSTS), ids=["ipv4", "ipv6"])
@pytest.mark.parametrize(
    ("program", "options"),
    [
        (AF_PACKET, ["--io", "mmap"]),
        (AF_PACKET, ["--io", "mmsg"]),
        (AF_PACKET, ["--io", "read-write"]),
        (AF_XDP, ["--mode", "native"]),
        (AF_XDP, ["--mode", "generic"]),
        (XDP, ["--mode", "native"]),
        (XDP, ["--mode", "generic"]),
    ],
    ids=lambda value: value.name if isinstance(value, Program) else value[-1],
)
def test_tcp_and_udp_get_through(
    directory: Path, program: Program, options: list[str], family: socket.AddressFamily
) -> None:
    with program.running(directory, *options, "--no-mac-updating", "-P") as running:
        talk(family)
        for left, completed in counted(running):
            # Each side sent two segments and four datagrams, and the handshake.
            assert left >= 6
            assert completed == left


@pytest.mark.parametrize("program", [AF_PACKET, AF_XDP, XDP], ids=lambda program: program.name)
def test_complete_checksums_stay(directory: Path, program: Program) -> None:
    """Also wrong ones, which the receiver is to see."""
    for namespace, interface in ((LEFT, "l0"), (RIGHT, "r0")):
        clear_tx_checksums(namespace, interface)
    with program.running(directory, "--no-mac-updating", "-P") as running:
        talk(socket.AF_INET)
        assert counted(running) == [(0, 0), (0, 0)]
        header = bytes.fromhex("4500001e00010000401100000a0000010a000002")
        udp = bytes.fromhex("00010002000a1234") + b"xy"
        wrong = bytes.fromhex("0211000000010211000000020800") + header + udp
        with end(LEFT, "l0") as left, end(RIGHT, "r0") as right:
            left.send(wrong.ljust(60, b"\0"))
            found: list[bytes] = []

            def is_there() -> bool:
                found.extend(right.received())
                return any(frame.startswith(wrong) for frame in found)

            eventually(is_there)
        assert counted(running) == [(0, 0), (0, 0)]
