# SPDX-License-Identifier: BSD-3-Clause
"""A host: where processes start, files of the kernel are read and set, and counters are sampled.

The lab does these things through a `Host` and nowhere else, so that what it measures can be on
another machine than the lab. `LOCAL` is the machine that the lab runs on, an `InNamespace` a
network namespace of it: the same processes and files, but other interfaces and other values below
/proc/sys/net and /sys/class/net. What belongs to a run's own directory (records, reports, logs of
children) is the lab's, and is read and written without a host.

Lifecycle: hosts are values; they hold nothing open. Threading: `start` from the main thread only
(see `linerate.host.process`), all else from any thread. Failures are `OSError`s, of which
`TimeoutError` is one; only `start` raises the lab's own errors.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import shutil
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from linerate.host import sampler
from linerate.host.process import CLONE_NEWNET, NAMESPACES, Child, Command, RunDirectory
from linerate.host.sampler import Sample, Wanted

TIMEOUT_S = 10.0
_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Completed:
    """A command that has ended; `exit_code` is negative where a signal ended it."""

    exit_code: int
    output: str
    errors: str


class Host(ABC):
    """`namespace`: the name of the network namespace; None: the machine's first."""

    namespace: str | None = None

    @property
    @abstractmethod
    def id(self) -> str:
        """Name of the host in messages and records."""

    @abstractmethod
    def start(self, command: Command, run: RunDirectory) -> Child:
        """Start a process that the lab will end.

        Raises `MissingError` when there is no such program, `LinkError` when the namespace is gone,
        `ProcessError` when it cannot be started.
        """

    @abstractmethod
    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float = TIMEOUT_S,
        directory: Path | None = None,
        environment: Mapping[str, str | None] | None = None,
        given: str = "",
        ends_by_terminal: bool = False,
    ) -> Completed:
        """Run a short command to its end.

        `environment`: added to the host's; None removes a variable. `given`: the command's standard
        input. Ctrl-C in a terminal goes to the lab alone, so that a command that cleans up can
        finish, unless `ends_by_terminal`. Raises `TimeoutError` if it took too long and was killed.
        """

    @abstractmethod
    def read_bytes(self, path: str | Path) -> bytes: ...

    def read_text(self, path: str | Path) -> str:
        """Read a file as text; bytes that are not UTF-8 are replaced. Errors as `read_bytes`."""
        return self.read_bytes(path).decode(errors="replace")

    @abstractmethod
    def set_value(self, path: str | Path, text: str) -> None:
        """Write to an existing file of the kernel in one system call; never makes a file."""

    @abstractmethod
    def exists(self, path: str | Path) -> bool: ...

    @abstractmethod
    def glob(self, folder: str | Path, pattern: str) -> list[Path]:
        """Return the matching paths below a folder, sorted; empty if there is no such folder."""

    @abstractmethod
    def resolve(self, path: str | Path) -> Path:
        """Return the path with all symbolic links followed."""

    @abstractmethod
    def obstacle(self, path: str | Path) -> str | None:
        """Return why a device cannot be opened for reading and writing; None if it can."""

    @abstractmethod
    def which(self, program: str) -> Path | None:
        """Return the path of a program that is started by its name, or None."""

    @abstractmethod
    def kill(self, pid: int, number: signal.Signals) -> None:
        """Send a signal to a process that the lab did not start. Raises `ProcessLookupError`."""

    @abstractmethod
    def pin(self, pid: int, cpus: set[int], *, first: bool = False) -> None:
        """Restrict a thread to these CPUs; `first`: with real-time priority (SCHED_FIFO).

        Raises `ProcessLookupError` if it is gone, `PermissionError` if this user may not.
        """

    @abstractmethod
    def cpus(self) -> set[int]:
        """Return the CPUs that processes started on this host may use."""

    @abstractmethod
    def clock_ns(self) -> int:
        """Return the host's monotonic clock in ns."""

    @abstractmethod
    def sample(self, wanted: Wanted) -> Sample:
        """Read the kernel's counters once."""


