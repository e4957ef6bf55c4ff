# SPDX-License-Identifier: BSD-3-Clause
"""A hundred random configurations of the model: posted, sent, captured, and read by scapy.

Each has one flow of random headers with random patterns in some of their fields. Scapy reads every
frame and compares the fields that were given. What was left to the generator (types, lengths,
checksums) has to be what scapy computes when it builds the frame anew.
"""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest
import snappi
from frames import drawn
from harness import Generator, sent
from scapy.contrib.gtp import GTPHeader
from scapy.contrib.mpls import MPLS
from scapy.fields import ByteField, StrLenField
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6EchoRequest, IPv6, IPv6ExtHdrSegmentRouting
from scapy.layers.l2 import ARP, GRE, Dot1Q, Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Packet, Padding, Raw
from snappi import snappi as model

pytest_plugins = ["rig"]

FRAMES = 12
CONFIGURATIONS = 100
# As many in each test: each needs a quarter of a second.
TOGETHER = 20


def _mac(value: int) -> str:
    return ":".join(f"{byte:02x}" for byte in value.to_bytes(6, "big"))


def _ipv4(value: int) -> str:
    return str(ipaddress.IPv4Address(value))


def _ipv6(value: int) -> str:
    return str(ipaddress.IPv6Address(value))


class Gtp(GTPHeader):
    """A header of GTP, whatever is behind it."""

    name = "GTP"

    @classmethod
    def dispatch_hook(cls, *_: Any, **__: Any) -> type[Packet]:
        return cls

    def guess_payload_class(self, _: bytes) -> type[Packet]:
        return Raw


class GtpExtension(Packet):
    """An extension header of any type (3GPP TS 29.281, section 5.2.1), of which scapy has a few."""

    name = "GTP extension"
    fields_desc: ClassVar[list[Any]] = [
        ByteField("words", 0),
        StrLenField("contents", b"", length_from=lambda header: 4 * header.words - 2),
        ByteField("next", 0),
    ]


@dataclass(frozen=True)
class Field:
    """A field of the model: its path, width in bits, and how scapy has it."""

    path: str
    bits: int
    of: Callable[[Packet], Any]
    text: Callable[[int], str] | None = None
    # The largest value, where scapy would take others for another header.
    most: int | None = None


def _attribute(name: str) -> Callable[[Packet], Any]:
    return lambda layer: int(getattr(layer, name))


def _address(name: str) -> Callable[[Packet], Any]:
    return lambda layer: str(getattr(layer, name))


def _number(path: str, bits: int, name: str, most: int | None = None) -> Field:
    return Field(path, bits, _attribute(name), most=most)


@dataclass(frozen=True)
class Kind:
    """A header: its name in the model, scapy's class, its fields, and what may follow."""

    layer: type[Packet]
    fields: tuple[Field, ...]
    following: tuple[str, ...] = ()


