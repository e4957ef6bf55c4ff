# SPDX-License-Identifier: BSD-3-Clause
"""The kernel's routes for the lab's flows, IPv4 and IPv6, between the two ports of a veth link.

Frames received on one port are routed to the other, by a table for each, in which IPv4 sources are
behind the port that their frames come by. Both ports have the
address that the generator sends to, and the generator is a permanent neighbour entry.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from ipaddress import IPv4Network, IPv6Network

from linerate.host import netns
from linerate.host.netns import Interface, ip
from linerate.links import flows

_NETWORKS = {"-4": IPv4Network((flows.DESTINATION, 16), strict=False),
             "-6": IPv6Network((flows.DESTINATION_V6, 64), strict=False)}  # fmt: skip
# The generator's end of a port; nothing is ever sent to these, they lead to its Ethernet address.
_GATEWAYS = {"-4": "198.18.255.{}", "-6": "fe80::{}"}
# Tables of these numbers and the port's.
_TABLE = 100
# The kernel's own check of sources is off. That of `xdp-fwd --action fib` is always on: it leaves a
# frame to the kernel if no route leads to its source by the port that it came from.
_SOURCES = IPv4Network((flows.SOURCE, 16), strict=False)
_FORWARDING = (("ipv4/ip_forward", "1"), ("ipv4/conf/all/rp_filter", "0"),
               ("ipv6/conf/all/forwarding", "1"))  # fmt: skip
# IPv6 without addresses of its own, so that the kernel announces nothing to its neighbours.
_PORT = (("ipv4/conf/{}/rp_filter", "0"), ("ipv6/conf/{}/addr_gen_mode", "1"),
         ("ipv6/conf/{}/disable_ipv6", "0"))  # fmt: skip


@contextmanager
def routed(ports: tuple[Interface, Interface]) -> Iterator[None]:
    """Route while the context lasts; then undo it."""
    host = ports[0].host
    with ExitStack() as undo:

        def change(done: str, undone: str) -> None:
            ip(*done.split(), host=host)
            undo.callback(ip, *undone.split(), host=host)

        def set_value(path: str, value: str) -> bool:
            before = netns.set_value(host, f"/proc/sys/net/{path}", value)
            if before is not None:
                undo.callback(netns.set_value, host, f"/proc/sys/net/{path}", before)
            return before is not None

        versions = ["-4"]
        for number, port in enumerate(ports):
            old = netns.mac(port)
            new = flows.forwarder_mac(number)
            change(f"link set {port.name} address {new}", f"link set {port.name} address {old}")
            # Prevents joins of the routers' groups, which would be announced to the generator.
            change(f"link set {port.name} multicast off", f"link set {port.name} multicast on")
            for path, value in _PORT:
                known = set_value(path.format(port.name), value)
            if known and number == 0:
                versions.append("-6")
        for path, value in _FORWARDING:
            set_value(path, value)
        for number, (port, other) in enumerate(zip(ports, reversed(ports), strict=True)):
            for version in versions:
                gateway = _GATEWAYS[version].format(number + 1)
                neighbour = f"{version} neigh {{}} {gateway} dev {port.name}"
                mac = flows.sender_mac(number)
                change(
                    f"{neighbour.format('add')} lladdr {mac} nud permanent",
                    neighbour.format("del"),
                )
                route = f"{version} route {{}} {_NETWORKS[version]} table {_TABLE + number}"
                change(
                    f"{route.format('add')} via {gateway} dev {port.name} onlink",
                    route.format("del"),
                )
                rule = f"{version} rule {{}} iif {other.name} lookup {_TABLE + number}"
                change(rule.format("add"), rule.format("del"))
            back = f"-4 route {{}} {_SOURCES} table {_TABLE + number}"
            gateway = _GATEWAYS["-4"].format(2 - number)
            change(
                f"{back.format('add')} via {gateway} dev {other.name} onlink", back.format("del")
            )
        yield
