# SPDX-License-Identifier: BSD-3-Clause
"""A forwarder's namespace between two others, veths between, packet sockets at the far ends."""

from __future__ import annotations

import ctypes
import fcntl
import json
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from linerate.host import netns
from linerate.host.errors import LabError
from linerate.host.host import InNamespace, inside
from linerate.host.netns import Namespaces, ip

__all__ = ["LEFT", "MIDDLE", "RIGHT", "TIMEOUT_S", "End", "end", "eventually", "mac", "wires"]
__all__ += ["inside", "ip"]

TIMEOUT_S = 15.0
# `l0` is in the first, `f0` and `f1` in the second, `r0` in the third.
_OWN = Namespaces("lmr")
LEFT, MIDDLE, RIGHT = map(_OWN.name, "lmr")
SIOCETHTOOL, ETHTOOL_STXCSUM = 0x8946, 0x17
SOL_PACKET, PACKET_AUXDATA, PACKET_IGNORE_OUTGOING = 263, 8, 23
ETH_P_ALL = 3
_VLAN_VALID, _TPID_VALID = 1 << 4, 1 << 6


def eventually(
    condition: Callable[[], object], what: Callable[[], object] = str, timeout_s: float = TIMEOUT_S
) -> None:
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, f"not within {timeout_s:g} s: {what()}"
        time.sleep(0.01)


@contextmanager
def wires(queues: int = 1) -> Iterator[None]:
    """Three namespaces and two veths, all up, without IPv6's own frames."""
    try:
        netns.prepare()
    except LabError as error:
        pytest.skip(str(error))
    with _OWN:
        for far, name, near in ((LEFT, "l0", "f0"), (RIGHT, "r0", "f1")):
            several = ("numrxqueues", str(queues), "numtxqueues", str(queues))
            ip("link", "add", name, "netns", far, *several, "type", "veth",
               "peer", "name", near, "netns", MIDDLE, *several)  # fmt: skip
            ip("-n", far, "link", "set", name, "up")
            ip("-n", MIDDLE, "link", "set", near, "up")
        yield


def set_gro(namespace: str, interface: str, *, on: bool = True) -> None:
    netns.set_gro(InNamespace(namespace), interface, on=on)


def clear_tx_checksums(namespace: str, interface: str) -> None:
    """Has the kernel make checksums before it sends by an interface (`ethtool -K IF tx off`)."""
    value = ctypes.create_string_buffer(struct.pack("II", ETHTOOL_STXCSUM, 0))
    request = struct.pack("16sP16x", interface.encode(), ctypes.addressof(value))
    with inside(namespace), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        fcntl.ioctl(asked, SIOCETHTOOL, request)


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

    def received(self, most: int = 10_000) -> list[bytes]:
        """What has come so far, up to `most`: others may send faster than this receives."""
        found: list[bytes] = []
        while len(found) < most:
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
        return found

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
