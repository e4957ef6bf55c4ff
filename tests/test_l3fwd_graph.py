# SPDX-License-Identifier: BSD-3-Clause
"""`l3fwd-graph` in Rust: the frames of the C programs, its rules, its picture, its mistakes."""

from __future__ import annotations

import random
import re
import subprocess
from collections import Counter
from ipaddress import IPv6Address
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from routed import (
    IPV6,
    MEMORY,
    TIMEOUT_S,
    count,
    ipv4,
    ipv6,
    of_every_kind,
    routing,
    through,
    write_capture,
)

from linerate import c_examples
from linerate.places import rust_binary
from linerate.process import RunDirectory
from linerate.telemetry import Telemetry, ask_when_known

ROOT = Path(__file__).resolve().parents[1]
EXECUTORS = ["dpdk", "fused"]
BOTH = ["-p", "3", "-P", "--config", "(0,0,1),(1,0,1)"]
ANY = "0.0.0.0/0 0.0.0.0/0 0 : 65535 0 : 65535 0/0"


def nodes(telemetry: Telemetry) -> dict[str, dict[str, int]]:
    """Counters of the only lcore that has nodes."""
    return {each["node"]: each for each in telemetry.ask("/linerate/graph/nodes")}


def check_nodes(telemetry: Telemetry, executor: str) -> None:
    """Which nodes have calls and cycles of their own; and what one lcore is asked for alone."""
    found = nodes(telemetry)
    inside = {name for name, each in found.items() if "calls" not in each}
    assert inside == {name for name, each in found.items() if "cycles" not in each}
    both = {f"{what}{family}" for what in ("lookup", "rewrite") for family in (4, 6)}
    assert inside == (both if executor == "fused" else set())
    lcore = found["rx"]["lcore"]
    alone = telemetry.ask(f"/linerate/graph/nodes,{lcore}")
    assert [each["node"] for each in alone] == list(found)
    assert not telemetry.ask(f"/linerate/graph/nodes,{lcore + 1}")
    told = telemetry.ask("/linerate/graph/nodes,x")
    assert "".join(told["error"]) == "takes LCORE, or none for all"


@pytest.fixture(scope="module")
def c_frames() -> tuple[list[list[bytes]], list[list[bytes]]]:
    """Frames, and what the C l3fwd-graph makes of them."""
    rng = random.Random(1)
    frames = [of_every_kind(rng, 3000, 0), of_every_kind(rng, 2000, 1)]
    program = c_examples.build("l3fwd-graph", include="linerate_graph.h").program
    with RunDirectory() as run:
        made = through(run, program, frames, [*BOTH, "--eth-dest=0,02:00:00:00:00:AA"])
    assert min(map(len, made)) > 500
    return frames, made


@pytest.mark.parametrize("executor", EXECUTORS)
def test_frames_are_those_of_the_c_program_byte_by_byte(
    c_frames: tuple[list[list[bytes]], list[list[bytes]]], executor: str
) -> None:
    frames, expected = c_frames
    options = [*BOTH, "--eth-dest=0,02:00:00:00:00:aa", "--executor", executor]
    with RunDirectory() as run:
        made = through(run, rust_binary("l3fwd-graph"), frames, options)
    assert by_way(made) == by_way(expected)


