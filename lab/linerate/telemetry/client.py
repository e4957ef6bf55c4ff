# SPDX-License-Identifier: BSD-3-Clause
"""Client of DPDK's telemetry protocol, version 2.

Lifecycle: a `Telemetry` holds one connection; use it as a context manager. Threading: one thread
per connection. The socket is SOCK_SEQPACKET: one request is one packet, one answer is one packet of
JSON, and the server greets with its version and the longest answer it sends.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linerate.host.errors import DisconnectedError, SilentError, TelemetryError, UnknownCommandError

SOCKET_NAME = "dpdk_telemetry.v2"
# sockaddr_un.sun_path, its terminating zero included.
UNIX_PATH_LIMIT = 108


@dataclass(frozen=True)
class Reading:
    """An answer and the time around it.

    The counters were read by the other process at some time in [`before_ns`, `after_ns`]
    (CLOCK_MONOTONIC), so `at_ns` is off by at most `uncertainty_ns`.
    """

    value: Any
    before_ns: int
    after_ns: int

    @property
    def at_ns(self) -> float:
        return (self.before_ns + self.after_ns) / 2

    @property
    def uncertainty_ns(self) -> float:
        return (self.after_ns - self.before_ns) / 2


def socket_path(runtime_dir: Path, prefix: str) -> Path:
    """Where a program with this file prefix puts its socket below `runtime_dir`."""
    return runtime_dir / "dpdk" / prefix / SOCKET_NAME


def place_of(path: Path) -> tuple[Path, str]:
    """The run-time directory and the file prefix of a `socket_path`."""
    return path.parents[2], path.parent.name


class Telemetry:
    """One connection to one program."""

    def __init__(self, path: Path, timeout_s: float = 5.0) -> None:
        self.path = path
        if len(str(path).encode()) >= UNIX_PATH_LIMIT:
            raise TelemetryError(
                f"telemetry socket path is longer than {UNIX_PATH_LIMIT - 1} bytes: {path}",
                "set TMPDIR or XDG_RUNTIME_DIR to a shorter directory",
            )
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(timeout_s)
        try:
            self._socket.connect(str(path))
            greeting = json.loads(self._socket.recv(4096))
            self.version: str = str(greeting["version"])
            self.pid: int = int(greeting["pid"])
            self._max_answer = int(greeting["max_output_len"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            self._socket.close()
            raise TelemetryError(f"no telemetry on {path}: {error}") from error

    def __enter__(self) -> Telemetry:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.close()

    def read(self, command: str) -> Reading:
        """Ask `command` (for instance `/ethdev/stats,0`) and time the answer."""
        try:
            before = time.monotonic_ns()
            self._socket.send(command.encode())
            raw = self._socket.recv(self._max_answer + 1024)
            after = time.monotonic_ns()
        except ConnectionError as error:
            raise DisconnectedError(f"telemetry {self.path}: {command}: {error}") from error
        except TimeoutError as error:
            raise SilentError(f"telemetry {self.path}: {command}: {error}") from error
        except OSError as error:
            raise TelemetryError(f"telemetry {self.path}: {command}: {error}") from error
        if not raw:
            raise DisconnectedError(f"telemetry {self.path}: the program closed the connection")
        try:
            answer = json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise TelemetryError(f"telemetry {self.path}: {command}: not JSON: {error}") from error
        name = command.split(",", 1)[0]
        if not isinstance(answer, dict) or name not in answer:
            raise TelemetryError(f"telemetry {self.path}: {command}: answered {answer!r:.200}")
        if answer[name] is None:
            raise UnknownCommandError(
                f"telemetry {self.path}: {command} is not known to this program"
            )
        return Reading(answer[name], before, after)

    def ask(self, command: str) -> Any:
        """The answer to `command` alone."""
        return self.read(command).value

    def read_tight(self, command: str, within_ns: int = 400_000, attempts: int = 8) -> Reading:
        """Read until the answer came within `within_ns`; the tightest of at most `attempts`."""
        best = self.read(command)
        for _ in range(attempts - 1):
            if best.after_ns - best.before_ns <= within_ns:
                break
            reading = self.read(command)
            if reading.uncertainty_ns < best.uncertainty_ns:
                best = reading
        return best

    def disconnected(self, timeout_s: float) -> bool:
        """Wait, and say whether the program closed the connection meanwhile.

        It says nothing unasked, so that a readable socket is one at its end.
        """
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(timeout_s * 1000))

    def overdue(self, timeout_s: float) -> bool:
        """After a `SilentError`: wait, and take the late answer, so that it answers nothing else.

        True: it has come, and the program may be asked again. Raises `DisconnectedError`.
        """
        if not self.disconnected(timeout_s):
            return False
        try:
            raw = self._socket.recv(self._max_answer + 1024)
        except OSError as error:
            raise DisconnectedError(f"telemetry {self.path}: {error}") from error
        if not raw:
            raise DisconnectedError(f"telemetry {self.path}: the program closed the connection")
        return True

    def peer_pid(self) -> int:
        """The program's pid as it is seen from here; in a container it knows itself by another."""
        size = struct.calcsize("3i")
        raw = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        pid: int = struct.unpack("3i", raw)[0]
        return pid or self.pid

    def commands(self) -> list[str]:
        return [str(name) for name in self.ask("/")]


def ask_when_known(
    telemetry: Telemetry, command: str, timeout_s: float, alive: Callable[[], None]
) -> Any:
    """Ask a command that the program registers some time after EAL has opened the socket."""
    name = command.split(",", 1)[0]
    deadline = time.monotonic() + timeout_s
    while name not in telemetry.commands():
        alive()
        if time.monotonic() >= deadline:
            raise TelemetryError(f"telemetry {telemetry.path}: no {name} after {timeout_s:g} s")
        time.sleep(0.005)
    return telemetry.ask(command)


def connect(path: Path, timeout_s: float, alive: Callable[[], None]) -> Telemetry:
    """Connect to a program that may still be starting.

    `alive` is called between attempts and raises when the program has ended.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        alive()
        if path.exists():
            try:
                return Telemetry(path)
            except TelemetryError:
                if time.monotonic() >= deadline:
                    raise
        if time.monotonic() >= deadline:
            raise TelemetryError(f"no telemetry socket {path} after {timeout_s:g} s")
        time.sleep(0.005)
