# SPDX-License-Identifier: BSD-3-Clause
"""Peers of memif that send descriptors which they should not, or that are another user's."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from farend import Forwarder, forwarder
from harness import TIMEOUT_S, eventually
from memif_client import BUFFER, LOG2, MESSAGE, RING, SLOTS, VERSION, Kind, MemifClient, Step
from test_memif_clients import arrive, files, go, settled

pytest_plugins = ["rig"]

# A user who comes to an abstract socket, introduces itself, and prints the kinds of the answers.
STRANGER = """
import contextlib, os, socket, struct, sys
os.setgroups([]); os.setgid(65534); os.setuid(int(sys.argv[2]))
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
    peer.settimeout(20)
    peer.connect(chr(0) + sys.argv[1])
    # Before it is greeted, so that it is there when the server begins to read.
    with contextlib.suppress(OSError):
        peer.send((struct.pack("<HHIB", 3, 0x0200, 0, 0)).ljust(128, bytes(1)))
    try:
        while message := peer.recv(128):
            print(struct.unpack_from("<H", message)[0], flush=True)
    except OSError as error:
        print(type(error).__name__)
    print("end")
"""


def send(client: MemifClient, kind: Kind, body: bytes, descriptors: list[int]) -> None:
    message = (struct.pack("<H", kind) + body).ljust(MESSAGE, b"\0")
    socket.send_fds(client.socket, [message], descriptors)


def bodies() -> list[tuple[Kind, bytes]]:
    """One message of each kind that a client sends."""
    return [
        (Kind.ACK, b""),
        (Kind.HELLO, b""),
        (Kind.INIT, struct.pack("<HIB", VERSION, 0, 0)),
        (Kind.ADD_REGION, struct.pack("<HQ", 0, 1 << 20)),
        (Kind.ADD_REGION, struct.pack("<HQ", 999, 1 << 20)),
        (Kind.ADD_RING, struct.pack("<HHHIBH", 1, 0, 0, 0, LOG2, 0)),
        (Kind.ADD_RING, struct.pack("<HHHIBH", 1, 999, 0, 0, LOG2, 0)),
        (Kind.CONNECT, b"client"),
        (Kind.DISCONNECT, struct.pack("<I", 0) + b"bye"),
    ]


def make(what: str) -> int:
    """A descriptor of that kind."""
    if what == "event":
        return os.eventfd(0, os.EFD_NONBLOCK)
    if what == "memory":
        return os.memfd_create("m")
    if what == "directory":
        return os.open("/", os.O_RDONLY)
    if what == "device":
        return os.open("/dev/null", os.O_RDWR)
    ends = os.pipe()
    os.close(ends[0])
    return ends[1]


def test_descriptors_do_not_stay(directory: Path) -> None:
    """Whatever is sent with whichever message."""
    path = directory / "clients"
    device = f"net_memif0,role=server,socket={path},socket-abstract=no"
    with forwarder(directory, "l2fwd", [device], ["-p", "1", "-T", "0"]) as far:
        far.wait_for_ports()
        assert go(path, Step.SENT, "politely") == SLOTS // 2
        before = files(far.process.pid)
        for what in ("event", "memory", "directory", "device", "pipe"):
            for kind, body in bodies():
                for count in (1, 2):
                    for last in (Step.GREETED, Step.INTRODUCED, Step.SHARED_REGION):
                        bring(path, last, (kind, body), [make(what) for _ in range(count)])
                        assert far.process.poll() is None, far.log.read_text()
        settled(far.process.pid, before)
        assert go(path, Step.SENT, "politely") == SLOTS // 2
        far.stop()


def bring(path: Path, last: Step, message: tuple[Kind, bytes], descriptors: list[int]) -> None:
    """A client that goes so far and then sends a message three times, each time with these."""
    client = arrive(path)
    with contextlib.suppress(OSError):
        client.go_to(last)
        for _ in range(3):
            send(client, *message, descriptors)
    client.leave(politely=False)
    for each in descriptors:
        os.close(each)


def ring(region: int, place: int, log2: int) -> tuple[Kind, bytes]:
    return Kind.ADD_RING, struct.pack("<HHHIBH", 1, 0, region, place, log2, 0)


@pytest.mark.parametrize(
    ("last", "message", "what"),
    [
        (Step.INTRODUCED, (Kind.ADD_REGION, struct.pack("<HQ", 0, 1 << 20)), "memory"),
        (Step.INTRODUCED, (Kind.ADD_REGION, struct.pack("<HQ", 0, 0)), "memory"),
        (Step.SHARED_REGION, ring(60000, 0, LOG2), "event"),
        (Step.SHARED_REGION, ring(1, 0, LOG2), "event"),
        (Step.SHARED_REGION, ring(0, 0xFFFFFFF0, LOG2), "event"),
        (Step.SHARED_REGION, ring(0, 2 * RING + 2 * SLOTS * BUFFER - RING + 1, LOG2), "event"),
        (Step.SHARED_REGION, ring(0, 0, 15), "event"),
        (Step.SHARED_REGION, ring(0, 0, 255), "event"),
        (Step.SHARED_REGION, ring(0, 0, 0), "event"),
    ],
)
def test_rings_are_where_there_is_memory(
    directory: Path, last: Step, message: tuple[Kind, bytes], what: str
) -> None:
    """The driver followed them anywhere: SIGSEGV, and SIGBUS behind the end of a file."""
    path = directory / "clients"
    device = f"net_memif0,role=server,socket={path},socket-abstract=no"
    with forwarder(directory, "reflect", [device]) as far:
        far.wait_for_ports()
        client = arrive(path)
        client.go_to(last)
        client.files.append(make(what))
        send(client, *message, [client.files[-1]])
        with contextlib.suppress(OSError):
            # Not accepted; and if it were, this is where the driver would look for them.
            send(client, Kind.CONNECT, b"client", [])
            assert client.socket.recv(MESSAGE) == b""
        client.leave(politely=False)
        eventually(lambda: go(path, Step.SENT, "politely") == SLOTS // 2)
        far.stop()


def test_rings_are_added_over_and_over(directory: Path) -> None:
    """By a client that stays: its server does not run out of descriptors."""
    path = directory / "clients"
    device = f"net_memif0,role=server,socket={path},socket-abstract=no"
    with forwarder(directory, "l2fwd", [device], ["-p", "1", "-T", "0"]) as far:
        far.wait_for_ports()
        go(path, Step.SENT, "politely")
        before = files(far.process.pid)
        client = arrive(path)
        client.go_to(Step.SHARED_REGION)
        most = 0
        with contextlib.suppress(OSError):
            for _ in range(2000):
                event = os.eventfd(0, os.EFD_NONBLOCK)
                try:
                    body = struct.pack("<HHHIBH", 1, 0, 0, 0, LOG2, 0)
                    send(client, Kind.ADD_RING, body, [event])
                    client._expect(Kind.ACK)
                finally:
                    os.close(event)
                most = max(most, files(far.process.pid))
        assert most < before + 300
        client.leave(politely=False)
        settled(far.process.pid, before)
        assert go(path, Step.SENT, "politely") == SLOTS // 2
        far.stop()


def test_a_full_event_descriptor_keeps_nobody_waiting(directory: Path) -> None:
    """It waits where it may, and the server writes to it with each burst."""
    path = directory / "clients"
    device = f"net_memif0,role=server,socket={path},socket-abstract=no"
    with forwarder(directory, "l2fwd", [device], ["-p", "1", "-T", "0"]) as far:
        far.wait_for_ports()
        client = arrive(path)
        client.go_to(Step.SHARED_REGION)
        assert client.memory is not None
        for ring in range(2):
            # With interrupts.
            struct.pack_into("<H", client.memory, ring * RING + 4, 0)
        for place, is_to_server in enumerate((1, 0)):
            event = os.eventfd(0)
            os.eventfd_write(event, (1 << 64) - 2)
            client.files.append(event)
            body = struct.pack("<HHHIBH", is_to_server, 0, 0, place * RING, LOG2, 0)
            send(client, Kind.ADD_RING, body, [event])
            client._expect(Kind.ACK)
        send(client, Kind.CONNECT, b"client", [])
        client._expect(Kind.CONNECTED)
        assert client.cross(SLOTS // 2) == SLOTS // 2
        far.stop()
        client.leave(politely=False)


@pytest.mark.skipif(os.geteuid() != 0, reason="only for root it is another")
@pytest.mark.parametrize("user", [0, 65534])
def test_abstract_sockets_are_for_their_user(directory: Path, user: int) -> None:
    """Such a socket has no permissions, and its peers write to the program's memory."""
    name = f"strangers-{os.getpid()}-{time.monotonic_ns()}"
    with forwarder(directory, "l2fwd", [abstract(name)], ["-p", "1", "-T", "0"]) as far:
        far.wait_for_ports()
        told = stranger(name, user)
        # It may be greeted, but is not answered.
        if user == 0:
            assert told == ["2", "1"], far.log.read_text()
        else:
            assert told[-1] == "end", far.log.read_text()
            assert "1" not in told, far.log.read_text()
        assert ("refused a peer of user 65534" in far.log.read_text()) == (user != 0)
        check_alive(far)


