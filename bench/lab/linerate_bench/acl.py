# SPDX-License-Identifier: BSD-3-Clause
"""Measures what l3fwd-graph's ACL node costs compared with `rte_acl_classify` alone.

    python -m linerate_bench.acl [ROUNDS [RULES]]

ROUNDS: 20 unless given; RULES: 1000. Each round runs, in an order drawn anew, the distribution's
`dpdk-test-acl`, which looks packets up in batches of 256, twice (the control), and `l3fwd-graph`
with both executors, which routes the same packets by the same rules between ports of net_nearfree.
`dpdk-test-acl` prints its cycles per packet; those of `l3fwd-graph` are from the node's own
counters and include finding the packets' headers, counting each rule's packets and sending them on.
Rules and packets are drawn from a seed. The rules are like those of a firewall; a tenth of them
denies. Ratios are of packets in equal time; `goal_table` says when the goal is reached, and when
there is no verdict.
"""

from __future__ import annotations

import random
import re
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

from linerate.host.builds.bench_programs import nearfree_plugin
from linerate.host.cores.cpus import Cores
from linerate.host.cores.leases import leased
from linerate.host.errors import LabError, MissingError, TrialError
from linerate.host.exit_status import fail
from linerate.host.places import rust_binary
from linerate.host.process import Child, Command, RunDirectory
from linerate.links import Wire, eal
from linerate.links.eal import Memory
from linerate.links.flows import capture
from linerate.records.cells import AA_SUFFIX
from linerate.telemetry.client import ask_when_known, connect, socket_path
from linerate.verdict import stats
from linerate_bench.arguments import number
from linerate_bench.goal_table import Row, gated, lines

ROUNDS, RULES, PACKETS, BATCH = 20, 1000, 1024, 256
GOAL = 0.9
WINDOW_S, TIMEOUT_S = 0.5, 20.0
# How often dpdk-test-acl looks all packets up: about half a second.
ITERATIONS = 8000
ALONE = "rte_acl_classify"
# The control: the same program again.
AGAIN = ALONE + AA_SUFFIX
_UDP = 17
_MAX_PORT = 65_535
_MEMORY_MIB = 512


@dataclass(frozen=True)
class Rule:
    """A rule about UDP."""

    source: int
    source_bits: int
    destination: int
    destination_bits: int
    low: int
    high: int
    denies: bool

    def line(self) -> str:
        """Return the rule as l3fwd reads it, without its first character and its port."""
        source = f"{IPv4Address(self.source)}/{self.source_bits}"
        destination = f"{IPv4Address(self.destination)}/{self.destination_bits}"
        return f"{source} {destination} 0 : {_MAX_PORT} {self.low} : {self.high} {_UDP}/0xff"


def draw_rules(rng: random.Random, count: int) -> list[Rule]:
    """Draw rules of which no two are the same."""
    found: dict[str, Rule] = {}
    while len(found) < count:
        source_bits = rng.choice([0, 8, 16, 24, 32])
        destination_bits = rng.choice([16, 24, 32])
        low, high = rng.choice(
            [(0, _MAX_PORT), (53, 53), (123, 123), (443, 443), (1024, _MAX_PORT)]
        )
        rule = Rule(
            source=_network(rng.getrandbits(32), source_bits),
            source_bits=source_bits,
            destination=_network(rng.getrandbits(32), destination_bits),
            destination_bits=destination_bits,
            low=low,
            high=high,
            denies=len(found) % 10 == 0,
        )
        found[rule.line()] = rule
    return list(found.values())


def _network(address: int, bits: int) -> int:
    return address >> (32 - bits) << (32 - bits)


@dataclass(frozen=True)
class Packet:
    """A UDP packet."""

    source: int
    destination: int
    ports: tuple[int, int]

    def trace(self) -> str:
        """Return the packet as dpdk-test-acl reads it."""
        return f"{self.source} {self.destination} {self.ports[0]} {self.ports[1]} {_UDP}\n"

    def frame(self) -> bytes:
        """Return a frame of 60 bytes; neither program checks the IPv4 checksum."""
        ip = bytes.fromhex("4500002e0000000040110000")
        addresses = self.source.to_bytes(4, "big") + self.destination.to_bytes(4, "big")
        ports = b"".join(port.to_bytes(2, "big") for port in self.ports)
        return (bytes(12) + b"\x08\x00" + ip + addresses + ports).ljust(60, b"\0")


def draw_packets(rng: random.Random, rules: list[Rule], count: int) -> list[Packet]:
    """Draw packets; each matches a rule."""

    def one() -> Packet:
        rule = rng.choice(rules)
        return Packet(
            rule.source | rng.getrandbits(32) >> rule.source_bits,
            rule.destination | rng.getrandbits(32) >> rule.destination_bits,
            (rng.randrange(_MAX_PORT + 1), rng.randrange(rule.low, rule.high + 1)),
        )

    return [one() for _ in range(count)]


