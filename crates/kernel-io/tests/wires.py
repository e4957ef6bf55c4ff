# SPDX-License-Identifier: BSD-3-Clause
"""A forwarder's namespace between two others, veths between, packet sockets at the far ends."""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

TIMEOUT_S = 15.0
# `l0` is in the first, `f0` and `f1` in the second, `r0` in the third.
LEFT, MIDDLE, RIGHT = (f"lrk{os.getpid()}{end}" for end in "lmr")
SOL_PACKET, PACKET_AUXDATA, PACKET_IGNORE_OUTGOING = 263, 8, 23
ETH_P_ALL = 3
_VLAN_VALID, _TPID_VALID = 1 << 4, 1 << 6


def ip(*arguments: str) -> str:
    done = subprocess.run(
        ["ip", *arguments], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


def eventually(
    condition: Callable[[], object], what: Callable[[], object] = str, timeout_s: float = TIMEOUT_S
) -> None:
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, f"not within {timeout_s:g} s: {what()}"
        time.sleep(0.01)


@contextmanager
def inside(namespace: str) -> Iterator[None]:
    """This thread in a network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    with (
        Path("/proc/thread-self/ns/net").open() as home,
        Path(f"/run/netns/{namespace}").open() as there,
    ):
        assert libc.setns(there.fileno(), 0) == 0, os.strerror(ctypes.get_errno())
        try:
            yield
        finally:
            assert libc.setns(home.fileno(), 0) == 0, os.strerror(ctypes.get_errno())


@contextmanager
def wires(queues: int = 1) -> Iterator[None]:
    """Three namespaces and two veths, all up, without IPv6's own frames."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    try:
        for namespace in (LEFT, MIDDLE, RIGHT):
            try:
                ip("netns", "add", namespace)
            except (AssertionError, FileNotFoundError) as error:
                pytest.skip(f"no network namespace can be made here: {error}")
            off = "net.ipv6.conf.default.disable_ipv6=1"
            ip("netns", "exec", namespace, "sysctl", "-qw", off)
        for far, name, near in ((LEFT, "l0", "f0"), (RIGHT, "r0", "f1")):
            several = ("numrxqueues", str(queues), "numtxqueues", str(queues))
            ip("link", "add", name, "netns", far, *several, "type", "veth",
               "peer", "name", near, "netns", MIDDLE, *several)  # fmt: skip
            ip("-n", far, "link", "set", name, "up")
            ip("-n", MIDDLE, "link", "set", near, "up")
        yield
    finally:
        for namespace in (LEFT, MIDDLE, RIGHT):
            subprocess.run(["ip", "netns", "del", namespace], capture_output=True, check=False)


def set_gro(namespace: str, interface: str, *, on: bool = True) -> None:
    """Whether an interface puts received segments together (ioctl SIOCETHTOOL, ETHTOOL_SGRO): a
    veth polls only then, or with an XDP program."""
    value = ctypes.create_string_buffer(struct.pack("II", 0x2C, on))
    request = struct.pack("16sP", interface.encode(), ctypes.addressof(value))
    with inside(namespace), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, 0x8946, request)


def mac(namespace: str, interface: str) -> bytes:
    (found,) = json.loads(ip("-n", namespace, "-j", "link", "show", "dev", interface))
    return bytes.fromhex(found["address"].replace(":", ""))


@dataclass
class End:
    """A packet socket at a far end, which sees frames as they are on the wire."""

    namespace: str
    interface: str
    socket: socket.socket = field(init=False)

    def __post_init__(self) -> None:
        with inside(self.namespace):
            self.socket = socket.socket(
                socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.htons(ETH_P_ALL)
            )
            self.socket.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
            self.socket.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
            self.socket.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)  # SO_RCVBUFFORCE
            self.socket.bind((self.interface, ETH_P_ALL))
            self.socket.setblocking(False)

    def send(self, frame: bytes) -> None:
        end = time.monotonic() + TIMEOUT_S
        while True:
            try:
                self.socket.send(frame)
            except BlockingIOError:
                assert time.monotonic() < end
                time.sleep(0.001)
            else:
                return

    def received(self) -> list[bytes]:
        """What has come so far."""
        found: list[bytes] = []
        while True:
            try:
                frame, notes, _, _ = self.socket.recvmsg(1 << 16, 256)
            except BlockingIOError:
                return found
            for level, kind, data in notes:
                if (level, kind) == (SOL_PACKET, PACKET_AUXDATA):
                    status, _, _, _, _, tci, tpid = struct.unpack("IIIHHHH", data[:20])
                    if status & _VLAN_VALID:
                        protocol = tpid if status & _TPID_VALID else 0x8100
                        frame = frame[:12] + struct.pack("!HH", protocol, tci) + frame[12:]
            found.append(frame)

    def await_frames(self, count: int) -> list[bytes]:
        """That many, and no more within a moment."""
        found: list[bytes] = []

        def enough() -> bool:
            found.extend(self.received())
            return len(found) >= count

        eventually(enough, lambda: f"{len(found)} of {count} frames")
        time.sleep(0.05)
        return found + self.received()

    def close(self) -> None:
        self.socket.close()


@contextmanager
def end(namespace: str, interface: str) -> Iterator[End]:
    made = End(namespace, interface)
    try:
        yield made
    finally:
        made.close()
