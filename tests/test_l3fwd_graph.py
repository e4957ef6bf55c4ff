# SPDX-License-Identifier: BSD-3-Clause
"""`l3fwd-graph` in Rust: the frames of the C programs, its rules, its graph, its error messages."""

from __future__ import annotations

import random
import re
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv6Address
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from routed import (
    IPV6,
    MEMORY,
    TIMEOUT_S,
    between_captures,
    count,
    endless,
    ipv4,
    ipv6,
    of_every_kind,
    routing,
    through,
    through_c_l3fwd,
    write_capture,
)

from linerate.host.builds import c_examples
from linerate.host.places import rust_binary
from linerate.host.process import RunDirectory
from linerate.telemetry.client import Telemetry, ask_when_known

ROOT = Path(__file__).resolve().parents[1]
EXECUTORS = ["dpdk", "fused"]
# Two ports, by the number of worker lcores that poll them.
BOTH = ["-p", "3", "-P", "--config", "(0,0,1),(1,0,1)"]
POLLED = {1: BOTH, 2: [*BOTH[:-1], "(0,0,1),(1,0,2)"]}
# What changes buffers and ports. The C program takes lengths of more than 1518 only where the
# driver says that it sends several buffers as one frame; those here do not say so.
POOLS = ["--no-numa", "--per-port-pool"]
SHORT, LONG = ["--max-pkt-len", "1400"], ["--max-pkt-len", "9600"]
ANY = "0.0.0.0/0 0.0.0.0/0 0 : 65535 0 : 65535 0/0"

each_executor = pytest.mark.parametrize("executor", EXECUTORS)
# Two lcores do what one does, and more.
each_workers = pytest.mark.parametrize(
    "workers",
    [pytest.param(1, marks=pytest.mark.second_tier), 2],
    ids="workers{}".format,
)

Nodes = dict[str, dict[str, int]]


def by_lcore(telemetry: Telemetry) -> dict[int, Nodes]:
    """Return the counters of each node on each lcore."""
    found: dict[int, Nodes] = {}
    for each in telemetry.ask("/linerate/graph/nodes"):
        found.setdefault(each["lcore"], {})[each["node"]] = each
    return found


def packets(telemetry: Telemetry) -> Counter[str]:
    """Return the packets of each node over all lcores."""
    counted: Counter[str] = Counter()
    for nodes in by_lcore(telemetry).values():
        counted.update({name: each["packets"] for name, each in nodes.items()})
    return counted


def check_nodes(telemetry: Telemetry, executor: str, workers: int) -> None:
    """Check which nodes have their own calls and cycles, and the answer for a single lcore.

    Only valid while no packet arrives.
    """
    found = by_lcore(telemetry)
    assert list(found) == list(range(1, workers + 1))
    both = {f"{what}{family}" for what in ("lookup", "rewrite") for family in (4, 6)}
    counts = ("lcore", "node", "packets", "dropped")
    for lcore, nodes in found.items():
        inside = {name for name, each in nodes.items() if "calls" not in each}
        assert inside == {name for name, each in nodes.items() if "cycles" not in each}
        assert inside == (both if executor == "fused" else set())
        alone = telemetry.ask(f"/linerate/graph/nodes,{lcore}")
        told = [[each[count] for count in counts] for each in alone]
        assert told == [[each[count] for count in counts] for each in nodes.values()]
    assert not telemetry.ask(f"/linerate/graph/nodes,{workers + 1}")
    told = telemetry.ask("/linerate/graph/nodes,x")
    assert "".join(told["error"]) == "takes LCORE, or none for all"


def c_program() -> Path:
    return c_examples.build("l3fwd-graph", include="linerate_graph.h").program


@dataclass(frozen=True)
class Example:
    """Frames, the options that are added for ours, and what the C l3fwd-graph sends."""

    frames: list[list[bytes]]
    options: list[str]
    made: list[list[bytes]]