def abstract(name: str) -> str:
    return f"net_memif0,role=server,socket={name},socket-abstract=yes"


def stranger(name: str, user: int) -> list[str]:
    command = [sys.executable, "-c", STRANGER, name, str(user)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines: list[str] = []
        try:
            # A peer that is let in stays until it is ended.
            while "1" not in lines and (line := process.stdout.readline()):
                lines.append(line.strip())
        finally:
            process.kill()
        return lines


def check_alive(far: Forwarder) -> None:
    assert far.process.poll() is None, far.log.read_text()
    far.stop()


@pytest.mark.skipif(os.geteuid() != 0, reason="only for root it is another")
def test_an_abstract_socket_of_a_stranger_is_not_used(directory: Path) -> None:
    """A client shares its memory with whoever has taken the name first."""
    name = f"strangers-{os.getpid()}-{time.monotonic_ns()}"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    child = os.fork()
    if child == 0:
        listen(listener, name)
    listener.close()
    device = f"net_memif0,role=client,socket={name},socket-abstract=yes"
    with forwarder(directory, "l2fwd", [device], ["-p", "1", "-T", "0"]) as far:
        eventually(lambda: "refused a peer of user 65534" in far.log.read_text(), far.log.read_text)
        check_alive(far)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, "the client introduced itself"


def listen(listener: socket.socket, name: str) -> None:
    """As another user: greets the first who comes, and ends with 1 if it sends anything."""
    status = 2
    with contextlib.suppress(BaseException):
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        listener.bind("\0" + name)
        listener.listen(1)
        listener.settimeout(TIMEOUT_S)
        peer, _ = listener.accept()
        peer.settimeout(TIMEOUT_S)
        hello = struct.pack("<H32sHHHHHB", Kind.HELLO, b"stranger", VERSION, VERSION, 0, 0, 0, 14)
        with contextlib.suppress(OSError):
            peer.send(hello.ljust(MESSAGE, b"\0"))
        try:
            status = 1 if peer.recv(MESSAGE) else 0
        except ConnectionError:
            status = 0
    os._exit(status)
