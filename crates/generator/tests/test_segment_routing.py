# SPDX-License-Identifier: BSD-3-Clause
"""Segment routing headers through the kernel's own segment endpoint, from one veth to another.

The endpoint writes the next segment into the destination, or shifts the next identifier there. What
arrives has to have a checksum that is right with this destination, and is counted as its flow's.
Each test has network namespaces of its own; it needs root and is skipped where none can be made.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import snappi
from frames import read_pcap
from harness import generator, send_captured
from netns import FAR, NEAR, inside, ip
from scapy.layers.inet import UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrSegmentRouting
from scapy.layers.l2 import Ether
from traffic import captured, without_fcs

pytest_plugins = ["rig"]
pytestmark = pytest.mark.usefixtures("veth")

FRAMES, PPS = 1500, 800
NEXT_HOP = "02:00:00:00:00:99"
LAST = "2001:db8:19::1"


def segments(made: Any, tag: int) -> None:
    """An endpoint, then the last segment."""
    _, packet, extension, _ = made.packet.ethernet().ipv6().ipv6_extension_header().udp()
    packet.dst.value = "fc00:0:e::"
    routing = extension.routing.segment_routing
    routing.segment_list.add().segment.value = LAST
    routing.tag.value = tag


def identifiers(made: Any, port: int) -> None:
    """An endpoint's identifier and another, in the destination."""
    _, packet, datagram = made.packet.ethernet().ipv6().udp()
    datagram.dst_port.value = port
    packet.dst_usids.locator.value = "fc00::"
    packet.dst_usids.usids = ["0001", "0002"]


# Flows: how their packets are made and told apart, their size, their mark, where they end.
FLOWS: dict[str, tuple[Callable[[Any, int], None], int, int, str, str]] = {
    "segments-full": (segments, 1, 128, "full", LAST),
    "segments-short": (segments, 2, 98, "short", LAST),
    "segments-fields": (segments, 3, 90, "fields", LAST),
    "identifiers-full": (identifiers, 4, 126, "full", "fc00:0:2::"),
    "identifiers-fields": (identifiers, 5, 70, "fields", "fc00:0:2::"),
}


def routes() -> None:
    """Make the far namespace an endpoint between `vb` and `vd`."""
    ip("link", "add", "vc", "netns", NEAR, "type", "veth", "peer", "name", "vd", "netns", FAR)
    ip("-n", NEAR, "link", "set", "vc", "up")
    ip("-n", FAR, "link", "set", "vd", "addrgenmode", "none", "up")
    with inside(FAR):
        for name in ("all", "vb", "vd"):
            settings = Path("/proc/sys/net/ipv6/conf", name)
            (settings / "disable_ipv6").write_text("0")
            if not (settings / "seg6_enabled").exists():
                pytest.skip("the kernel has no segment routing (CONFIG_IPV6_SEG6_LWTUNNEL)")
            (settings / "seg6_enabled").write_text("1")
        Path("/proc/sys/net/ipv6/conf/all/forwarding").write_text("1")
    ip("-n", FAR, "-6", "address", "add", "2001:db8:18::fe/64", "dev", "vb", "nodad")
    ip("-n", FAR, "-6", "address", "add", "2001:db8:19::fe/64", "dev", "vd", "nodad")
    ip("-n", FAR, "neighbour", "add", LAST, "lladdr", NEXT_HOP, "dev", "vd")
    ip("-n", FAR, "-6", "route", "add", "fc00:0:2::/48", "via", LAST, "dev", "vd")
    end = ("encap", "seg6local", "action", "End")
    shift = ("flavors", "next-csid", "lblen", "32", "nflen", "16")
    try:
        ip("-n", FAR, "-6", "route", "add", "fc00:0:e::/48", *end, "dev", "vd")
        ip("-n", FAR, "-6", "route", "add", "fc00:0:1::/48", *end, *shift, "dev", "vd")
    except subprocess.CalledProcessError as error:
        pytest.skip(f"the kernel or `ip` has no segment endpoints: {error}")


def test_segment_endpoints_pass_frames_on(directory: Path) -> None:
    routes()
    (link,) = json.loads(ip("-n", FAR, "-j", "link", "show", "dev", "vb"))
    config = snappi.Config()
    for name, interface in (("p1", "va"), ("p2", "vc")):
        config.ports.port(name=name, location=interface)
    config.captures.capture(name="c", port_names=["p2"])
    for name, (script, number, size, _, _) in FLOWS.items():
        made = config.flows.flow(name=name)[-1]
        made.tx_rx.port.tx_name, made.tx_rx.port.rx_names = "p1", ["p2"]
        script(made, number)
        made.packet[0].dst.value, made.packet[1].src.value = link["address"], "2001:db8:18::1"
        made.packet[-1].src_port.increment.start, made.packet[-1].src_port.increment.count = 1, 999
        made.size.fixed, made.rate.pps = size, PPS
        made.duration.fixed_packets.packets = FRAMES
        made.metrics.enable = made.metrics.loss = True
    there = ["ip", "netns", "exec", NEAR]
    with inside(NEAR), generator(directory, before=there) as running:
        warnings = list(running.api.set_config(config).warnings)
        assert not [warning for warning in warnings if "MAC" in warning]
        send_captured(running, FRAMES)
        port = running.port("p2")
        assert (port["stale"], port["misdirected"], port["corrupt"]) == (0, 0, 0)
        for name, (_, _, _, mark, _) in FLOWS.items():
            books = running.flow(name)
            assert (books["mark"], books["accepted"]) == (mark, FRAMES)
            assert books["received"] <= FRAMES
        arrived = read_pcap(captured(running.api, "p2"))
    by_size = {size: last for _, _, size, _, last in FLOWS.values()}
    seen = 0
    for record in arrived:
        packet = Ether(without_fcs(record.data))
        if UDP not in packet:
            continue
        seen += 1
        assert (packet[IPv6].dst, packet[IPv6].hlim) == (by_size[record.length], 63)
        if IPv6ExtHdrSegmentRouting in packet:
            assert packet[IPv6ExtHdrSegmentRouting].segleft == 0
        given = packet[UDP].chksum
        del packet[UDP].chksum
        assert Ether(bytes(packet))[UDP].chksum == given
    assert seen >= 0.98 * FRAMES * len(FLOWS)