DESTINATION = Field("dst", 128, _address("dst"), _ipv6)
KINDS = {
    "ethernet": Kind(
        Ether,
        (
            Field("dst", 48, _address("dst"), _mac),
            Field("src", 48, _address("src"), _mac),
        ),
        ("vlan", "ipv4", "ipv6", "mpls", "arp"),
    ),
    "vlan": Kind(
        Dot1Q,
        (_number("priority", 3, "prio"), _number("cfi", 1, "dei"), _number("id", 12, "vlan")),
        ("vlan", "ipv4", "ipv6", "arp"),
    ),
    "mpls": Kind(
        MPLS,
        (
            _number("label", 20, "label"),
            _number("traffic_class", 3, "cos"),
            _number("time_to_live", 8, "ttl"),
        ),
        ("mpls", "ipv4", "ipv6"),
    ),
    "arp": Kind(
        ARP,
        (
            Field("sender_hardware_addr", 48, _address("hwsrc"), _mac),
            Field("sender_protocol_addr", 32, _address("psrc"), _ipv4),
            Field("target_hardware_addr", 48, _address("hwdst"), _mac),
            Field("target_protocol_addr", 32, _address("pdst"), _ipv4),
        ),
    ),
    "ipv4": Kind(
        IP,
        (
            Field("src", 32, _address("src"), _ipv4),
            Field("dst", 32, _address("dst"), _ipv4),
            _number("priority.raw", 8, "tos"),
            _number("identification", 16, "id"),
            Field("dont_fragment", 1, lambda layer: int(layer.flags.DF)),
            _number("time_to_live", 8, "ttl"),
        ),
        ("udp", "tcp", "icmp", "gre"),
    ),
    "ipv6": Kind(
        IPv6,
        (
            Field("src", 128, _address("src"), _ipv6),
            DESTINATION,
            _number("traffic_class", 8, "tc"),
            _number("flow_label", 20, "fl"),
            _number("hop_limit", 8, "hlim"),
        ),
        ("udp", "tcp", "icmpv6", "gre", "ipv6_extension_header"),
    ),
    "ipv6_extension_header": Kind(
        IPv6ExtHdrSegmentRouting, (), ("udp", "tcp", "icmpv6", "ipv4", "ipv6_extension_header")
    ),
    "udp": Kind(
        UDP,
        (_number("src_port", 16, "sport"), _number("dst_port", 16, "dport")),
        ("vxlan", "gtpv1"),
    ),
    "gtpv1": Kind(
        Gtp,
        (_number("message_type", 8, "gtp_type"), _number("teid", 32, "teid")),
        ("ipv4", "ipv6"),
    ),
    # A part of the header before it.
    "extension of gtpv1": Kind(GtpExtension, ()),
    "tcp": Kind(
        TCP,
        (
            _number("src_port", 16, "sport"),
            _number("dst_port", 16, "dport"),
            _number("seq_num", 32, "seq"),
            _number("ack_num", 32, "ack"),
            _number("window", 16, "window"),
        ),
    ),
    "icmp": Kind(
        ICMP,
        (_number("echo.identifier", 16, "id"), _number("echo.sequence_number", 16, "seq")),
    ),
    "icmpv6": Kind(
        ICMPv6EchoRequest,
        (_number("echo.identifier", 16, "id"), _number("echo.sequence_number", 16, "seq")),
    ),
    "gre": Kind(GRE, (), ("ipv4", "ipv6")),
    "vxlan": Kind(VXLAN, (_number("vni", 24, "vni"),), ("ethernet",)),
}


