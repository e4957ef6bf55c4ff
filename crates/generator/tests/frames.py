# SPDX-License-Identifier: BSD-3-Clause
"""What frames must be, built from the standards alone, and readers of capture files."""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass
from pathlib import Path


def ones_sum(data: bytes) -> int:
    """The ones' complement sum of 16-bit words (RFC 1071)."""
    data += b"\0" * (len(data) % 2)
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def checksum(data: bytes) -> int:
    """The internet checksum of bytes whose own checksum field is zero."""
    return ones_sum(data) ^ 0xFFFF


def mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def ip(text: str) -> bytes:
    return ipaddress.ip_address(text).packed


def up(address: str, by: int) -> str:
    """An IP address so much above another."""
    return str(ipaddress.ip_address(address) + by)


def ethernet(dst: str, src: str, ether_type: int, rest: bytes) -> bytes:
    return mac(dst) + mac(src) + struct.pack(">H", ether_type) + rest


def vlan(vid: int, ether_type: int, rest: bytes, priority: int = 0) -> bytes:
    return struct.pack(">HH", priority << 13 | vid, ether_type) + rest


def ipv4(
    src: str,
    dst: str,
    protocol: int,
    rest: bytes,
    *,
    tos: int = 0,
    ident: int = 0,
    ttl: int = 64,
    flags: int = 0,
    options: bytes = b"",
) -> bytes:
    words = 5 + len(options) // 4
    first = struct.pack(
        ">BBHHHBB", 0x40 | words, tos, 4 * words + len(rest), ident, flags << 13, ttl, protocol
    )
    last = ip(src) + ip(dst) + options
    return first + struct.pack(">H", checksum(first + b"\0\0" + last)) + last + rest


def ipv6(
    src: str, dst: str, protocol: int, rest: bytes, *, label: int = 0, traffic_class: int = 0
) -> bytes:
    first = struct.pack(">IHBB", 6 << 28 | traffic_class << 20 | label, len(rest), protocol, 64)
    return first + ip(src) + ip(dst) + rest


def with_checksum(segment: bytes, at: int, src: str, dst: str, protocol: int) -> bytes:
    """A segment with the checksum at an offset, over a pseudo-header (RFC 768, 8200, 9293)."""
    pseudo = ip(src) + ip(dst) + struct.pack(">II", len(segment), protocol)
    found = checksum(pseudo + segment)
    if protocol == 17 and found == 0:
        found = 0xFFFF
    return segment[:at] + struct.pack(">H", found) + segment[at + 2 :]


def udp(src: str, dst: str, sport: int, dport: int, payload: bytes) -> bytes:
    segment = struct.pack(">HHHH", sport, dport, 8 + len(payload), 0) + payload
    return with_checksum(segment, 6, src, dst, 17)


def tcp(
    src: str,
    dst: str,
    sport: int,
    dport: int,
    payload: bytes,
    *,
    seq: int = 0,
    ack: int = 0,
    flags: int = 0,
    window: int = 0,
) -> bytes:
    segment = struct.pack(">HHIIHHHH", sport, dport, seq, ack, 5 << 12 | flags, window, 0, 0)
    return with_checksum(segment + payload, 16, src, dst, 6)


def icmp(kind: int, identifier: int, sequence: int, payload: bytes) -> bytes:
    message = struct.pack(">BBHHH", kind, 0, 0, identifier, sequence) + payload
    return message[:2] + struct.pack(">H", checksum(message)) + message[4:]


class SplitMix64:
    """The published generator, cut to a range by the upper half of a product (Lemire)."""

    def __init__(self, seed: int) -> None:
        self.state = seed

    def bits(self) -> int:
        mask = (1 << 64) - 1
        self.state = (self.state + 0x9E3779B97F4A7C15) & mask
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return z ^ (z >> 31)

    def between(self, low: int, high: int) -> int:
        span = high - low + 1
        while True:
            product = self.bits() * span
            if product & ((1 << 64) - 1) >= (1 << 64) % span:
                return low + (product >> 64)


def drawn(seed: int, low: int, high: int, count: int) -> list[int]:
    """The values of a random pattern."""
    random = SplitMix64(seed)
    return [random.between(low, high) for _ in range(count)]


@dataclass
class Record:
    """A frame of a capture file."""

    nanoseconds: int
    length: int
    data: bytes


def read_pcap(content: bytes) -> list[Record]:
    """The records of a pcap file with nanoseconds, link type Ethernet."""
    magic, major, minor, _, _, _, link = struct.unpack_from("<IHHiIII", content)
    assert (magic, major, minor, link) == (0xA1B23C4D, 2, 4, 1)
    records, at = [], 24
    while at < len(content):
        seconds, nano, kept, length = struct.unpack_from("<IIII", content, at)
        at += 16
        assert at + kept <= len(content), "a record that is cut off"
        records.append(Record(seconds * 10**9 + nano, length, content[at : at + kept]))
        at += kept
    return records


def write_pcap(path: Path, frames: list[tuple[int, bytes]]) -> None:
    """Frames with their times in nanoseconds."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1))
        for time_ns, frame in frames:
            seconds, rest = divmod(time_ns, 10**9)
            file.write(struct.pack("<IIII", seconds, rest, len(frame), len(frame)) + frame)


@dataclass
class PcapNg:
    """A pcapng file: the interface's name, the frames, and the statistics at its end."""

    interface: str
    records: list[Record]
    statistics: dict[int, int]
    # Bytes of the FCS at the end of each frame.
    fcs_len: int = 0


def options(body: bytes) -> dict[int, bytes]:
    found, at = {}, 0
    while at < len(body):
        code, length = struct.unpack_from("<HH", body, at)
        if code == 0:
            break
        found[code] = body[at + 4 : at + 4 + length]
        at += 4 + length + -length % 4
    return found


def read_pcapng(content: bytes) -> PcapNg:
    """A pcapng file of one section and one interface, whose stamps are nanoseconds."""
    file, at, kinds = PcapNg("", [], {}), 0, []
    while at < len(content):
        kind, length = struct.unpack_from("<II", content, at)
        assert length % 4 == 0
        assert struct.unpack_from("<I", content, at + length - 4) == (length,)
        body = content[at + 8 : at + length - 4]
        if kind == 0x0A0D0D0A:
            assert struct.unpack_from("<IHH", body) == (0x1A2B3C4D, 1, 0)
        elif kind == 1:
            assert struct.unpack_from("<H", body) == (1,)
            found = options(body[8:])
            file.interface = found[2].decode()
            assert found[9] == b"\x09"
            file.fcs_len = found[13][0]
        elif kind == 6:
            interface, high, low, kept, size = struct.unpack_from("<IIIII", body)
            assert interface == 0
            file.records.append(Record(high << 32 | low, size, body[20 : 20 + kept]))
        elif kind == 5:
            found = options(body[12:])
            file.statistics = {code: struct.unpack("<Q", found[code])[0] for code in (4, 5, 6, 8)}
        kinds.append(kind)
        at += length
    assert kinds[:2] == [0x0A0D0D0A, 1]
    return file
