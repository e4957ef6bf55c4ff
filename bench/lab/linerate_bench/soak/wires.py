# SPDX-License-Identifier: BSD-3-Clause
"""Veth pairs for programs on interfaces of the kernel: a network namespace between two others.

Programs run in the middle namespace, which has `f0` and `f1`; `l0` and `r0` are the other ends.
Lifecycle: `wires` makes the namespaces and removes them, with all that is in them.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from linerate.host import netns
from linerate.host.host import InNamespace, inside
from linerate.host.netns import Interface, Namespaces, ip

_LEFT, _MIDDLE, _RIGHT = "soak-l", "soak-m", "soak-r"
_ETH_P_ALL, _SOL_PACKET, _IGNORE_OUTGOING = 3, 263, 23
_SO_RCVBUFFORCE = 33
# An EtherType for local experiments (RFC 5342), which no other frames have.
_TYPE = b"\x88\xb5"
SOURCE = bytes.fromhex("021100000002")
TO_ANYBODY = bytes.fromhex("021100000001")
BURST, INTERVAL_S = 2, 0.002
# Frames that are read at once, while more come: more than a socket's buffer holds.
MOST_READ = 50_000


@dataclass(frozen=True)
class Wires:
    """The three namespaces."""

    left: InNamespace
    middle: InNamespace
    right: InNamespace

    def mac(self, interface: str) -> bytes:
        """Return the MAC address of an interface in the middle."""
        found = netns.mac(Interface(self.middle, interface, Interface.FORWARDER))
        return bytes.fromhex(found.replace(":", ""))

    def changed(self) -> list[str]:
        """Describe what programs left on the interfaces in the middle; empty: nothing."""
        shown = json.loads(ip("-json", "-details", "link", "show", host=self.middle))
        return changes(shown)


def changes(shown: Sequence[dict[str, object]]) -> list[str]:
    """Describe what was left, from the output of `ip -json -details link show`."""
    found = []
    for each in shown:
        name = each["ifname"]
        if name not in ("lo", "f0", "f1"):
            found.append(f"left interface {name}")
        if each.get("promiscuity"):
            found.append(f"left {name} promiscuous")
        if "xdp" in each:
            found.append(f"left an XDP program on {name}")
    return found


@contextmanager
def wires() -> Iterator[Wires]:
    """Make the namespaces and interfaces. Raises `MachineError` if namespaces cannot be made."""
    netns.prepare(otherwise="the other parts need none")
    with Namespaces((_LEFT, _MIDDLE, _RIGHT)) as made:
        left, middle, right = map(made.host, (_LEFT, _MIDDLE, _RIGHT))
        for far, name, near in ((left, "l0", "f0"), (right, "r0", "f1")):
            ip("link", "add", name, "netns", far.namespace, "type", "veth", "peer", "name", near,
               "netns", middle.namespace)  # fmt: skip
            ip("link", "set", name, "up", host=far)
            ip("link", "set", near, "up", host=middle)
            # A veth sends frames that XDP redirected only if its peer polls (NAPI), which GRO does.
            netns.set_gro(far, name)
        yield Wires(left, middle, right)


@contextmanager
def packet_socket(host: InNamespace, interface: str) -> Iterator[socket.socket]:
    """Open a packet socket that receives what the interface receives, but not what it sends."""
    with inside(host.namespace):
        made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0)
        with suppress(OSError):
            made.setsockopt(_SOL_PACKET, _IGNORE_OUTGOING, 1)
        # Room for seconds of traffic, because a busy machine may let nobody read it meanwhile.
        made.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 16 << 20)
        made.bind((interface, _ETH_P_ALL))
    made.setblocking(False)
    with made:
        yield made


@contextmanager
def traffic(host: InNamespace, interface: str) -> Iterator[None]:
    """Send at most 1000 frames per second, in a thread, until the context ends."""
    frame = (TO_ANYBODY + SOURCE + _TYPE).ljust(60, b"\0")
    ended = threading.Event()

    def send(by: socket.socket) -> None:
        while not ended.wait(INTERVAL_S):
            with suppress(OSError):
                for _ in range(BURST):
                    by.send(frame)

    with packet_socket(host, interface) as by:
        thread = threading.Thread(target=send, args=(by,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def marked(number: int, to: bytes = TO_ANYBODY) -> bytes:
    """Return a frame that has this number, so that it can be recognised."""
    return (to + SOURCE + _TYPE + b"soak" + number.to_bytes(8, "big")).ljust(60, b"\0")


def heard(by: socket.socket, word: bytes, within_s: float) -> bytes | None:
    """Return the first frame with this in it; None: none came in time.

    What has come is read once more after the deadline: on a busy machine, other processes may have
    had the CPU all that time.
    """
    deadline = time.monotonic() + within_s
    while True:
        over = time.monotonic() >= deadline
        with suppress(BlockingIOError):
            for _ in range(MOST_READ):
                frame = by.recv(2048)
                if word in frame:
                    return frame
        if over:
            return None
        time.sleep(0.0005)