def by_way(made: list[list[bytes]]) -> list[list[bytes]]:
    """Frames of each port, by the port that they came in by, for ports are polled in any turn."""
    return [[frame for frame in port if frame[27] == came] for port in made for came in (0, 1)]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_ipv6_frames_are_those_of_the_c_l3fwd(executor: str, tmp_path: Path) -> None:
    """But for the hop limit, which the C l3fwd leaves as it is."""
    rng = random.Random(2)
    routes4, routes6 = tmp_path / "routes4", tmp_path / "routes6"
    routes4.write_text("R198.18.0.0/24 0\n")
    prefixes = [("2001:db8::/32", 0), ("2001:db8:1::/48", 1), ("2001:db8:1:8000::/49", 0)]
    prefixes += [(f"2001:db8:ffff:{n:x}::/64", n % 2) for n in range(20)]
    prefixes.append(("2001:db8:ffff:1::7/128", 0))
    routes6.write_text("".join(f"R{prefix} {port}\n" for prefix, port in prefixes))
    places = ["2001:db8::", "2001:db8:1::", "2001:db8:1:8000::", "2001:db8:ffff:1::", "2001:db9::"]
    frames = [
        [
            ipv6(f"{rng.choice(places)}{rng.randrange(1, 9):x}", size=rng.choice([80, 1514]))
            for _ in range(500)
        ]
        for _ in range(2)
    ]
    with RunDirectory() as run:
        expected = through(
            run,
            c_examples.build("l3fwd", include="linerate_ports.h").program,
            frames,
            ["-p", "3", "-P", "--config", "(0,0,0),(1,0,0)", "--lookup=lpm", "--parse-ptype",
             f"--rule_ipv4={routes4}", f"--rule_ipv6={routes6}"],
            workers=False,
        )  # fmt: skip
        options = [
            "--routes_ipv4",
            str(routes4),
            "--routes_ipv6",
            str(routes6),
            "--executor",
            executor,
        ]
        made = through(run, rust_binary("l3fwd-graph"), frames, [*BOTH, *options])
    assert {frame[21] for port in made for frame in port} == {63}
    as_in_c = [[frame[:21] + b"\x40" + frame[22:] for frame in port] for port in made]
    # What has no route the C program does not drop, but sends back where it came from.
    nowhere = IPv6Address("2001:db9::").packed[:4]
    with_route = [[f for f in port if not f[38:].startswith(nowhere)] for port in expected]
    assert list(map(sorted, as_in_c)) == list(map(sorted, with_route))