@pytest.fixture(
    scope="module",
    params=[
        ([], [], 1514),
        pytest.param(([*SHORT, *POOLS], [], 1396), marks=pytest.mark.second_tier),
        (POOLS, LONG, 9596),
    ],
    ids=["plain", "short", "long"],
)
def in_c(request: pytest.FixtureRequest) -> Example:
    """Parameters: options for both programs, options for ours, and bytes of the longest frame
    without FCS.
    """
    rng = random.Random(1)
    options, ours, longest = request.param
    frames = [of_every_kind(rng, 3000, 0, longest), of_every_kind(rng, 2000, 1, longest)]
    with RunDirectory() as run:
        arguments = [*BOTH, "--eth-dest=0,02:00:00:00:00:AA", *options]
        made = through(run, c_program(), frames, arguments)
    assert min(map(len, made)) > 500
    assert [max(map(len, port)) for port in made] == [longest] * 2
    return Example(frames, [*options, *ours], made)


@each_workers
@each_executor
def test_frames_are_those_of_the_c_program_byte_by_byte(
    in_c: Example, executor: str, workers: int
) -> None:
    """This also holds if two lcores share the ports that one lcore polls in C."""
    options = [*POLLED[workers], "--eth-dest=0,02:00:00:00:00:aa", "--executor", executor]
    with RunDirectory() as run:
        program = rust_binary("l3fwd-graph")
        made = through(run, program, in_c.frames, [*options, *in_c.options], workers=workers)
    assert by_way(made) == by_way(in_c.made)


@pytest.mark.parametrize(
    ("options", "mtu", "pools"),
    [([], 1500, 1), ([*SHORT, *POOLS], 1382, 2)],
    ids=["plain", "short"],
)
def test_ports_and_pools_are_those_of_the_c_program(
    options: list[str], mtu: int, pools: int
) -> None:
    """A machine with one NUMA node does not show what `--no-numa` changes."""
    in_c = ports_and_pools(c_program(), [*BOTH, *options])
    assert [port["mtu"] for port in in_c[0]] == [mtu] * 2
    assert len(in_c[1]) == pools
    for executor in EXECUTORS:
        more = [*options, "--executor", executor]
        assert ports_and_pools(rust_binary("l3fwd-graph"), [*BOTH, *more]) == in_c


@each_executor
def test_a_frame_of_the_greatest_length_has_room_in_one_buffer(executor: str) -> None:
    """The C program takes several buffers."""
    options = [*BOTH, *LONG, "--executor", executor]
    ports, _ = ports_and_pools(rust_binary("l3fwd-graph"), options)
    for port in ports:
        assert port["mtu"] == 9582
        # Its bytes, and room in front of them.
        assert port["rx_mbuf_size_min"] == 9600 + 128


def ports_and_pools(program: Path, options: list[str]) -> tuple[list[dict[str, int]], list[str]]:
    """Return what DPDK's own telemetry says about two ports, and the names of the mbuf pools."""
    vdevs = ["net_null0", "net_null1"]
    with (
        RunDirectory() as run,
        routing(run, program, vdevs, options) as (child, telemetry),
    ):

        def ports() -> list[dict[str, int]]:
            return [telemetry.ask(f"/ethdev/info,{port}") for port in range(2)]

        child.wait_until(
            lambda: all(port["dev_started"] for port in ports()), TIMEOUT_S, "ports: not started"
        )
        told = ("mtu", "nb_rx_queues", "nb_tx_queues", "rx_mbuf_size_min", "scattered_rx")
        found = [{name: port[name] for name in told} for port in ports()]
        pools = [name for name in telemetry.ask("/mempool/list") if name.startswith("mbuf_pool")]
        assert child.stop() == 0
    return found, sorted(pools)


def by_way(made: list[list[bytes]]) -> list[list[bytes]]:
    """Return the frames of each port, grouped by the port that they came in by, because the order
    in which ports are polled varies.
    """
    return [[frame for frame in port if frame[27] == came] for port in made for came in (0, 1)]


