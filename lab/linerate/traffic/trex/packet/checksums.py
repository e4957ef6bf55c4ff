# SPDX-License-Identifier: BSD-3-Clause
"""The internet checksum (RFC 1071) over parts of a packet, as the generator makes it."""

from __future__ import annotations

from collections.abc import Sequence

from linerate.traffic.trex.packet.headers import PROTOCOLS, Field, Header


def ones_sum(data: bytes) -> int:
    """The sum in ones' complement of the words of 16 bits."""
    total = sum(int.from_bytes(data[at : at + 2].ljust(2, b"\0"), "big")
                for at in range(0, len(data), 2))  # fmt: skip
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def right(packet: bytes, headers: Sequence[Header], number: int, field: Field) -> int:
    """What the checksum of header `number` is, if it covers the rest of the packet."""
    header = headers[number]
    at = header.at + field.offset // 8
    cleared = packet[:at] + b"\0\0" + packet[at + 2 :]
    if field.rule == "header_checksum":
        return 0xFFFF - ones_sum(cleared[header.at : header.at + header.length])
    covered = cleared[header.at :]
    if field.rule == "pseudo_checksum":
        covered = _pseudo_header(packet, headers, number, len(covered)) + covered
    found = 0xFFFF - ones_sum(covered)
    # 0 would say that a datagram has none.
    return found or (0xFFFF if header.kind.name == "udp" else 0)


def _pseudo_header(packet: bytes, headers: Sequence[Header], number: int, length: int) -> bytes:
    for each in reversed(headers[:number]):
        if each.kind.name in ("ipv4", "ipv6"):
            addresses = slice(12, 20) if each.kind.name == "ipv4" else slice(8, 40)
            protocol = PROTOCOLS[headers[number].kind.name]
            return (
                packet[each.at : each.at + each.length][addresses]
                + length.to_bytes(4, "big")
                + protocol.to_bytes(4, "big")
            )
    return b""