@pytest.mark.parametrize("executor", EXECUTORS)
def test_every_frame_has_one_end_and_is_counted_there(executor: str, tmp_path: Path) -> None:
    frames = [
        *[ipv4("198.18.0.1")] * 3,
        *[ipv4("198.18.1.1", ttl=ttl) for ttl in (0, 1, 2)],
        ipv4("198.18.2.1"),
        ipv6("2001:200:0:1::1"),
        ipv6("2001:200:0:1::1", hops=1),
        ipv6("2001:200:0:2::1"),
        ipv6("2001:200:0:1::1")[:50],
        bytes(60),
        bytes(13),
    ]
    capture = write_capture(tmp_path / "in.pcap", frames)
    vdevs = [f"net_pcap{port},rx_pcap={capture},tx_pcap={tmp_path}/out{port}" for port in range(2)]
    with RunDirectory() as run:
        options = [*BOTH, "--executor", executor]
        with routing(run, rust_binary("l3fwd-graph"), vdevs, options) as (child, telemetry):
            ask_when_known(telemetry, "/linerate/graph/nodes", TIMEOUT_S, child.check)
            total = 2 * len(frames)
            child.wait_until(
                lambda: nodes(telemetry)["rx"]["packets"] == total, TIMEOUT_S, "frames: not"
            )
            counted = {name: each["packets"] for name, each in nodes(telemetry).items()}
            check_nodes(telemetry, executor)
            polls = telemetry.ask("/linerate/polling")
            assert count(telemetry, "opackets", 2) == counted["tx"]
            assert child.stop() == 0
    assert [entry["packets"] for entry in polls] == [len(frames)] * 2
    assert [entry["burst_limit"] for entry in polls] == [256] * 2
    ends = {name: counted[name] // 2 for name in ("tx", "not_ip", "no_route", "expired")}
    assert ends == {"tx": 5, "not_ip": 3, "no_route": 2, "expired": 3}
    assert counted["unsent"] == 0
    assert counted["rx"] == 2 * sum(ends.values())


# Leads and ranges of destination ports.
RULES = [("@", 7, 7), ("R", 8, 8), ("@", 8, 9), ("R", 9, 11), ("@", 10, 10)]


def deciding(port: int) -> tuple[int, str] | None:
    """The place and lead of the first rule that a packet to this port matches."""
    matching = ((at, lead) for at, (lead, low, high) in enumerate(RULES) if low <= port <= high)
    return next(matching, None)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_rules_decide_in_their_order_and_each_is_counted(executor: str, tmp_path: Path) -> None:
    """Also where packets of families with and without rules are mixed."""
    rng = random.Random(3)
    file = tmp_path / "rules"
    lines = ["# by the destination's port"]
    for lead, low, high in RULES:
        line = f"{lead}0.0.0.0/0 198.18.0.0/16 0 : 65535 {low} : {high} 17/0xff"
        lines.append(f"{line} 0" if lead == "R" else line)
    file.write_text("\n".join(lines))
    ports = [rng.randrange(6, 13) for _ in range(5000)]
    frames = [ipv4("198.18.0.9", ports=(1, port)) for port in ports]
    others = [ipv6("2001:200::1") for _ in range(1000)]
    # Too short to have ports, and of another protocol.
    none = [ipv4("198.18.0.9", ports=(1, 8))[:36], ipv4("198.18.0.9", protocol=6, ports=(1, 8))]
    mixed = frames + others + none
    rng.shuffle(mixed)
    decided = Counter(map(deciding, ports))
    passing = sum(n for rule, n in decided.items() if rule and rule[1] == "R")
    capture = write_capture(tmp_path / "in.pcap", mixed)
    vdevs = [f"net_pcap0,rx_pcap={capture},tx_pcap={tmp_path}/out"]
    with RunDirectory() as run:
        options = ["-p", "1", "--rule_ipv4", str(file), "--executor", executor]
        with routing(run, rust_binary("l3fwd-graph"), vdevs, options) as (child, telemetry):
            ask_when_known(telemetry, "/linerate/graph/nodes", TIMEOUT_S, child.check)
            child.wait_until(
                lambda: nodes(telemetry)["acl"]["packets"] == len(mixed),
                TIMEOUT_S,
                "frames: not",
            )
            counted = nodes(telemetry)
            hits = telemetry.ask("/linerate/rules/hits,ipv4")
            summary = telemetry.ask("/linerate/rules")
            part = telemetry.ask("/linerate/rules/hits,ipv4,3")
            none_there = telemetry.ask("/linerate/rules/hits,ipv6")
            misspelt = [telemetry.ask(f"/linerate/rules/hits{rest}") for rest in ("", ",ipv5")]
            assert child.stop() == 0
    assert hits["line"] == [2, 3, 4, 5, 6]
    assert hits["denies"] == [1, 0, 1, 0, 1]
    assert hits["hits"] == [
        sum(n for rule, n in decided.items() if rule and rule[0] == at) for at in range(5)
    ]
    assert (part["first"], part["line"], part["hits"]) == (3, [5, 6], hits["hits"][3:])
    unmatched = decided[None] + len(none)
    assert "".join(summary["ipv4"].pop("file")) == str(file)
    assert summary == {"ipv4": {"rules": 5, "denying": 3, "unmatched": unmatched}}
    assert "no rules" in "".join(none_there["error"])
    for told in misspelt:
        assert "".join(told["error"]) == "takes ipv4 or ipv6[,first rule]"
    assert counted["classify"]["packets"] == passing + len(others)
    assert counted["denied"]["packets"] == len(frames) - passing + len(none)
    assert counted["tx"]["packets"] == passing + len(others)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_rules_are_replaced_under_traffic_and_no_packet_is_lost(
    executor: str, tmp_path: Path
) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_text(f"@1.2.3.4/32 {ANY[10:]}\nR{ANY} 0\n")
    other.write_text(f"R10.0.0.0/8 {ANY[10:]} 0\nR{ANY} 0\n")
    capture = write_capture(tmp_path / "in.pcap", [ipv4("198.18.0.9")] * 100)
    vdevs = [f"net_pcap0,rx_pcap={capture},infinite_rx=1"]
    with RunDirectory() as run:
        options = ["-p", "1", "--rule_ipv4", str(one), "--executor", executor]
        with routing(run, rust_binary("l3fwd-graph"), vdevs, options) as (child, telemetry):
            ask_when_known(telemetry, "/linerate/rules", TIMEOUT_S, child.check)
            for turn in range(20):
                file = (other, one)[turn % 2]
                told = telemetry.ask(f"/linerate/rules/replace,ipv4,{file}")
                assert "".join(told["file"]) == str(file), told
                before = nodes(telemetry)["acl"]["packets"]
                child.wait_until(
                    lambda before=before: nodes(telemetry)["acl"]["packets"] > before,  # type: ignore[misc]
                    TIMEOUT_S,
                    "packets after the change: not",
                )
                # Counters are those of the rules that are in force.
                assert sum(telemetry.ask("/linerate/rules/hits,ipv4")["hits"]) > 0
            refused_stay_out(telemetry, child, one, tmp_path)
            counted = nodes(telemetry)
            assert child.stop() == 0
    assert counted["denied"]["packets"] == 0
    assert counted["unsent"]["packets"] == counted["no_route"]["packets"] == 0
    # Counted by the lcore between two walks.
    assert counted["tx"]["packets"] == counted["rx"]["packets"]


def refused_stay_out(telemetry: Telemetry, child: Any, now: Path, folder: Path) -> None:
    """Files with mistakes are told, and the old rules stay."""
    wrong = folder / "wrong"
    many = "".join(
        f"R{n >> 16}.{n >> 8 & 255}.{n & 255}.0/32 {ANY[10:]} 0\n" for n in range(100_001)
    )
    for content, said in (
        (f"R{ANY} 0\nR{ANY} 0\n", "line 2: matches the same packets as line 1, which hides it"),
        (f"R{ANY} 1\n", "line 1: port 1 is not enabled: see -p"),
        (f"R{ANY}\n", "line 1: no port"),
        (f"@{ANY}\n", "no line begins with R: every packet would be dropped"),
        (f"\ufeffR{ANY} 0\n", "line 1: begins with a UTF-8 byte order mark"),
        (many, "line 100001: more than 100000 rules"),
        ("", "no line begins with R: every packet would be dropped"),
    ):
        wrong.write_text(content)
        told = telemetry.ask(f"/linerate/rules/replace,ipv4,{wrong}")
        assert f"{wrong}: {said}" in "".join(told["error"])
        assert "".join(telemetry.ask("/linerate/rules")["ipv4"]["file"]) == str(now)
    told = telemetry.ask(f"/linerate/rules/replace,ipv4,{folder / 'none'}")
    assert "No such file" in "".join(told["error"])
    told = telemetry.ask(f"/linerate/rules/replace,ipv6,{now}")
    assert "started without --rule_ipv6" in "".join(told["error"])
    told = telemetry.ask("/linerate/rules/replace,ipv4")
    assert "".join(told["error"]) == "takes ipv4 or ipv6,FILE"
    child.check()


def edges(dot: str) -> set[tuple[str, str]]:
    """Of a picture for Graphviz."""
    lines = (line.partition("[")[0] for line in dot.splitlines() if "->" in line)
    chains = (re.findall(r"\w+", line) for line in lines)
    return {pair for chain in chains for pair in pairwise(chain)}


@pytest.mark.parametrize("executor", EXECUTORS)
def test_the_picture_is_that_of_the_architecture(executor: str, tmp_path: Path) -> None:
    """It is printed, and telemetry tells it."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    picture = re.search(r"^```dot\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert picture, "ARCHITECTURE.md has no picture of l3fwd-graph's graph"
    drawn = edges(picture[1])
    rules = tmp_path / "rules"
    rules.write_text(f"R{ANY} 0\n")
    with_rules, without = ["--rule_ipv4", str(rules)], list[str]()
    for more in (with_rules, without):
        with RunDirectory() as run:
            options = ["-p", "1", "--executor", executor, *more]
            with routing(run, rust_binary("l3fwd-graph"), ["net_null0"], options) as (
                child,
                telemetry,
            ):
                told = ask_when_known(telemetry, "/linerate/graph/dot", TIMEOUT_S, child.check)
                printed = child.output()
                assert child.stop() == 0
        dot = "".join(told["dot"])
        assert dot.strip() in printed
        expected = drawn if more else without_filter(drawn)
        assert edges(dot) == expected


def without_filter(drawn: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """The picture of a graph that has no rules."""
    rest = {edge for edge in drawn if "acl" not in edge}
    return rest | {("rx", "classify")}


def test_it_can_be_ended_while_it_reads_its_routes(tmp_path: Path) -> None:
    """DPDK takes minutes for so many prefixes that are longer than 24 bits."""
    routes = tmp_path / "routes"
    addresses = (f"10.{n >> 8}.{n & 255}.128" for n in range(65_536))
    routes.write_text("".join(f"R{address}/25 0\n" for address in addresses))
    with RunDirectory() as run:
        options = ["-p", "1", "--routes_ipv4", str(routes)]
        program = rust_binary("l3fwd-graph")
        with routing(run, program, ["net_null0"], options) as (child, telemetry):
            assert "/linerate/polling" not in telemetry.commands()
            assert child.stop() == 0, child.output()


def test_a_port_without_a_queue_is_told() -> None:
    with RunDirectory() as run:
        options = ["-p", "3", "--config", "(0,0,1)"]
        program = rust_binary("l3fwd-graph")
        with routing(run, program, ["net_null0", "net_null1"], options) as (child, telemetry):
            ask_when_known(telemetry, "/linerate/graph/nodes", TIMEOUT_S, child.check)
            said = child.output(1 << 20)
            assert child.stop() == 0
    assert re.findall(r"WARNING, port (\d) has no queue", said) == ["1"]


def test_mistakes_are_told(tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    rules.write_text("R1.2.3.4/33 0.0.0.0/0 0 : 1 0 : 1 0/0 0\n")
    default = tmp_path / "default"
    default.write_text("R0.0.0.0/0 0\n")
    environment = {"RUNTIME_DIRECTORY": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    cpus = "--lcores=0,1"
    for eal, options, said in (
        (cpus, [], "no port is enabled: name some by -p"),
        (cpus, ["-p", "2"], "-p: port 1 is not present"),
        (cpus, ["-p", "1", "--config", "(0,0,0)"], "lcore 0 is the main lcore"),
        (cpus, ["-p", "1", "--config", "(0,1,1)"], "the queues of port 0 are to be 0, 1, 2"),
        (cpus, ["-p", "1", "--config", "(0,0,7)"], "lcore 7 is not enabled"),
        ("--lcores=0", ["-p", "1"], "the main lcore does not forward: give EAL another one"),
        (cpus, ["-p", "1", "--max-pkt-len", "10"], "--max-pkt-len takes 64 to 9600"),
        (cpus, ["-p", "1", "--rule_ipv4", str(rules)], f'{rules}: line 1: source: "1.2.3.4/33"'),
        (cpus, ["-p", "1", "--rule_ipv6", str(rules)], f'{rules}: line 1: source: "1.2.3.4/33"'),
        (cpus, ["-p", "1", "--routes_ipv4", str(default)], f"{default}: line 1: destination"),
        (cpus, ["-p", "1", "--routes_ipv6", str(tmp_path)], f"{tmp_path}: not a regular file"),
        (cpus, ["-p", "1", "--model", "dispatch"], "--model dispatch: librte_graph of DPDK"),
        (cpus, ["-p", "1", "--pcap-enable"], "--pcap-enable: librte_graph of DPDK"),
    ):
        done = subprocess.run(
            [str(rust_binary("l3fwd-graph")), *MEMORY, "--file-prefix", "wrong", eal,
             "--vdev", "net_null0", "--", *options],
            env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
        assert done.returncode == 1, (options, done.stderr)
        assert said in done.stderr, (options, done.stderr)
        assert "l3fwd-graph: " in done.stderr


def test_frames_of_both_families_are_told_apart() -> None:
    """A test of the tests: what is compared above are frames of both."""
    kinds = {frame[12:14] for frame in of_every_kind(random.Random(1), 3000, 0)}
    assert IPV6 not in kinds
    assert ipv6("::1")[12:14] == IPV6