@each_executor
def test_ipv6_frames_are_those_of_the_c_l3fwd(executor: str, tmp_path: Path) -> None:
    """Only the hop limit differs: the C l3fwd does not change it."""
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
        files = [f"--rule_ipv4={routes4}", f"--rule_ipv6={routes6}"]
        expected = through_c_l3fwd(run, frames, ["--lookup=lpm", *files])
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


@each_executor
def test_routes_are_read_as_the_c_l3fwd_reads_them(executor: str, tmp_path: Path) -> None:
    """The file has routes to ports that are not enabled, a repeated network, and words after the
    last field.
    """
    rng = random.Random(5)
    routes4, routes6 = tmp_path / "routes4", tmp_path / "routes6"
    routes4.write_text("R198.18.0.0/24 0\n")
    routes6.write_text(
        "R2001:db8::/32 0\nR2001:db8:1::/48 1 # a word\nR2001:db8:2::/48 2\n"
        "R2001:db8:3::/48 0\nR2001:db8:3::/48 1\nR2001:db8:4::/48 1\nR2001:db8:4::/48 7\n"
    )
    frames = [
        [
            ipv6(f"2001:db8:{net}::{rng.randrange(1, 65536):x}", f"2001:db8:9:{port}::{number:x}")
            for number, net in enumerate(rng.choices(range(6), k=300))
        ]
        for port in range(2)
    ]
    with RunDirectory() as run:
        files = [f"--rule_ipv4={routes4}", f"--rule_ipv6={routes6}"]
        expected = through_c_l3fwd(run, frames, ["--lookup=lpm", *files], sending=550)
        options = [*BOTH, "--routes_ipv6", str(routes6), "--executor", executor]
        made = through(run, rust_binary("l3fwd-graph"), frames, options)
        refused = l3fwd_graph_says(["-p", "3", "--routes_ipv6", str(routes6), "--strict"])
    as_in_c = [[frame[:21] + b"\x40" + frame[22:] for frame in port] for port in made]
    assert list(map(sorted, as_in_c)) == list(map(sorted, expected))
    assert f'{routes6}: line 2: "#" behind the last field' in refused


