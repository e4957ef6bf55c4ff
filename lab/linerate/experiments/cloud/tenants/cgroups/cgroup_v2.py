# SPDX-License-Identifier: BSD-3-Clause
"""Control groups of version 2: one tree, in which each group enables the controllers of those
below.

A group that has processes of its own cannot have limits on groups below it, except the root of the
tree. So the lab's groups are below its own group if that already allows it, and at the root of the
mount otherwise. Controllers that the lab enables at the root stay enabled: another lab may have
begun to use them. Lifecycle: see `cgroups`. Any thread.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from linerate.experiments.cloud.tenants.base import Limits
from linerate.experiments.cloud.tenants.cgroups import hierarchy as shared
from linerate.experiments.cloud.tenants.cgroups.hierarchy import Usage
from linerate.host.cores import cgroup_files as files
from linerate.host.cores import cgroup_mounts
from linerate.host.cores.cgroup_mounts import Mount
from linerate.host.errors import MachineError
from linerate.host.host import LOCAL, Host

REQUIRED = ("cpu", "cpuset", "memory", "pids")
_WANTED = (*REQUIRED, "io")
_MICROSECONDS = 1e6


class V2:
    """The tree, at one of its mounts."""

    version = 2

    def __init__(self, mount: Mount, host: Host = LOCAL) -> None:
        own = cgroup_mounts.own_directory(mount, host)
        fits = set(REQUIRED) <= set(files.words(own / "cgroup.subtree_control"))
        self.roots: Sequence[Path] = [mount.path]
        self.places: Sequence[Path] = [own if fits else mount.path]

    def missing(self) -> list[str]:
        (place,) = self.places
        has = files.words(place / "cgroup.controllers")
        reasons = [
            f"{place}: control groups of version 2 have no controller {name} there"
            for name in REQUIRED
            if name not in has
        ]
        if not os.access(place, os.W_OK):
            reasons.append(
                f"{place}: no control group can be made there (not this user's, or read-only)"
            )
        return reasons

    def prepare(self, directory: Path, parent: Path) -> None:
        """Do nothing: a new group has its parent's CPUs and memory nodes."""

    def enable(self, directory: Path) -> None:
        has = files.words(directory / "cgroup.controllers")
        enabled = files.words(directory / "cgroup.subtree_control")
        for name in _WANTED:
            if name in has and name not in enabled:
                files.write(directory / "cgroup.subtree_control", f"+{name}")

    def set_weight(self, directories: Sequence[Path], weight: int) -> None:
        files.write(directories[0] / "cpu.weight", str(weight))

    def apply(self, directories: Sequence[Path], limits: Limits, before: Limits | None) -> None:
        (group,) = directories
        quota = limits.cpu_quota
        most = "max" if quota is None else str(round(quota * shared.PERIOD_US))
        self.set_weight(directories, limits.cpu_weight)
        files.write(group / "cpu.max", f"{most} {shared.PERIOD_US}")
        files.write(group / "cpuset.cpus", ",".join(map(str, limits.cpus)))
        memory = limits.memory_mib
        files.write(group / "memory.max", "max" if memory is None else str(memory << 20))
        # There is none of it in a kernel without swap.
        if (group / "memory.swap.max").exists():
            files.write(group / "memory.swap.max", "max" if memory is None else "0")
        files.write(group / "pids.max", "max" if limits.pids is None else str(limits.pids))
        wanted: dict[str, str] = {}
        if before is not None and before.io_device is not None:
            wanted[before.io_device] = "max"
        if limits.io_device is not None:
            most = "max" if limits.io_bytes_per_s is None else str(limits.io_bytes_per_s)
            wanted[limits.io_device] = most
        for device, rate in wanted.items():
            if not (group / "io.max").exists():
                raise MachineError(f"{group}: control groups have no limits on I/O here")
            files.write(group / "io.max", f"{device} rbps={rate} wbps={rate}")

    def usage(self, directories: Sequence[Path]) -> Usage:
        (group,) = directories
        stat = files.table(group / "cpu.stat")
        ran, throttled = stat.get("usage_usec"), stat.get("throttled_usec")
        io = _io(group / "io.stat")
        return Usage(
            None if ran is None else ran / _MICROSECONDS,
            None if throttled is None else throttled / _MICROSECONDS,
            stat.get("nr_throttled"),
            files.number(group / "memory.current"),
            None if io is None else io.get("rbytes", 0) + io.get("wbytes", 0),
            None if io is None else io.get("rios", 0) + io.get("wios", 0),
        )

    def kill(self, directory: Path) -> None:
        """Kill all processes of a group. Kernels before 5.14 have no `cgroup.kill`."""
        path = directory / "cgroup.kill"
        if path.exists():
            with contextlib.suppress(MachineError):
                files.write(path, "1")
                return
        shared.kill_each(directory)


def _io(path: Path) -> dict[str, int] | None:
    """Return sums over devices of lines `MAJOR:MINOR KEY=NUMBER ...`; None without such a file."""
    told = files.read(path)
    if told is None:
        return None
    sums: dict[str, int] = {}
    for line in told.splitlines():
        for word in line.split()[1:]:
            key, _, value = word.partition("=")
            if value.isdigit():
                sums[key] = sums.get(key, 0) + int(value)
    return sums
