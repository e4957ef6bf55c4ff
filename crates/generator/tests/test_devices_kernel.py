# SPDX-License-Identifier: BSD-3-Clause
"""Devices and the kernel resolve each other's addresses, and the kernel routes between devices.

Each test has network namespaces of its own; it needs root and is skipped where none can be made.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import snappi
from devices import MACS, add_device, neighbors, resolved
from harness import CPUS, MEMORY, TIMEOUT_S, Generator, eventually, generator
from netns import FAR, NEAR, inside, ip

from linerate.host.errors import LinkError

pytest_plugins = ["rig"]
pytestmark = pytest.mark.usefixtures("veth")
FRAMES = 1000
# The kernel queues 1000 frames for a CPU: with four flows, a stall of half a second loses none.
PPS = 500
# Of linux/if_ether.h, linux/socket.h and linux/if_packet.h.
ETH_P_ALL, SOL_PACKET, PACKET_AUXDATA, TP_STATUS_VLAN_VALID = 3, 263, 8, 1 << 4
# Two lcores on one CPU: one sends, the other receives.
SPLIT = ("--lcores", f"0@{CPUS[0]},1@{CPUS[0]}", *MEMORY, "--file-prefix", "g")


@contextmanager
def near(directory: Path, eal: tuple[str, ...] = ()) -> Iterator[Generator]:
    """A generator whose ports are in the first namespace."""
    there = ["ip", "netns", "exec", NEAR]
    with inside(NEAR), generator(directory, eal=eal, before=there) as running:
        yield running


def mac_of(interface: str) -> str:
    (link,) = json.loads(ip("-n", FAR, "-j", "link", "show", "dev", interface))
    return str(link["address"])


def far_address(interface: str, ipv4: str, ipv6: str) -> None:
    """Gives the kernel's end addresses."""
    with inside(FAR):
        Path("/proc/sys/net/ipv6/conf", interface, "disable_ipv6").write_text("0")
    ip("-n", FAR, "address", "add", ipv4, "dev", interface)
    ip("-n", FAR, "-6", "address", "add", ipv6, "dev", interface, "nodad")


def known_to_kernel(address: str, interface: str) -> str | None:
    """The MAC address that the kernel's end has found out for an address, if it has."""
    shown = ip("-n", FAR, "-j", "neighbour", "show", "to", address, "dev", interface)
    found = json.loads(shown or "[]")
    good = [each for each in found if {"REACHABLE", "DELAY", "STALE"} & set(each["state"])]
    return good[0]["lladdr"] if good else None


def ask(address: str, interface: str) -> None:
    """Has the kernel's end look for an address, by a datagram that it can only send then."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with inside(FAR), socket.socket(family, socket.SOCK_DGRAM) as sender:
        link = (0, socket.if_nametoindex(interface)) if address.startswith("fe80") else ()
        sender.sendto(b"?", (address, 9, *link))


def answered(address: str, interface: str, mac: str) -> None:
    """Waits until the kernel's end knows where an address is."""
    eventually(
        lambda: known_to_kernel(address, interface) == mac,
        lambda: ip("-n", FAR, "neighbour", "show"),
    )


@pytest.mark.parametrize("location", ["va", "af_xdp:va"])
@pytest.mark.parametrize("tags", [(), (7,)], ids=["untagged", "tagged"])
def test_kernel_and_devices_resolve_each_other(
    directory: Path, location: str, tags: tuple[int, ...]
) -> None:
    far = "vb"
    if tags:
        far = "vb.7"
        try:
            ip("-n", FAR, "link", "add", "link", "vb", "name", far, "type", "vlan", "id", "7")
        except LinkError as error:
            pytest.skip(f"this kernel has no VLAN interfaces: {error}")
        ip("-n", FAR, "link", "set", far, "up")
    far_address(far, "10.0.0.254/24", "2001:db8::fe/64")
    config = snappi.Config()
    config.ports.port(name="p1", location=location)
    ipv4, ipv6 = ("10.0.0.1", "10.0.0.254"), ("2001:db8::1", "2001:db8::fe")
    add_device(config, 1, "p1", ipv4, ipv6=ipv6, tags=tags)
    # A second device, which nobody has heard of: only the kernel's own question finds it.
    ipv4, ipv6 = ("10.0.0.2", "10.0.0.99"), ("2001:db8::2", "2001:db8::99")
    add_device(config, 2, "p1", ipv4, ipv6=ipv6, tags=tags)
    with near(directory) as running:
        api = running.api
        api.set_config(config)
        wanted = {("e1", "10.0.0.254"): mac_of(far)}
        eventually(lambda: resolved(api) == wanted, lambda: neighbors(api))
        wanted = {("e1", "2001:db8::fe"): mac_of(far)}
        eventually(lambda: resolved(api, 6) == wanted, lambda: neighbors(api, 6))
        for address, mac in (
            ("10.0.0.1", MACS[1]),
            ("10.0.0.2", MACS[2]),
            ("2001:db8::1", MACS[1]),
            ("2001:db8::2", MACS[2]),
            ("fe80::ff:fe00:1", MACS[1]),
        ):
            ask(address, far)
            answered(address, far, mac)
        # An address that no device has.
        ask("10.0.0.3", far)
        assert known_to_kernel("10.0.0.3", far) is None
        port = running.port()
        assert port["neighbor_rx"] >= 4
        assert port["neighbor_tx"] >= 4
        assert running.ports()["p1"].frames_tx == 0


