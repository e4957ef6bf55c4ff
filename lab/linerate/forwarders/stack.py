# SPDX-License-Identifier: BSD-3-Clause
"""The kernel's own forwarding, without a program: a bridge, or routes, between the interfaces of a
veth link. The threads that receive on the link do the work, and are the CPU time of a trial."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from linerate.forwarders.base import Forwarder
from linerate.forwarders.routing import routed
from linerate.host import netns
from linerate.host.errors import UsageError
from linerate.host.netns import Interface, bridge, ip
from linerate.host.process import Command
from linerate.links import Wire, flows
from linerate.links.eal import Memory

_BRIDGE = "bridge"


def two_ports(name: str, wire: Wire) -> tuple[Interface, Interface]:
    """The forwarder's interfaces, for one that is to be set up between them."""
    ports = wire.of(Interface.FORWARDER)
    if not ports:
        why = "the lab sets the kernel up on interfaces in a namespace of its own only"
    elif len(ports) != 2:
        why = "it forwards from one port to the other, and this link has one"
    else:
        return ports[0], ports[1]
    raise UsageError(f"--forwarders {name}: {why}", "--link veth")


class KernelStack(Forwarder):
    """A way of the kernel's to forward; nothing polls, so that there are no figures of polls."""

    language = "C"
    spans = None
    kind = "kernel"
    interfaces_only = True
    made_interfaces_only = True
    even_ports = True

    def prepare(self) -> None:
        netns.prepare()

    def command(
        self, cpu: int, memory: Memory, prefix: str, wire: Wire, *, probed: bool = False
    ) -> Command | None:
        two_ports(self.name, wire)
        return None

    def configured(self, wire: Wire) -> AbstractContextManager[None]:
        return self.between(two_ports(self.name, wire))

    @abstractmethod
    def between(self, ports: tuple[Interface, Interface]) -> AbstractContextManager[None]:
        """Forward between them."""


class KernelRoute(KernelStack):
    """IP routing: one less of TTL or hop limit, and the neighbour's Ethernet address."""

    name = "kernel-route"

    def between(self, ports: tuple[Interface, Interface]) -> AbstractContextManager[None]:
        return routed(ports)


class KernelBridge(KernelStack):
    """A Linux bridge; frames stay as they are."""

    name = "kernel-bridge"

    def between(self, ports: tuple[Interface, Interface]) -> AbstractContextManager[None]:
        return bridged(ports)


@contextmanager
def bridged(ports: tuple[Interface, Interface]) -> Iterator[None]:
    """A bridge without a spanning tree, for as long as the context.

    It knows from the start where the generator's frames go, as if it had learnt it.
    """
    namespace = ports[0].namespace
    ip(
        "-n", namespace, "link", "add", _BRIDGE, "type", "bridge", "stp_state", "0",
        "forward_delay", "0", "mcast_snooping", "0",
    )  # fmt: skip
    try:
        for port in ports:
            ip("-n", namespace, "link", "set", port.name, "master", _BRIDGE)
        for number, other in enumerate(reversed(ports)):
            # What is sent to this port's address leaves by the other.
            mac = flows.forwarder_mac(number)
            bridge("-n", namespace, "fdb", "add", mac, "dev", other.name, "master", "static")
        ip("-n", namespace, "link", "set", _BRIDGE, "up")
        yield
    finally:
        # Its ports are free with it.
        ip("-n", namespace, "link", "del", _BRIDGE)


STACK_FORWARDERS = (KernelBridge(), KernelRoute())
