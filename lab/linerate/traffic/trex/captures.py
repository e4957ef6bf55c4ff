# SPDX-License-Identifier: BSD-3-Clause
"""Capture files that profiles name: how many packets, and how long they took.

Reads pcap and pcapng as far as that needs. The generator reads the packets.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from linerate.host import foreign

# As the generator has it.
MOST = 256 << 20
_PCAP = {0xA1B2C3D4: 1e-6, 0xA1B23C4D: 1e-9}
_SECTION, _INTERFACE, _SIMPLE, _ENHANCED = 0x0A0D0D0A, 1, 3, 6
_BYTE_ORDER = 0x1A2B3C4D
_RESOLUTION, _FCS_LENGTH = 9, 13
_ETHERNET = 1


@dataclass(frozen=True)
class Contents:
    """`seconds`: from the first packet to the last. `mean`: bytes of a packet, without FCS."""

    packets: int
    seconds: float
    mean: float
    first: bytes


def read(path: Path) -> Contents:
    """Raises `OSError`, and `ValueError` for what is no capture of Ethernet."""
    data = foreign.content(path, MOST)
    count, total, times, first = 0, 0, [0.0, 0.0], b""
    for time, length, packet in _packets(data):
        if count == 0:
            times[0], first = time, packet
        times[1] = time
        count += 1
        total += length
    if not count:
        raise ValueError("has no packets")
    return Contents(count, max(0.0, times[1] - times[0]), total / count, first)


def _packets(data: bytes) -> Iterator[tuple[float, int, bytes]]:
    """Time, length and bytes of each."""
    if len(data) < 24:
        raise ValueError("is too short for a capture file")
    for order in "<>":
        magic = struct.unpack_from(f"{order}I", data)[0]
        if magic in _PCAP:
            return _pcap(data, order, _PCAP[magic])
    if struct.unpack_from("<I", data)[0] == _SECTION:
        return _pcapng(data)
    raise ValueError("is neither pcap nor pcapng")


def _pcap(data: bytes, order: str, unit: float) -> Iterator[tuple[float, int, bytes]]:
    (link,) = struct.unpack_from(f"{order}I", data, 20)
    if link & 0xFFFF != _ETHERNET:
        raise ValueError(f"has link type {link & 0xFFFF}, not Ethernet")
    fcs = (link >> 28) * 2 if link & 1 << 26 else 0
    at = 24
    while at + 16 <= len(data):
        seconds, fraction, stored, length = struct.unpack_from(f"{order}IIII", data, at)
        at += 16
        if at + stored > len(data):
            raise ValueError("ends in the middle of a packet")
        yield seconds + fraction * unit, *_bare(length, data[at : at + stored], fcs)
        at += stored


def _bare(length: int, packet: bytes, fcs: int) -> tuple[int, bytes]:
    """Length and bytes of a packet without its FCS of so many bytes."""
    length = max(0, length - fcs)
    return length, packet[:length]


def _pcapng(data: bytes) -> Iterator[tuple[float, int, bytes]]:
    at, order = 0, "<"
    # Of each interface: seconds of one step of its clock, and bytes of its packets' FCS.
    interfaces: list[tuple[float, int]] = []
    while at + 12 <= len(data):
        if struct.unpack_from("<I", data, at)[0] == _SECTION:
            magic = struct.unpack_from("<I", data, at + 8)[0]
            order, interfaces = "<" if magic == _BYTE_ORDER else ">", []
        kind, whole = struct.unpack_from(f"{order}II", data, at)
        if whole < 12 or whole % 4 or at + whole > len(data):
            raise ValueError("ends in the middle of a block")
        body = data[at + 8 : at + whole - 4]
        if kind == _INTERFACE and len(body) >= 8:
            if struct.unpack_from(f"{order}H", body)[0] != _ETHERNET:
                raise ValueError("has another link type than Ethernet")
            interfaces.append(_unit_and_fcs(body[8:], order))
        elif kind == _ENHANCED and len(body) >= 20:
            interface, high, low, stored, length = struct.unpack_from(f"{order}5I", body)
            if interface >= len(interfaces) or stored > len(body) - 20:
                raise ValueError("has a packet that is not whole")
            unit, fcs = interfaces[interface]
            yield ((high << 32) + low) * unit, *_bare(length, body[20 : 20 + stored], fcs)
        elif kind == _SIMPLE and len(body) >= 4:
            (length,) = struct.unpack_from(f"{order}I", body)
            fcs = interfaces[0][1] if interfaces else 0
            yield 0.0, *_bare(length, body[4 : 4 + length], fcs)
        at += whole


def _unit_and_fcs(options: bytes, order: str) -> tuple[float, int]:
    """Seconds of one step of an interface's clock, and bytes of its packets' FCS."""
    unit, fcs, at = 1e-6, 0, 0
    while at + 4 < len(options):
        code, length = struct.unpack_from(f"{order}HH", options, at)
        value = options[at + 4]
        if code == _RESOLUTION and length == 1:
            unit = float(2.0 ** -(value & 0x7F) if value & 0x80 else 10.0**-value)
        elif code == _FCS_LENGTH and length == 1:
            fcs = value
        at += 4 + (length + 3) // 4 * 4
    return unit, fcs
