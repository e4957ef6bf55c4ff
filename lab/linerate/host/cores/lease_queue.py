# SPDX-License-Identifier: BSD-3-Clause
"""The queue for leases of CPUs: first come, first served.

A lab that wants CPUs makes a ticket: an empty file in the directory of the leases, which it locks
(flock) while it stands in the queue. The file's name holds the arrival time and the CPUs that the
lab may use: `linerate-queue-TIME-CPUS`. A lab may lease CPUs when no living lab with an earlier
ticket wants one of them.

A dead lab blocks nobody: the kernel releases its lock, and other labs skip the ticket and remove it
if they may. A stopped lab (Ctrl-Z) is skipped as well, and keeps its place.

As with the locks of the CPUs, a file that another user put there is opened only if it is a regular
file, never through a symbolic link, and is at most locked for a moment. Anything else by such a
name is not a ticket.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG

from linerate.host import locks
from linerate.host.cores.lock_holders import Holder, holder, is_stopped
from linerate.host.errors import MachineError

_PREFIX = "linerate-queue-"
# Nanoseconds since the machine started, and CPUs as in 0-3,8; `all` where that would be too long.
_NAME = re.compile(rf"{_PREFIX}(\d{{19}})-(all|\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*)")
_MOST_CPUS_SHOWN = 100
# Larger numbers are no CPUs: somebody wants to have long lists made.
_MOST_CPUS = 1 << 16
# A FIFO would wait for its other end, and a terminal could become the lab's.
FLAGS = os.O_NONBLOCK | os.O_NOCTTY


@dataclass(frozen=True, order=True)
class _Place:
    """The content of a ticket's name. `cpus` is None if the lab wants all CPUs."""

    came: int
    name: str
    cpus: frozenset[int] | None

    @classmethod
    def of(cls, name: str) -> _Place | None:
        found = _NAME.fullmatch(name)
        cpus = _numbers(found[2]) if found else frozenset()
        return cls(int(found[1]), name, cpus) if found and cpus != frozenset() else None

    def is_before(self, other: _Place) -> bool:
        """Return True if `other` has to wait for this ticket."""
        if (self.came, self.name) >= (other.came, other.name):
            return False
        return self.cpus is None or other.cpus is None or bool(self.cpus & other.cpus)


class Ticket:
    """A place in the queue; a context manager that gives it up.

    Raises `MachineError` where no ticket can be made.
    """

    def __init__(self, directory: Path, cpus: Collection[int]) -> None:
        """Take a place. `cpus`: those that may be leased, with their hyperthread siblings."""
        self._directory = directory
        self._cpus = cpus
        self._lock = -1

    def __enter__(self) -> Ticket:
        # Somebody may take a ticket for a dead lab's before it is locked, and remove it.
        while self._lock < 0:
            place = _Place.of(f"{_PREFIX}{time.monotonic_ns():019d}-{_list(self._cpus)}")
            assert place is not None
            self._place, self._path = place, self._directory / place.name
            try:
                with suppress(FileExistsError):
                    _make(self._path)
                    self._lock = _hold(self._path)
            except OSError as error:
                self.close()
                raise MachineError(
                    f"{self._path}: {error.strerror}; it must be the file with which a lab "
                    "queues for CPUs",
                    f"all users must be able to make files there: ls -ld {self._directory}",
                ) from error
            except BaseException:
                self.close()
                raise
        return self

    def ahead(self) -> list[Holder]:
        """Return the labs to be served before this one, in order. Removes tickets of dead labs."""
        places = [_Place.of(path.name) for path in self._directory.iterdir()]
        before = sorted(each for each in places if each and each.is_before(self._place))
        found = [_owner(self._directory / each.name) for each in before]
        return [each for each in found if each is not None]

    def close(self) -> None:
        """Give up the place."""
        with suppress(OSError):
            self._path.unlink()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def __exit__(self, *_: object) -> None:
        self.close()


def _make(path: Path) -> None:
    """Make an empty file that all users can lock."""
    before = os.umask(0)
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444))
    finally:
        os.umask(before)


def _hold(path: Path) -> int:
    """Return a descriptor that holds the lock; -1 if another lab took the file for a dead lab's and
    removed it.
    """
    lock = locks.hold_by(time.monotonic() + locks.PATIENCE_S, path, FLAGS)
    if lock is None:
        # A process that holds another's ticket for so long does it on purpose.
        with suppress(OSError):
            path.unlink()
    return -1 if lock is None else lock


def _owner(path: Path) -> Holder | None:
    """Return the living lab that owns this ticket; if there is none, remove the ticket."""
    try:
        if not S_ISREG(path.lstat().st_mode):
            return None
        # Shared, so that labs that look at the same moment do not take each other for its owner.
        lock = locks.hold(path, FLAGS, shared=True)
    except OSError:
        return None
    if lock is None:
        found = holder(path)
        return None if found.pid is not None and is_stopped(found.pid) else found
    try:
        # In a directory with the sticky bit only the file's owner and root can.
        with suppress(OSError):
            path.unlink()
    finally:
        os.close(lock)
    return None


def _list(cpus: Collection[int]) -> str:
    """Format CPUs as a list such as `0-3,8`."""
    ranges: list[list[int]] = []
    for cpu in sorted(cpus):
        if ranges and ranges[-1][1] == cpu - 1:
            ranges[-1][1] = cpu
        else:
            ranges.append([cpu, cpu])
    told = ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in ranges)
    return told if len(told) <= _MOST_CPUS_SHOWN else "all"


def _numbers(told: str) -> frozenset[int] | None:
    """Parse such a list; an empty set if it is invalid, None for all CPUs."""
    if told == "all":
        return None
    found: set[int] = set()
    for part in told.split(","):
        first, _, last = part.partition("-")
        if not int(first) <= int(last or first) < _MOST_CPUS:
            return frozenset()
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)