def test_devices_in_a_vlan_answer_and_ask_there(directory: Path) -> None:
    """The far end's frames are made here, because not every kernel has VLAN interfaces."""
    tag = bytes.fromhex("81000007")
    own = bytes.fromhex("020000000099")
    config = snappi.Config()
    config.ports.port(name="p1", location="va")
    ipv4, ipv6 = ("10.0.0.1", "10.0.0.254"), ("2001:db8::1", "2001:db8::fe")
    add_device(config, 1, "p1", ipv4, ipv6=ipv6, tags=[7])
    with inside(FAR):
        far = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        far.bind(("vb", 0))
        far.settimeout(TIMEOUT_S)
        # The kernel hands the tag over beside the frame.
        far.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    with far, near(directory) as running:
        running.api.set_config(config)
        asked = heard(far, lambda frame: frame[16:18] == b"\x08\x06")
        assert asked[:16] == b"\xff" * 6 + bytes.fromhex("020000000001") + tag
        assert (asked[24:26], asked[42:46]) == (b"\x00\x01", bytes([10, 0, 0, 254]))
        # The answer, untagged, in another VLAN, and in the right one.
        told = bytes.fromhex("0806000108000604 0002") + own + bytes([10, 0, 0, 254]) + asked[26:36]
        for between in (b"", bytes.fromhex("81000008"), tag):
            assert resolved(running.api) == {}
            far.send(asked[6:12] + own + between + told.ljust(46, b"\0"))
        eventually(lambda: resolved(running.api) == {("e1", "10.0.0.254"): own.hex(":")})
        question = bytes.fromhex("0806000108000604 0001") + own + bytes([10, 0, 0, 254])
        question += bytes(6) + bytes([10, 0, 0, 1])
        for between in (b"", bytes.fromhex("81000008"), tag):
            far.send(b"\xff" * 6 + own + between + question.ljust(46, b"\0"))
        answer = heard(far, lambda frame: frame[:6] == own)
        assert answer[6:16] == bytes.fromhex("020000000001") + tag
        assert (answer[24:26], answer[26:32]) == (b"\x00\x02", bytes.fromhex("020000000001"))
        # Only the question in the device's VLAN has an answer.
        far.settimeout(0.5)
        with pytest.raises(TimeoutError):
            heard(far, lambda frame: frame[:6] == own)


def heard(far: socket.socket, wanted: Callable[[bytes], bool]) -> bytes:
    """The next frame that is wanted, with its VLAN tag where it was on the link."""
    end = time.monotonic() + TIMEOUT_S
    while time.monotonic() < end:
        frame, ancillary, _, _ = far.recvmsg(2048, 1024)
        for level, kind, data in ancillary:
            if (level, kind) == (SOL_PACKET, PACKET_AUXDATA):
                status, *_, tci, tpid = struct.unpack("IIIHHHH", data)
                if status & TP_STATUS_VLAN_VALID:
                    frame = frame[:12] + struct.pack("!HH", tpid, tci) + frame[12:]
        if wanted(frame):
            return frame
    raise TimeoutError


def router() -> None:
    """The second namespace routes between `vb` and `vd`; `vd`'s peer `vc` is in the first."""
    ip("link", "add", "vc", "netns", NEAR, "type", "veth", "peer", "name", "vd", "netns", FAR)
    for namespace, interface in ((NEAR, "vc"), (FAR, "vd")):
        ip("-n", namespace, "link", "set", interface, "up")
    with inside(FAR):
        for setting in ("ipv4/ip_forward", "ipv6/conf/all/forwarding"):
            Path("/proc/sys/net", setting).write_text("1")
    far_address("vb", "10.0.1.254/24", "2001:db8:1::fe/64")
    far_address("vd", "10.0.2.254/24", "2001:db8:2::fe/64")


