# SPDX-License-Identifier: BSD-3-Clause
"""Frames as snappi's users describe them, captured where they come back and compared byte by byte.

What each frame must be is built in frames.py from the standards, not from the generator's tables.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from frames import (
    checksum,
    drawn,
    ethernet,
    icmp,
    ip,
    ipv4,
    ipv6,
    mac,
    ones_sum,
    tcp,
    udp,
    up,
    vlan,
    with_checksum,
)
from harness import Generator, sent
from traffic import FCS, captured_flow, port_metrics

pytest_plugins = ["rig"]

MAC_A, MAC_B = "02:00:00:00:00:01", "02:00:00:00:00:02"
A4, B4 = "198.18.0.1", "198.19.0.1"
A6, B6 = "2001:db8::1", "2001:db8:1::1"
COUNT = 25

# Writes a flow; says what frame k must be.
Script = Callable[[Any], Callable[[int], bytes]]


def zeros(size: int, headers: int) -> bytes:
    """The payload of a frame of `size` bytes behind so many bytes of headers."""
    return bytes(size - FCS - headers)


def udp_patterns(flow: Any) -> Callable[[int], bytes]:
    eth, ip_, udp_ = flow.packet.ethernet().ipv4().udp()
    eth.dst.value = MAC_B
    eth.src.increment.start, eth.src.increment.step = MAC_A, "00:00:00:00:01:00"
    eth.src.increment.count = 7
    ip_.src.increment.start, ip_.src.increment.step, ip_.src.increment.count = A4, "0.0.0.2", 10
    ip_.dst.values = [B4, "198.19.7.7", "198.19.255.255"]
    udp_.src_port.decrement.start, udp_.src_port.decrement.step = 5, 2
    udp_.src_port.decrement.count = 6
    udp_.dst_port.random.min, udp_.dst_port.random.max = 1000, 2000
    udp_.dst_port.random.seed, udp_.dst_port.random.count = 7, 20
    ports = drawn(7, 1000, 2000, 20)

    def frame(k: int) -> bytes:
        src, dst = up(A4, 2 * (k % 10)), [B4, "198.19.7.7", "198.19.255.255"][k % 3]
        datagram = udp(src, dst, (5 - 2 * (k % 6)) % 65536, ports[k % 20], zeros(64, 42))
        return ethernet(MAC_B, f"02:00:00:00:{k % 7:02x}:01", 0x800, ipv4(src, dst, 17, datagram))

    return frame


def tcp_patterns(flow: Any) -> Callable[[int], bytes]:
    eth, ip_, tcp_ = flow.packet.ethernet().ipv4().tcp()
    eth.src.value, eth.dst.value = MAC_A, MAC_B
    ip_.src.value, ip_.dst.value = A4, B4
    ip_.priority.dscp.phb.values = [ip_.priority.dscp.phb.EF46, ip_.priority.dscp.phb.AF11]
    ip_.identification.increment.start, ip_.identification.increment.count = 65530, 65536
    ip_.dont_fragment.value, ip_.time_to_live.value = 1, 3
    tcp_.src_port.value = 40_000
    tcp_.dst_port.values = [80, 443]
    tcp_.seq_num.increment.start, tcp_.seq_num.increment.step = 4294967290, 1460
    tcp_.seq_num.increment.count = 1000
    tcp_.ack_num.value, tcp_.window.value = 77, 8192
    tcp_.ctl_ack.value = 1
    tcp_.ctl_psh.values = [0, 1]
    flow.size.fixed = 128

    def frame(k: int) -> bytes:
        flags = 0x10 | (0x08 if k % 2 else 0)
        seq, ports = (4294967290 + 1460 * k) % 2**32, [80, 443]
        segment = tcp(
            A4,
            B4,
            40_000,
            ports[k % 2],
            zeros(128, 54),
            seq=seq,
            ack=77,
            flags=flags,
            window=8192,
        )
        tos = [46, 10][k % 2] << 2
        packet = ipv4(A4, B4, 6, segment, tos=tos, ident=(65530 + k) % 65536, ttl=3, flags=2)
        return ethernet(MAC_B, MAC_A, 0x800, packet)

    return frame


def vxlan(flow: Any) -> Callable[[int], bytes]:
    eth, ip_, udp_, vxlan_, inner_eth, inner_ip, inner_udp = (
        flow.packet.ethernet().ipv4().udp().vxlan().ethernet().ipv4().udp()
    )
    eth.src.value, eth.dst.value = MAC_A, MAC_B
    ip_.src.value, ip_.dst.value = A4, B4
    udp_.src_port.increment.start, udp_.src_port.increment.count = 49152, 16
    vxlan_.vni.increment.start, vxlan_.vni.increment.count = 0xFFFFFE, 3
    inner_eth.dst.decrement.start, inner_eth.dst.decrement.count = "0a:00:00:00:00:00", 4
    inner_ip.src.value, inner_ip.dst.value = "10.0.0.1", "10.0.0.2"
    inner_udp.src_port.value, inner_udp.dst_port.value = 53, 53
    flow.size.fixed = 200

    def frame(k: int) -> bytes:
        datagram = udp("10.0.0.1", "10.0.0.2", 53, 53, zeros(200, 92))
        inner_dst = (0x0A00_0000_0000 - k % 4).to_bytes(6, "big").hex(":")
        packet = ipv4("10.0.0.1", "10.0.0.2", 17, datagram)
        inner = ethernet(inner_dst, "00:00:00:00:00:00", 0x800, packet)
        tunnel = struct.pack(">II", 8 << 24, ((0xFFFFFE + k % 3) & 0xFFFFFF) << 8) + inner
        return ethernet(
            MAC_B, MAC_A, 0x800, ipv4(A4, B4, 17, udp(A4, B4, 49152 + k % 16, 4789, tunnel))
        )

    return frame


def ipv6_udp(flow: Any) -> Callable[[int], bytes]:
    eth, ip_, udp_ = flow.packet.ethernet().ipv6().udp()
    eth.src.value, eth.dst.value = MAC_A, MAC_B
    ip_.src.increment.start, ip_.src.increment.step = A6, "::1:0:0:0"
    ip_.src.increment.count = 9
    ip_.dst.values = [B6, "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"]
    ip_.flow_label.random.min, ip_.flow_label.random.max = 0, 0xFFFFF
    ip_.flow_label.random.seed, ip_.flow_label.random.count = 3, 100
    ip_.traffic_class.value = 0xB8
    udp_.src_port.value, udp_.dst_port.value = 1, 2
    flow.size.fixed = 99
    labels = drawn(3, 0, 0xFFFFF, 100)

    def frame(k: int) -> bytes:
        src = up(A6, (k % 9) << 48)
        dst = [B6, "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"][k % 2]
        datagram = udp(src, dst, 1, 2, zeros(99, 62))
        packet = ipv6(src, dst, 17, datagram, label=labels[k], traffic_class=0xB8)
        return ethernet(MAC_B, MAC_A, 0x86DD, packet)

    return frame


def icmpv6_echo(flow: Any) -> Callable[[int], bytes]:
    eth, ip_, icmp_ = flow.packet.ethernet().ipv6().icmpv6()
    eth.src.value, eth.dst.value = MAC_A, MAC_B
    ip_.src.value, ip_.dst.value = A6, B6
    icmp_.echo.identifier.value = 9
    icmp_.echo.sequence_number.increment.start = 0
    icmp_.echo.sequence_number.increment.count = 65536
    flow.size.fixed = 80

    def frame(k: int) -> bytes:
        message = struct.pack(">BBHHH", 128, 0, 0, 9, k) + zeros(80, 62)
        packet = ipv6(A6, B6, 58, with_checksum(message, 2, A6, B6, 58))
        return ethernet(MAC_B, MAC_A, 0x86DD, packet)

    return frame


def vlan_udp(flow: Any) -> Callable[[int], bytes]:
    eth, vlan_, ip_, _ = flow.packet.ethernet().vlan().ipv4().udp()
    eth.src.value, eth.dst.value = MAC_A, MAC_B
    vlan_.priority.value = 5
    vlan_.id.increment.start, vlan_.id.increment.count = 4094, 4
    ip_.src.value, ip_.dst.value = A4, B4
    return lambda k: ethernet(
        MAC_B,
        MAC_A,
        0x8100,
        vlan(
            (4094 + k % 4) % 4096,
            0x800,
            ipv4(A4, B4, 17, udp(A4, B4, 0, 0, zeros(64, 46))),
            priority=5,
        ),
    )


def qinq(flow: Any) -> Callable[[int], bytes]:
    eth, outer, inner, ip_ = flow.packet.ethernet().vlan().vlan().ipv6()
    eth.src.value, eth.dst.value, eth.ether_type.value = MAC_A, MAC_B, 0x88A8
    outer.id.value = 100
    inner.id.increment.start, inner.id.increment.count = 1, 4000
    ip_.src.value, ip_.dst.value = A6, B6
    flow.size.fixed = 96
    return lambda k: ethernet(
        MAC_B,
        MAC_A,
        0x88A8,
        vlan(100, 0x8100, vlan(1 + k, 0x86DD, ipv6(A6, B6, 59, zeros(96, 62)))),
    )


def icmp_echo(flow: Any) -> Callable[[int], bytes]:
    eth, ip_, icmp_ = flow.packet.ethernet().ipv4().icmp()
    eth.src.value, eth.dst.value = MAC_A, MAC_B
    ip_.src.value, ip_.dst.value = A4, B4
    icmp_.echo.identifier.value = 0x1234
    icmp_.echo.sequence_number.increment.start = 65530
    icmp_.echo.sequence_number.increment.count = 65536
    flow.payload.fixed.pattern, flow.payload.fixed.repeat = "abcdef", True
    flow.size.fixed = 98
    payload = (b"\xab\xcd\xef" * 30)[: 98 - FCS - 42]
    return lambda k: ethernet(
        MAC_B,
        MAC_A,
        0x800,
        ipv4(A4, B4, 1, icmp(8, 0x1234, (65530 + k) % 65536, payload)),
    )


def arp_request(flow: Any) -> Callable[[int], bytes]:
    eth, arp = flow.packet.ethernet().arp()
    eth.src.value, eth.dst.value = MAC_A, "ff:ff:ff:ff:ff:ff"
    arp.sender_hardware_addr.value = MAC_A
    arp.sender_protocol_addr.value = A4
    arp.target_protocol_addr.increment.start, arp.target_protocol_addr.increment.count = B4, 254
    return lambda k: ethernet(
        "ff:ff:ff:ff:ff:ff",
        MAC_A,
        0x806,
        struct.pack(">HHBBH", 1, 0x800, 6, 4, 1)
        + mac(MAC_A)
        + ip(A4)
        + bytes(6)
        + ip(up(B4, k))
        + zeros(64, 42),
    )


def gre(flow: Any) -> Callable[[int], bytes]:
    eth, ip_, _, inner, inner_udp = flow.packet.ethernet().ipv4().gre().ipv4().udp()
    eth.src.value, eth.dst.value = MAC_A, MAC_B
    ip_.src.value, ip_.dst.value = A4, B4
    inner.src.value, inner.dst.value = "10.0.0.1", "10.0.0.2"
    inner_udp.src_port.increment.start, inner_udp.src_port.increment.count = 1, 10
    flow.size.fixed = 100

    def frame(k: int) -> bytes:
        datagram = udp("10.0.0.1", "10.0.0.2", 1 + k % 10, 0, zeros(100, 66))
        packet = ipv4("10.0.0.1", "10.0.0.2", 17, datagram)
        return ethernet(
            MAC_B, MAC_A, 0x800, ipv4(A4, B4, 47, struct.pack(">HH", 0, 0x800) + packet)
        )

    return frame


def gre_with_checksum(flow: Any) -> Callable[[int], bytes]:
    eth, ip_, gre_, inner = flow.packet.ethernet().ipv4().gre().ipv6()
    eth.src.value, eth.dst.value = MAC_A, MAC_B
    ip_.src.value, ip_.dst.value = A4, B4
    gre_.checksum_present.value = 1
    inner.src.value, inner.dst.value = A6, B6
    inner.flow_label.increment.start, inner.flow_label.increment.count = 1, 1000
    flow.size.fixed = 100

    def frame(k: int) -> bytes:
        rest = ipv6(A6, B6, 59, zeros(100, 82), label=1 + k)
        head = struct.pack(">HH", 0x8000, 0x86DD)
        whole = head + struct.pack(">HH", checksum(head + bytes(4) + rest), 0) + rest
        return ethernet(MAC_B, MAC_A, 0x800, ipv4(A4, B4, 47, whole))

    return frame


def mpls(flow: Any) -> Callable[[int], bytes]:
    eth, outer, inner, ip_, _ = flow.packet.ethernet().mpls().mpls().ipv4().udp()
    eth.src.value, eth.dst.value = MAC_A, MAC_B
    outer.label.value, outer.time_to_live.value = 16, 9
    inner.label.increment.start, inner.label.increment.count = 1000, 12
    inner.traffic_class.value = 7
    ip_.src.value, ip_.dst.value = A4, B4
    return lambda k: ethernet(
        MAC_B,
        MAC_A,
        0x8847,
        struct.pack(">II", 16 << 12 | 9, (1000 + k % 12) << 12 | 7 << 9 | 1 << 8 | 64)
        + ipv4(A4, B4, 17, udp(A4, B4, 0, 0, zeros(64, 50))),
    )


def custom_bytes(flow: Any) -> Callable[[int], bytes]:
    eth, custom = flow.packet.ethernet().custom()
    eth.src.value, eth.dst.value, eth.ether_type.value = MAC_A, MAC_B, 0x88B5
    custom.bytes = "de:ad:be:ef 0102"
    flow.payload.choice = "increment_byte"
    rest = b"\xde\xad\xbe\xef\x01\x02" + bytes(range(64 - FCS - 20))
    return lambda k: ethernet(MAC_B, MAC_A, 0x88B5, rest)


def ipv4_options(flow: Any) -> Callable[[int], bytes]:
    eth, ip_ = flow.packet.ethernet().ipv4()
    eth.src.value, eth.dst.value = MAC_A, MAC_B
    ip_.src.value = A4
    ip_.dst.increment.start, ip_.dst.increment.count = "224.0.0.1", 5
    ip_.options.add()
    return lambda k: ethernet(
        MAC_B,
        MAC_A,
        0x800,
        ipv4(A4, up("224.0.0.1", k % 5), 61, zeros(64, 38), options=b"\x94\x04\0\0"),
    )


@pytest.mark.parametrize(
    "script",
    [
        udp_patterns,
        tcp_patterns,
        vxlan,
        ipv6_udp,
        icmpv6_echo,
        vlan_udp,
        qinq,
        icmp_echo,
        arp_request,
        gre,
        gre_with_checksum,
        mpls,
        custom_bytes,
        ipv4_options,
    ],
)
def test_every_frame_is_as_the_script_says(running: Generator, script: Script) -> None:
    config, flow = captured_flow(COUNT)
    expected = script(flow)
    found = sent(running, config)
    wanted = [expected(k) for k in range(COUNT)]
    for k, (have, want) in enumerate(zip(found, wanted, strict=True)):
        assert have.hex(" ") == want.hex(" "), f"frame {k}"


@pytest.mark.parametrize("odd", [0, 1])
@pytest.mark.parametrize(
    ("script", "covered"),
    [
        (tcp_patterns, [(34, A4, B4, 6)]),
        (vxlan, [(34, A4, B4, 17), (84, "10.0.0.1", "10.0.0.2", 17)]),
        (icmpv6_echo, [(54, A6, B6, 58)]),
        (icmp_echo, [(34, "", "", 0)]),
        (gre_with_checksum, [(34, "", "", 0)]),
    ],
)
def test_checksums_cover_the_generators_mark(
    running: Generator, script: Script, covered: list[tuple[int, str, str, int]], odd: int
) -> None:
    config, flow = captured_flow(COUNT)
    script(flow)
    flow.size.fixed += 40 + odd
    flow.payload.choice = "increment_byte"
    flow.metrics.enable = flow.metrics.latency.enable = True
    config.options.port_options.data_integrity = True
    for frame in sent(running, config):
        for start, src, dst, protocol in covered:
            whole = frame[start:]
            if src:
                whole = ip(src) + ip(dst) + struct.pack(">II", len(whole), protocol) + whole
            assert ones_sum(whole) == 0xFFFF, frame.hex(" ")
    integrity = port_metrics(running.api)["p1"].data_integrity
    assert (integrity.total_frames_rx, integrity.error_frames_rx) == (COUNT, 0)


@pytest.mark.parametrize(
    ("heading", "at", "wanted"),
    [
        (
            "Segment routing (SRv6)",
            54,
            "11 04 04 02 01 00 00 07" + ip("2001:db8:9::").hex() + ip("2001:db8:5::").hex(),
        ),
        ("Extension headers of GTP", 42, "34 ff 00ca 00000001 0000 00 85 01 1009 00 45"),
    ],
)
def test_the_guides_headers_are_sent(
    running: Generator, heading: str, at: int, wanted: str
) -> None:
    guide = Path(__file__).parents[3] / "docs" / "drive-the-generator.md"
    found = re.search(rf"## {re.escape(heading)}\n.*?```python\n(.*?)```", guide.read_text(), re.S)
    assert found
    config, flow = captured_flow(COUNT)
    exec(found[1], {"flow": flow})
    flow.size.fixed = 256
    for frame in sent(running, config):
        assert frame[at:].startswith(bytes.fromhex(wanted))