@dataclass
class Drawn:
    """A random configuration, and what its frames are."""

    headers: list[dict[str, Any]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    # Header, field, and the value of each frame.
    wanted: list[tuple[int, Field, list[int]]] = field(default_factory=list)
    # Header, the name of an address in it and its place in a list, bits that are sent and bits that
    # the last hop receives in their place.
    received: list[tuple[int, str, int | None, int, int]] = field(default_factory=list)

    def add(self, of: Field, values: list[int]) -> None:
        """Expect a field of the header that is being drawn."""
        self.wanted.append((len(self.names), of, values))


def choices(header: str, path: str) -> list[str]:
    """The patterns that the model has for a field."""
    name = {"ipv6_extension_header": "FlowIpv6ExtHeader"}.get(header)
    name = name or f"Flow{header.capitalize()}"
    for part in path.split("."):
        name = getattr(model, name)._TYPES[part]["type"].removesuffix("Iter")
    enum = getattr(model, name)._TYPES["choice"]["enum"]
    return [each for each in enum if each not in {"auto", "dhcp"}]


def pattern(rng: random.Random, of: Field, known: list[str]) -> tuple[dict[str, Any], list[int]]:
    """A pattern of the model, and its values."""
    text: Callable[[int], Any] = of.text or (lambda value: value)
    whole = 1 << of.bits
    most = whole - 1 if of.most is None else of.most
    choice = rng.choice(known)
    if choice == "value":
        value = rng.randint(0, most)
        return {"choice": choice, "value": text(value)}, [value] * FRAMES
    if choice == "values":
        values = [rng.randint(0, most) for _ in range(rng.randint(1, 5))]
        given: dict[str, Any] = {"choice": choice, "values": [text(value) for value in values]}
        return given, [values[k % len(values)] for k in range(FRAMES)]
    # The model's limit for small fields is the number of their values.
    count = rng.randint(1, min(FRAMES + 3, whole))
    if choice == "random":
        low = rng.randint(0, most)
        high = rng.randint(low, min(most, low + (1 << 62)))
        seed = rng.randint(0, 1 << 31)
        given = {"min": text(low), "max": text(high), "seed": seed, "count": count}
        values = drawn(seed, low, high, count)
        return (
            {"choice": choice, choice: given},
            [values[k % count] for k in range(FRAMES)],
        )
    start, step = rng.randint(0, most), rng.randint(1, max(most // 2, 1))
    given = {"start": text(start), "step": text(step), "count": count}
    sign = 1 if choice == "increment" else -1
    return (
        {"choice": choice, choice: given},
        [(start + sign * step * (k % count)) % whole for k in range(FRAMES)],
    )


def one_of(rng: random.Random, header: str, of: Field, found: Drawn) -> dict[str, Any]:
    """A pattern for a field, which is expected."""
    given, values = pattern(rng, of, choices(header, of.path))
    found.add(of, values)
    return given


def container(
    rng: random.Random, header: str, path: str, several: bool
) -> tuple[dict[str, Any], list[int], tuple[int, int] | None]:
    """Compressed segments behind a locator (RFC 9800, section 3): the model's object, its
    addresses, and which bits of them the last hop receives otherwise."""
    length, width = rng.choice([32, 48]), rng.choice([16, 32])
    ids = [rng.randint(1, (1 << width) - 1) for _ in range(rng.randint(0, 2 if several else 1))]
    locator = Field(f"{path}.locator", length, str, lambda top: _ipv6(top << (128 - length)))
    given, tops = pattern(rng, locator, choices(header, locator.path))
    sent = last = 0
    for place, each in enumerate(ids):
        shift = 128 - length - width * (place + 1)
        sent |= each << shift
        last = each << (128 - length - width)
    made = {
        "locator": given,
        "locator_length": {"choice": "value", "value": length},
        "usids": [f"{each:0{width // 4}x}" for each in ids],
    }
    addresses = [top << (128 - length) | sent for top in tops]
    return made, addresses, (sent, last) if len(ids) > 1 else None


def segments(rng: random.Random, found: Drawn) -> dict[str, Any]:
    """An extension header with a list of segments or of containers."""
    header, compressed = "ipv6_extension_header", rng.random() < 0.4
    kind = "segment_routing_usid" if compressed else "segment_routing"
    base = f"routing.{kind}"
    # Scapy takes checksums of the addresses as they are sent. Below, the last of them is replaced,
    # which a checksum around the header would see.
    several = not {"vxlan", "gtpv1"} & set(found.names)
    entries: list[dict[str, Any]] = []
    count = rng.randint(1, 3)
    for number in range(count):

        def address(layer: Packet, number: int = number) -> str:
            return str(layer.addresses[number])

        if compressed:
            made, values, received = container(rng, header, f"{base}.segment_list", several)
            found.add(Field(f"{base}.segment_list", 128, address, _ipv6), values)
            entries.append(made)
            if received and number == 0:
                found.received.append((len(found.names), "addresses", 0, *received))
        else:
            of = Field(f"{base}.segment_list.segment", 128, address, _ipv6)
            entries.append({"segment": one_of(rng, header, of, found)})
    given: dict[str, Any] = {"segment_list": entries}
    # The model's own: all segments of an address each, and all containers but the first.
    left = count - compressed
    if rng.random() < 0.4:
        left = rng.randint(0, 255)
        given["segments_left"] = {"choice": "value", "value": left}
    elif rng.random() < 0.5:
        given["segments_left"] = {"choice": "auto"}
    found.add(_number("segments_left", 8, "segleft"), [left] * FRAMES)
    found.add(_number("last_entry", 8, "lastentry"), [count - 1] * FRAMES)
    if rng.random() < 0.6:
        given["tag"] = one_of(rng, header, _number(f"{base}.tag", 16, "tag"), found)
    names = ["oam"] if compressed else ["protected", "oam", "alert"]
    flags = {
        name: one_of(rng, header, _number(f"{base}.flags.{name}", 1, name), found)
        for name in names
        if rng.random() < 0.4
    }
    if flags:
        given["flags"] = flags
    if rng.random() < 0.4:
        long = rng.choice([None, 3, 6, 7, 14])
        given["pad_tlv"] = {} if long is None else {"length": {"choice": "value", "value": long}}

        def padding(layer: Packet) -> int:
            assert layer.tlv_objects[0].type == 4
            return int(layer.tlv_objects[0].len)

        found.add(Field("pad_tlv.length", 8, padding), [long or 6] * FRAMES)
    return {"choice": "routing", "routing": {"choice": kind, kind: given}}


def tunnel(rng: random.Random, found: Drawn, given: dict[str, Any]) -> None:
    """The rest of a header of GTP, and its extension headers, which follow it in `found`."""
    flags = {name: rng.randint(0, 1) for name in ("s_flag", "pn_flag")}
    given |= {name: {"choice": "value", "value": flag} for name, flag in flags.items()}
    kinds = [rng.choice([0x40, 0x81, 0x85, 0xC0]) for _ in range(rng.randint(0, 3))]
    for name, path in (("S", "s_flag"), ("PN", "pn_flag")):
        found.add(_number(path, 1, name), [flags[path]] * FRAMES)
    found.add(_number("e_flag", 1, "E"), [int(bool(kinds))] * FRAMES)
    if any(flags.values()) or kinds:
        for path, bits, name in (("squence_number", 16, "seq"), ("n_pdu_number", 8, "npdu")):
            if rng.random() < 0.6:
                given[path] = one_of(rng, "gtpv1", _number(path, bits, name), found)
    if not kinds:
        return
    given["next_extension_header_type"] = {"choice": "value", "value": kinds[0]}
    found.add(_number("next_extension_header_type", 8, "next_ex"), [kinds[0]] * FRAMES)
    extensions: list[dict[str, Any]] = []
    for following in (*kinds[1:], 0):
        found.names.append("gtpv1" if not extensions else "extension of gtpv1")
        words = rng.choice([None, 1, 2])
        found.add(_number("words", 8, "words"), [words or 2] * FRAMES)
        found.add(_number("next", 8, "next"), [following] * FRAMES)
        bits = 16 if words == 1 else 48
        contents = Field(
            "extension_headers.contents", bits, lambda layer: int.from_bytes(layer.contents, "big")
        )
        extension = {
            "contents": one_of(rng, "gtpv1", contents, found),
            "next_extension_header": {"choice": "value", "value": following},
        }
        if words is not None:
            extension["extension_length"] = {"choice": "value", "value": words}
        extensions.append(extension)
    given["extension_headers"] = extensions


def configuration(seed: int, favourites: frozenset[str] = frozenset()) -> Drawn:
    """A stack of random headers; most that may be `favourites` are."""
    rng = random.Random(seed)
    found, name = Drawn(), "ethernet"
    while True:
        kind, place = KINDS[name], len(found.names)
        given: dict[str, Any] = {}
        if name == "ipv6_extension_header":
            given = segments(rng, found)
        for each in kind.fields:
            if rng.random() < 0.6:
                value, values = pattern(rng, each, choices(name, each.path))
                below = given
                *outer, last = each.path.split(".")
                for part in outer:
                    below = below.setdefault(part, {"choice": part} if part == "echo" else {})
                if outer == ["priority"]:
                    below["choice"] = last
                below[last] = value
                found.wanted.append((place, each, values))
        if name in {"icmp", "icmpv6"}:
            given.setdefault("echo", {})
            given["choice"] = "echo"
            given["echo"].pop("choice", None)
        if name == "ipv6" and rng.random() < 0.15:
            several = not {"vxlan", "gtpv1"} & set(found.names)
            made, values, received = container(rng, name, "dst_usids", several)
            given["dst_usids"] = made
            found.wanted = [each for each in found.wanted if each[:2] != (place, DESTINATION)]
            given.pop("dst", None)
            found.add(DESTINATION, values)
            if received:
                found.received.append((place, "dst", None, *received))
        found.headers.append({"choice": name, name: given})
        last = name
        if name == "gtpv1":
            tunnel(rng, found, given)
            last = name if place == len(found.names) else "extension of gtpv1"
        found.names.append(last)
        following = kind.following
        deep = found.names.count("vlan") > 1 or found.names.count("mpls") > 2
        if deep:
            following = tuple(each for each in following if each not in {"vlan", "mpls"})
        if found.names.count("ipv6_extension_header") > 1:
            following = tuple(each for each in following if each != "ipv6_extension_header")
        tunnels = {"gre", "vxlan", "gtpv1"}
        tunnelled = tunnels & set(found.names)
        if tunnelled and name not in tunnelled:
            following = tuple(each for each in following if each not in tunnels)
        # A stack may end where no number says what follows.
        ends = {"ipv4", "ipv6", "ipv6_extension_header", "udp"}
        if not following or (name in ends and rng.random() < 0.15):
            return found
        if favourites and rng.random() < 0.8:
            following = tuple(each for each in following if each in favourites) or following
        name = rng.choice(following)


def posted(found: Drawn, seed: int) -> snappi.Config:
    config = snappi.Config()
    config.ports.port(name="p1", location="ring:r")
    config.captures.capture(name="c", port_names=["p1"])
    lists = {"ipv6_extension_header", "gtpv1"} & set(found.names)
    sizes = [512, 555, 777, 1518] if lists else [256, 300, 777, 1518]
    flow = {
        "name": "f",
        "tx_rx": {"choice": "port", "port": {"tx_name": "p1", "rx_names": ["p1"]}},
        "packet": found.headers,
        "size": {"choice": "fixed", "fixed": random.Random(seed).choice(sizes)},
        "rate": {"choice": "pps", "pps": 5000},
        "duration": {"choice": "fixed_packets", "fixed_packets": {"packets": FRAMES}},
        "metrics": {"enable": False},
    }
    config.flows.append(config.flows.flow(name="f")[-1].deserialize(flow))
    while len(config.flows) > 1:
        config.flows.remove(0)
    return config


@pytest.fixture(autouse=True)
def _scapy() -> Any:
    """Scapy guesses what is behind a port; here only VXLAN is."""
    kept = list(UDP.payload_guess), list(TCP.payload_guess)
    UDP.payload_guess = [each for each in UDP.payload_guess if each[1] is VXLAN]
    TCP.payload_guess = []
    yield
    UDP.payload_guess, TCP.payload_guess = kept


def read(frame: bytes, found: Drawn) -> list[Packet]:
    """The frame's headers, each with the next as its payload."""
    layers: list[Packet] = []
    for name in found.names:
        layer = Ether(frame) if not layers else layers[-1].payload
        if not isinstance(layer, KINDS[name].layer):
            # Where no number says what follows, by hand.
            rest = bytes(layer)
            layers[-1].remove_payload()
            layer = KINDS[name].layer(rest)
            layers[-1].add_payload(layer)
        layers.append(layer)
    return layers


def compare(frame: bytes, number: int, found: Drawn) -> None:
    layers = read(frame, found)
    for place, each, values in found.wanted:
        layer = layers[place]
        value = values[number]
        text = each.text(value) if each.text else value
        assert each.of(layer) == text, (found.names[place], each.path)


def replace(layer: Packet, name: str, place: int | None, address: str) -> str:
    """Replaces an address, in a list if it has a place; the old one."""
    if place is None:
        old = str(getattr(layer, name))
        setattr(layer, name, address)
        return old
    addresses = list(getattr(layer, name))
    old, addresses[place] = str(addresses[place]), address
    setattr(layer, name, addresses)
    return old


def rebuilt(frame: bytes, found: Drawn) -> bytes:
    """The frame with every length, checksum and type as scapy computes them."""
    layers = read(frame, found)
    packet = layers[0]
    if Padding in packet:
        # The frame's payload, which counts in the lengths of all headers around it.
        padding = packet[Padding]
        padding.underlayer.payload = Raw(bytes(padding))
    layer: Packet = packet
    while layer and not isinstance(layer, Raw):
        for name in ("len", "length", "chksum", "plen", "cksum", "ihl", "dataofs"):
            if name in layer.fields:
                delattr(layer, name)
        layer = layer.payload
    # Scapy's checksums are those of the addresses that it has: first those of the last hop.
    sent: list[tuple[Packet, str, int | None, str]] = []
    for place, name, at, bits, received in found.received:
        found_there = getattr(layers[place], name)
        old = int(ipaddress.IPv6Address(found_there if at is None else found_there[at]))
        new = _ipv6(old - bits + received)
        sent.append((layers[place], name, at, replace(layers[place], name, at, new)))
    whole = Ether(bytes(packet))
    for layer, name, at, old_address in sent:
        replace(layer, name, at, old_address)
    if not sent:
        return bytes(whole)
    # Then those that are sent, with the same checksums.
    for layer, with_checksums in zip(layers, read(bytes(whole), found), strict=True):
        for name in ("chksum", "cksum"):
            if name in with_checksums.fields:
                setattr(layer, name, getattr(with_checksums, name))
    return bytes(packet)


@pytest.mark.parametrize("first", range(0, CONFIGURATIONS, TOGETHER))
def test_frames_are_what_scapy_reads(running: Generator, first: int) -> None:
    for seed in range(first, first + TOGETHER):
        check(running, configuration(seed), seed)


@pytest.mark.parametrize("first", range(0, 2 * TOGETHER, TOGETHER))
def test_lists_are_what_scapy_reads(running: Generator, first: int) -> None:
    """Segments and extension headers, which few of the stacks above have."""
    favourites = frozenset({"ipv6", "ipv6_extension_header", "udp", "gtpv1"})
    names: list[str] = []
    for seed in range(first, first + TOGETHER):
        found = configuration(seed, favourites)
        check(running, found, seed)
        names += found.names
    assert min(names.count("ipv6_extension_header"), names.count("extension of gtpv1")) > 4


def check(running: Generator, found: Drawn, seed: int) -> None:
    frames = sent(running, posted(found, seed))
    assert len(frames) == FRAMES
    for number, frame in enumerate(frames):
        try:
            compare(frame, number, found)
            assert rebuilt(frame, found) == frame
        except AssertionError as error:
            error.add_note(f"configuration {seed}, frame {number}: {found.headers}")
            raise