def routed() -> Any:
    """A device on each side of the router, and flows in both directions."""
    config = snappi.Config()
    for n, location in ((1, "va"), (2, "vc")):
        config.ports.port(name=f"p{n}", location=location)
        add_device(
            config,
            n,
            f"p{n}",
            (f"10.0.{n}.1", f"10.0.{n}.254"),
            ipv6=(f"2001:db8:{n}::1", f"2001:db8:{n}::fe"),
        )
    for kind in ("v4", "v6"):
        for tx, rx in ((1, 2), (2, 1)):
            flow = config.flows.flow(name=f"{kind}-{tx}{rx}")[-1]
            flow.tx_rx.device.tx_names = [f"{kind}-{tx}"]
            flow.tx_rx.device.rx_names = [f"{kind}-{rx}"]
            stack = flow.packet.ethernet()
            (stack.ipv4() if kind == "v4" else stack.ipv6()).udp()
            flow.size.fixed, flow.rate.pps = 128, PPS
            flow.duration.fixed_packets.packets = FRAMES
            flow.metrics.enable = flow.metrics.loss = True
    return config


@pytest.mark.parametrize("eal", [(), SPLIT], ids=["one lcore", "two lcores"])
def test_the_kernel_routes_between_devices_without_loss(
    directory: Path, eal: tuple[str, ...]
) -> None:
    router()
    with near(directory, eal) as running:
        api = running.api
        api.set_config(routed())
        # No wait: the start waits until the gateways are known.
        assert running.transmit("start") == []
        eventually(running.stopped)
        eventually(
            lambda: all(m.frames_rx == FRAMES for m in running.flows().values()),
            lambda: {name: m.frames_rx for name, m in running.flows().items()},
        )
        for name, metric in running.flows().items():
            assert (metric.frames_tx, metric.loss) == (FRAMES, 0), name
        assert resolved(api) == {
            ("e1", "10.0.1.254"): mac_of("vb"),
            ("e2", "10.0.2.254"): mac_of("vd"),
        }
        for n, far in ((1, "vb"), (2, "vd")):
            assert known_to_kernel(f"10.0.{n}.1", far) == MACS[n]
            assert known_to_kernel(f"2001:db8:{n}::1", far) == MACS[n]
            books = running.port(f"p{n}")
            assert (books["received"], books["stale"], books["misdirected"]) == (2 * FRAMES, 0, 0)


def test_a_router_with_another_address_is_found_at_the_next_start(directory: Path) -> None:
    router()
    with near(directory) as running:
        api = running.api
        api.set_config(routed())
        running.transmit("start", ["v4-12"])
        eventually(lambda: running.flow("v4-12")["received"] == FRAMES)
        ip("-n", FAR, "link", "set", "vb", "down")
        ip("-n", FAR, "link", "set", "vb", "address", "02:00:00:00:0b:0b")
        ip("-n", FAR, "link", "set", "vb", "up")
        control = snappi.ControlState()
        control.protocol.all.state = control.protocol.all.START
        api.set_control_state(control)
        eventually(lambda: resolved(api)["e1", "10.0.1.254"] == "02:00:00:00:0b:0b")
        running.transmit("start", ["v4-12"])
        eventually(
            lambda: running.flow("v4-12")["received"] == FRAMES, lambda: running.flow("v4-12")
        )
        assert running.flow("v4-12")["accepted"] == FRAMES


def test_ports_that_face_each_other_resolve_each_other(directory: Path) -> None:
    """As suites without a device under test are: each port's device is the gateway of the other's.
    The flow says its addresses itself, all but the destination's MAC address.
    """
    ip("-n", NEAR, "link", "del", "va")
    ip("-n", NEAR, "link", "add", "va", "type", "veth", "peer", "name", "vz")
    config = snappi.Config()
    for n, interface in ((1, "va"), (2, "vz")):
        ip("-n", NEAR, "link", "set", interface, "up")
        config.ports.port(name=f"p{n}", location=interface)
        add_device(config, n, f"p{n}", (f"1.1.1.{n}", f"1.1.1.{3 - n}"))
    flow = config.flows.flow(name="f")[-1]
    flow.tx_rx.device.tx_names, flow.tx_rx.device.rx_names = ["v4-1"], ["v4-2"]
    ethernet, ipv4 = flow.packet.ethernet().ipv4()
    ethernet.src.value = MACS[1]
    ipv4.src.value, ipv4.dst.value = "1.1.1.1", "1.1.1.2"
    flow.size.fixed, flow.rate.pps = 128, 50
    flow.duration.fixed_packets.packets = 100
    flow.metrics.enable = True
    with near(directory) as running:
        api = running.api
        api.set_config(config)
        wanted = {("e1", "1.1.1.2"): MACS[2], ("e2", "1.1.1.1"): MACS[1]}
        eventually(lambda: resolved(api) == wanted, lambda: neighbors(api))
        running.transmit("start")
        eventually(lambda: running.stopped() and running.flows()["f"].frames_rx == 100)
        assert running.flows()["f"].frames_tx == 100
