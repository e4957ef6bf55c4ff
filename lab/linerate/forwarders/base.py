# SPDX-License-Identifier: BSD-3-Clause
"""What the lab asks of a forwarder."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Literal

from linerate.host.builds.plugins import probe_plugin
from linerate.host.errors import UsageError
from linerate.host.process import Command
from linerate.links import Wire, eal, flows
from linerate.links.eal import Memory
from linerate.links.tables import Tables
from linerate.records.trial import Kind, Program, TxBuffer

# What a wire of the kernel's interfaces calls its devices.
_INTERFACE = "net_af_packet"


# Of the C l2fwd and of ours, which has the same: MAX_PKT_BURST and BURST_TX_DRAIN_US.
L2FWD_BUFFER = TxBuffer(frames=32, drain_s=100e-6)


class Forwarder(ABC):
    """What forwards frames; stateless but for what `prepare` found.

    A program serves DPDK's telemetry protocol, with /ethdev/stats and /ethdev/link_status for its
    ports 0, 1, ..., in `dpdk/PREFIX` below the run directory. Where there is none, the kernel
    forwards as it is `configured`, and its interfaces count.
    """

    name: str
    language: str
    kind: Kind
    # The telemetry command that has the figures of its polls when it is started `probed`.
    polling: str = "/linerate/probe/polling"
    # The one that has how long frames are inside it, after `measuring_spans`; None: it cannot tell.
    spans: str | None = "/linerate/probe/latency"
    # It forwards between network interfaces only.
    interfaces_only: bool = False
    # And only between those that the lab made: it sets the kernel up around them.
    made_interfaces_only: bool = False
    # It looks at addresses of IP.
    routes: bool = False
    # Its ports are pairs.
    even_ports: bool = False
    # What it collects before it sends, if it does.
    tx_buffer: TxBuffer | None = None
    # The versions of IP whose frames it forwards.
    ips: tuple[Literal[4, 6], ...] = (4, 6)

    @abstractmethod
    def prepare(self) -> None:
        """Find or build the program; raises `MissingError` with the command that mends it."""

    @abstractmethod
    def command(
        self, cpu: int, memory: Memory, prefix: str, wire: Wire, *, probed: bool = False
    ) -> Command | None:
        """How to start it on this CPU at the forwarder's end of the wire, after `prepare`.

        `probed`: so that it tells of its polls. None: there is no program to start.
        """

    def measuring_spans(self, command: Command, one_in: int) -> Command:
        """A `probed` command that measures how long frames are inside, in one of so many bursts."""
        environment = {**command.environment, "LINERATE_PROBE_ONE_IN": str(one_in)}
        return replace(command, environment=environment)

    def holds(self, tables: Tables) -> bool:
        """Whether it can forward by such tables."""
        return False

    def configured(self, wire: Wire) -> AbstractContextManager[None]:
        """What it needs set in the kernel at its end of the wire, for as long as it forwards."""
        return nullcontext()

    def companion(self, cpu: int, prefix: str, wire: Wire) -> Command | None:
        """A program that must run on this CPU beside it, and serves telemetry when it works."""
        return None

    def described(self) -> Program:
        """Return what a trial's record says of it, so that no report has to know the program."""
        return Program(language=self.language, kind=self.kind, tx_buffer=self.tx_buffer)

    def build_facts(self) -> dict[str, str]:
        """Compiler, version and flags, where the lab built it."""
        return {}


class DpdkForwarder(Forwarder):
    """`prog [EAL options] -- [options]`, on the wire's DPDK ports."""

    kind: Kind = "dpdk"
    hold_stdin: bool = False
    # What it needs without huge pages.
    memory_mib: int = eal.MEMORY_MIB

    @abstractmethod
    def program(self) -> Path:
        """The executable, after `prepare`."""

    @abstractmethod
    def arguments(self, wire: Wire) -> list[str]:
        """What follows `--`."""

    def environment(self, wire: Wire) -> dict[str, str]:
        """What it is told beside its command line."""
        return {}

    def lcores(self, cpu: int) -> list[str]:
        return eal.one_core(cpu)

    def command(
        self, cpu: int, memory: Memory, prefix: str, wire: Wire, *, probed: bool = False
    ) -> Command:
        options = eal.options(self.lcores(cpu), memory, prefix, wire, mib=self.memory_mib)
        environment = self.environment(wire)
        if probed:
            options += ["-d", str(probe_plugin())]
            environment |= {"LINERATE_PROBE_ONE_IN": "0", "LINERATE_PROBE_REQUIRED": "1"}
        argv = [str(self.program()), *options, "--", *self.arguments(wire)]
        return Command(
            "forwarder", tuple(argv), (cpu,), environment, self.hold_stdin, wire.namespace
        )


def port_mask(ports: int) -> str:
    return f"{(1 << ports) - 1:x}"


def l2fwd_arguments(ports: int, *, burst: bool = False) -> list[str]:
    """Options of l2fwd, whoever wrote it: every port on one lcore, and no statistics screen."""
    options = ["-p", port_mask(ports), "-q", str(ports), "-T", "0"]
    return [*options, "--burst-forwarding"] if burst else options


def routing_arguments(ports: int, lcore: int) -> list[str]:
    """Options that all routing examples have: every port on this lcore, back to the sender."""
    queues = ",".join(f"({port},0,{lcore})" for port in range(ports))
    options = ["-p", port_mask(ports), "-P", "--config", queues]
    return [*options, *(f"--eth-dest={n},{flows.sender_mac(n)}" for n in range(ports))]


def on_interfaces(name: str, driver: str, wire: Wire) -> Wire:
    """The same wire with devices of another driver on the kernel's interfaces."""
    if wire.pci or not all(vdev.startswith(_INTERFACE) for vdev in wire.vdevs):
        raise UsageError(
            f"--forwarders {name}: it forwards between network interfaces only",
            "--link veth, or --link ports with interfaces",
        )
    vdevs = (driver + vdev.removeprefix(_INTERFACE) for vdev in wire.vdevs)
    return replace(wire, vdevs=tuple(vdevs))
