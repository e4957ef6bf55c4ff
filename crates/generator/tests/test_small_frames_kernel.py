# SPDX-License-Identifier: BSD-3-Clause
"""Flows whose frames have no room for the full mark, on interfaces of the kernel: over a veth from
one port of the generator to another, and through the kernel's routing between two veths.

The kernel may change what a frame is known by: drivers take VLAN tags out and put them back,
routers count hop limits down and change MAC addresses and checksums. Each test has network
namespaces of its own; it needs root and is skipped where none can be made.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import snappi
from harness import Generator, eventually, generator
from netns import FAR, NEAR, counters, inside, ip

pytest_plugins = ["rig"]
pytestmark = pytest.mark.usefixtures("veth")

FRAMES, PPS = 1500, 800
SERVICE_TAG = 0x88A8
NEXT_HOP = "02:00:00:00:00:99"


def headers(made: Any, *names: str) -> list[Any]:
    """The headers of a flow, IP addresses set."""
    for name in names:
        getattr(made.packet, name)()
    found = [made.packet[at] for at in range(len(names))]
    for name, header in zip(names, found, strict=True):
        if name == "ipv4":
            header.src.value, header.dst.value = "198.18.0.1", "198.19.0.1"
        elif name == "ipv6":
            header.src.value, header.dst.value = "2001:db8:18::1", "2001:db8:19::1"
    return found


def vlan_udp(made: Any) -> None:
    headers(made, "ethernet", "vlan", "ipv4", "udp")[1].id.value = 7


def tcp(made: Any) -> None:
    _, _, tcp4 = headers(made, "ethernet", "ipv4", "tcp")
    tcp4.dst_port.increment.start, tcp4.dst_port.increment.count = 1000, 1000


def more_tcp(made: Any) -> None:
    """Only a range of ports tells it from `tcp`."""
    _, _, tcp4 = headers(made, "ethernet", "ipv4", "tcp")
    tcp4.dst_port.increment.start, tcp4.dst_port.increment.count = 2000, 1000


def vlan_tcp(made: Any) -> None:
    _, vlan, _, _ = headers(made, "ethernet", "vlan", "ipv4", "tcp")
    vlan.id.value, vlan.priority.value = 9, 5


def ipv6_udp(made: Any) -> None:
    """The least that has room for the headers."""
    headers(made, "ethernet", "ipv6", "udp")
    made.size.fixed = 66


def ipv6_imix(made: Any) -> None:
    headers(made, "ethernet", "ipv6")[1].flow_label.value = 5
    made.size.weight_pairs.predefined = "imix"


def double_tagged_udp(made: Any) -> None:
    outer, inner = headers(made, "ethernet", "vlan", "vlan", "ipv4", "udp")[1:3]
    made.packet[0].ether_type.value = SERVICE_TAG
    outer.id.value, inner.id.value = 11, 12


def double_tagged_tcp(made: Any) -> None:
    outer, inner = headers(made, "ethernet", "vlan", "vlan", "ipv4", "tcp")[1:3]
    made.packet[0].ether_type.value = SERVICE_TAG
    outer.id.value, inner.id.value = 11, 13
    made.size.fixed = 66


def mpls_tcp(made: Any) -> None:
    headers(made, "ethernet", "mpls", "mpls", "ipv4", "tcp")
    made.size.fixed = 66


def options(made: Any) -> None:
    _, ip4, _ = headers(made, "ethernet", "ipv4", "udp")
    ip4.options.add().choice = "router_alert"
    ip4.dst.value = "198.19.0.2"


Stack = tuple[Callable[[Any], None], str]
# Each with the mark that it has room for.
STACKS: dict[str, Stack] = {
    "vlan-udp": (vlan_udp, "short"),
    "tcp": (tcp, "fields"),
    "more-tcp": (more_tcp, "fields"),
    "vlan-tcp": (vlan_tcp, "fields"),
    "ipv6-udp": (ipv6_udp, "fields"),
    "ipv6-imix": (ipv6_imix, "fields"),
    "double-tagged-udp": (double_tagged_udp, "short"),
    "double-tagged-tcp": (double_tagged_tcp, "fields"),
    "mpls-tcp": (mpls_tcp, "fields"),
    "options": (options, "short"),
}
ROUTED = ("tcp", "more-tcp", "ipv6-udp", "ipv6-imix", "options")


@contextmanager
def sending(directory: Path, stacks: Iterable[str], to: str, gateway: str) -> Iterator[Generator]:
    """A generator that has sent flows of these stacks from `va` to the port at `to`."""
    config = snappi.Config()
    for name, interface in (("p1", "va"), ("p2", to)):
        config.ports.port(name=name, location=interface)
    for name in stacks:
        made = config.flows.flow(name=name)[-1]
        made.tx_rx.port.tx_name, made.tx_rx.port.rx_names = "p1", ["p2"]
        made.size.fixed, made.rate.pps = 64, PPS
        STACKS[name][0](made)
        made.packet[0].dst.value = gateway
        made.duration.fixed_packets.packets = FRAMES
        made.metrics.enable = made.metrics.loss = True
    there = ["ip", "netns", "exec", NEAR]
    with inside(NEAR), generator(directory, before=there) as running:
        warnings = list(running.api.set_config(config).warnings)
        running.transmit("start")
        eventually(running.stopped)
        # The kernel may drop some when nobody polls for a moment.
        eventually(
            lambda: all(each.frames_rx >= 0.98 * FRAMES for each in running.flows().values()),
            lambda: [(each.name, each.frames_rx) for each in running.flows().values()],
        )
        for name in stacks:
            how = {"short": "the 8-byte mark", "fields": "header fields"}[STACKS[name][1]]
            (warning,) = (each for each in warnings if each.startswith(f'flow "{name}": '))
            assert how in warning
            assert "MAC" not in warning
        yield running


def check(running: Generator, stacks: Iterable[str]) -> None:
    """Every frame is counted as its flow's, once."""
    flows = running.flows()
    for name in stacks:
        metric, books = flows[name], running.flow(name)
        assert books["mark"] == STACKS[name][1]
        assert metric.frames_tx == FRAMES
        assert metric.frames_rx == books["received"] <= FRAMES, name
        assert metric.loss == pytest.approx(100 * (1 - metric.frames_rx / FRAMES), abs=1e-4)
        if books["mark"] == "short":
            assert (books["duplicates"], books["reordered"]) == (0, 0)
    port = running.port("p2")
    assert port["received"] == sum(each.frames_rx for each in flows.values())
    assert (port["stale"], port["misdirected"], port["corrupt"]) == (0, 0, 0)


