# SPDX-License-Identifier: BSD-3-Clause
"""A virtual machine as a tenant: a guest of Debian's packages with a load, and its work.

Lifecycle: `start` makes image, tap and the host's end of a network load and boots the guest,
`ready` waits until its load works, `work` returns its work since then, `stop` ends it and removes
everything, as leaving the context does; after a SIGKILL of the lab QEMU is killed, the image has no
name, and the next lab removes namespaces and directories. One lab process, its main thread. Memory
and disk are in MiB, times in seconds.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

from linerate.experiments.cloud.tenants import disk_image, loads
from linerate.experiments.cloud.tenants.base import Kind, Load, Tenant, Work
from linerate.experiments.cloud.tenants.cgroups.cgroups import Group
from linerate.experiments.cloud.tenants.disk_image import DiskImage
from linerate.experiments.cloud.tenants.vm import guest
from linerate.experiments.cloud.tenants.vm.accelerator import Accelerator, accelerator
from linerate.experiments.cloud.tenants.vm.guest_console import Network
from linerate.experiments.cloud.tenants.vm.guest_process import GuestProcess
from linerate.experiments.cloud.tenants.vm.qemu import PROGRAM, Disk, Machine
from linerate.experiments.cloud.tenants.vm.vm_network import Bridge, Tap, VhostUser, tap
from linerate.host import netns
from linerate.host.errors import LabError, ProcessError, UsageError
from linerate.host.host import LOCAL
from linerate.host.process import Child, RunDirectory

TUN = Path("/dev/net/tun")
# A guest that is emulated boots in seconds on a core of its own, and beside others in many.
READY_S = 90.0
# The time for an answer of a guest that gets little CPU time.
_REPORT_S = 4.0


@dataclass(frozen=True)
class Shape:
    """The limits of a guest. `memory_mib`: None takes the minimum of its load.

    `bound_s`: the time after its boot at which it powers off by itself. `disk_directory`: the
    directory of its disk image, for loads with I/O.
    """

    cpus: tuple[int, ...]
    memory_mib: int | None = None
    disk_mib: int = 64
    bound_s: int = 900
    disk_directory: Path = disk_image.DIRECTORY


@dataclass(frozen=True)
class Facts:
    """Facts of a guest that was started, for records."""

    accelerator: Accelerator
    memory_mib: int
    disk_mib: int | None
    disk_direct: bool | None
    packages: Mapping[str, str]


def missing(load: Load = Load.MIXED) -> list[str]:
    """Return why no such tenant can run here, one reason each; empty if it can."""
    reasons = []
    if LOCAL.which(PROGRAM) is None:
        reasons.append(f"{PROGRAM} is not installed (Debian: qemu-system-x86)")
    reasons += guest.missing(load)
    try:
        netns.prepare()
    except LabError as error:
        reasons.append(error.message)
    if why := LOCAL.obstacle(TUN):
        reasons.append(f"{TUN}: {why} (modprobe tun)")
    return reasons


class VirtualMachine(Tenant):
    """The tenant with a number, from 0, on a bridge with others or on a DPDK program's socket.

    `group`: the control group for QEMU and the host's end of a network load; its owner keeps it.
    """

    kind = Kind.VM

    def __init__(
        self,
        number: int,
        load: Load,
        shape: Shape,
        run: RunDirectory,
        network: Bridge | VhostUser | None = None,
        *,
        group: Group | None = None,
    ) -> None:
        peer = _peer(network)
        if load.has_network and peer is None:
            raise UsageError(f"vm{number}: there is no peer at the other end of a network load")
        if not 1 <= shape.bound_s <= 86_400:
            raise UsageError(
                f"vm{number}: invalid time limit {shape.bound_s} s: must be 1 to 86400"
            )
        if shape.disk_mib < 1:
            raise UsageError(
                f"vm{number}: invalid disk size {shape.disk_mib} MiB: must be at least 1"
            )
        self.number = number
        self.load = load
        self.facts: Facts | None = None
        self._shape = shape
        self._run = run
        self._network = network
        self._group = group
        self._server: Child | None = None
        self._guest: GuestProcess | None = None
        self._held = contextlib.ExitStack()

    @property
    def name(self) -> str:
        return f"vm{self.number}"

    @property
    def pid(self) -> int:
        """The pid of QEMU, which is put into a control group."""
        return self._started().pid

    @property
    def pids(self) -> list[int]:
        """The pids of QEMU and of the host's end of a network load."""
        return [self.pid, *([self._server.pid] if self._server else [])]

    @property
    def group(self) -> Group:
        """Its control group; raises `ProcessError` if it was given none."""
        if self._group is None:
            raise ProcessError(f"{self.name} is in no control group of its own")
        return self._group

    @property
    def network(self) -> Network | None:
        """The guest's address and routes, from its message."""
        return self._started().network

    def start(self) -> None:
        if self._guest is not None:
            raise UsageError(f"{self.name} was started already")
        try:
            self._guest = self._boot()
            if self._group is not None:
                # Long before the guest has booted.
                for pid in self.pids:
                    self._group.add(pid)
        except BaseException:
            self.stop()
            raise

    def ready(self, timeout_s: float = READY_S) -> None:
        booted = self._started()
        booted.wait_until(lambda: booted.ready, timeout_s, f"its {self.load} load did not begin")

    def check(self) -> None:
        booted = self._started()
        booted.listen()
        booted.check()

    def work(self) -> Work:
        """Return its work since it was ready, asked now; empty if the guest does not answer.

        Its last report is of another moment: used as the current one, it would mean no work since
        then.
        """
        told = self._started().report(_REPORT_S)
        return told.work if told else Work()

    def stop(self) -> None:
        booted, self._guest, self._server = self._guest, None, None
        try:
            if booted is not None:
                booted.stop()
        finally:
            self._held.close()

    def _started(self) -> GuestProcess:
        if self._guest is None:
            raise ProcessError(f"{self.name} is not running")
        return self._guest

    def _boot(self) -> GuestProcess:
        self.need(missing(self.load))
        built = guest.build(self.load)
        memory_mib = self._shape.memory_mib or built.least_memory_mib
        if memory_mib < built.least_memory_mib:
            raise UsageError(
                f"{self.name}: {memory_mib} MiB of memory are too few for its {self.load} load",
                f"give it {built.least_memory_mib} MiB",
            )
        used = accelerator(self._run, self._shape.cpus)
        disk = None
        if self.load.has_io:
            image = self._held.enter_context(
                DiskImage(self._shape.disk_mib, self._shape.disk_directory)
            )
            disk = Disk(image.path, image.direct)
        end, words = self._connect()
        machine = Machine(built.kernel, built.initramfs, used.name, memory_mib, words, end, disk)
        self.facts = Facts(
            used,
            memory_mib,
            self._shape.disk_mib if disk else None,
            disk.direct if disk else None,
            built.packages,
        )
        return GuestProcess(machine, self._run, self._shape.cpus, self.name)

    def _connect(self) -> tuple[Tap | VhostUser | None, dict[str, str]]:
        """Return the guest's interface, with the host's end of its load, and the guest's
        parameters.
        """
        words = {"load": self.load.value, "seconds": str(self._shape.bound_s)}
        network = self._network
        if network is None:
            return None, words
        peer = _peer(network)
        if peer is not None:
            words |= {"peer": str(peer), "port": str(loads.port_of(self.number))}
        if isinstance(network, VhostUser):
            return network, {**words, "address": str(network.address)}
        end = self._held.enter_context(tap(network, self.number))
        if self.load.has_network:
            command = loads.server(self.name, self.number, network, self._shape.cpus)
            self._server = self._held.enter_context(network.host.start(command, self._run))
        return end, {**words, "address": str(network.guest_address(self.number))}


def _peer(network: Bridge | VhostUser | None) -> IPv4Address | None:
    """Return the address that answers a network load."""
    if network is None:
        return None
    return network.peer if isinstance(network, VhostUser) else network.address.ip