def l3fwd_graph_says(options: list[str]) -> str:
    """Return what the program prints if it does not start with these options."""
    with RunDirectory() as run:
        done = subprocess.run(
            [str(rust_binary("l3fwd-graph")), *MEMORY, "--file-prefix", "wrong", "--lcores=0,1",
             "--vdev", "net_null0", "--vdev", "net_null1", "--", *options],
            env=run.environment(), capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
    assert done.returncode == 1, done.stderr
    return done.stderr


@each_workers
@each_executor
def test_every_frame_has_one_end_and_is_counted_there(
    executor: str, workers: int, tmp_path: Path
) -> None:
    """It is counted on the lcore that received it; the screen shows the sum over lcores."""
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
    vdevs = [
        between_captures(port, capture, [tmp_path / f"{port}.{queue}" for queue in range(workers)])
        for port in range(2)
    ]
    with RunDirectory() as run:
        options = [*POLLED[workers], "--executor", executor]
        program = rust_binary("l3fwd-graph")
        with routing(run, program, vdevs, options, workers=workers) as (child, telemetry):
            ask_when_known(telemetry, "/linerate/graph/nodes", TIMEOUT_S, child.check)
            total = 2 * len(frames)
            child.wait_until(lambda: packets(telemetry)["rx"] == total, TIMEOUT_S, "frames: not")
            counted = by_lcore(telemetry)
            check_nodes(telemetry, executor, workers)
            polls = telemetry.ask("/linerate/polling")
            assert count(telemetry, "opackets", 2) == packets(telemetry)["tx"]
            shown = re.compile(rf"^rx +\d+ +{total} ", re.MULTILINE)
            child.wait_until(lambda: shown.search(child.output()), TIMEOUT_S, "sums: not shown")
            assert child.stop() == 0
    assert [entry["packets"] for entry in polls] == [len(frames)] * 2
    assert [entry["burst_limit"] for entry in polls] == [256] * 2
    assert [entry["lcore"] for entry in polls] == [1, workers]
    ends = {"tx": 5, "not_ip": 3, "no_route": 2, "expired": 3}
    assert sum(ends.values()) == len(frames)
    ports_each = 2 // workers
    for nodes in counted.values():
        for name, expected in {**ends, "rx": len(frames), "unsent": 0}.items():
            assert nodes[name]["packets"] == ports_each * expected, name


@dataclass(frozen=True)
class Family:
    """Frames of an address family, and rules about them."""

    name: str
    frame: Callable[..., bytes]
    # Bytes of a frame before the ports.
    headers: int
    # All addresses; how long one is; some that port 0 leads to, and one of them; one of nobody's.
    all: str
    whole: int
    behind: str
    there: str
    stranger: str

    def source(self, port: int) -> str:
        """Return the source address of frames that come in by this port."""
        return f"10.{port}.0.1" if self.name == "ipv4" else f"2001:db8:{port}::1"

    def coming(self, port: int, to: int = 9, **how: int) -> bytes:
        """Return a frame that comes in by a port of the program, for a UDP port."""
        return self.frame(self.there, self.source(port), ports=(1, to), **how)

    def rule(self, lead: str, source: str | None = None, rest: str | None = None) -> str:
        """Return a line of rules; `rest` replaces what follows the source."""
        source = f"{source}/{self.whole}" if source else self.all
        line = f"{lead}{source} {rest or self.all + ANY[19:]}"
        return f"{line} 0\n" if lead == "R" else f"{line}\n"


FAMILIES = {
    "ipv4": Family("ipv4", ipv4, 34, "0.0.0.0/0", 32, "198.18.0.0/16", "198.18.0.9", "1.2.3.4"),
    "ipv6": Family("ipv6", ipv6, 54, "::/0", 128, "2001:200::/32", "2001:200::9", "2001:db9::1"),
}
each_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)

# Leads and ranges of destination ports.
RULES = [("@", 7, 7), ("R", 8, 8), ("@", 8, 9), ("R", 9, 11), ("@", 10, 10)]


def deciding(port: int) -> tuple[int, str] | None:
    """Return the index and lead of the first rule that a packet to this port matches."""
    matching = ((at, lead) for at, (lead, low, high) in enumerate(RULES) if low <= port <= high)
    return next(matching, None)