def test_frames_are_known_behind_a_veth(directory: Path) -> None:
    ip("-n", NEAR, "link", "del", "va")
    ip("-n", NEAR, "link", "add", "va", "type", "veth", "peer", "name", "vz")
    for interface in ("va", "vz"):
        ip("-n", NEAR, "link", "set", interface, "up")
    with sending(directory, STACKS, "vz", "02:00:00:00:00:01") as running:
        check(running, STACKS)
        port = running.port("p2")
        # All that came is known.
        assert port["foreign"] == 0
        assert counters(NEAR, "vz")["rx"]["packets"] == FRAMES * len(STACKS)


def test_frames_are_known_behind_the_kernels_routing(directory: Path) -> None:
    """Hop limits, checksums and MAC addresses are others there."""
    ip("link", "add", "vc", "netns", NEAR, "type", "veth", "peer", "name", "vd", "netns", FAR)
    ip("-n", NEAR, "link", "set", "vc", "up")
    ip("-n", FAR, "link", "set", "vd", "addrgenmode", "none", "up")
    with inside(FAR):
        for setting in ("ipv4/ip_forward", "ipv6/conf/all/forwarding"):
            Path("/proc/sys/net", setting).write_text("1")
        for interface in ("vb", "vd"):
            Path("/proc/sys/net/ipv6/conf", interface, "disable_ipv6").write_text("0")
    ip("-n", FAR, "address", "add", "198.18.255.254/16", "dev", "vb")
    ip("-n", FAR, "address", "add", "198.19.255.254/16", "dev", "vd")
    ip("-n", FAR, "-6", "address", "add", "2001:db8:18::fe/64", "dev", "vb", "nodad")
    ip("-n", FAR, "-6", "address", "add", "2001:db8:19::fe/64", "dev", "vd", "nodad")
    for address in ("198.19.0.1", "198.19.0.2", "2001:db8:19::1"):
        ip("-n", FAR, "neighbour", "add", address, "lladdr", NEXT_HOP, "dev", "vd")
    (link,) = json.loads(ip("-n", FAR, "-j", "link", "show", "dev", "vb"))
    with sending(directory, ROUTED, "vc", link["address"]) as running:
        check(running, ROUTED)
