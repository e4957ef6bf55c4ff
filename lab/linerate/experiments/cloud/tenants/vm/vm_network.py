# SPDX-License-Identifier: BSD-3-Clause
"""What a tenant's interface is connected with: a bridge of the kernel, or vhost-user.

A virtual machine is on a bridge by a tap, a container by a pair of virtual interfaces. Lifecycle:
`bridge`, `tap` and `veth` make interfaces and remove them when their contexts end; all are in a
network namespace of the lab's, which the next lab removes when this one was killed (`netns`).
Addresses are of 198.18.0.0/15, which is for benchmarks and routed nowhere; no namespace and no
guest has a route off its link.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path

from linerate.host import netns
from linerate.host.errors import LinkError, UsageError
from linerate.host.netns import Namespaces, ip

_WORD = "tenants"
_BRIDGE = "br0"
# A container's interface, as it is called in there.
_INSIDE = "eth0"
# The bridge's own address, at which the host's end of a network load listens.
ADDRESS = IPv4Interface("198.19.255.1/24")
# Of the first guest, counted from the network's own.
_FIRST = 10
MOST = 200


@dataclass(frozen=True)
class Bridge:
    """A bridge in a network namespace, by their names; `address`: the bridge's."""

    namespace: str
    name: str
    address: IPv4Interface = ADDRESS

    def guest_address(self, number: int) -> IPv4Interface:
        """Of the guest of that number, from 0."""
        if not 0 <= number < MOST:
            raise UsageError(f"tenant {number}: a bridge has guests 0 to {MOST - 1}")
        network = self.address.network
        return IPv4Interface((network.network_address + _FIRST + number, network.prefixlen))


@dataclass(frozen=True)
class Tap:
    """The host's end of a guest's interface, in a network namespace by its name."""

    namespace: str
    name: str
    mac: str


@dataclass(frozen=True)
class Veth:
    """The bridge's end of a container's interface; `inside`: the namespace of the other, `eth0`."""

    namespace: str
    name: str
    inside: str


@dataclass(frozen=True)
class VhostUser:
    """A socket of a DPDK program that has the other end (`net_vhost0,iface=SOCKET`).

    `address`: the guest's on that link. `peer`: who answers a network load there; None: nobody.
    """

    socket: Path
    address: IPv4Interface
    mac: str
    peer: IPv4Address | None = None


def mac_of(number: int) -> str:
    """A locally administered address for the guest of that number."""
    return f"02:6c:72:00:{number >> 8 & 255:02x}:{number & 255:02x}"


@contextmanager
def bridge(address: IPv4Interface = ADDRESS) -> Iterator[Bridge]:
    """A bridge in a namespace of its own, for tenants that have no other."""
    with Namespaces((_WORD,)) as made:
        found = Bridge(made.name(_WORD), _BRIDGE, address)
        ip("-n", found.namespace, "link", "add", found.name, "type", "bridge", "forward_delay", "0")
        ip("-n", found.namespace, "address", "add", str(address), "dev", found.name)
        ip("-n", found.namespace, "link", "set", found.name, "up")
        yield found


@contextmanager
def tap(on: Bridge, number: int) -> Iterator[Tap]:
    """A tap on the bridge for the guest of that number; nobody else has its name there."""
    made = Tap(on.namespace, f"vm{number}", mac_of(number))
    ip("-n", made.namespace, "tuntap", "add", "dev", made.name, "mode", "tap")
    try:
        ip("-n", made.namespace, "link", "set", made.name, "master", on.name)
        ip("-n", made.namespace, "link", "set", made.name, "up")
        yield made
    finally:
        with contextlib.suppress(LinkError):
            ip("-n", made.namespace, "link", "del", made.name)


@contextmanager
def veth(on: Bridge, number: int, namespace: str) -> Iterator[Veth]:
    """An interface with an address for the tenant of that number, in a namespace of its own."""
    made = Veth(on.namespace, f"ct{number}", namespace)
    there = ("peer", "name", _INSIDE, "netns", namespace)
    ip("-n", made.namespace, "link", "add", made.name, "type", "veth", *there)
    try:
        ip("-n", namespace, "link", "set", _INSIDE, "address", mac_of(number))
        # No route but that to the link itself.
        ip("-n", namespace, "address", "add", str(on.guest_address(number)), "dev", _INSIDE)
        ip("-n", namespace, "link", "set", _INSIDE, "up")
        ip("-n", made.namespace, "link", "set", made.name, "master", on.name)
        ip("-n", made.namespace, "link", "set", made.name, "up")
        yield made
    finally:
        with contextlib.suppress(LinkError):
            ip("-n", made.namespace, "link", "del", made.name)


def carried_bytes(namespace: str, name: str) -> int:
    """In frames that crossed an interface there either way, without FCS."""
    try:
        with netns.inside(namespace):
            told = Path("/proc/thread-self/net/dev").read_text()
    except OSError as error:
        raise LinkError(f"{namespace}: {error.strerror}") from error
    for line in told.splitlines()[2:]:
        found, _, numbers = line.strip().partition(":")
        if found == name:
            fields = numbers.split()
            return int(fields[0]) + int(fields[8])
    raise LinkError(f"{name}: gone from the namespace {namespace}")