@each_workers
@each_family
@each_executor
def test_rules_decide_in_their_order_and_each_is_counted(
    executor: str, family: Family, workers: int, tmp_path: Path
) -> None:
    """This also holds if families with and without rules are mixed; the counts of lcores are added
    up.
    """
    rng = random.Random(3)
    file = tmp_path / "rules"
    lines = ["# by the destination's port\n"]
    for lead, low, high in RULES:
        lines.append(family.rule(lead, rest=f"{family.behind} 0 : 65535 {low} : {high} 17/0xff"))
    file.write_text("".join(lines))
    (other,) = (each for each in FAMILIES.values() if each is not family)
    ports = [rng.randrange(6, 13) for _ in range(5000)]
    frames = [family.coming(0, port) for port in ports]
    others = [other.coming(0) for _ in range(1000)]
    # Too short to have ports, and of another protocol.
    none = [family.coming(0, 8)[: family.headers + 2], family.coming(0, 8, protocol=6)]
    mixed = frames + others + none
    rng.shuffle(mixed)
    decided = Counter(map(deciding, ports))
    passing = sum(n for rule, n in decided.items() if rule and rule[1] == "R")
    coming = [mixed[:2000], mixed[2000:]]
    vdevs = [
        between_captures(
            port,
            write_capture(tmp_path / f"in{port}.pcap", coming[port]),
            [tmp_path / f"out{port}.{queue}" for queue in range(workers)],
        )
        for port in range(2)
    ]
    with RunDirectory() as run:
        options = [*POLLED[workers], f"--rule_{family.name}", str(file), "--executor", executor]
        program = rust_binary("l3fwd-graph")
        with routing(run, program, vdevs, options, workers=workers) as (child, telemetry):
            ask_when_known(telemetry, "/linerate/graph/nodes", TIMEOUT_S, child.check)
            child.wait_until(
                lambda: packets(telemetry)["acl"] == len(mixed), TIMEOUT_S, "frames: not"
            )
            counted = packets(telemetry)
            asked = [nodes["acl"]["packets"] for nodes in by_lcore(telemetry).values()]
            hits = telemetry.ask(f"/linerate/rules/hits,{family.name}")
            summary = telemetry.ask("/linerate/rules")
            part = telemetry.ask(f"/linerate/rules/hits,{family.name},3")
            none_there = telemetry.ask(f"/linerate/rules/hits,{other.name}")
            misspelt = [telemetry.ask(f"/linerate/rules/hits{rest}") for rest in ("", ",ipv5")]
            assert child.stop() == 0
    assert asked == ([len(mixed)] if workers == 1 else [len(each) for each in coming])
    assert hits["line"] == [2, 3, 4, 5, 6]
    assert hits["denies"] == [1, 0, 1, 0, 1]
    assert hits["hits"] == [
        sum(n for rule, n in decided.items() if rule and rule[0] == at) for at in range(5)
    ]
    assert (part["first"], part["line"], part["hits"]) == (3, [5, 6], hits["hits"][3:])
    unmatched = decided[None] + len(none)
    assert "".join(summary[family.name].pop("file")) == str(file)
    numbers = {"rules": 5, "denying": 3, "unmatched": unmatched, "warnings": 0}
    assert summary == {family.name: numbers}
    assert "no rules" in "".join(none_there["error"])
    for told in misspelt:
        assert "".join(told["error"]) == "takes ipv4 or ipv6[,first rule]"
    assert counted["classify"] == passing + len(others)
    assert counted["denied"] == len(frames) - passing + len(none)
    assert counted["tx"] == passing + len(others)


def tcp(frame: bytes, flags: int, headers: int) -> bytes:
    """Return the frame with these TCP flags, padded to at least 80 bytes."""
    frame = frame.ljust(80, b"\0")
    return frame[: headers + 13] + bytes([flags]) + frame[headers + 14 :]


SYN, ACK = 0x02, 0x10


