# SPDX-License-Identifier: BSD-3-Clause
"""Control groups of version 1: controllers are mounted one by one, or some together.

A group of the lab's is a directory with each of them, below the group that the lab itself is in.
Lifecycle: see `cgroups`. Any thread.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from linerate.experiments.cloud.tenants.base import Limits
from linerate.experiments.cloud.tenants.cgroups import hierarchy as shared
from linerate.experiments.cloud.tenants.cgroups.hierarchy import Usage
from linerate.host.cores import cgroup_files as files
from linerate.host.cores import cgroup_mounts
from linerate.host.cores.cgroup_mounts import Mount
from linerate.host.errors import MachineError
from linerate.host.host import LOCAL, Host

REQUIRED = ("cpu", "cpuacct", "cpuset", "memory", "pids")
_WANTED = (*REQUIRED, "blkio", "freezer")
_SHARES = 1024
_NANOSECONDS = 1e9
_WAYS = ("Read", "Write")


class V1:
    """The mounted controllers, each at the first place that the kernel lists."""

    version = 1

    def __init__(self, found: Iterable[Mount], host: Host = LOCAL) -> None:
        self._mounts: dict[str, Mount] = {}
        for mount in found:
            for controller in _WANTED:
                if mount.version == 1 and controller in mount.options:
                    self._mounts.setdefault(controller, mount)
        # Controllers that are mounted together share a directory.
        used = list(dict.fromkeys(self._mounts.values()))
        self.roots: Sequence[Path] = [mount.path for mount in used]
        self.places: Sequence[Path] = [cgroup_mounts.own_directory(mount, host) for mount in used]
        self._at = {name: used.index(mount) for name, mount in self._mounts.items()}

    def missing(self) -> list[str]:
        reasons = [
            f"control groups of version 1: the controller {name} is not mounted"
            for name in REQUIRED
            if name not in self._mounts
        ]
        reasons += [
            f"{place}: no control group can be made there (not this user's, or read-only)"
            for place in self.places
            if not os.access(place, os.W_OK)
        ]
        return reasons

    def prepare(self, directory: Path, parent: Path) -> None:
        """Copy the parent's CPUs and memory nodes to a new group: they are empty, so that no
        process can enter.
        """
        for name in ("cpus", "mems"):
            told = files.read(parent / f"cpuset.effective_{name}") or files.read(
                parent / f"cpuset.{name}"
            )
            if told is not None:
                files.write(directory / f"cpuset.{name}", told.strip())

    def enable(self, directory: Path) -> None:
        """Do nothing: version 1 does not need it."""

    def set_weight(self, directories: Sequence[Path], weight: int) -> None:
        shares = max(2, round(weight * _SHARES / 100))
        files.write(self._of(directories, "cpu") / "cpu.shares", str(shares))

    def apply(self, directories: Sequence[Path], limits: Limits, before: Limits | None) -> None:
        self.set_weight(directories, limits.cpu_weight)
        cpu = self._of(directories, "cpu")
        quota = limits.cpu_quota
        files.write(cpu / "cpu.cfs_period_us", str(shared.PERIOD_US))
        files.write(
            cpu / "cpu.cfs_quota_us", str(-1 if quota is None else round(quota * shared.PERIOD_US))
        )
        cpus = ",".join(map(str, limits.cpus))
        files.write(self._of(directories, "cpuset") / "cpuset.cpus", cpus)
        self._apply_memory(self._of(directories, "memory"), limits.memory_mib)
        most = "max" if limits.pids is None else str(limits.pids)
        files.write(self._of(directories, "pids") / "pids.max", most)
        self._apply_io(directories, limits, before)

    def usage(self, directories: Sequence[Path]) -> Usage:
        ran = files.number(self._of(directories, "cpuacct") / "cpuacct.usage")
        stat = files.table(self._of(directories, "cpu") / "cpu.stat")
        throttled = stat.get("throttled_time")
        return Usage(
            None if ran is None else ran / _NANOSECONDS,
            None if throttled is None else throttled / _NANOSECONDS,
            stat.get("nr_throttled"),
            files.number(self._of(directories, "memory") / "memory.usage_in_bytes"),
            self._io(directories, "io_service_bytes"),
            self._io(directories, "io_serviced"),
        )

    def kill(self, directory: Path) -> None:
        """Kill all processes of a group, frozen if possible so that none starts another in
        between.
        """
        state = directory / "freezer.state"
        frozen = state.exists()
        if frozen:
            with contextlib.suppress(MachineError):
                files.write(state, "FROZEN")
        try:
            shared.kill_each(directory)
        finally:
            if frozen:
                with contextlib.suppress(MachineError):
                    files.write(state, "THAWED")

    def _of(self, directories: Sequence[Path], controller: str) -> Path:
        at = self._at.get(controller)
        if at is None:
            raise MachineError(
                f"the controller {controller} of control groups is not mounted",
                f"mount -t cgroup -o {controller} {controller} DIRECTORY",
            )
        return directories[at]

    @staticmethod
    def _apply_memory(directory: Path, memory_mib: int | None) -> None:
        most = -1 if memory_mib is None else memory_mib << 20
        with_swap = directory / "memory.memsw.limit_in_bytes"
        # It must never be less than the limit without swap: remove it first.
        counted = with_swap.exists()
        if counted:
            files.write(with_swap, "-1")
        files.write(directory / "memory.limit_in_bytes", str(most))
        if counted:
            files.write(with_swap, str(most))

    def _apply_io(self, directories: Sequence[Path], limits: Limits, before: Limits | None) -> None:
        wanted: dict[str, int] = {}
        if before is not None and before.io_device is not None:
            wanted[before.io_device] = 0
        if limits.io_device is not None:
            wanted[limits.io_device] = limits.io_bytes_per_s or 0
        for device, most in wanted.items():
            for way in ("read", "write"):
                files.write(
                    self._of(directories, "blkio") / f"blkio.throttle.{way}_bps_device",
                    f"{device} {most}",
                )

    def _io(self, directories: Sequence[Path], name: str) -> int | None:
        """Sum over devices of lines `MAJOR:MINOR WAY NUMBER`; a kernel counts only on devices with
        a limit.
        """
        if "blkio" not in self._at:
            return None
        told = files.read(self._of(directories, "blkio") / f"blkio.throttle.{name}") or ""
        lines = [line.split() for line in told.splitlines()]
        counted = [
            int(line[2]) for line in lines if len(line) == 3 and line[1] in ("Read", "Write")
        ]
        return sum(counted) if counted else None
