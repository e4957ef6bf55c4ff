# SPDX-License-Identifier: BSD-3-Clause
"""The tenants of one cell: start them, read their work, and remove them.

Lifecycle: `Neighbours` is a context manager. Inside, every tenant works, each in a control group of
its own; all ends with it, in whatever way. The next lab removes the leftovers of a killed one
(`netns`, `cgroups`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from linerate.experiments.cloud.design.levels import SHARED, quota_of
from linerate.experiments.cloud.design.parts import TenantShape
from linerate.experiments.cloud.tenants import disk_image
from linerate.experiments.cloud.tenants.base import Kind, Limits, Load, Work
from linerate.experiments.cloud.tenants.cgroups.block_device import disk_of
from linerate.experiments.cloud.tenants.cgroups.cgroups import Groups, Usage
from linerate.experiments.cloud.tenants.container import Container
from linerate.experiments.cloud.tenants.vm.vm import Shape, VirtualMachine
from linerate.experiments.cloud.tenants.vm.vm_network import Bridge, carried_bytes
from linerate.experiments.cloud.window import CloudCell, TenantWindow
from linerate.host.errors import TenantError, TrialError
from linerate.host.process import RunDirectory

# Weights of a control group: the default, and the greatest, beside which n busy tenants get n parts
# of 100 + n.
WEIGHT, WEIGHT_FIRST = 100, 10_000
# The time for a load to begin, per tenant; a virtual machine also has to boot.
_READY_S = {Kind.CONTAINER: 20.0, Kind.VM: 60.0}


@dataclass(frozen=True)
class Asked:
    """A tenant's work until this moment."""

    at_s: float
    work: Work


def forwarder_limits(cell: CloudCell, cpu: int) -> Limits:
    """Return the forwarder's limits: see `levels`."""
    quota = quota_of(cell.cpu)
    weight = WEIGHT if cell.cpu == SHARED else WEIGHT_FIRST
    return Limits(cpus=(cpu,), cpu_quota=quota, cpu_weight=weight)


class Neighbours:
    """The tenants. `bridge`: connects network loads with the host; it outlives them."""

    def __init__(  # noqa: PLR0917 - what tenants are made of
        self,
        cell: CloudCell,
        shape: TenantShape,
        cpu: int,
        run: RunDirectory,
        groups: Groups,
        bridge: Bridge,
        *,
        bound_s: int,
    ) -> None:
        """Prepare. `bound_s`: the time after its start at which a tenant ends by itself."""
        self.cell = cell
        self._bound_s = bound_s
        self.tenants: list[VirtualMachine | Container] = []
        self._shape = shape
        self._cpu = cpu
        self._run = run
        self._groups = groups
        self._bridge = bridge
        self._held = ExitStack()

    def __enter__(self) -> Neighbours:
        try:
            for number in range(self.cell.tenants):
                tenant = self._made(number)
                self.tenants.append(tenant)
                self._held.enter_context(tenant)
                tenant.start()
            for tenant in self.tenants:
                # They share a core while they start.
                tenant.ready(_READY_S[Kind(self.cell.kind)] * self.cell.tenants)
        except TrialError as error:
            self._held.close()
            raise TenantError(error.message) from error
        except BaseException:
            self._held.close()
            raise
        return self

    def _made(self, number: int) -> VirtualMachine | Container:
        kind, load, shape = Kind(self.cell.kind), Load(self.cell.load), self._shape
        # A tenant without a disk has no I/O to limit.
        io = round(shape.io_mib_per_s * 2**20) if shape.io_mib_per_s and load.has_io else None
        limits = Limits(
            cpus=(self._cpu,),
            cpu_quota=shape.cpu_quota,
            cpu_weight=WEIGHT,
            # QEMU bounds its guest's memory itself, and needs some beside it.
            memory_mib=shape.memory_mib if kind == Kind.CONTAINER else None,
            io_bytes_per_s=io,
            io_device=None if io is None else disk_of(disk_image.DIRECTORY),
            pids=shape.pids,
        )
        # An idle one has no link.
        network = self._bridge if load.has_network else None
        if kind == Kind.VM:
            room = Shape((self._cpu,), disk_mib=shape.disk_mib, bound_s=self._bound_s)
            group = self._held.enter_context(self._groups.group(f"vm{number}", limits))
            return VirtualMachine(number, load, room, self._run, network, group=group)
        return Container(
            number,
            load,
            limits,
            self._run,
            self._groups,
            network=network,
            disk_mib=shape.disk_mib,
            bound_s=self._bound_s,
        )

    def check(self) -> None:
        """Raise `TenantError` if one is gone or does not work."""
        for tenant in self.tenants:
            try:
                tenant.check()
            except TrialError as error:
                raise TenantError(error.message) from error

    def usages(self) -> list[Usage]:
        """Return the usage of each tenant's control group, read now."""
        return [tenant.group.usage() for tenant in self.tenants]

    @property
    def counted_here(self) -> bool:
        """True if the host counts their work, and reads it at once; a guest must be asked."""
        return self.cell.kind != Kind.VM.value

    def asked(self) -> list[Asked]:
        """Return each tenant's work, asked one after the other."""
        found = []
        for tenant in self.tenants:
            try:
                work = tenant.work()
            except TrialError as error:
                raise TenantError(error.message) from error
            found.append(Asked(time.monotonic(), work))
        return found

    def bridge_bytes(self) -> int | None:
        """Return bytes of frames that crossed the bridge to and from the host; None if no tenant
        has a link.
        """
        if not self.tenants or not Load(self.cell.load).has_network:
            return None
        return carried_bytes(self._bridge.host, self._bridge.name)

    def __exit__(self, *_: object) -> None:
        self._held.close()


def windows(
    tenants: Sequence[VirtualMachine | Container],
    asked: tuple[Sequence[Asked], Sequence[Asked]],
    used: tuple[Sequence[Usage], Sequence[Usage]],
) -> list[TenantWindow]:
    """Return each tenant's work between two answers, and its use between two readings."""
    return [
        TenantWindow(
            name=tenant.name,
            seconds=after.at_s - before.at_s,
            **_done(before.work, after.work),
            cpu_s=since(begin.cpu_s, end.cpu_s),
            memory_bytes=end.memory_bytes,
        )
        for tenant, before, after, begin, end in zip(tenants, *asked, *used, strict=True)
    ]


def since(before: float | None, after: float | None) -> float | None:
    """Return the increase of a counter; None if it does not count."""
    return None if before is None or after is None else max(after - before, 0.0)


def _done(before: Work, after: Work) -> dict[str, int | None]:
    found: dict[str, int | None] = {}
    for name in ("bogo_ops", "io_operations", "io_bytes", "network_bytes"):
        first, last = getattr(before, name), getattr(after, name)
        found[name] = None if first is None or last is None else max(last - first, 0)
    return found
