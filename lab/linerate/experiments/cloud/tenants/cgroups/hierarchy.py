# SPDX-License-Identifier: BSD-3-Clause
"""The common parts of control groups, versions 1 and 2: directories, counters and removal.

Lifecycle: a group is a directory (`host.cores.cgroup_files`); the maker removes it. Any thread.
Times are seconds, sizes bytes.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from linerate.experiments.cloud.tenants.base import Limits
from linerate.host.cores import cgroup_files as files
from linerate.host.errors import MachineError
from linerate.host.host import LOCAL

# The period of a CPU quota, in microseconds: the kernel's own default. A group that has used its
# quota is stopped for the rest of the period.
PERIOD_US = 100_000
# How long killed processes may take to end, and the interval of checks.
END_S = 5.0
_LOOK_S = 0.005
# The flag of a kernel thread in /proc (PF_KTHREAD).
_KERNEL_THREAD = 0x00200000


@dataclass(frozen=True)
class Usage:
    """A group's usage since it was made; None: this kernel does not count it.

    `cpu_s`: user and system time. `throttled_s`, `throttled_periods`: how long and how often its
    quota made it wait. `memory_bytes`: now, page cache included. `io_bytes`, `io_operations`: read
    and written on all block devices.
    """

    cpu_s: float | None = None
    throttled_s: float | None = None
    throttled_periods: int | None = None
    memory_bytes: int | None = None
    io_bytes: int | None = None
    io_operations: int | None = None


class Hierarchy(Protocol):
    """One version of control groups, as it is mounted here.

    A group has a directory below each of `places`, by the same name: one with version 2, one for
    each mounted set of controllers with version 1.
    """

    @property
    def version(self) -> int: ...

    @property
    def places(self) -> Sequence[Path]:
        """The directories of the groups in which the lab's own are made."""

    @property
    def roots(self) -> Sequence[Path]:
        """The mount points: all groups are below these, including those of other labs."""

    def missing(self) -> list[str]:
        """Return why no group can be made here, one reason each."""

    def prepare(self, directory: Path, parent: Path) -> None:
        """Prepare a new directory for processes."""

    def enable(self, directory: Path) -> None:
        """Enable limits for groups below this one."""

    def set_weight(self, directories: Sequence[Path], weight: int) -> None:
        """Set the weight on a CPU's time; the default is 100."""

    def apply(self, directories: Sequence[Path], limits: Limits, before: Limits | None) -> None:
        """Set the limits of a group; `before`: the current ones."""

    def usage(self, directories: Sequence[Path]) -> Usage: ...

    def kill(self, directory: Path) -> None:
        """Send SIGKILL to all processes of a group, without those below; returns at once."""


def kill_each(directory: Path) -> None:
    """Send SIGKILL to each visible process of a group."""
    for pid in files.pids(directory):
        # 0 would be the lab's own process group.
        if pid > 0 and not is_kernel_thread(pid):
            with contextlib.suppress(OSError):
                LOCAL.kill(pid, signal.SIGKILL)


def is_kernel_thread(pid: int) -> bool:
    try:
        told = LOCAL.read_text(f"/proc/{pid}/stat")
    except OSError:
        return False
    return bool(int(told.rpartition(")")[2].split()[6]) & _KERNEL_THREAD)


def empty(
    hierarchy: Hierarchy, directories: Sequence[Path], timeout_s: float = END_S
) -> list[Path]:
    """End all processes of a group and of those below; return the groups where some did not within
    the time.

    Kernel threads cannot be ended, and return to the group above.
    """
    deadline = time.monotonic() + timeout_s
    return [each for each in directories if not _empty(hierarchy, each, deadline)]


def remove_all(
    hierarchy: Hierarchy, directories: Sequence[Path], timeout_s: float = END_S
) -> list[Path]:
    """Remove a group with those below and all processes; return the directories that still exist
    after the time.
    """
    deadline = time.monotonic() + timeout_s
    left = []
    for directory in directories:
        done = _empty(hierarchy, directory, deadline)
        for each in (*_below(directory), directory):
            done = _remove(each, deadline if done else 0.0) and done
        if not done:
            left.append(directory)
    return left


def _empty(hierarchy: Hierarchy, directory: Path, deadline: float) -> bool:
    for each in (*_below(directory), directory):
        while left := files.pids(each):
            for pid in left:
                if pid > 0 and is_kernel_thread(pid):
                    _send_back(pid, directory)
            hierarchy.kill(each)
            if time.monotonic() >= deadline:
                return False
            time.sleep(_LOOK_S)
    return True


def _remove(directory: Path, deadline: float) -> bool:
    """Remove the group; a process that ended a moment ago may still be leaving it."""
    while True:
        try:
            files.remove(directory)
        except FileNotFoundError:
            return True
        except OSError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_LOOK_S)
        else:
            return True


def _send_back(pid: int, directory: Path) -> None:
    """Move a process to the nearest group above that accepts processes."""
    for above in directory.parents:
        path = above / "cgroup.procs"
        if not path.exists():
            return
        with contextlib.suppress(MachineError):
            files.write(path, str(pid))
            return


def _below(directory: Path) -> list[Path]:
    """Return groups below one, the deepest first."""
    found = [Path(at) for at, _, _ in os.walk(directory, topdown=False)]
    return found[:-1]
