# SPDX-License-Identifier: BSD-3-Clause
"""Control groups that the lab owns: the limits and the usage of their processes.

Lifecycle: `Groups` makes one group for the lab, which contains those of its tenants, and removes
all of it, with all processes in it, when its context ends, in whatever way. The next lab removes
the groups of a killed lab and ends their processes before it makes its own: their names have the
lab's pid and start time, and a lab locks each directory while it runs, which is visible in other
containers, too.

Weights count between the groups of one lab; against all other processes of the machine the lab's
group has one weight. One lab process, any thread of it at a time. Times are seconds.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path

from linerate.experiments.cloud.tenants.base import Limits
from linerate.experiments.cloud.tenants.cgroups import hierarchy as shared
from linerate.experiments.cloud.tenants.cgroups.cgroup_v1 import V1
from linerate.experiments.cloud.tenants.cgroups.cgroup_v2 import V2
from linerate.experiments.cloud.tenants.cgroups.hierarchy import PERIOD_US, Hierarchy, Usage
from linerate.host.cores import cgroup_files as files
from linerate.host.cores import cgroup_mounts
from linerate.host.errors import MachineError, MissingError, UsageError
from linerate.host.host import LOCAL, Host
from linerate.host.locks import PATIENCE_S, hold, hold_by, is_held
from linerate.host.process import start_time

__all__ = [
    "EVERYONES",
    "PERIOD_US",
    "Group",
    "Groups",
    "Hierarchy",
    "Limits",
    "Usage",
    "hierarchy",
    "missing",
]

# The weight that every group has.
EVERYONES = 100
_PREFIX = "linerate"
_OURS = re.compile(rf"{_PREFIX}-(\d+)-(\d+)")
_WORD = re.compile(r"[a-z0-9][a-z0-9-]{0,30}")
# A quota below this the kernel refuses (1 ms of a period).
_LEAST_QUOTA = 0.01


def hierarchy(host: Host = LOCAL) -> Hierarchy | None:
    """Return the version that limits CPUs here; None if there is none."""
    found = cgroup_mounts.mounts(host)
    for mount in found:
        if mount.version == 2 and cgroup_mounts.has_cpu(mount):
            return V2(mount, host)
    first = V1(found, host)
    return first if first.places else None


def missing(found: Hierarchy | None = None) -> list[str]:
    """Return why no control group can be made here, one reason each; empty if it can."""
    found = found or hierarchy()
    reasons = []
    if os.geteuid() != 0:
        reasons.append(f"control groups are made by root, and this is user {os.geteuid()} (sudo)")
    if found is None:
        return [*reasons, "no control groups are mounted (mount -t cgroup2 none /sys/fs/cgroup)"]
    return reasons + found.missing()


class Group:
    """A group of processes with limits. Made by `Groups.group`."""

    def __init__(self, found: Hierarchy, directories: Sequence[Path]) -> None:
        self.name = directories[0].name
        self._hierarchy = found
        self._directories = directories
        self._limits: Limits | None = None
        self._closed = False

    def add(self, pid: int) -> None:
        """Put a process in with all its threads, or a kernel thread; new children follow.

        Its use until now, for instance of memory, stays counted in its old group. Raises
        `MachineError` if the kernel refuses, for instance for kernel threads that belong to one
        CPU.
        """
        self._check_open()
        for directory in self._directories:
            try:
                files.write(directory / "cgroup.procs", str(pid))
            except MachineError as error:
                what = "the kernel's thread" if shared.is_kernel_thread(pid) else "the process"
                raise MachineError(f"{what} {pid} cannot be moved into a group: {error}") from error

    def set(self, limits: Limits) -> None:
        """Change its limits, at once."""
        self._check_open()
        _check(limits)
        self._hierarchy.apply(self._directories, limits, self._limits)
        self._limits = limits

    @property
    def limits(self) -> Limits | None:
        return self._limits

    def usage(self) -> Usage:
        """Return its usage since it was made, read now."""
        self._check_open()
        return self._hierarchy.usage(self._directories)

    def pids(self) -> list[int]:
        """Return its processes; none if it is closed."""
        return [] if self._closed else files.pids(self._directories[0])

    def kill(self) -> None:
        """End all its processes; raises `MachineError` if some do not end in bounded time."""
        if not self._closed and (stuck := shared.empty(self._hierarchy, self._directories)):
            raise MachineError(f"{stuck[0]}: processes {files.pids(stuck[0])} do not end")

    def close(self) -> None:
        """End its processes and remove it, in bounded time; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        if stuck := shared.remove_all(self._hierarchy, self._directories):
            raise MachineError(f"{stuck[0]}: the control group could not be removed")

    def __enter__(self) -> Group:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError(f"the control group {self.name} is closed")


