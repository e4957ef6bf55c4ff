# SPDX-License-Identifier: BSD-3-Clause
"""A packet's bytes as headers of the Open Traffic Generator (OTG) model.

A header is taken where every byte of it is a field of the model; from the first that is not, the
rest is payload. Offsets are bytes from the start of the packet, bits from the start of a header
with the most significant of a byte first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Format = Literal["number", "mac", "ipv4", "ipv6"]
# A default that no value equals: what the generator would choose depends on the next header.
_ALWAYS_SAID = -1
# What a field holds where nobody sets it: the number of the next header, bytes from `Field.after`
# to the end of the frame, words of the header, or a checksum.
Rule = Literal["type", "length", "words", "header_checksum", "rest_checksum", "pseudo_checksum"]


@dataclass(frozen=True)
class Field:
    """`name` is a path of the model, with dots. `random`: the model has random values for it."""

    name: str
    offset: int
    bits: int
    default: int = 0
    format: Format = "number"
    rule: Rule | None = None
    after: int = 0
    random: bool = False


@dataclass(frozen=True)
class Kind:
    """`names`: how scapy, and so profiles, call the layer and bytes in it."""

    name: str
    fields: tuple[Field, ...]
    layers: tuple[str, ...]
    names: dict[str, int]


@dataclass(frozen=True)
class Header:
    """`at`: its first byte in the packet; `length` in bytes."""

    kind: Kind
    at: int
    length: int

    def fields(self) -> list[Field]:
        return [each for each in self.kind.fields if each.offset + each.bits <= 8 * self.length]


def _flags(first: int, *names: str) -> tuple[Field, ...]:
    return tuple(Field(name, first + at, 1) for at, name in enumerate(names))


ETHERNET = Kind(
    "ethernet",
    (
        Field("dst", 0, 48, format="mac"),
        Field("src", 48, 48, format="mac"),
        Field("ether_type", 96, 16, 0xFFFF, rule="type"),
    ),
    ("Ether",),
    {"dst": 0, "src": 6, "type": 12},
)
VLAN = Kind(
    "vlan",
    # The type behind the tag is what the next header says: see `_vlan`.
    (Field("priority", 0, 3), Field("cfi", 3, 1), Field("id", 4, 12)),
    ("Dot1Q", "Dot1AD"),
    {"prio": 0, "vlan": 0, "type": 2},
)
MPLS = Kind(
    "mpls",
    (
        Field("label", 0, 20, 16),
        Field("traffic_class", 20, 3),
        Field("bottom_of_stack", 23, 1, _ALWAYS_SAID),
        Field("time_to_live", 24, 8, 64),
    ),
    ("MPLS",),
    {"label": 0, "ttl": 3},
)
ARP = Kind(
    "arp",
    (
        Field("hardware_type", 0, 16, 1),
        Field("protocol_type", 16, 16, 0x0800),
        Field("hardware_length", 32, 8, 6),
        Field("protocol_length", 40, 8, 4),
        Field("operation", 48, 16, 1),
        Field("sender_hardware_addr", 64, 48, format="mac"),
        Field("sender_protocol_addr", 112, 32, format="ipv4"),
        Field("target_hardware_addr", 144, 48, format="mac"),
        Field("target_protocol_addr", 192, 32, format="ipv4"),
    ),
    ("ARP",),
    {"hwtype": 0, "ptype": 2, "hwlen": 4, "plen": 5, "op": 6, "hwsrc": 8, "psrc": 14, "hwdst": 18,
     "pdst": 24},
)  # fmt: skip
IPV4 = Kind(
    "ipv4",
    (
        Field("version", 0, 4, 4),
        Field("header_length", 4, 4, 5, rule="words"),
        Field("priority.raw", 8, 8),
        Field("total_length", 16, 16, 46, rule="length"),
        Field("identification", 32, 16),
        Field("reserved", 48, 1),
        Field("dont_fragment", 49, 1),
        Field("more_fragments", 50, 1),
        Field("fragment_offset", 51, 13),
        Field("time_to_live", 64, 8, 64),
        Field("protocol", 72, 8, 61, rule="type"),
        Field("header_checksum", 80, 16, rule="header_checksum"),
        Field("src", 96, 32, format="ipv4", random=True),
        Field("dst", 128, 32, format="ipv4", random=True),
    ),
    ("IP",),
    {"version": 0, "ihl": 0, "tos": 1, "len": 2, "id": 4, "flags": 6, "frag": 6, "ttl": 8,
     "proto": 9, "chksum": 10, "src": 12, "dst": 16},
)  # fmt: skip
IPV6 = Kind(
    "ipv6",
    (
        Field("version", 0, 4, 6),
        Field("traffic_class", 4, 8),
        Field("flow_label", 12, 20, random=True),
        Field("payload_length", 32, 16, rule="length", after=40),
        Field("next_header", 48, 8, 59, rule="type"),
        Field("hop_limit", 56, 8, 64),
        Field("src", 64, 128, format="ipv6"),
        Field("dst", 192, 128, format="ipv6"),
    ),
    ("IPv6",),
    {"version": 0, "tc": 0, "fl": 0, "plen": 4, "nh": 6, "hlim": 7, "src": 8, "dst": 24},
)
TCP = Kind(
    "tcp",
    (
        Field("src_port", 0, 16, random=True),
        Field("dst_port", 16, 16, random=True),
        Field("seq_num", 32, 32),
        Field("ack_num", 64, 32),
        Field("data_offset", 96, 4, rule="words"),
        *_flags(103, "ecn_ns", "ecn_cwr", "ecn_echo", "ctl_urg", "ctl_ack", "ctl_psh", "ctl_rst",
                "ctl_syn", "ctl_fin"),
        Field("window", 112, 16),
        Field("checksum", 128, 16, rule="pseudo_checksum"),
    ),
    ("TCP",),
    {"sport": 0, "dport": 2, "seq": 4, "ack": 8, "dataofs": 12, "reserved": 12, "flags": 12,
     "window": 14, "chksum": 16},
)  # fmt: skip
UDP = Kind(
    "udp",
    (
        Field("src_port", 0, 16, random=True),
        Field("dst_port", 16, 16, rule="type", random=True),
        Field("length", 32, 16, rule="length"),
        Field("checksum", 48, 16, rule="pseudo_checksum"),
    ),
    ("UDP",),
    {"sport": 0, "dport": 2, "len": 4, "chksum": 6},
)


def _echo(name: str, kind: int, rule: Rule, layers: tuple[str, ...]) -> Kind:
    return Kind(
        name,
        (
            Field("echo.type", 0, 8, kind),
            Field("echo.code", 8, 8),
            Field("echo.checksum", 16, 16, rule=rule),
            Field("echo.identifier", 32, 16),
            Field("echo.sequence_number", 48, 16),
        ),
        layers,
        {"type": 0, "code": 1, "chksum": 2, "cksum": 2, "id": 4, "seq": 6},
    )


ICMP = _echo("icmp", 8, "rest_checksum", ("ICMP",))
ICMPV6 = _echo("icmpv6", 128, "pseudo_checksum", ("ICMPv6", "ICMPv6EchoRequest", "ICMPv6EchoReply"))
GRE = Kind(
    "gre",
    (
        Field("checksum_present", 0, 1),
        Field("reserved0", 1, 12),
        Field("version", 13, 3),
        Field("protocol", 16, 16, 0x0800, rule="type"),
        Field("checksum", 32, 16, rule="rest_checksum"),
        Field("reserved1", 48, 16),
    ),
    ("GRE",),
    {"proto": 2, "chksum": 4, "offset": 6},
)
VXLAN = Kind(
    "vxlan",
    (
        Field("flags", 0, 8, 8),
        Field("reserved0", 8, 24),
        Field("vni", 32, 24),
        Field("reserved1", 56, 8),
    ),
    ("VXLAN",),
    {"flags": 0, "reserved1": 1, "vni": 4, "reserved2": 7},
)
GTPV1 = Kind(
    "gtpv1",
    (
        Field("version", 0, 3, 1),
        Field("protocol_type", 3, 1, 1),
        Field("reserved", 4, 1),
        Field("e_flag", 5, 1),
        Field("s_flag", 6, 1),
        Field("pn_flag", 7, 1),
        Field("message_type", 8, 8),
        Field("message_length", 16, 16, rule="length", after=8),
        Field("teid", 32, 32),
        Field("squence_number", 64, 16),  # the model's spelling
        Field("n_pdu_number", 80, 8),
        Field("next_extension_header_type", 88, 8),
    ),
    ("GTPHeader", "GTP_U_Header"),
    {"gtp_type": 1, "length": 2, "teid": 4, "seq": 8},
)
KINDS = (
    ETHERNET, VLAN, MPLS, ARP, IPV4, IPV6, TCP, UDP, ICMP, ICMPV6, GRE, VXLAN, GTPV1,
)  # fmt: skip

# The model has five bits for it.
_MOST_FRAGMENT_OFFSET = 31

# By which number a header names the next.
TAGS = (0x8100, 0x88A8, 0x9100, 0x9200)
ETHER_TYPES = {
    "vlan": 0x8100, "mpls": 0x8847, "arp": 0x0806, "ipv4": 0x0800, "ipv6": 0x86DD,
    "ethernet": 0x6558,
}  # fmt: skip
PROTOCOLS = {
    "icmp": 1, "ipv4": 4, "tcp": 6, "udp": 17, "ipv6": 41, "gre": 47, "icmpv6": 58, "mpls": 137,
    "ethernet": 143,
}  # fmt: skip
UDP_PORTS = {"vxlan": 4789, "gtpv1": 2152, "mpls": 6635}


def dissect(packet: bytes) -> list[Header]:
    """The headers of a packet that begins with Ethernet; empty where it is too short for one."""
    return _Dissector(packet).ethernet(0)


class _Dissector:
    def __init__(self, packet: bytes) -> None:
        self._packet = packet

    def _number(self, at: int, length: int) -> int:
        return int.from_bytes(self._packet[at : at + length], "big")

    def _room(self, at: int, length: int) -> bool:
        return at + length <= len(self._packet)

    def ethernet(self, at: int) -> list[Header]:
        if not self._room(at, 14):
            return []
        following = self._by_ether_type(self._number(at + 12, 2), at + 14)
        return [Header(ETHERNET, at, 14), *following]

    def _by_ether_type(self, number: int, at: int) -> list[Header]:
        if number in TAGS:
            return self._vlan(at)
        if number == ETHER_TYPES["mpls"]:
            return self._mpls(at)
        if number == ETHER_TYPES["arp"]:
            return [Header(ARP, at, 28)] if self._room(at, 28) else []
        if number == ETHER_TYPES["ipv4"]:
            return self._ipv4(at)
        if number == ETHER_TYPES["ipv6"]:
            return self._ipv6(at)
        return []

    def _vlan(self, at: int) -> list[Header]:
        """A tag counts where a header of its own number follows: the model's field for that number
        is read in two ways, and so it is left to the generator.
        """
        if not self._room(at, 4):
            return []
        number = self._number(at + 2, 2)
        following = self._by_ether_type(number, at + 4)
        if not following or ETHER_TYPES[following[0].kind.name] != number:
            return []
        return [Header(VLAN, at, 4), *following]

    def _mpls(self, at: int) -> list[Header]:
        if not self._room(at, 4):
            return []
        header = Header(MPLS, at, 4)
        if not self._packet[at + 2] & 1:
            return [header, *self._mpls(at + 4)]
        version = self._packet[at + 4] >> 4 if self._room(at + 4, 1) else 0
        if version == 4:
            return [header, *self._ipv4(at + 4)]
        if version == 6:
            return [header, *self._ipv6(at + 4)]
        return [header]

    def _ipv4(self, at: int) -> list[Header]:
        # Options of the model are others than those of packets.
        if not self._room(at, 20) or self._packet[at] != 0x45:
            return []
        header = Header(IPV4, at, 20)
        if fragment := self._number(at + 6, 2) & 0x1FFF:
            return [header] if fragment <= _MOST_FRAGMENT_OFFSET else []
        return [header, *self._by_protocol(self._packet[at + 9], at + 20)]

    def _ipv6(self, at: int) -> list[Header]:
        if not self._room(at, 40) or self._packet[at] >> 4 != 6:
            return []
        return [Header(IPV6, at, 40), *self._by_protocol(self._packet[at + 6], at + 40)]

    def _by_protocol(self, number: int, at: int) -> list[Header]:
        if number == PROTOCOLS["tcp"] and self._room(at, 20):
            # These have no field in the model.
            clean = not self._packet[at + 12] & 0x0E and not self._number(at + 18, 2)
            return [Header(TCP, at, 20)] if clean and self._packet[at + 12] >> 4 else []
        if number == PROTOCOLS["udp"] and self._room(at, 8):
            return self._udp(at)
        if number in (PROTOCOLS["icmp"], PROTOCOLS["icmpv6"]) and self._room(at, 8):
            return [Header(ICMP if number == PROTOCOLS["icmp"] else ICMPV6, at, 8)]
        if number == PROTOCOLS["gre"]:
            return self._gre(at)
        if number == PROTOCOLS["ipv4"]:
            return self._ipv4(at)
        if number == PROTOCOLS["ipv6"]:
            return self._ipv6(at)
        return []

    def _udp(self, at: int) -> list[Header]:
        port, header = self._number(at + 2, 2), Header(UDP, at, 8)
        if not self._number(at + 4, 2):
            # In the model a length of 0 means the right one.
            return []
        if port == UDP_PORTS["vxlan"] and self._room(at + 8, 8):
            return [header, Header(VXLAN, at + 8, 8), *self.ethernet(at + 16)]
        if port == UDP_PORTS["gtpv1"] and self._room(at + 8, 8):
            return [header, *self._gtp(at + 8)]
        return [header]

    def _gtp(self, at: int) -> list[Header]:
        flags = self._packet[at]
        length = 12 if flags & 7 else 8
        extended = bool(flags & 4)
        if flags >> 5 != 1 or extended or not self._number(at + 2, 2) or not self._room(at, length):
            return []
        header, inner = Header(GTPV1, at, length), at + length
        version = self._packet[inner] >> 4 if self._room(inner, 1) else 0
        if self._packet[at + 1] != 255 or version not in (4, 6):
            return [header]
        return [header, *(self._ipv4(inner) if version == 4 else self._ipv6(inner))]

    def _gre(self, at: int) -> list[Header]:
        if not self._room(at, 4):
            return []
        flags = self._number(at, 2)
        length = 8 if flags & 0x8000 else 4
        # Routing, keys and sequence numbers are not in the model.
        if flags & 0x7000 or flags & 7 or not self._room(at, length):
            return []
        number, inner = self._number(at + 2, 2), at + length
        following = (
            self.ethernet(inner)
            if number == ETHER_TYPES["ethernet"]
            else self._by_ether_type(number, inner)
        )
        return [Header(GRE, at, length), *following]