@each_family
def test_flags_of_classbench_are_checked_and_a_rule_twice_is_read(
    family: Family, tmp_path: Path
) -> None:
    """Each line that l3fwd reads differently gets a warning; with --acl-as-c the frames are those
    of the C l3fwd.
    """
    rules, routes, other = tmp_path / "rules", tmp_path / "routes", tmp_path / "other"
    whole = {"ipv4": "0.0.0.0/0", "ipv6": "0:0:0:0:0:0:0:0/0"}[family.name]
    any_ports = f"{whole} 0 : 65535 0 : 65535"
    rules.write_text(
        f"@{whole}\t{any_ports}\t0x06/0xFF\t0x0200/0x1200\t\n"
        f"@{whole}\t{whole}\t0 : 65535\t7 : 7\t0x11/0xFF\t0x0000/0x0000\t\n"
        f"@{whole} {whole} 0 : 65535 7 : 7 0x11/0xFF\n"
        f"R{whole} {any_ports} 0x00/0x00 0\n"
    )
    other.write_text(
        "R0.0.0.0/0 0.0.0.0/0 0 : 65535 0 : 65535 0/0 0\n"
        if family.name == "ipv6"
        else "R0:0:0:0:0:0:0:0/0 0:0:0:0:0:0:0:0/0 0 : 65535 0 : 65535 0/0 0\n"
    )
    routes.write_text(f"R{family.behind} 0\n")
    coming = [
        tcp(family.coming(0, to, protocol=protocol), flags, family.headers)
        for to, protocol, flags in (
            (80, 6, SYN),
            (80, 6, SYN | ACK),
            (80, 6, ACK),
            (7, 17, 0),
            (8, 17, SYN),
        )
    ]
    passing = {False: coming[1:3] + coming[4:], True: coming[4:]}
    warnings = [
        "line 1: TCP flags are checked; l3fwd ignores this column, and so does --acl-as-c",
        "line 3: matches the same packets as line 2, which comes first: this rule never counts",
    ]
    mine = ["-p", "1", f"--rule_{family.name}", str(rules), f"--routes_{family.name}", str(routes)]
    files = {family.name: rules, ("ipv4" if family.name == "ipv6" else "ipv6"): other}

    def carried(made: list[list[bytes]]) -> list[bytes]:
        """Return what is the same before and after: ports and the bytes that follow."""
        return sorted(frame[family.headers :] for port in made for frame in port)

    with RunDirectory() as run:
        options = ["--lookup=acl", *(f"--rule_{name}={file}" for name, file in files.items())]
        in_c = through_c_l3fwd(run, [coming], options, sending=len(passing[True]))
        assert carried(in_c) == carried([passing[True]])
        for as_c, expected in passing.items():
            options = [*mine, "-P", *(["--acl-as-c"] if as_c else [])]
            made = through(run, rust_binary("l3fwd-graph"), [coming], options)
            assert carried(made) == carried([expected])
        with routing(run, rust_binary("l3fwd-graph"), ["net_null0"], mine) as (child, telemetry):
            ask_when_known(telemetry, "/linerate/rules", TIMEOUT_S, child.check)
            assert telemetry.ask("/linerate/rules")[family.name]["warnings"] == 2
            said = child.output(1 << 20)
            assert child.stop() == 0
    told = [line for line in said.splitlines() if "warning" in line]
    assert told == [f"l3fwd-graph: warning: {rules}: {line}" for line in warnings]
    assert f'{rules}: line 1: "0x0200/0x1200" behind' in l3fwd_graph_says([*mine, "--strict"])


@each_workers
@each_family
@each_executor
def test_rules_are_replaced_under_traffic_and_no_packet_is_lost(
    executor: str, family: Family, workers: int, tmp_path: Path
) -> None:
    """Each port has a rule of its own for its frames, which shows that its lcore uses the new
    rules.
    """
    one, other = tmp_path / "one", tmp_path / "other"
    passing = "".join(family.rule("R", family.source(port)) for port in range(2))
    one.write_text(passing)
    other.write_text(family.rule("@", family.stranger) + passing)
    vdevs = [
        endless(
            port,
            write_capture(tmp_path / f"in{port}.pcap", [family.coming(port)] * 100),
            workers,
        )
        for port in range(2)
    ]
    with RunDirectory() as run:
        options = [*POLLED[workers], f"--rule_{family.name}", str(one), "--executor", executor]
        program = rust_binary("l3fwd-graph")
        with routing(run, program, vdevs, options, workers=workers) as (child, telemetry):
            ask_when_known(telemetry, "/linerate/rules", TIMEOUT_S, child.check)

            def hits() -> list[int]:
                found: list[int] = telemetry.ask(f"/linerate/rules/hits,{family.name}")["hits"]
                return found

            for turn in range(20):
                file, stranger = ((other, [0]), (one, []))[turn % 2]
                told = telemetry.ask(f"/linerate/rules/replace,{family.name},{file}")
                assert "".join(told["file"]) == str(file), told
                child.wait_until(lambda: all(hits()[-2:]), TIMEOUT_S, "new rules: not asked")
                # Counters are those of the rules that are in force.
                assert hits()[:-2] == stranger
            refused_stay_out(telemetry, child, family, one, tmp_path)
            summary = telemetry.ask("/linerate/rules")[family.name]
            counted = packets(telemetry)
            assert child.stop() == 0
    assert summary["unmatched"] == counted["denied"] == 0
    assert counted["unsent"] == counted["no_route"] == 0
    # Counted by each lcore between two walks.
    assert counted["tx"] == counted["rx"]


