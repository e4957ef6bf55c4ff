# SPDX-License-Identifier: BSD-3-Clause
"""A forwarder at work: a process with telemetry, or the kernel with what it was told to do.

Lifecycle: `launch` is a context manager. Processes that it started, and what it set in the kernel,
end with it, however it ends.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from linerate.forwarders import Forwarder
from linerate.host import link_drops, netns
from linerate.host.cpus import Cores
from linerate.host.netns import Interface
from linerate.host.process import Child, Command, RunDirectory, checkpoint, wait_until
from linerate.links import Wire
from linerate.links.eal import Memory
from linerate.telemetry.client import Reading, Telemetry, connect, socket_path

START_TIMEOUT_S = 10.0


class Ports(ABC):
    """Who tells of a forwarder's ports."""

    @abstractmethod
    def readings(self) -> list[Reading]:
        """Their counters, by the names of /ethdev/stats, one port after the other."""

    @abstractmethod
    def up(self) -> bool:
        """Whether all links are."""


class ToldPorts(Ports):
    """The forwarder itself."""

    def __init__(self, telemetry: Telemetry, count: int) -> None:
        self._telemetry = telemetry
        self._numbers = range(count)

    def readings(self) -> list[Reading]:
        return [self._telemetry.read(f"/ethdev/stats,{n}") for n in self._numbers]

    def up(self) -> bool:
        answers = (self._telemetry.ask(f"/ethdev/link_status,{n}") for n in self._numbers)
        return all(answer["status"] == "UP" for answer in answers)


class KernelPorts(Ports):
    """The kernel, of its interfaces."""

    def __init__(self, interfaces: Sequence[Interface]) -> None:
        self._interfaces = interfaces

    def readings(self) -> list[Reading]:
        return [_reading(interface) for interface in self._interfaces]

    def up(self) -> bool:
        return all(netns.is_up(each.namespace, each.name) for each in self._interfaces)


def _reading(interface: Interface) -> Reading:
    before = time.monotonic_ns()
    counted = link_drops.read([interface])[interface.end]
    after = time.monotonic_ns()
    figures = {"ipackets": counted.received, "opackets": counted.sent}
    return Reading(figures, before, after)


@dataclass(frozen=True)
class Running:
    """`children`: the processes that work; `telemetry`: the forwarder's, if it is one of them."""

    ports: Ports
    children: tuple[Child, ...] = ()
    telemetry: Telemetry | None = None

    @property
    def forwarder(self) -> Child | None:
        """Its process; None: the kernel forwards alone."""
        return self.children[0] if self.telemetry else None

    def check(self) -> None:
        """Raise when one of them has ended, or the lab should."""
        checkpoint()
        for child in self.children:
            child.check()

    def wait_until(self, ready: Callable[[], object], timeout_s: float, otherwise: str) -> None:
        """Look until the link is ready; raises `LinkError` when it is not in time."""
        wait_until(ready, self.check, timeout_s, otherwise)


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
    """Start a forwarder at its end of the wire; `told`: puts more into its command."""
    with ExitStack() as stack:

        def start(command: Command, prefix: str) -> tuple[Child, Telemetry]:
            child = stack.enter_context(Child(command, run))
            path = socket_path(run.path, prefix)
            return child, stack.enter_context(connect(path, START_TIMEOUT_S, child.check))

        prefix = run.new_prefix("forwarder")
        # What it refuses is refused before anything is set.
        command = forwarder.command(cores.forwarder, memory, prefix, wire, probed=probed)
        stack.enter_context(forwarder.configured(wire))
        beside: tuple[Child, ...] = ()
        companion_prefix = run.new_prefix("companion")
        if companion := forwarder.companion(cores.control, companion_prefix, wire):
            # It answers when its work has begun.
            child, _ = start(companion, companion_prefix)
            beside = (child,)
        if command is None:
            yield Running(KernelPorts(wire.of(Interface.FORWARDER)), beside)
            return
        if told:
            command = told(command)
        child, telemetry = start(command, prefix)
        yield Running(ToldPorts(telemetry, wire.ports), (child, *beside), telemetry)
