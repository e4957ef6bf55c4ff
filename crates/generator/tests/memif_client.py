# SPDX-License-Identifier: BSD-3-Clause
"""A memif client in Python, which comes, sends, and leaves at any step of the way."""

from __future__ import annotations

import contextlib
import mmap
import os
import socket
import struct
import time
from enum import IntEnum
from pathlib import Path

MESSAGE = 128
VERSION = 0x0200
COOKIE = 0x3E31F20
LOG2 = 5
SLOTS = 1 << LOG2
BUFFER = 2048
HEADER = 128
"""Bytes of a ring before its descriptors."""
RING = HEADER + 16 * SLOTS
HEAD, TAIL = 6, 64
"""Places in a ring of the counters of its producer of buffers and of its consumer."""
NO_INTERRUPTS = 1


class Kind(IntEnum):
    """Kinds of messages."""

    ACK = 1
    HELLO = 2
    INIT = 3
    ADD_REGION = 4
    ADD_RING = 5
    CONNECT = 6
    CONNECTED = 7
    DISCONNECT = 8


class Step(IntEnum):
    """How far a client goes before it leaves."""

    CONNECTED_SOCKET = 0
    GREETED = 1
    INTRODUCED = 2
    SHARED_REGION = 3
    SHARED_RINGS = 4
    ASKED = 5
    LINKED = 6
    SENT = 7


class MemifClient:
    """One end of a link with one queue each way."""

    def __init__(self, path: Path, number: int = 0, timeout_s: float = 20) -> None:
        self.number = number
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(timeout_s)
        self.socket.connect(str(path))
        self.files: list[int] = []
        self.memory: mmap.mmap | None = None
        self.timeout_s = timeout_s

    def _send(self, kind: Kind, body: bytes, file: int | None = None) -> None:
        message = (struct.pack("<H", kind) + body).ljust(MESSAGE, b"\0")
        socket.send_fds(self.socket, [message], [] if file is None else [file])

    def _expect(self, kind: Kind) -> bytes:
        message = self.socket.recv(MESSAGE)
        got = struct.unpack_from("<H", message)[0] if message else None
        if got != kind:
            raise ConnectionError(f"{kind.name} expected, got {got}: {message[2:60]!r}")
        return message

    def go_to(self, last: Step) -> int:
        """Goes to that step and returns how many of the frames that it sent came back."""
        if last >= Step.GREETED:
            self._expect(Kind.HELLO)
        if last >= Step.INTRODUCED:
            self._send(Kind.INIT, struct.pack("<HIB", VERSION, self.number, 0))
            self._expect(Kind.ACK)
        if last >= Step.SHARED_REGION:
            size = 2 * RING + 2 * SLOTS * BUFFER
            self.files.append(os.memfd_create("region"))
            os.ftruncate(self.files[0], size)
            self.memory = mmap.mmap(self.files[0], size)
            self._make_rings()
            self._send(Kind.ADD_REGION, struct.pack("<HQ", 0, size), self.files[0])
            self._expect(Kind.ACK)
        if last >= Step.SHARED_RINGS:
            for place, is_to_server in enumerate((1, 0)):
                self.files.append(os.eventfd(0, os.EFD_NONBLOCK))
                body = struct.pack("<HHHIBH", is_to_server, 0, 0, place * RING, LOG2, 0)
                self._send(Kind.ADD_RING, body, self.files[-1])
                self._expect(Kind.ACK)
        if last >= Step.ASKED:
            self._send(Kind.CONNECT, b"client")
        if last >= Step.LINKED:
            self._expect(Kind.CONNECTED)
        return self.cross(SLOTS // 2) if last >= Step.SENT else 0

    def _make_rings(self) -> None:
        assert self.memory is not None
        for ring in range(2):
            struct.pack_into("<IH", self.memory, ring * RING, COOKIE, NO_INTERRUPTS)
            for slot in range(SLOTS):
                buffer = 2 * RING + (ring * SLOTS + slot) * BUFFER
                at = ring * RING + HEADER + 16 * slot
                struct.pack_into("<HHIII", self.memory, at, 0, 0, BUFFER, buffer, 0)

    def _counter(self, ring: int, place: int) -> int:
        assert self.memory is not None
        return int(struct.unpack_from("<H", self.memory, ring * RING + place)[0])

    def cross(self, frames: int, length: int = 60) -> int:
        """Sends frames and counts what comes back, which is lost to a forwarder that drops."""
        assert self.memory is not None
        struct.pack_into("<H", self.memory, RING + HEAD, SLOTS)
        frame = bytes.fromhex("020000000002 020000000001 88b5").ljust(length, b"\x5a")
        for slot in range(frames):
            at = HEADER + 16 * slot
            _, _, _, buffer, _ = struct.unpack_from("<HHIII", self.memory, at)
            self.memory[buffer : buffer + length] = frame
            struct.pack_into("<HHI", self.memory, at, 0, 0, length)
        struct.pack_into("<H", self.memory, HEAD, frames)
        deadline = time.monotonic() + self.timeout_s
        while self._counter(1, TAIL) < frames and time.monotonic() < deadline:
            time.sleep(0.0005)
        return self._counter(1, TAIL)

    def leave(self, *, politely: bool) -> None:
        if politely:
            with contextlib.suppress(OSError):
                self._send(Kind.DISCONNECT, struct.pack("<I", 0) + b"bye")
        self.socket.close()
        for file in self.files:
            os.close(file)
        if self.memory is not None:
            self.memory.close()
