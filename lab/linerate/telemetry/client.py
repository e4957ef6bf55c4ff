# SPDX-License-Identifier: BSD-3-Clause
"""Client of DPDK's telemetry protocol, version 2.

Lifecycle: a `Telemetry` holds one connection; use it as a context manager. Threading: one thread
per connection. The socket is SOCK_SEQPACKET: one request is one packet, one answer is one packet of
JSON, and the server greets with its version and the longest answer it sends.

The program at the other end is untrusted; the worst it can cause is a `TelemetryError`: answers are
at most `LONGEST_ANSWER` bytes, whatever length it announces, and JSON is nested at most as
`linerate.host.foreign.parsed` allows. The caller checks if its user is trusted (`peer_user`). Files
of others: `linerate.host.foreign`.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from linerate.host.errors import DisconnectedError, SilentError, TelemetryError, UnknownCommandError
from linerate.host.foreign import parsed

SOCKET_NAME = "dpdk_telemetry.v2"
# sockaddr_un.sun_path, its terminating zero included.
UNIX_PATH_LIMIT = 108
# In bytes. DPDK's limit is 16 KiB; a library that needs more gets up to this.
LONGEST_ANSWER = 1 << 20
# Time limit of an answer (s), where the caller gives none.
ANSWER_S = 5.0
_LONGEST_GREETING = 4096
_LONGEST_VERSION = 200
# The kernel's largest (PID_MAX_LIMIT).
_LARGEST_PID = 1 << 22
_CREDENTIALS = struct.Struct("iII")
T = TypeVar("T")
_NAMES = TypeAdapter(list[str])
# Some drivers report lists, one figure for each queue.
_Counter = Annotated[int, Field(ge=0, lt=2**64)]
_STATS = TypeAdapter(dict[str, _Counter | list[_Counter]])


class _Greeting(BaseModel):
    """The first message of a server."""

    model_config = ConfigDict(extra="ignore", strict=True)

    version: Annotated[str, Field(max_length=_LONGEST_VERSION)]
    pid: Annotated[int, Field(ge=0, le=_LARGEST_PID)]
    max_output_len: Annotated[int, Field(gt=0, le=LONGEST_ANSWER)]


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
    """Return the path of a program's socket below `runtime_dir`, from its file prefix."""
    return runtime_dir / "dpdk" / prefix / SOCKET_NAME


def place_of(path: Path) -> tuple[Path, str]:
    """Return the run-time directory and the file prefix of a `socket_path`."""
    return path.parents[2], path.parent.name


class Telemetry:
    """A connection to one program."""

    def __init__(self, path: Path, timeout_s: float = ANSWER_S) -> None:
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
            greeting = _Greeting.model_validate(parsed(self._socket.recv(_LONGEST_GREETING)))
        except ValidationError as error:
            self._socket.close()
            raise TelemetryError(f"no telemetry on {path}: {complaint(error)}") from error
        except (OSError, ValueError) as error:
            self._socket.close()
            raise TelemetryError(f"no telemetry on {path}: {error}") from error
        self.version = greeting.version
        self.pid = greeting.pid
        self._max_answer = greeting.max_output_len

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
            answer = parsed(raw)
        except ValueError as error:
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
        """Return the answer to `command` alone."""
        return self.read(command).value

    def ask_as(self, kind: TypeAdapter[T], command: str) -> T:
        """The same, of a type; another answer is a `TelemetryError`."""
        return self._as(kind, command, self.ask(command))

    def _as(self, kind: TypeAdapter[T], command: str, value: Any) -> T:
        try:
            return kind.validate_python(value)
        except ValidationError as error:
            raise TelemetryError(f"telemetry {self.path}: {command}: {complaint(error)}") from error

    def read_tight(self, command: str, within_ns: int = 400_000, attempts: int = 8) -> Reading:
        """Read until an answer came within `within_ns`; return the fastest of at most
        `attempts`.
        """
        best = self.read(command)
        for _ in range(attempts - 1):
            if best.after_ns - best.before_ns <= within_ns:
                break
            reading = self.read(command)
            if reading.uncertainty_ns < best.uncertainty_ns:
                best = reading
        return best

    def port_stats(self, port: int) -> Reading:
        """Return the counters of a port; `value` has whole numbers from 0 to 2^64 - 1 only."""
        command = f"/ethdev/stats,{port}"
        return self._counted(command, self.read(command))

    def port_stats_tight(self, port: int) -> Reading:
        """Return the same by `read_tight`."""
        command = f"/ethdev/stats,{port}"
        return self._counted(command, self.read_tight(command))

    def _counted(self, command: str, reading: Reading) -> Reading:
        counters = self._as(_STATS, command, reading.value)
        if lacking := {"ipackets", "opackets"} - counters.keys():
            raise TelemetryError(
                f"telemetry {self.path}: {command}: lacks {', '.join(sorted(lacking))}"
            )
        return replace(reading, value=counters)

    def disconnected(self, timeout_s: float) -> bool:
        """Wait, and return True if the program closed the connection meanwhile.

        The program sends nothing unasked, so a readable socket means that it was closed.
        """
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(timeout_s * 1000))

    def overdue(self, timeout_s: float) -> bool:
        """Wait after a `SilentError` for the late answer and discard it, so that it is not taken
        for the next one.

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
        """Return the program's pid in our PID namespace; in a container it has another one
        itself.
        """
        return self._peer()[0] or self.pid

    def peer_user(self) -> int:
        """Return the user id of the program when it began to listen."""
        return self._peer()[1]

    def _peer(self) -> tuple[int, int, int]:
        """Return process, user and group, from the kernel (struct ucred)."""
        raw = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        pid, user, group = _CREDENTIALS.unpack(raw)
        return pid, user, group

    def commands(self) -> list[str]:
        return self.ask_as(_NAMES, "/")


def complaint(error: ValidationError) -> str:
    """Return the first error, with the name of its field."""
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg']}" if where else f"{first['msg']}"


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


def connect(
    path: Path, timeout_s: float, alive: Callable[[], None], answer_s: float = ANSWER_S
) -> Telemetry:
    """Connect to a program that may still be starting.

    `alive` is called between attempts and raises when the program has ended. `answer_s`: the time
    limit of each answer.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        alive()
        if path.exists():
            try:
                return Telemetry(path, answer_s)
            except TelemetryError:
                if time.monotonic() >= deadline:
                    raise
        if time.monotonic() >= deadline:
            raise TelemetryError(f"no telemetry socket {path} after {timeout_s:g} s")
        time.sleep(0.005)
