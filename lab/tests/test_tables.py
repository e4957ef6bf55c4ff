# SPDX-License-Identifier: BSD-3-Clause
"""Tables of any size: what they route and permit, by readers independent of how they were made."""

from __future__ import annotations

import random
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest

from linerate.host.errors import UsageError
from linerate.links import flows, rules, tables
from linerate.links.flows import Flow
from linerate.links.tables import Tables, out_port, rule_lines


@pytest.fixture(autouse=True)
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "build_directory", lambda: tmp_path)
    for cached in (tables._routes_file, tables._rules_file, tables._frame_file):
        cached.cache_clear()


def destinations(path: Path) -> list[IPv4Address]:
    capture, step = path.read_bytes(), 16 + flows.FRAME_BYTES
    assert len(capture) % step == 24
    return [IPv4Address(capture[at + 46 : at + 50]) for at in range(24, len(capture), step)]


def routed(path: Path) -> dict[IPv4Network, int]:
    found = {}
    for line in path.read_text().splitlines():
        network, port = line.removeprefix("R").split()
        found[IPv4Network(network)] = int(port)
    return found


@pytest.mark.parametrize("ports", [1, 2])
@pytest.mark.parametrize("count", [2, 100, 5000])
def test_every_flow_has_a_route_and_every_route_flows(count: int, ports: int) -> None:
    made = Tables(count)
    routes = routed(made.routes_files(ports).ipv4)
    assert len(routes) == count
    met = set()
    for port in range(ports):
        for destination in destinations(made.frame_file(port, ports)):
            network = IPv4Network((destination, 24), strict=False)
            assert routes[network] == port
            met.add(network)
    assert met == set(routes)


def test_networks_are_unicast_and_far_apart() -> None:
    found = tables.networks(5000)
    assert len(set(found)) == 5000
    assert found[:100] == tables.networks(100)
    for network in found:
        assert network.prefixlen == 24
        assert 1 <= int(network.network_address) >> 24 <= 223
        assert not network.subnet_of(IPv4Network("127.0.0.0/8"))
        # The lab's other flows have other addresses than these.
        assert not network.subnet_of(IPv4Network("198.18.0.0/15"))
    firsts = {int(network.network_address) >> 24 for network in found}
    assert len(firsts) > 200


def decided(lines: list[str], flow: Flow) -> int:
    """The line that decides about a UDP packet, by the first match."""
    for place, line in enumerate(lines):
        source, destination, low, _, high, first, _, last, protocol, *_ = line[1:].split()
        number, mask = (int(each, 0) for each in protocol.split("/"))
        if (
            flow.source in IPv4Network(source)
            and flow.destination in IPv4Network(destination)
            and int(low) <= flow.port <= int(high)
            and int(first) <= flow.port <= int(last)
            and 17 & mask == number
        ):
            return place
    raise AssertionError(f"no rule for {flow}")


@pytest.mark.parametrize("ports", [1, 2])
@pytest.mark.parametrize("count", [2, 10, 400])
def test_rules_let_every_flow_pass_to_the_port_of_its_route(count: int, ports: int) -> None:
    made = Tables(50, count)
    lines = made.rules_files(ports).ipv4.read_text().splitlines()
    assert len(lines) == count
    # l3fwd-graph refuses duplicates.
    assert len({line[1:].rpartition(" ")[0] if line[0] == "R" else line for line in lines}) == count
    met = set()
    for flow in made.flows():
        place = decided(lines, flow)
        assert lines[place][0] == "R"
        assert int(lines[place].split()[-1]) == out_port(IPv4Address(flow.destination), ports)
        met.add(place)
    # All that permit decide something: every second one, and those for all the rest.
    assert met == {n for n, line in enumerate(lines) if line[0] == "R"}
    assert sum(line[0] == "@" for line in lines) == (count - ports) // 2


def test_the_largest_rule_file_has_no_line_twice() -> None:
    lines = list(rule_lines(Tables(1000, tables.MAX_RULES), 2))
    assert len(set(lines)) == tables.MAX_RULES


def test_flows_are_told_apart_by_what_rules_look_at() -> None:
    found = Tables(1000, 10_000).flows()
    assert len(found) == 10_000
    assert len({(IPv4Network((f.destination, 24), strict=False), f.port) for f in found}) == 10_000


def test_equal_tables_are_equal_everywhere() -> None:
    random.seed(1)
    one = Tables(30, 10)
    files = [one.routes_files(2).ipv4, one.rules_files(2).ipv4, one.frame_file(1, 2)]
    # The names contain a digest of the contents: these are the original ones.
    assert [path.name for path in files] == [
        "routes-30-2-62e260c320bb0804.cfg",
        "rules-10-2-2998b5cc3171dd6c.cfg",
        "frames-30-routes-10-rules-1-of-2-5bbd7862cf2e4e45.pcap",
    ]


@pytest.mark.parametrize(
    "name",
    ["", "routes", "0-routes", "100001-routes", "5-rules", "5-routes:", "5-routes:100001-rules",
     "5-routes:0-rules", "05-routes", "5-routes:1-rules:2"],
)  # fmt: skip
def test_what_is_no_tables_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        Tables.named(name)


@pytest.mark.parametrize("made", [Tables(1), Tables(100_000), Tables(1000, 1), Tables(7, 100_000)])
def test_tables_are_found_by_their_names(made: Tables) -> None:
    assert Tables.named(made.name) == made


def test_each_port_needs_a_route_and_a_rule() -> None:
    with pytest.raises(UsageError, match="--routes 1"):
        Tables(1).frame_file(1, 2)
    with pytest.raises(UsageError, match="--rules 1"):
        Tables(2, 1).rules_files(2)