def refused_stay_out(
    telemetry: Telemetry, child: Any, family: Family, now: Path, folder: Path
) -> None:
    """Check that wrong files are refused with an error, and the old rules stay."""
    wrong = folder / "wrong"
    name, every = family.name, family.rule("R")
    sources = (
        f"{n >> 16}.{n >> 8 & 255}.{n & 255}.0"
        if name == "ipv4"
        else f"2001:db8::{n >> 16:x}:{n & 65535:x}"
        for n in range(100_001)
    )
    many = "".join(family.rule("R", source) for source in sources)
    for content, said in (
        (every.replace(" 0\n", " 2\n"), "line 1: port 2 is not enabled: see -p"),
        (every.replace(" 0\n", "\n"), "line 1: no port"),
        (family.rule("@"), "no line begins with R: every packet would be dropped"),
        (f"\ufeff{every}", "line 1: begins with a UTF-8 byte order mark"),
        (many, "line 100001: more than 100000 rules"),
        ("", "no line begins with R: every packet would be dropped"),
    ):
        wrong.write_text(content)
        told = telemetry.ask(f"/linerate/rules/replace,{name},{wrong}")
        assert f"{wrong}: {said}" in "".join(told["error"])
        assert "".join(telemetry.ask("/linerate/rules")[name]["file"]) == str(now)
    told = telemetry.ask(f"/linerate/rules/replace,{name},{folder / 'none'}")
    assert "No such file" in "".join(told["error"])
    (other,) = FAMILIES.keys() - {name}
    told = telemetry.ask(f"/linerate/rules/replace,{other},{now}")
    assert f"started without --rule_{other}" in "".join(told["error"])
    told = telemetry.ask(f"/linerate/rules/replace,{name}")
    assert "".join(told["error"]) == "takes ipv4 or ipv6,FILE"
    child.check()


def edges(dot: str) -> set[tuple[str, str]]:
    """Return the edges of a Graphviz graph."""
    lines = (line.partition("[")[0] for line in dot.splitlines() if "->" in line)
    chains = (re.findall(r"\w+", line) for line in lines)
    return {pair for chain in chains for pair in pairwise(chain)}


@each_executor
def test_the_picture_is_that_of_the_architecture(executor: str, tmp_path: Path) -> None:
    """It is printed, and telemetry returns it."""
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
    """Return the edges of a graph without rules."""
    rest = {edge for edge in drawn if "acl" not in edge}
    return rest | {("rx", "classify")}


def test_it_can_be_ended_while_it_reads_its_routes(tmp_path: Path) -> None:
    """DPDK takes minutes for so many prefixes longer than 24 bits."""
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
        (cpus, ["-p", "1", "--config", "(0,1,1)"], "queues of port 0 must be listed as 0, 1, 2"),
        (cpus, ["-p", "1", "--config", "(0,0,7)"], "lcore 7 is not enabled"),
        ("--lcores=0", ["-p", "1"], "the main lcore does not forward: give EAL another one"),
        (cpus, ["-p", "1", "--max-pkt-len", "10"], "--max-pkt-len takes 64 to 9600"),
        (cpus, ["-p", "1", "--rule_ipv4", str(rules)], f'{rules}: line 1: source: "1.2.3.4/33"'),
        (cpus, ["-p", "1", "--rule_ipv6", str(rules)], f'{rules}: line 1: source: "1.2.3.4/33"'),
        (cpus, ["-p", "1", "--routes_ipv4", str(default)], f"{default}: line 1: destination"),
        (cpus, ["-p", "1", "--routes_ipv6", str(tmp_path)], f"{tmp_path}: is a directory"),
        (cpus, ["-p", "1", "--model", "dispatch"], "--model dispatch: each lcore"),
        (cpus, ["-p", "1", "--pcap-enable"], "--pcap-enable: this program"),
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
    """This tests the tests: the frames that are compared above are of both families."""
    kinds = {frame[12:14] for frame in of_every_kind(random.Random(1), 3000, 0)}
    assert IPV6 not in kinds
    assert ipv6("::1")[12:14] == IPV6
