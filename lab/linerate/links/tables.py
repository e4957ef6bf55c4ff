# SPDX-License-Identifier: BSD-3-Clause
"""Routes and rules of any number, in l3fwd's forms, and frames that are spread over all of them.

Routes are random IPv4 networks of 24 bits in the unicast range: spread like those of a real table,
so that a lookup has realistic cache misses. Every second one is in the lower half of the addresses,
which is behind port 0; the others are behind port 1 if there is one. The first bit of an address
determines its port: programs whose rules are their routes (l3fwd by ACL) need no others.

There are at least `FEWEST_FLOWS` flows, and at least as many as routes and as rules; consecutive
flows use consecutive routes, in random order of addresses. Frames are of the first `MOST_FLOWS`.

The last of n rules are one for each port, which pass everything. Of the others every second one
passes one flow: as many flows match these as there are such rules. Between them are rules that deny
TCP, which no flow uses. So every frame passes, and rules of both kinds are used.

All of this is drawn from fixed seeds: equal tables are equal everywhere. Files are named after
their content, and are not removed.
"""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from linerate.host.errors import UsageError
from linerate.links import flows
from linerate.links.flows import Flow
from linerate.links.rules import RuleFiles, kept, rule_files

MAX_ROUTES = 100_000
# l3fwd's limit for one file.
MAX_RULES = 100_000
FEWEST_FLOWS, MOST_FLOWS = 1024, 65_536
PREFIX_BITS = 24
_HALVES = ((1, 126), (128, 223))
# Loopback, and the destinations of the lab's other traffic.
_AVOIDED = (IPv4Network("127.0.0.0/8"), IPv4Network("198.18.0.0/15"))
_SOURCES = IPv4Address("10.0.0.1")
# A prime: flows to one network get as many different ports as possible, by which rules distinguish
# them.
_PORTS = 49_999
_SOURCE_BITS = (32, 24, 16, 8)
_ANY_PORT = "0 : 65535"
_NAME = re.compile("([1-9][0-9]{0,5})-routes(?::([1-9][0-9]{0,5})-rules)?")


@dataclass(frozen=True)
class Tables:
    """Numbers of routes and rules; without rules nothing is filtered."""

    routes: int
    rules: int = 0

    @classmethod
    def named(cls, name: str) -> Tables:
        """Return the tables with this `name`; raises `UsageError`."""
        found = _NAME.fullmatch(name)
        if not found:
            raise UsageError(f"{name}: tables are called 1000-routes or 1000-routes:100-rules")
        tables = cls(int(found[1]), int(found[2] or 0))
        tables.check()
        return tables

    def check(self) -> None:
        """Raise `UsageError` for invalid numbers."""
        if not 1 <= self.routes <= MAX_ROUTES:
            raise UsageError(f"--routes {self.routes}: at least 1 and at most {MAX_ROUTES}")
        if not 0 <= self.rules <= MAX_RULES:
            raise UsageError(f"--rules {self.rules}: at most {MAX_RULES}")

    @property
    def name(self) -> str:
        return f"{self.routes}-routes" + (f":{self.rules}-rules" if self.rules else "")

    @property
    def words(self) -> str:
        counted = f"{self.routes:,} route{'s' * (self.routes > 1)}"
        return counted + (f", past {self.rules:,} rules" if self.rules else "")

    # The IPv6 files are those of the lab's flows: programs need both versions.
    def routes_files(self, ports: int) -> RuleFiles:
        return RuleFiles(_routes_file(self.routes, ports), rule_files("lpm", ports).ipv6)

    def rules_files(self, ports: int) -> RuleFiles:
        return RuleFiles(_rules_file(self, ports), rule_files("acl", ports).ipv6)

    def frame_file(self, leaving: int, ports: int) -> Path:
        """Return a capture file of the flows that leave by this port."""
        return _frame_file(self, leaving, ports)

    def flows(self) -> list[Flow]:
        """Return all flows."""
        count = max(FEWEST_FLOWS, self.routes, self.rules)
        drawn = networks(self.routes)
        source = random.Random("flows")
        return [
            Flow(
                _SOURCES + source.randrange(1 << 23),
                drawn[index % len(drawn)][1 + source.randrange(253)],
                flows.FIRST_UDP_PORT + index % _PORTS,
            )
            for index in range(count)
        ]


def out_port(address: IPv4Address, ports: int) -> int:
    """Return the port by which frames to this destination leave."""
    return int(address) >> 31 if ports > 1 else 0


@functools.cache
def networks(count: int) -> list[IPv4Network]:
    """Return the first `count` of the drawn networks."""
    source = random.Random("networks")
    found: dict[IPv4Network, None] = {}
    while len(found) < count:
        low, high = _HALVES[len(found) % len(_HALVES)]
        host_bits = 32 - PREFIX_BITS
        first = source.randrange(low << 24 >> host_bits, (high + 1) << 24 >> host_bits)
        network = IPv4Network((first << host_bits, PREFIX_BITS))
        if not any(network.subnet_of(each) for each in _AVOIDED):
            found[network] = None
    return list(found)


@functools.cache
def _routes_file(routes: int, ports: int) -> Path:
    lines = (
        f"R{network} {out_port(network.network_address, ports)}\n" for network in networks(routes)
    )
    return kept(f"routes-{routes}-{ports}", ".cfg", "".join(lines).encode())


@functools.cache
def _rules_file(tables: Tables, ports: int) -> Path:
    lines = "".join(f"{line}\n" for line in rule_lines(tables, ports))
    return kept(f"rules-{tables.rules}-{ports}", ".cfg", lines.encode())


def rule_lines(tables: Tables, ports: int) -> Iterator[str]:
    """Yield the rules for so many ports, at least `tables.rules`."""
    if tables.rules < ports:
        raise UsageError(
            f"--rules {tables.rules}: one for each of {ports} ports is needed at least"
        )
    for index, flow in zip(range(tables.rules - ports), tables.flows(), strict=False):
        bits = _SOURCE_BITS[index // 2 % len(_SOURCE_BITS)]
        source = IPv4Network((flow.source, bits), strict=False)
        destination = IPv4Network((flow.destination, PREFIX_BITS), strict=False)
        told = f"{source} {destination} {_ANY_PORT} {flow.port} : {flow.port}"
        passes = f"R{told} 17/0xff {out_port(IPv4Address(flow.destination), ports)}"
        yield f"@{told} 6/0xff" if index % 2 else passes
    for port in range(ports):
        half = f"{port << 7}.0.0.0/{1 if ports > 1 else 0}"
        yield f"R0.0.0.0/0 {half} {_ANY_PORT} {_ANY_PORT} 0/0 {port}"


@functools.cache
def _frame_file(tables: Tables, leaving: int, ports: int) -> Path:
    frames = [
        flows.frame(flow)
        for flow in tables.flows()[:MOST_FLOWS]
        if out_port(IPv4Address(flow.destination), ports) == leaving
    ]
    if not frames:
        raise UsageError(
            f"--routes {tables.routes}: at least one for each of {ports} ports is needed"
        )
    name = f"frames-{tables.name.replace(':', '-')}-{leaving}-of-{ports}"
    return kept(name, ".pcap", flows.capture(frames))
