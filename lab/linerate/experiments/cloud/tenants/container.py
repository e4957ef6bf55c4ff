# SPDX-License-Identifier: BSD-3-Clause
"""A container as a tenant: processes in namespaces and a control group of their own, with a load.

It cannot use more than its limits, see other processes, or reach anything but its bridge. Its loads
run as nobody without capabilities, write on their disk and on 16 MiB of memory only, and come from
Debian's packages. It is not a barrier against an attacker: it can read the host's files as nobody,
and uses the host's kernel.

Lifecycle: `start` makes control group, network namespace, interfaces, disk and the host's end of a
network load; the container's first process is in its group before it runs anything. `stop` ends all
of it, as leaving the context does. After a SIGKILL of the lab the kernel kills the container, its
disk has no name, and the next lab removes groups and namespaces. One lab process, its main thread.
Memory and disk are in MiB, times in seconds.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import shlex
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from linerate.experiments.cloud.tenants import disk_image, loads
from linerate.experiments.cloud.tenants.base import Kind, Limits, Load, Tenant, Work
from linerate.experiments.cloud.tenants.cgroups import cgroups
from linerate.experiments.cloud.tenants.cgroups.block_device import disk_of
from linerate.experiments.cloud.tenants.cgroups.cgroups import Group, Groups
from linerate.experiments.cloud.tenants.disk_image import DiskImage
from linerate.experiments.cloud.tenants.packages import told
from linerate.experiments.cloud.tenants.vm import guest, vm_network
from linerate.experiments.cloud.tenants.vm.vm_network import Bridge, Veth, veth
from linerate.host import netns
from linerate.host.errors import LabError, ProcessError, UsageError
from linerate.host.host import LOCAL, InNamespace
from linerate.host.netns import Namespaces
from linerate.host.process import Child, Command, RunDirectory, checkpoint, wait_until

FIRST = Path(__file__).with_name("container.sh")
READY_S = 30.0
# Defaults of a container.
MEMORY_MIB, PIDS = 256, 64
_BASH, _UNSHARE, _SETPRIV = (Path("/usr/bin") / name for name in ("bash", "unshare", "setpriv"))
_TOOLS = (_BASH, _UNSHARE, _SETPRIV)
_NAMESPACES = ("--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child", "--mount-proc")
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
# The kernel's name of the program that uses the disk.
_IO = "fio"
# Whatever begins, begins in the group: nothing runs before the lab has put it there.
_WAIT = 'read -r go || exit 1; [ -z "$disk" ] || exec 3<>"$disk"; exec "$@"'
# More bytes than a handshake.
_CARRIES_BYTES = 20_000
_LISTENS_S = 10.0
_ENDS_S = 2.0


@dataclass(frozen=True)
class Facts:
    """Facts of a container that was started, for records. `limits`: including the default ones."""

    limits: Limits
    group_version: int
    disk_mib: int | None
    disk_direct: bool | None
    packages: Mapping[str, str]


def missing(load: Load = Load.MIXED) -> list[str]:
    """Return why no such tenant can run here, one reason each; empty if it can."""
    reasons = cgroups.missing()
    reasons += [
        f"{program} is not installed (Debian: {program.name})"
        for program in guest.programs(load)
        if not program.is_file()
    ]
    reasons += [f"{tool} is not installed" for tool in _TOOLS if not tool.is_file()]
    try:
        netns.prepare()
    except LabError as error:
        reasons.append(error.message)
    if why := _without_namespaces(_UNSHARE):
        reasons.append(why)
    return reasons


@functools.cache
def _without_namespaces(unshare: Path) -> str | None:
    """Return why containers cannot be isolated here, tested with two programs once per process."""
    if told(str(unshare), *_NAMESPACES, "true") is None:
        return "unshare: namespaces for processes and mounts cannot be made here"
    if told(str(unshare), *_NAMESPACES, "mount", "-o", "remount,bind,ro", "/") is None:
        return "/ is no mount of its own here (a chroot), and cannot be made read-only"
    return None


class Container(Tenant):
    """The tenant with a number, from 0, that no other on its bridge has.

    `bound_s`: the time after its start at which it ends by itself. `disk_directory`: the directory
    of its disk image, for loads with I/O; a limit on I/O without a device applies to the disk of
    that directory.
    """

    kind = Kind.CONTAINER

    def __init__(
        self,
        number: int,
        load: Load,
        limits: Limits,
        run: RunDirectory,
        groups: Groups,
        *,
        network: Bridge | None = None,
        disk_mib: int = 64,
        disk_directory: Path = disk_image.DIRECTORY,
        bound_s: int = 900,
    ) -> None:
        self.number = number
        self.load = load
        self.facts: Facts | None = None
        if load.has_network and network is None:
            raise UsageError(f"{self.name}: there is no peer at the other end of a network load")
        if not 1 <= bound_s <= 86_400:
            raise UsageError(f"{self.name}: invalid time limit {bound_s} s: must be 1 to 86400")
        if disk_mib < 1:
            raise UsageError(f"{self.name}: invalid disk size {disk_mib} MiB: must be at least 1")
        self._limits = limits
        self._run = run
        self._groups = groups
        self._network = network
        self._disk_mib = disk_mib
        self._directory = disk_directory
        self._bound_s = bound_s
        self._held = contextlib.ExitStack()
        self._child: Child | None = None
        self._server: Child | None = None
        self._group: Group | None = None
        self._veth: Veth | None = None
        self._heard = b""
        self._is_up = False
        self._bogo_ops = 0
        self._io_pid: int | None = None
        self._before: Work | None = None

    @property
    def name(self) -> str:
        return f"ct{self.number}"

    @property
    def pids(self) -> list[int]:
        """All its processes, including the host's end of a network load."""
        return self._group.pids() if self._group else []

    @property
    def group(self) -> Group:
        """Its control group; raises `ProcessError` if it is not running."""
        if self._group is None:
            raise ProcessError(f"{self.name} is not running")
        return self._group

    @property
    def host(self) -> InNamespace:
        """Its network namespace."""
        return Namespaces((self.name,)).host(self.name)

    def start(self) -> None:
        if self._child is not None:
            raise UsageError(f"{self.name} was started already")
        self._heard, self._is_up, self._bogo_ops = b"", False, 0
        try:
            self._child = self._begin()
        except BaseException:
            self.stop()
            raise

    def ready(self, timeout_s: float = READY_S) -> None:
        begun = self._counted()

        def works() -> bool:
            now = self._counted()
            if not self._is_up:
                return False
            if self.load.has_cpu and not now.bogo_ops:
                return False
            if self.load.has_io and (now.io_bytes or 0) <= (begun.io_bytes or 0):
                return False
            carried = (now.network_bytes or 0) - (begun.network_bytes or 0)
            return not self.load.has_network or carried > _CARRIES_BYTES

        what = f"{self.name}: its {self.load} load did not begin"
        wait_until(works, self.check, timeout_s, what)
        self._before = self._counted()

    def check(self) -> None:
        checkpoint()
        # The container knows why one of its processes ended.
        self._started().check()
        if self._server is not None:
            self._server.check()

    def work(self) -> Work:
        """Return its work since it was ready, counted now."""
        before, now = self._before, self._counted()
        if before is None:
            return Work()
        done = {
            field.name: None if (value := getattr(now, field.name)) is None
            else value - getattr(before, field.name)
            for field in dataclasses.fields(Work)
        }  # fmt: skip
        return Work(**done)

    def stop(self) -> None:
        self._child = self._server = self._group = self._veth = self._before = None
        self._io_pid = None
        self._held.close()

    def _started(self) -> Child:
        if self._child is None:
            raise ProcessError(f"{self.name} is not running")
        return self._child

    def _begin(self) -> Child:
        self.need(missing(self.load))
        packages = loads.checked(self.load, *_TOOLS)
        limits = self._all_limits()
        image = None
        if self.load.has_io:
            image = self._held.enter_context(DiskImage(self._disk_mib, self._directory))
            image.fill()
            image.let_anyone_open()
        self._held.enter_context(Namespaces((self.name,)))
        self._group = group = self._held.enter_context(self._groups.group(self.name, limits))
        # Set up before any wait: processes inside may ignore signals.
        ends = self._held.enter_context(contextlib.ExitStack())
        self._held.callback(group.kill)
        words = self._words(image)
        if self._network is not None:
            self._veth = ends.enter_context(veth(self._network, self.number, self.host))
            if self.load.has_network:
                self._serve(self._network, limits, ends)
        child = ends.enter_context(self.host.start(self._command(limits, words), self._run))
        group.add(child.pid)
        child.tell("go")
        self._held.callback(_end_first, child)
        self.facts = Facts(
            limits,
            self._groups.version,
            self._disk_mib if image else None,
            image.direct if image else None,
            packages,
        )
        return child

    def _all_limits(self) -> Limits:
        limits = self._limits
        device = limits.io_device
        if limits.io_bytes_per_s is not None and device is None:
            device = disk_of(self._directory)
        return dataclasses.replace(
            limits,
            memory_mib=limits.memory_mib or MEMORY_MIB,
            pids=limits.pids or PIDS,
            io_device=device,
        )

    def _words(self, image: DiskImage | None) -> dict[str, str]:
        """Return the parameters of its first program."""
        # Longer than the container's own limit, which ends them.
        bound_s = self._bound_s + 60
        words = {"seconds": str(self._bound_s), "disk": "", "cpu": "", "io": "", "network": ""}
        if self.load.has_cpu:
            words["cpu"] = shlex.join(loads.cpu_argv(Path("/tmp/cpu.yaml")))
        if image is not None:
            words["disk"] = image.path
            opened = Path("/proc/self/fd/3")
            words["io"] = shlex.join(
                loads.io_argv(opened, self._disk_mib, bound_s, direct=image.direct)
            )
        if self.load.has_network and self._network is not None:
            words["network"] = shlex.join(
                loads.network_argv(self._network.address.ip, loads.port_of(self.number), bound_s)
            )
        return words

    def _command(self, limits: Limits, words: Mapping[str, str]) -> Command:
        """Return its command, without the lab's environment."""
        environment = {"PATH": _PATH, "LC_ALL": "C", **words}
        told_words = [f"{name}={value}" for name, value in environment.items()]
        inner = (str(_UNSHARE), *_NAMESPACES, str(_BASH), str(FIRST))
        return Command(
            self.name,
            ("/usr/bin/env", "-i", *told_words, "/bin/sh", "-c", _WAIT, "sh", *inner),
            limits.cpus,
            hold_stdin=True,
            answers=True,
        )

    def _serve(self, on: Bridge, limits: Limits, ends: contextlib.ExitStack) -> None:
        """Start the host's end; its CPU time is the tenant's."""
        command = loads.server(self.name, self.number, on, limits.cpus)
        self._server = server = ends.enter_context(on.host.start(command, self._run))
        self.group.add(server.pid)
        server.wait_until(
            lambda: "listening" in server.output(), _LISTENS_S, f"{command.role} does not listen"
        )

    def _listen(self) -> None:
        """Read the output of its first program."""
        self._heard += self._started().hear()
        *lines, self._heard = self._heard.split(b"\n")
        for line in lines:
            word, _, number = line.partition(b" ")
            if word == b"up":
                self._is_up = True
            elif word == b"bogo-ops" and number.isdigit():
                self._bogo_ops = int(number)

    def _counted(self) -> Work:
        """Return its work since it began; 0 for work that has not begun."""
        self._listen()
        io = self._io_bytes() if self.load.has_io else None
        carried = None
        if self.load.has_network and self._veth is not None:
            carried = vm_network.carried_bytes(self._veth.host, self._veth.name)
        return Work(
            self._bogo_ops if self.load.has_cpu else None,
            # All of fio's operations have the same size.
            None if io is None else io // loads.BLOCK,
            io,
            carried,
        )

    def _io_bytes(self) -> int:
        if self._io_pid is None:
            self._io_pid = self._find(_IO)
        if self._io_pid is None:
            return 0
        try:
            return loads.io_bytes(self._io_pid)
        except OSError as error:
            self.check()
            raise ProcessError(f"{self.name}: its {_IO} is gone: {error.strerror}") from error

    def _find(self, program: str) -> int | None:
        for pid in self.pids:
            with contextlib.suppress(OSError):
                if LOCAL.read_text(f"/proc/{pid}/comm").strip() == program:
                    return pid
        return None


def _end_first(child: Child) -> None:
    """End the container by its first program, for which `unshare` waits.

    If both were killed, `unshare` would leave it to the host's init process, which does not reap
    others everywhere.
    """
    with contextlib.suppress(OSError):
        told_pids = LOCAL.read_text(f"/proc/{child.pid}/task/{child.pid}/children")
        for pid in told_pids.split():
            LOCAL.kill(int(pid), signal.SIGKILL)
            child.wait(_ENDS_S)
