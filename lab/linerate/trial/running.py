# SPDX-License-Identifier: BSD-3-Clause
"""A running forwarder: a process with telemetry, or the kernel as it was configured.

Lifecycle: `begun` starts one, and `launch` also waits for it; both are context managers. At their
end, the processes they started end, and their settings in the kernel are undone, in all cases; so
do processes that a script or a container engine started for them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

from linerate.forwarders import Forwarder
from linerate.forwarders.definition import ForwardingReady, InterfaceReady, OutputReady, Ready
from linerate.host import netns
from linerate.host.cores import weight
from linerate.host.cores.cpus import Cores
from linerate.host.errors import ProcessError
from linerate.host.host import Host
from linerate.host.netns import Interface
from linerate.host.process import (
    Child,
    Command,
    RunDirectory,
    checkpoint,
    ended_with,
    parent_of,
    started_for,
    wait_until,
)
from linerate.links import Wire
from linerate.links.eal import Memory
from linerate.telemetry.client import Reading, Telemetry, connect, place_of, socket_path
from linerate.trial import link_drops

START_TIMEOUT_S = 10.0
# The longest time from the end of a program's telemetry to the end of its process.
END_S = 1.0


class Ports(ABC):
    """The source of a forwarder's port counters."""

    @abstractmethod
    def readings(self) -> list[Reading]:
        """Return the counters of the ports, by the names of /ethdev/stats, one port after the
        other.
        """

    @abstractmethod
    def up(self) -> bool:
        """Return True if all links are up."""


class ToldPorts(Ports):
    """Counters from the forwarder's telemetry."""

    def __init__(self, telemetry: Telemetry, count: int) -> None:
        self._telemetry = telemetry
        self._numbers = range(count)

    def readings(self) -> list[Reading]:
        return [self._telemetry.port_stats(n) for n in self._numbers]

    def up(self) -> bool:
        answers = (self._telemetry.ask(f"/ethdev/link_status,{n}") for n in self._numbers)
        return all(isinstance(each, dict) and each.get("status") == "UP" for each in answers)


class KernelPorts(Ports):
    """Counters of the kernel's interfaces."""

    def __init__(self, interfaces: Sequence[Interface]) -> None:
        self._interfaces = interfaces

    def readings(self) -> list[Reading]:
        return [_reading(interface) for interface in self._interfaces]

    def up(self) -> bool:
        return all(netns.is_up(each) for each in self._interfaces)


def _reading(interface: Interface) -> Reading:
    before = interface.host.clock_ns()
    counted = link_drops.read([interface])[interface.end]
    after = interface.host.clock_ns()
    figures = {"ipackets": counted.received, "opackets": counted.sent}
    return Reading(figures, before, after)


@dataclass(frozen=True)
class Running:
    """A running forwarder. `forwarder`: its process; None if the kernel forwards alone. `beside`:
    other processes of it; `telemetry`: the forwarder's, if it serves some. `by_forwarding`: only
    forwarded packets show that it is ready.
    """

    ports: Ports
    forwarder: Child | None = None
    beside: tuple[Child, ...] = ()
    telemetry: Telemetry | None = None
    by_forwarding: bool = False

    @property
    def children(self) -> tuple[Child, ...]:
        """Its processes."""
        return (*((self.forwarder,) if self.forwarder else ()), *self.beside)

    def check(self) -> None:
        """Raise if one of them has ended, or if the lab should end."""
        checkpoint()
        for child in self.children:
            child.check()

    def await_end(self) -> None:
        """Wait a moment for a process that closed its telemetry: it has ended, or will."""
        for child in self.children:
            if child.wait(END_S):
                return

    def carrying(self, receiving: int | None = None) -> Callable[[], bool]:
        """Return a function that tells if packets have been received since now, by the first
        `receiving` ports or by all; and also sent, if nothing else shows that the program is ready.
        """
        # The kernel's interfaces count on from trial to trial.
        before = self.ports.readings()

        def carried() -> bool:
            now = self.ports.readings()
            came = [_more("ipackets", *pair) for pair in zip(before, now, strict=True)]
            gone = any(_more("opackets", *pair) for pair in zip(before, now, strict=True))
            return all(came[:receiving]) and (gone or not self.by_forwarding)

        return carried

    def wait_until(self, ready: Callable[[], object], timeout_s: float, otherwise: str) -> None:
        """Poll until the link is ready; raises `LinkError` if it is not in time."""
        wait_until(ready, self.check, timeout_s, otherwise)


def _more(name: str, before: Reading, after: Reading) -> bool:
    return int(before.value[name]) < int(after.value[name])


