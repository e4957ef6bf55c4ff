# SPDX-License-Identifier: BSD-3-Clause
"""A control group that gives a lab and its children more CPU weight than all other processes.

Beside a busy neighbour a generator has its CPU for half of the time, in slices of milliseconds, and
nearly all of its frames are late. With 100 times the neighbour's weight it has 99 %. The lab and
its programs keep equal weights among themselves, so that no arm gets more than another.

The group is at the top of the tree, because weights count among siblings. It has the CPU controller
alone (version 1), or all controllers (version 2, where the lab would leave the limits of its group:
if there are any, it stays in that group).

Lifecycle: `raised` makes the group and moves the lab into it; at its end it moves all remaining
processes back and removes the group. The next lab removes the group of a killed lab. Call it before
the start of any process that needs the weight.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from linerate.host.cores import cgroup_files as files
from linerate.host.cores.cgroup_mounts import Mount, has_cpu, mounts, own_directory
from linerate.host.errors import MachineError
from linerate.host.host import LOCAL, Host
from linerate.host.locks import hold, is_held
from linerate.host.process import start_time

# Multiple of the default weight; version 2 allows no more.
WEIGHT = MOST_WEIGHT = 100
_EVERYONE = {1: 1024, 2: 100}
_FILE = {1: "cpu.shares", 2: "cpu.weight"}
_PREFIX = "linerate-weight"
_OURS = re.compile(rf"{_PREFIX}-(\d+)-(\d+)")
# How long killed processes may take to leave a group, and the interval of checks.
_END_S = 2.0
_LOOK_S = 0.01


@dataclass(frozen=True)
class Weight:
    """The weight of the lab. `group`: the lab's group; None if the lab has the default weight, for
    the reason in `why`.
    """

    mount: Mount | None = None
    group: Path | None = None
    why: str = ""

    @property
    def times(self) -> int:
        """The current weight as a multiple of the default weight."""
        if self.mount is None or self.group is None:
            return 1
        told = LOCAL.read_text(self.group / _FILE[self.mount.version])
        return max(int(told) // _EVERYONE[self.mount.version], 1)


@contextmanager
def raised(times: int = WEIGHT, host: Host = LOCAL) -> Iterator[Weight]:
    """Raise the lab's weight to `times` the default for a while, if this user may; never raises an
    error.
    """
    found = _mount(host)
    if times == 1:
        yield Weight(why="it was not asked for")
    elif found is None:
        yield Weight(why="no control groups of CPUs are mounted")
    elif why := _obstacle(found, host):
        yield Weight(why=why)
    else:
        _remove_stale(found)
        before = own_directory(found, host)
        group = found.path / f"{_PREFIX}-{os.getpid()}-{start_time(os.getpid())}"
        lock = None
        try:
            try:
                lock = _make(found, group, times)
            except OSError as error:
                yield Weight(why=f"{group}: {error.strerror}")
            except MachineError as error:
                yield Weight(why=error.message)
            else:
                yield Weight(found, group)
        finally:
            _remove(group, before)
            if lock is not None:
                os.close(lock)


def even_out(pid: int) -> None:
    """Give a process the default weight from now on, unless it is in the lab's group.

    A container engine starts programs in groups of its own, and arms must not differ by that.
    """
    found = _mount(LOCAL)
    if found is None or not _OURS.fullmatch((own := own_directory(found)).name):
        return
    with contextlib.suppress(MachineError):
        if pid not in files.pids(own):
            files.write(own / _FILE[found.version], str(_EVERYONE[found.version]))


def adopt(pid: int) -> None:
    """Give a kernel thread that works for the lab the lab's weight, if that has been raised."""
    found = _mount(LOCAL)
    if found is not None and _OURS.fullmatch((own := own_directory(found)).name):
        with contextlib.suppress(MachineError):
            files.write(own / "cgroup.procs", str(pid))


def obstacle(host: Host = LOCAL) -> str | None:
    """Return why the lab cannot raise its weight here; None if it can."""
    found = _mount(host)
    return _obstacle(found, host) if found else "no control groups of CPUs are mounted"


