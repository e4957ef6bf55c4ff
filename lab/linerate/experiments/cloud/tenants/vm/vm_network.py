# SPDX-License-Identifier: BSD-3-Clause
"""The networks of tenants: a bridge of the kernel, or vhost-user.

A virtual machine is on a bridge by a tap, a container by a pair of virtual interfaces. Lifecycle:
`bridge`, `tap` and `veth` make interfaces and remove them when their contexts end; all are in a
network namespace of the lab, which the next lab removes if this one was killed (`netns`). Addresses
are in 198.18.0.0/15, which is for benchmarks and routed nowhere; no namespace and no guest has a
route off its link.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path

from linerate.host.errors import LinkError, UsageError
from linerate.host.host import Host, InNamespace
from linerate.host.netns import Namespaces, ip
from linerate.host.sampler import Wanted

_WORD = "tenants"
_BRIDGE = "br0"
# A container's interface, as it is called in there.
_INSIDE = "eth0"
# The bridge's own address, at which the host's end of a network load listens.
ADDRESS = IPv4Interface("198.19.255.1/24")
# The address of the first guest, as an offset in the network.
_FIRST = 10
MOST = 200


@dataclass(frozen=True)
class Bridge:
    """A bridge in a network namespace; `address`: the bridge's."""

    host: InNamespace
    name: str
    address: IPv4Interface = ADDRESS

    def guest_address(self, number: int) -> IPv4Interface:
        """Return the address of the guest with this number, from 0."""
        if not 0 <= number < MOST:
            raise UsageError(f"tenant {number}: a bridge has guests 0 to {MOST - 1}")
        network = self.address.network
        return IPv4Interface((network.network_address + _FIRST + number, network.prefixlen))


@dataclass(frozen=True)
class Tap:
    """The host's end of a guest's interface, in a network namespace."""

    host: InNamespace
    name: str
    mac: str


@dataclass(frozen=True)
class Veth:
    """The bridge's end of a container's interface; `inside`: the namespace of the other end,
    `eth0`.
    """

    host: InNamespace
    name: str
    inside: InNamespace


@dataclass(frozen=True)
class VhostUser:
    """A socket of a DPDK program that has the other end (`net_vhost0,iface=SOCKET`).

    `address`: the guest's on that link. `peer`: the address that answers a network load there;
    None: none.
    """

    socket: Path
    address: IPv4Interface
    mac: str
    peer: IPv4Address | None = None


def mac_of(number: int) -> str:
    """Return a locally administered address for the guest of that number."""
    return f"02:6c:72:00:{number >> 8 & 255:02x}:{number & 255:02x}"


@contextmanager
def bridge(address: IPv4Interface = ADDRESS) -> Iterator[Bridge]:
    """Make a bridge in a namespace of its own, for tenants that have no other."""
    with Namespaces((_WORD,)) as made:
        found = Bridge(made.host(_WORD), _BRIDGE, address)
        host = found.host
        ip("link", "add", found.name, "type", "bridge", "forward_delay", "0", host=host)
        ip("address", "add", str(address), "dev", found.name, host=host)
        ip("link", "set", found.name, "up", host=host)
        yield found


@contextmanager
def tap(on: Bridge, number: int) -> Iterator[Tap]:
    """Make a tap on the bridge for the guest of that number, with a name unique there."""
    made = Tap(on.host, f"vm{number}", mac_of(number))
    ip("tuntap", "add", "dev", made.name, "mode", "tap", host=made.host)
    try:
        ip("link", "set", made.name, "master", on.name, host=made.host)
        ip("link", "set", made.name, "up", host=made.host)
        yield made
    finally:
        with contextlib.suppress(LinkError):
            ip("link", "del", made.name, host=made.host)


@contextmanager
def veth(on: Bridge, number: int, inside: InNamespace) -> Iterator[Veth]:
    """Make an interface with an address for the tenant of that number, in a namespace of its
    own.
    """
    made = Veth(on.host, f"ct{number}", inside)
    there = ("peer", "name", _INSIDE, "netns", inside.namespace)
    ip("link", "add", made.name, "type", "veth", *there, host=made.host)
    try:
        ip("link", "set", _INSIDE, "address", mac_of(number), host=inside)
        # The only route is the one to the link itself.
        ip("address", "add", str(on.guest_address(number)), "dev", _INSIDE, host=inside)
        ip("link", "set", _INSIDE, "up", host=inside)
        ip("link", "set", made.name, "master", on.name, host=made.host)
        ip("link", "set", made.name, "up", host=made.host)
        yield made
    finally:
        with contextlib.suppress(LinkError):
            ip("link", "del", made.name, host=made.host)


def carried_bytes(host: Host, name: str) -> int:
    """Return bytes of frames that crossed an interface there in either direction, without FCS."""
    try:
        found = host.sample(Wanted(interfaces=True)).interfaces.get(name)
    except OSError as error:
        raise LinkError(f"{host.id}: {error.strerror}") from error
    if found is None:
        raise LinkError(f"{name}: gone from the {host.id}")
    return found.rx_bytes + found.tx_bytes
