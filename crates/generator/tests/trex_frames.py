# SPDX-License-Identifier: BSD-3-Clause
"""The packets of a TRex stream by its instructions, executed packet by packet on bytes.

Written from TRex's manual, and shares nothing with the converter but the description of a stream.
Offsets by name are scapy's.
"""

from __future__ import annotations

from typing import Any

# These register what is behind Ethernet.
import scapy.layers.inet
import scapy.layers.inet6  # noqa: F401
from frames import checksum
from scapy.layers.l2 import Ether

from linerate.traffic.trex import described


def packets(stream: described.Stream, packet: bytes, count: int) -> list[bytes]:
    """The first so many, without FCS, filled up to 60 bytes. Not of random variables."""
    return [_packet(stream.packet.vm, packet, number) for number in range(count)]


def offset(packet: bytes, given: int | str) -> int:
    """Of `LAYER`, `LAYER:N` or `LAYER.FIELD`, as scapy takes the packet apart."""
    if isinstance(given, int):
        return given
    layer, _, field = given.partition(".")
    name, _, number = layer.partition(":")
    left, at = int(number or 0), 0
    part: Any = Ether(packet)
    while part:
        if type(part).__name__ == name:
            if left == 0:
                break
            left -= 1
        at += len(part) - len(part.payload)
        part = part.payload
    if not field:
        return at
    before = part.fields_desc[: [each.name for each in part.fields_desc].index(field)]
    return at + int(sum(each.sz for each in before))


def _value(variable: described.Variable, number: int) -> int:
    if variable.values is not None:
        ordered = variable.values[::-1] if variable.op == "dec" else variable.values
        return ordered[number % len(ordered)]
    up = variable.op == "inc"
    value = variable.init if variable.init is not None else variable.min if up else variable.max
    for _ in range(number):
        if up:
            value = variable.min if value + variable.step > variable.max else value + variable.step
        else:
            value = variable.max if value - variable.step < variable.min else value - variable.step
    return value


def _packet(vm: list[described.Instruction], packet: bytes, number: int) -> bytes:
    data, length = bytearray(packet), len(packet)
    values: dict[str, tuple[int, int]] = {}
    for each in vm:
        if isinstance(each, described.Variable):
            values[each.name] = _value(each, number), each.size
        elif isinstance(each, described.TupleGenerator):
            clients = each.ip_max - each.ip_min + 1
            flows = clients * (each.port_max - each.port_min + 1)
            flow = number % min(each.limit or flows, flows)
            values[f"{each.name}.ip"] = each.ip_min + flow % clients, 4
            values[f"{each.name}.port"] = each.port_min + flow // clients, 2
        elif isinstance(each, (described.Write, described.MaskedWrite)):
            value, size = values[each.name]
            at = offset(packet, each.offset) + each.fixup
            order: Any = "big" if each.big else "little"
            if isinstance(each, described.MaskedWrite):
                size = each.size
                value %= 1 << 8 * size
            value += each.add
            if isinstance(each, described.MaskedWrite):
                value = value << each.shift if each.shift > 0 else value >> -each.shift
                there = int.from_bytes(data[at : at + size], order)
                value = (there & ~each.mask) | (value & each.mask)
            data[at : at + size] = (value % (1 << 8 * size)).to_bytes(size, order)
        elif isinstance(each, described.Trim):
            length = values[each.name][0]
        elif isinstance(each, described.FixIpv4):
            _fix_ip(data, offset(packet, each.offset))
        elif isinstance(each, described.FixChecksums):
            ip = offset(packet, each.l3)
            _fix_ip(data, ip)
            if not each.only_ip:
                _fix_rest(data, ip, offset(packet, each.l4), length)
    return bytes(data[:length]).ljust(60, b"\0")


def _fix_ip(data: bytearray, at: int) -> None:
    data[at + 10 : at + 12] = b"\0\0"
    data[at + 10 : at + 12] = checksum(bytes(data[at : at + 20])).to_bytes(2, "big")


def _fix_rest(data: bytearray, ip: int, at: int, length: int) -> None:
    protocol = data[ip + 9]
    place = at + (16 if protocol == 6 else 6)
    data[place : place + 2] = b"\0\0"
    covered = bytes(data[at:length])
    pseudo = bytes(data[ip + 12 : ip + 20]) + bytes([0, protocol]) + len(covered).to_bytes(2, "big")
    data[place : place + 2] = checksum(pseudo + covered).to_bytes(2, "big")