def _mount(host: Host) -> Mount | None:
    """Return the mount with the CPU controller. Version 2 has the controllers version 1 does not
    use.
    """
    found = [mount for mount in mounts(host) if has_cpu(mount, host)]
    return max(found, key=lambda mount: mount.version, default=None)


def _obstacle(found: Mount, host: Host) -> str | None:
    if os.geteuid() != 0:
        return f"control groups are made by root, and this is user {os.geteuid()}"
    if not os.access(found.path, os.W_OK):
        return f"{found.path}: no control group can be made there (read-only)"
    if found.version == 2 and "cpu" not in files.words(found.path / "cgroup.subtree_control", host):
        return f"{found.path}/cgroup.subtree_control has no cpu: groups below have no weight"
    own = own_directory(found, host)
    if limited := next((each for each in (own, *own.parents) if _limits(each, host)), None):
        return f"{limited} limits what the lab may use: it stays in that group"
    return None


def _limits(group: Path, host: Host) -> bool:
    quota = files.words(group / "cpu.cfs_quota_us", host)
    most = [files.words(group / name, host) for name in ("cpu.max", "memory.max")]
    return bool(quota and quota[0] != "-1") or any(each and each[0] != "max" for each in most)


def _make(found: Mount, group: Path, times: int) -> int:
    """Make a group, move the lab into it, and return the lock on it."""
    files.make(group)
    lock = hold(group, os.O_DIRECTORY)
    if lock is None:
        raise MachineError(f"{group}: another lab removed it")
    try:
        files.write(group / _FILE[found.version], str(times * _EVERYONE[found.version]))
        if (group / "cpu.rt_runtime_us").exists():
            # Otherwise no program could ask for a real-time priority (CONFIG_RT_GROUP_SCHED).
            with contextlib.suppress(OSError, MachineError):
                left = int(LOCAL.read_text(found.path / "cpu.rt_runtime_us"))
                files.write(group / "cpu.rt_runtime_us", str(left // 2))
        files.write(group / "cgroup.procs", str(os.getpid()))
    except BaseException:
        os.close(lock)
        raise
    return lock


def _remove(group: Path, above: Path) -> None:
    """Move all processes of a group to `above`, and remove the group, in bounded time."""
    deadline = time.monotonic() + _END_S
    while group.exists():
        with contextlib.suppress(OSError):
            for pid in files.pids(group):
                # 0 is a process that cannot be seen from here.
                if pid > 0:
                    with contextlib.suppress(MachineError):
                        files.write(above / "cgroup.procs", str(pid))
            files.remove(group)
        if time.monotonic() > deadline:
            return
        if group.exists():
            time.sleep(_LOOK_S)


def remove_stale(host: Host = LOCAL) -> list[Path]:
    """Remove the groups of labs that no longer run, if this user may; return them."""
    found = _mount(host)
    return [] if found is None or _obstacle(found, host) else _remove_stale(found)


def stale(host: Host = LOCAL) -> list[Path]:
    """The groups of labs that no longer run, as they are."""
    found = _mount(host)
    left = []
    for path in _without_process(found) if found else ():
        with contextlib.suppress(OSError):
            if not is_held(path, os.O_DIRECTORY):
                left.append(path)
    return left


def _remove_stale(found: Mount) -> list[Path]:
    removed = []
    for path in _without_process(found):
        # Its owner may be in another container, or remove it at any moment.
        with contextlib.suppress(OSError):
            if (lock := hold(path, os.O_DIRECTORY)) is not None:
                _remove(path, found.path)
                os.close(lock)
                removed.append(path)
    return removed


def _without_process(found: Mount) -> Iterator[Path]:
    """The labs' groups whose process is not seen here."""
    for path in found.path.glob(f"{_PREFIX}-*"):
        named = _OURS.fullmatch(path.name)
        if named and start_time(int(named[1])) != int(named[2]):
            yield path
