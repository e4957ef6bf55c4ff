# SPDX-License-Identifier: BSD-3-Clause
"""Our forwarders on the kernel's own ways to packets, built by `make build`. They use no DPDK and
take l2fwd's command line, with devices of their own on the interfaces of the wire."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace

from linerate.forwarders.base import Forwarder, l2fwd_arguments, on_interfaces
from linerate.forwarders.routing import routed
from linerate.forwarders.stack import two_ports
from linerate.host.errors import UsageError
from linerate.host.netns import Interface
from linerate.host.places import rust_binary
from linerate.host.process import Command
from linerate.links import Wire
from linerate.links.eal import Memory, one_core
from linerate.records.trial import Kind

_XDP = "xdp-fwd"


class KernelForwarder(Forwarder):
    """`program` with devices `driver`, and `options` beside l2fwd's."""

    language = "Rust"
    kind: Kind = "kernel"
    # Its own figures: there is no DPDK for the probe to look at.
    polling = "/linerate/polling"
    spans: str | None = "/linerate/latency"
    interfaces_only = True

    def __init__(self, name: str, program: str, driver: str, *options: str) -> None:
        self.name = name
        self._program = program
        self._driver = driver
        self._options = options

    def measuring_spans(self, command: Command, one_in: int) -> Command:
        return replace(command, argv=(*command.argv, "--spans", str(one_in)))

    def prepare(self) -> None:
        rust_binary(self._program)

    def command(
        self, cpu: int, memory: Memory, prefix: str, wire: Wire, *, probed: bool = False
    ) -> Command:
        devices = on_interfaces(self.name, self._driver, wire).vdevs
        vdevs = [word for device in devices for word in ("--vdev", device)]
        argv = [
            str(rust_binary(self._program)), *one_core(cpu), "--file-prefix", prefix, *vdevs,
            "--", *l2fwd_arguments(wire.ports), *self._options,
        ]  # fmt: skip
        return Command("forwarder", tuple(argv), (cpu,), namespace=wire.namespace)


class XdpForwarder(KernelForwarder):
    """The kernel forwards, and the program only watches."""

    kind: Kind = "xdp"
    spans = None


class XdpTx(XdpForwarder):
    """Every port sends back what it receives.

    A veth takes what XDP_TX sends only where its other end has an XDP program, too: there, one that
    lets everything pass runs beside it, unless the generator has one, as AF_XDP does.
    """

    made_interfaces_only = True

    def __init__(self) -> None:
        super().__init__("xdp-tx", _XDP, "net_xdp", "--action", "tx")

    def companion(self, cpu: int, prefix: str, wire: Wire) -> Command | None:
        ports = wire.of(Interface.GENERATOR)
        if not ports:
            raise UsageError(
                f"--forwarders {self.name}: it needs a program at the generator's end, too",
                "--link veth",
            )
        if wire.sender_has_xdp:
            return None
        vdevs = [
            word
            for n, port in enumerate(ports)
            for word in ("--vdev", f"net_xdp{n},iface={port.name}")
        ]
        argv = [
            str(rust_binary(_XDP)), *one_core(cpu), "--file-prefix", prefix, *vdevs,
            "--", *l2fwd_arguments(len(ports)), "--action", "pass",
        ]  # fmt: skip
        return Command("companion", tuple(argv), (cpu,), namespace=wire.sender_namespace)


class XdpFib(XdpForwarder):
    """By the kernel's routes, which are those of `kernel-route`."""

    even_ports = True
    made_interfaces_only = True

    def __init__(self) -> None:
        super().__init__("xdp-fib", _XDP, "net_xdp", "--action", "fib")

    def configured(self, wire: Wire) -> AbstractContextManager[None]:
        return routed(two_ports(self.name, wire))


KERNEL_FORWARDERS = (
    # One call a frame; one a burst; rings shared with the kernel.
    *(
        KernelForwarder(f"af-packet-{io}", "af-packet-fwd", "net_af_packet", "--io", io)
        for io in ("read-write", "mmsg", "mmap")
    ),
    # Waiting for frames, or asking for them all the time.
    KernelForwarder("af-xdp", "af-xdp-fwd", "net_af_xdp"),
    KernelForwarder("af-xdp-spin", "af-xdp-fwd", "net_af_xdp", "--idle", "spin"),
    # The kernel forwards alone, in the driver of the veth or in its stack.
    XdpForwarder("xdp-redirect", _XDP, "net_xdp"),
    XdpForwarder("xdp-redirect-generic", _XDP, "net_xdp", "--mode", "generic"),
    XdpTx(),
    XdpFib(),
)