class Groups:
    """The groups of this lab. `weight`: of all together against others on the same CPU."""

    def __init__(self, found: Hierarchy | None = None, weight: int = EVERYONES) -> None:
        _check_weight(weight)
        self._given = found
        self._weight = weight
        self._hierarchy: Hierarchy | None = None
        self._directories: list[Path] = []
        self._locks: list[int] = []
        self._made: list[Group] = []

    @property
    def name(self) -> str:
        return f"{_PREFIX}-{os.getpid()}-{start_time(os.getpid())}"

    @property
    def version(self) -> int:
        return self._open().version

    def group(self, word: str, limits: Limits) -> Group:
        """Make a group by that name among the lab's; leaves nothing behind if that fails."""
        found = self._open()
        if not _WORD.fullmatch(word):
            raise UsageError(f"{word!r} is not a valid name for a control group")
        _check(limits)
        directories: list[Path] = []
        try:
            for parent in self._directories:
                directories.append(parent / word)
                _make(found, parent / word)
            made = Group(found, directories)
            made.set(limits)
        except FileExistsError as error:
            raise UsageError(f"there is a control group {word} already") from error
        except BaseException:
            shared.remove_all(found, directories)
            raise
        self._made.append(made)
        return made

    def __enter__(self) -> Groups:
        if self._hierarchy is not None:
            raise UsageError("the control groups of this lab were made already")
        found = self._given or hierarchy()
        if (reasons := missing(found)) or found is None:
            raise MissingError(f"no control group can be made: {'; '.join(reasons)}", "sudo")
        if [place for place in found.places if (place / self.name).exists()]:
            raise UsageError("this lab has control groups already")
        remove_stale(found)
        self._hierarchy = found
        try:
            for place in found.places:
                self._directories.append(place / self.name)
                self._locks.append(_make_locked(found, place / self.name))
            for directory in self._directories:
                found.enable(directory)
            found.set_weight(self._directories, self._weight)
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """End all processes in them and remove them, in bounded time; a second call does
        nothing.
        """
        found, self._hierarchy = self._hierarchy, None
        if found is None:
            return
        for made in self._made:
            with contextlib.suppress(MachineError):
                made.close()
        stuck = shared.remove_all(found, self._directories)
        for lock in self._locks:
            os.close(lock)
        self._made.clear()
        self._directories.clear()
        self._locks.clear()
        if stuck:
            raise MachineError(f"{stuck[0]}: the control group could not be removed")

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> Hierarchy:
        if self._hierarchy is None:
            raise UsageError("the control groups of this lab are not there")
        return self._hierarchy


def remove_stale(found: Hierarchy) -> list[Path]:
    """End the processes that ended labs left in groups, and remove the groups; return them."""
    removed = []
    deadline = time.monotonic() + PATIENCE_S
    for root in found.roots:
        for path in _labs(root):
            # Its owner may be in another container, or remove it at any moment.
            with contextlib.suppress(OSError):
                if (lock := hold_by(deadline, path, os.O_DIRECTORY)) is not None:
                    try:
                        if not shared.remove_all(found, [path]):
                            removed.append(path)
                    finally:
                        os.close(lock)
    return removed


def remove_all_stale() -> list[Path]:
    """The same in all hierarchies in which this user may make groups."""
    found = hierarchy()
    return [] if found is None or missing(found) else remove_stale(found)


def all_stale() -> list[Path]:
    """The groups of labs that no longer run, as they are, wherever they are in the tree."""
    found = hierarchy()
    left = []
    for path in [each for root in found.roots for each in _labs(root)] if found else ():
        with contextlib.suppress(OSError):
            if not is_held(path, os.O_DIRECTORY):
                left.append(path)
    return left


def _labs(root: Path) -> list[Path]:
    """Return groups whose lab is not among the visible processes, anywhere in the tree.

    The next lab may be in another group than the killed one.
    """
    found = []
    for at, _, _ in os.walk(root, topdown=False):
        named = _OURS.fullmatch(Path(at).name)
        if named and start_time(int(named[1])) != int(named[2]):
            found.append(Path(at))
    return found


def _make(found: Hierarchy, directory: Path) -> None:
    files.make(directory)
    found.prepare(directory, directory.parent)


def _make_locked(found: Hierarchy, directory: Path) -> int:
    try:
        found.enable(directory.parent)
        _make(found, directory)
    except OSError as error:
        raise MachineError(
            f"{directory}: no control group can be made: {error.strerror}", "sudo"
        ) from error
    if (lock := hold(directory, os.O_DIRECTORY)) is None:
        raise MachineError(f"{directory}: it was removed by another lab", "start it again")
    return lock


def _check_weight(weight: int) -> None:
    if not 1 <= weight <= 10_000:
        raise UsageError(f"a CPU weight is 1 to 10000, not {weight}")


def _check(limits: Limits) -> None:
    quota, device = limits.cpu_quota, limits.io_device
    if not limits.cpus:
        raise UsageError("a control group needs a CPU")
    if quota is not None and not quota >= _LEAST_QUOTA:
        raise UsageError(f"a CPU quota is {_LEAST_QUOTA:g} or more of a CPU, not {quota:g}")
    _check_weight(limits.cpu_weight)
    for what, most in (
        ("MiB of memory", limits.memory_mib),
        ("bytes per second", limits.io_bytes_per_s),
        ("processes", limits.pids),
    ):
        if most is not None and most < 1:
            raise UsageError(f"a limit of {most} {what} lets nothing run")
    if limits.io_bytes_per_s is not None and device is None:
        raise UsageError("a limit on I/O needs the device that it is for")
    if device is not None and not re.fullmatch(r"\d+:\d+", device):
        raise UsageError(f"{device!r} is not MAJOR:MINOR of a device")
