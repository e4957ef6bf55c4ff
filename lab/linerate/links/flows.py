# SPDX-License-Identifier: BSD-3-Clause
"""The flows of the lab's traffic, for the sender and for forwarders that route.

Flow k goes from `SOURCE` + k to `DESTINATION` + k (IPv6: `SOURCE_V6`, `DESTINATION_V6`), by UDP
from and to port `FIRST_UDP_PORT` + k. The networks are those reserved for benchmarks (RFC 2544
C.2.2, RFC 5180 8).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

FLOWS = 1000
SOURCE = IPv4Address("198.18.0.1")
DESTINATION = IPv4Address("198.19.0.1")
SOURCE_V6 = IPv6Address("2001:2::1")
DESTINATION_V6 = IPv6Address("2001:2:0:8000::1")
FIRST_UDP_PORT = 10000

# The smallest Ethernet frame, without its FCS.
FRAME_BYTES = 60
_IPV4, _UDP, _TTL = 0x0800, 17, 64


@dataclass(frozen=True)
class Flow:
    """One flow; `port` is its UDP port at both ends."""

    source: IPv4Address | IPv6Address
    destination: IPv4Address | IPv6Address
    port: int


def sender_mac(port: int) -> str:
    """Return the Ethernet address of the sender's port."""
    return f"02:00:00:00:01:{port:02x}"


def forwarder_mac(port: int) -> str:
    """Return the destination address of frames of the sender's port; no forwarder's port has it."""
    return f"02:00:00:00:02:{port:02x}"


def flows(version: int = 4) -> Iterator[Flow]:
    """Yield all flows, of IPv4 or IPv6."""
    source, destination = (SOURCE, DESTINATION) if version == 4 else (SOURCE_V6, DESTINATION_V6)
    for index in range(FLOWS):
        yield Flow(source + index, destination + index, FIRST_UDP_PORT + index)


def frame(flow: Flow, size: int = FRAME_BYTES) -> bytes:
    """Return the flow's IPv4 frame of `size` bytes without FCS, with zeros after the UDP header."""
    macs = bytes.fromhex((forwarder_mac(0) + sender_mac(0)).replace(":", ""))
    length = size - len(macs) - 2
    addresses = flow.source.packed + flow.destination.packed
    fields = (0x45, 0, length, 0, 0, _TTL, _UDP)
    check = checksum(struct.pack("!BBHHHBBH", *fields, 0) + addresses)
    ipv4 = struct.pack("!BBHHHBBH", *fields, check) + addresses
    # A UDP checksum of zero: there is none (RFC 768).
    udp = struct.pack("!HHHH", flow.port, flow.port, length - len(ipv4), 0)
    return (macs + _IPV4.to_bytes(2, "big") + ipv4 + udp).ljust(size, b"\0")


def capture(frames: Iterable[bytes]) -> bytes:
    """Return a capture file (pcap) of these frames, without times."""
    header = struct.pack("=IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    return header + b"".join(
        struct.pack("=IIII", 0, 0, len(each), len(each)) + each for each in frames
    )


def checksum(header: bytes) -> int:
    """Return the Internet checksum (RFC 1071) of an even number of bytes."""
    total = sum(int.from_bytes(header[at : at + 2], "big") for at in range(0, len(header), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
