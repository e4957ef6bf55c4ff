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
from typing import Any

import pytest
import snappi
from frames import drawn
from harness import Generator, sent
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6EchoRequest, IPv6
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
            Field("dst", 128, _address("dst"), _ipv6),
            _number("traffic_class", 8, "tc"),
            _number("flow_label", 20, "fl"),
            _number("hop_limit", 8, "hlim"),
        ),
        ("udp", "tcp", "icmpv6", "gre"),
    ),
    "udp": Kind(
        UDP,
        (_number("src_port", 16, "sport"), _number("dst_port", 16, "dport")),
        ("vxlan",),
    ),
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


def choices(header: str, path: str) -> list[str]:
    """The patterns that the model has for a field."""
    name = {"icmpv6": "FlowIcmpv6", "ipv4": "FlowIpv4", "ipv6": "FlowIpv6"}.get(header)
    name = name or f"Flow{header.capitalize()}"
    for part in path.split("."):
        name = getattr(model, name)._TYPES[part]["type"]
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


def configuration(seed: int) -> Drawn:
    rng = random.Random(seed)
    found, name = Drawn(), "ethernet"
    while True:
        kind, place = KINDS[name], len(found.names)
        given: dict[str, Any] = {}
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
        found.names.append(name)
        found.headers.append({"choice": name, name: given})
        following = kind.following
        deep = found.names.count("vlan") > 1 or found.names.count("mpls") > 2
        if deep:
            following = tuple(each for each in following if each not in {"vlan", "mpls"})
        tunnelled = {"gre", "vxlan"} & set(found.names)
        if tunnelled and name not in tunnelled:
            following = tuple(each for each in following if each not in {"gre", "vxlan"})
        # A stack may end where no number says what follows.
        if not following or (name in {"ipv4", "ipv6", "udp"} and rng.random() < 0.15):
            return found
        name = rng.choice(following)


def posted(seed: int) -> tuple[snappi.Config, Drawn]:
    found = configuration(seed)
    config = snappi.Config()
    config.ports.port(name="p1", location="ring:r")
    config.captures.capture(name="c", port_names=["p1"])
    flow = {
        "name": "f",
        "tx_rx": {"choice": "port", "port": {"tx_name": "p1", "rx_names": ["p1"]}},
        "packet": found.headers,
        "size": {"choice": "fixed", "fixed": random.Random(seed).choice([256, 300, 777, 1518])},
        "rate": {"choice": "pps", "pps": 5000},
        "duration": {"choice": "fixed_packets", "fixed_packets": {"packets": FRAMES}},
        "metrics": {"enable": False},
    }
    config.flows.append(config.flows.flow(name="f")[-1].deserialize(flow))
    while len(config.flows) > 1:
        config.flows.remove(0)
    return config, found


@pytest.fixture(autouse=True)
def _scapy() -> Any:
    """Scapy guesses what is behind a port; here only VXLAN is."""
    kept = list(UDP.payload_guess), list(TCP.payload_guess)
    UDP.payload_guess = [each for each in UDP.payload_guess if each[1] is VXLAN]
    TCP.payload_guess = []
    yield
    UDP.payload_guess, TCP.payload_guess = kept


def compare(frame: bytes, number: int, found: Drawn) -> None:
    packet = Ether(frame)
    layers: list[Any] = []
    for name in found.names:
        layer = packet if not layers else layers[-1].payload
        if not isinstance(layer, KINDS[name].layer):
            # Where no number says what follows, by hand.
            layer = KINDS[name].layer(bytes(layer))
        layers.append(layer)
    for place, each, values in found.wanted:
        layer = layers[place]
        value = values[number]
        text = each.text(value) if each.text else value
        assert each.of(layer) == text, (found.names[place], each.path)


def rebuilt(frame: bytes) -> bytes:
    """The frame with every length, checksum and type as scapy computes them."""
    packet = Ether(frame)
    layer: Packet = packet
    if Padding in packet:
        # The frame's payload, which counts in the lengths of all headers around it.
        padding = packet[Padding]
        padding.underlayer.payload = Raw(bytes(padding))
    while layer and not isinstance(layer, Raw):
        for name in ("len", "chksum", "plen", "cksum", "ihl", "dataofs"):
            if name in layer.fields:
                delattr(layer, name)
        layer = layer.payload
    return bytes(packet)


@pytest.mark.parametrize("first", range(0, CONFIGURATIONS, TOGETHER))
def test_frames_are_what_scapy_reads(running: Generator, first: int) -> None:
    for seed in range(first, first + TOGETHER):
        config, found = posted(seed)
        frames = sent(running, config)
        assert len(frames) == FRAMES
        for number, frame in enumerate(frames):
            try:
                compare(frame, number, found)
                assert rebuilt(frame) == frame
            except AssertionError as error:
                error.add_note(f"configuration {seed}, frame {number}: {found.headers}")
                raise