class Beginning:
    """A started forwarder that may not be ready yet. `begun` makes them."""

    def __init__(
        self,
        forwarder: Forwarder,
        wire: Wire,
        child: Child | None,
        beside: tuple[Child, ...],
        connected: Callable[[Child, float], Telemetry],
    ) -> None:
        """Store the parts. `child`: its process; None if the kernel forwards alone. `connected`:
        waits for the telemetry of a child, for a given time (s) at most.
        """
        self.child = child
        self._forwarder = forwarder
        self._wire = wire
        self._beside = beside
        self._connected = connected

    def running(self, within_s: float | None = None) -> Running:
        """Wait until it is ready. `within_s`: for how long at most; default: as in its definition.

        Raises `ProcessError` if it has ended, `LinkError` if it is not ready in time.
        """
        child, wire, ready = self.child, self._wire, self._forwarder.ready
        if within_s is not None:
            ready = ready.model_copy(update={"within_s": within_s})
        interfaces = KernelPorts(wire.of(Interface.FORWARDER))
        if child is None:
            return Running(interfaces, beside=self._beside)
        await_ready(child, ready, wire.host)
        if not self._forwarder.has_telemetry:
            by_forwarding = isinstance(ready, ForwardingReady)
            return Running(interfaces, child, self._beside, by_forwarding=by_forwarding)
        telemetry = self._connected(child, ready.within_s)
        ports = interfaces if self._forwarder.counted_by_link else ToldPorts(telemetry, wire.ports)
        return Running(ports, child, self._beside, telemetry)


@contextmanager
def begun(
    forwarder: Forwarder,
    run: RunDirectory,
    cores: Cores,
    memory: Memory,
    wire: Wire,
    *,
    probed: bool = False,
    told: Callable[[Command], Command] | None = None,
) -> Iterator[Beginning]:
    """Start a forwarder at its end of the wire without waiting until it is ready; `told` adds to
    its command.
    """
    with ExitStack() as stack:
        # Entered first: a child's own processes are killed only after the child was asked to end
        # them.
        note = stack.enter_context(ended_with())
        prefix, companion_prefix = run.new_prefix("forwarder"), run.new_prefix("companion")
        # Refuses before anything is set.
        command = forwarder.command(cores, memory, prefix, wire, probed=probed)
        wire = stack.enter_context(forwarder.networked(wire, prefix.rpartition("-")[2]))
        stack.enter_context(forwarder.configured(wire))

        def connected(child: Child, within_s: float, to: str = prefix) -> Telemetry:
            alive = partial(check_stays, child, run, to, note)
            found = stack.enter_context(connect(socket_path(run.path, to), within_s, alive))
            if started_by(child, found):
                child.working_pid = found.peer_pid()
                note(child.working_pid)
                run.started(child.working_pid)
                weight.even_out(child.working_pid)
            return found

        beside: tuple[Child, ...] = ()
        if companion := forwarder.companion(cores.control, companion_prefix, wire):
            # It answers when its work has begun.
            beside = (stack.enter_context(wire.sender_host.start(companion, run)),)
            connected(beside[0], START_TIMEOUT_S, companion_prefix)
        child = None
        if command:
            child = stack.enter_context(wire.host.start(told(command) if told else command, run))
        yield Beginning(forwarder, wire, child, beside, connected)


@contextmanager
def launch(
    forwarder: Forwarder,
    run: RunDirectory,
    cores: Cores,
    memory: Memory,
    wire: Wire,
    *,
    probed: bool = False,
    told: Callable[[Command], Command] | None = None,
) -> Iterator[Running]:
    """Start a forwarder (`begun`), and wait until it is ready."""
    with begun(forwarder, run, cores, memory, wire, probed=probed, told=told) as beginning:
        yield beginning.running()


def started_by(child: Child, telemetry: Telemetry) -> bool:
    """Return True if the answering process was started by this child, or for it: a container engine
    is not the parent of the process it starts.
    """
    pid: int | None = telemetry.peer_pid()
    if pid in started_for(*place_of(telemetry.path)):
        return True
    while pid and pid != child.pid:
        pid = parent_of(pid)
    return pid == child.pid


def check_stays(child: Child, run: RunDirectory, prefix: str, note: Callable[[int], None]) -> None:
    """Raise if the child has ended, and mention a process that it left running; `note` is called
    with that process, so that it is ended, too.
    """
    try:
        child.check()
    except ProcessError as error:
        left = started_for(run.path, prefix)
        for pid in left:
            note(pid)
        if not left:
            raise
        raise ProcessError(
            f"{error.message}; process {left[0]}, which it started, runs on: a program must stay "
            "in the foreground (no daemon, no container with --detach)"
        ) from error


def await_ready(child: Child, ready: Ready, host: Host) -> None:
    """Wait until a program shows that it is ready; raises `LinkError` if it is not in time.

    Readiness by telemetry is checked where the lab connects to it, by forwarding where it sends.
    """
    if isinstance(ready, OutputReady):
        child.wait_until(
            lambda: ready.text in child.output(),
            ready.within_s,
            f'the forwarder did not print "{ready.text}"',
        )
    elif isinstance(ready, InterfaceReady):
        child.wait_until(
            lambda: netns.exists(host, ready.interface),
            ready.within_s,
            f"the forwarder made no interface {ready.interface}",
        )