@dataclass(frozen=True)
class Local(Host):
    """The machine that the lab runs on, in the lab's own network namespace."""

    @property
    def id(self) -> str:
        return "local"

    def _there(self) -> AbstractContextManager[None]:
        """Run the calling thread in this host's network namespace for a while."""
        return contextlib.nullcontext()

    def start(self, command: Command, run: RunDirectory) -> Child:
        return Child(command, run, self.namespace)

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float = TIMEOUT_S,
        directory: Path | None = None,
        environment: Mapping[str, str | None] | None = None,
        given: str = "",
        ends_by_terminal: bool = False,
    ) -> Completed:
        variables: dict[str, str | None] = {**os.environ, **(environment or {})}
        try:
            done = subprocess.run(
                list(argv),
                cwd=directory,
                env={name: value for name, value in variables.items() if value is not None},
                input=given,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout_s,
                check=False,
                process_group=None if ends_by_terminal else 0,
            )
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(errno.ETIMEDOUT, f"no end within {timeout_s:g} s") from error
        return Completed(done.returncode, done.stdout, done.stderr)

    def read_bytes(self, path: str | Path) -> bytes:
        with self._there():
            return Path(path).read_bytes()

    def set_value(self, path: str | Path, text: str) -> None:
        with self._there():
            file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.write(file, text.encode())
            finally:
                os.close(file)

    def exists(self, path: str | Path) -> bool:
        return Path(path).exists()

    def glob(self, folder: str | Path, pattern: str) -> list[Path]:
        return sorted(Path(folder).glob(pattern))

    def resolve(self, path: str | Path) -> Path:
        return Path(path).resolve()

    def obstacle(self, path: str | Path) -> str | None:
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))
        except OSError as error:
            return error.strerror or str(error)
        return None

    def which(self, program: str) -> Path | None:
        found = shutil.which(program)
        return Path(found) if found else None

    def kill(self, pid: int, number: signal.Signals) -> None:
        os.kill(pid, number)

    def pin(self, pid: int, cpus: set[int], *, first: bool = False) -> None:
        os.sched_setaffinity(pid, cpus)
        if first:
            os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(1))

    def cpus(self) -> set[int]:
        return os.sched_getaffinity(0)

    def clock_ns(self) -> int:
        return time.monotonic_ns()

    def sample(self, wanted: Wanted) -> Sample:
        with self._there():
            return sampler.take(wanted)


LOCAL = Local()


@dataclass(frozen=True)
class InNamespace(Local):
    """A network namespace of this machine, by the name that `ip netns` knows it by."""

    namespace: str

    @property
    def id(self) -> str:
        return f"namespace {self.namespace}"

    def _there(self) -> AbstractContextManager[None]:
        return inside(self.namespace)

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float = TIMEOUT_S,
        directory: Path | None = None,
        environment: Mapping[str, str | None] | None = None,
        given: str = "",
        ends_by_terminal: bool = False,
    ) -> Completed:
        """Run a command by `ip netns exec`, which also mounts the namespace's /sys."""
        return super().run(
            ("ip", "netns", "exec", self.namespace, *argv),
            timeout_s=timeout_s,
            directory=directory,
            environment=environment,
            given=given,
            ends_by_terminal=ends_by_terminal,
        )

    def read_bytes(self, path: str | Path) -> bytes:
        if _is_of_sys(path):
            return self._run_for(path, "cat", str(path)).encode()
        return super().read_bytes(path)

    def set_value(self, path: str | Path, text: str) -> None:
        if _is_of_sys(path):
            # /sys shows the interfaces of the namespace that it was mounted in.
            self._run_for(path, "dd", f"of={path}", "conv=notrunc,nocreat", given=text)
        else:
            super().set_value(path, text)

    def _run_for(self, path: str | Path, *argv: str, given: str = "") -> str:
        done = self.run(argv, given=given)
        if done.exit_code:
            said = done.errors.strip() or f"exit code {done.exit_code}"
            raise OSError(errno.EIO, said, str(path))
        return done.output


def _is_of_sys(path: str | Path) -> bool:
    return str(path).startswith("/sys/")


def enter(name: str) -> None:
    """Move the calling thread, and so the processes it starts, into a network namespace."""
    with (NAMESPACES / name).open("rb") as namespace:
        if _LIBC.setns(namespace.fileno(), CLONE_NEWNET):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), name)


@contextmanager
def inside(name: str) -> Iterator[None]:
    """Run the calling thread in a network namespace for a while."""
    with Path("/proc/thread-self/ns/net").open("rb") as home:
        enter(name)
        try:
            yield
        finally:
            if _LIBC.setns(home.fileno(), CLONE_NEWNET):
                # In another namespace all further results would be wrong.
                os._exit(1)