@dataclass(frozen=True)
class Bench:
    """What all rounds share."""

    run: RunDirectory
    cores: Cores
    memory: Memory
    test_acl: Path

    def write(self, rules: list[Rule], packets: list[Packet]) -> None:
        """Write the files of all programs."""
        path = self.run.path
        lines = [f"{'@' if r.denies else 'R'}{r.line()}{'' if r.denies else ' 0'}\n" for r in rules]
        (path / "rules").write_text("".join(lines))
        (path / "rules.alone").write_text("".join(f"@{rule.line()}\n" for rule in rules))
        (path / "routes").write_text("R0.0.0.0/1 0\nR128.0.0.0/1 0\n")
        (path / "trace").write_text("".join(packet.trace() for packet in packets))
        (path / "frames").write_bytes(capture(packet.frame() for packet in packets))

    def alone(self) -> float:
        """Return the cycles per packet of `rte_acl_classify`."""
        path, prefix = self.run.path, self.run.new_prefix("alone")
        lcores = eal.lcores(self.cores.forwarder)
        options = eal.options(lcores, self.memory, prefix, Wire(), mib=_MEMORY_MIB)
        try:
            done = subprocess.run(
                [str(self.test_acl), *options, "--",
                 f"--rulesf={path}/rules.alone", f"--tracef={path}/trace", f"--tracenum={PACKETS}",
                 f"--tracestep={BATCH}", f"--iter={ITERATIONS}", "--bldcat=1", "--runcat=1",
                 "--verbose=0"],
                env=self.run.environment(), capture_output=True, text=True, timeout=TIMEOUT_S,
                check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise TrialError(
                f"dpdk-test-acl: no end within {TIMEOUT_S:g} s", "try fewer RULES"
            ) from error
        told = re.search(r"([\d.]+) cycles/pkt", done.stdout)
        if done.returncode != 0 or not told:
            raise TrialError(f"dpdk-test-acl: {(done.stderr or done.stdout)[-300:].strip()}")
        return float(told[1])

    def node(self, executor: str) -> float:
        """Return the cycles per packet of l3fwd-graph's ACL node."""
        path, prefix = self.run.path, self.run.new_prefix("graph")
        vdev = f"net_nearfree0,size=60,dense=1,frames={path}/frames"
        wire = Wire(vdevs=(vdev,), eal_options=("-d", str(nearfree_plugin())))
        lcores = eal.idle_main(self.cores.forwarder)
        options = eal.options(lcores, self.memory, prefix, wire, mib=_MEMORY_MIB)
        argv = [str(rust_binary("l3fwd-graph")), *options, "--", "-p", "1", "--config", "(0,0,1)"]
        argv += [f"--rule_ipv4={path}/rules", f"--routes_ipv4={path}/routes"]
        command = Command("l3fwd-graph", (*argv, f"--executor={executor}"), (self.cores.forwarder,))
        with (
            Child(command, self.run) as child,
            connect(socket_path(path, prefix), TIMEOUT_S, child.check) as telemetry,
        ):

            def counted() -> tuple[int, int]:
                told = ask_when_known(telemetry, "/linerate/graph/nodes", TIMEOUT_S, child.check)
                node = next(each for each in told if each["node"] == "acl")
                return node["packets"], node["cycles"]

            child.wait_until(lambda: counted()[0] > 0, TIMEOUT_S, "forwarded nothing")
            before = counted()
            time.sleep(WINDOW_S)
            after = counted()
            missed = telemetry.ask("/linerate/rules")["ipv4"]["unmatched"]
        if missed or after[0] == before[0]:
            raise TrialError(f"l3fwd-graph: {missed} packets matched no rule, though all should")
        return (after[1] - before[1]) / (after[0] - before[0])


def find() -> Path:
    """Find the peer, `dpdk-test-acl`."""
    found = shutil.which("dpdk-test-acl")
    if found is None:
        raise MissingError("dpdk-test-acl is not installed", "make setup (Debian: dpdk-dev)")
    return Path(found)


def cost_lines(rounds: list[dict[str, float]]) -> list[str]:
    """Return a line for each way of looking up: the median of its cycles per packet."""
    lines = [f"{'':24}{'cycles/packet':>14}"]
    for name in rounds[0]:
        lines.append(f"{name:24}{statistics.median(each[name] for each in rounds):14.1f}")
    return lines


def table(rounds: list[dict[str, float]], rules: int) -> tuple[list[Row], list[str]]:
    """Return which share of the lookup's rate each way keeps, and why there is no verdict on it."""
    cell = f"{rules} rules"

    def row(name: str, goal: float | None) -> Row:
        # Fewer cycles are more packets.
        found = stats.compare([each[ALONE] for each in rounds], [each[name] for each in rounds])
        return Row(cell, name, ALONE, found, goal)

    nodes = [name for name in rounds[0] if name not in {ALONE, AGAIN}]
    return gated(cell, row(AGAIN, None), [row(name, GOAL) for name in nodes])


def main() -> None:
    usage = "acl [ROUNDS [RULES]]"
    count, rules = number(usage, ROUNDS), number(usage, RULES, 2)
    rng = random.Random(1)
    try:
        with leased(), RunDirectory() as run:
            bench = Bench(run, Cores.choose(), Memory.choose(), find())
            drawn = draw_rules(rng, rules)
            bench.write(drawn, draw_packets(rng, drawn, PACKETS))
            ways: dict[str, Callable[[], float]] = {
                ALONE: bench.alone,
                AGAIN: bench.alone,
                "acl node, dpdk": lambda: bench.node("dpdk"),
                "acl node, fused": lambda: bench.node("fused"),
            }
            rounds = []
            for _ in range(count):
                order = rng.sample(sorted(ways), len(ways))
                found = {name: ways[name]() for name in order}
                rounds.append({name: found[name] for name in ways})
    except LabError as error:
        fail(f"the ACL node's cost: {error}")
    print(f"{rules} rules, {PACKETS} packets, batches of {BATCH} at most, {count} rounds:")
    for line in [*cost_lines(rounds), *lines(*table(rounds, rules))]:
        print(line)


if __name__ == "__main__":
    main()
