# SPDX-License-Identifier: BSD-3-Clause
"""Real runs of testpmd's modes and of DPDK's routing examples: the counts must agree."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from conftest import wait_for
from test_e2e import (
    EASY,
    LATE,
    STARVED,
    Run,
    check_files,
    disturbed,
    empty_before_and_after,
    need,
    runtime,
)

from linerate.forwarders import forwarder
from linerate.host.builds.bench_programs import nearfree_obstacle
from linerate.host.builds.c_examples import example_source
from linerate.host.cores.cpus import Cores
from linerate.host.process import Child, RunDirectory
from linerate.links import LinkContext, Wire, flows, link, rules
from linerate.links.eal import Memory
from linerate.records import trial as records
from linerate.telemetry.client import Telemetry, connect, socket_path
from linerate.traffic.generator import Generator
from linerate.traffic.otg import Traffic
from linerate.traffic.sender import Sent

pytestmark = pytest.mark.e2e

# A fixture of the tests of real runs.
assert runtime

TESTPMD = ["testpmd-mac", "testpmd-macswap", "testpmd-csum", "testpmd-5tswap"]
L3FWD = ["c-l3fwd-lpm", "c-l3fwd-em", "c-l3fwd-acl"]
GRAPH = ["c-l3fwd-graph", "c-l3fwd-graph-acl"]
ROUTING = ["rust-l3fwd-graph", "rust-l3fwd-graph-fused"]
OURS = [*ROUTING, "rust-l3fwd-graph-acl", "rust-l3fwd-graph-fused-acl"]
GROUPS = [TESTPMD, L3FWD, GRAPH]
# One of the C forwarders and one of this project's.
FIRST = ("c-l3fwd-lpm", "c-l3fwd-graph-acl", "rust-l3fwd-graph")
# One port and two, on links without loss on which books close.
NULL, MEMIF = ["null"], ["memif2"]


def one_of_each(names: list[str]) -> list[Any]:
    """Return parameters: those of the first tier, and the others marked as second tier."""
    second = pytest.mark.second_tier
    return [name if name in FIRST else pytest.param(name, marks=second) for name in names]


def obstacle(name: str) -> str | None:
    """Return why this forwarder cannot run: something that it is built from is not installed."""
    if name in OURS:
        return None
    example = "l3fwd-graph" if name in GRAPH else "l3fwd"
    if name.startswith("testpmd"):
        if shutil.which("dpdk-testpmd") is None:
            return "dpdk-testpmd is not installed: make setup (Debian: dpdk)"
    elif example_source(example) is None:
        return f"DPDK's {example} example is not installed: make setup (Debian: dpdk-doc)"
    return None


def can_run(names: list[str]) -> None:
    """Skip, with the reason, if one of these cannot run."""
    for name in names:
        if reason := obstacle(name):
            pytest.skip(reason)


@pytest.fixture(scope="module")
def every_trial(tmp_path_factory: pytest.TempPathFactory) -> list[records.Trial]:
    """Return the trials of one run of all that can run here, with one block on each link."""
    need("reflect", "generator")
    names = [name for group in GROUPS for name in group if obstacle(name) is None]
    if not names:
        can_run(TESTPMD)
    with empty_before_and_after() as base:
        run = Run(
            base, tmp_path_factory.mktemp("forwarders") / "run", "--link", ",".join(NULL + MEMIF),
            "--blocks", "1", "--no-probe", "--forwarders", ",".join(names), "--line-rate", EASY,
        )  # fmt: skip
        code, _, errors = run.finish(600)
        assert code == 0, errors
    check_files(run)
    return run.trials()


def measured(
    every_trial: list[records.Trial], names: list[str], links: list[str]
) -> list[records.Trial]:
    """Return the trials of these on these links; none may fail because of the forwarder."""
    can_run(names)
    trials = [t for t in every_trial if t.forwarder in names and t.cell.name in links]
    for place in links:
        there = {t.forwarder for t in trials if (t.role, t.cell.name) == ("measure", place)}
        assert there == set(names)
    for trial in trials:
        assert trial.valid or disturbed(trial, LATE, STARVED), (trial.forwarder, trial.invalid)
        if trial.forwarder.startswith("c-l3fwd"):
            assert trial.program.build["include"].startswith("bench/examples/")
            assert "offloads" in trial.program.build["changes"]
    return trials


@pytest.mark.second_tier
@pytest.mark.parametrize("names", GROUPS, ids=lambda names: str(names[-1]))
def test_all_that_is_received_is_sent_where_nothing_can_be_lost(
    every_trial: list[records.Trial], names: list[str]
) -> None:
    """This includes forwarders that drop what is not IPv4: the lab makes the frames here."""
    for trial in measured(every_trial, names, NULL):
        received, sent = trial.frames.forwarder_rx or 0, trial.frames.forwarder_tx or 0
        assert received > 100_000
        # A burst may be in transit.
        assert abs(received - sent) <= 256


@pytest.mark.second_tier
@pytest.mark.parametrize("names", GROUPS, ids=lambda names: str(names[-1]))
def test_books_close_and_nothing_is_lost_at_a_low_load(
    every_trial: list[records.Trial], names: list[str]
) -> None:
    trials = measured(every_trial, names, MEMIF)
    for trial in trials:
        assert trial.frames.accepted
        assert trial.frames.unattributed == 0
        assert trial.frames.accepted == trial.frames.forwarder_rx
        assert trial.frames.received == trial.frames.forwarder_tx
    low = [trial for trial in trials if trial.role == "lower-load"]
    for place in MEMIF:
        assert {trial.forwarder for trial in low if trial.cell.name == place} == set(names)
    assert all(trial.frames.forwarder_drops == 0 for trial in low if trial.valid)


FRAMES, PPS = 10 * flows.FLOWS, 20_000


class TwoPorts:
    """A routing forwarder between two ports of the generator."""

    def __init__(self, generator: Generator, telemetry: Telemetry, child: Child) -> None:
        self.generator = generator
        self.telemetry = telemetry
        self.child = child

    def count(self, name: str) -> Counter[int]:
        stats = (self.telemetry.ask(f"/ethdev/stats,{port}") for port in (0, 1))
        return Counter({port: int(each[name]) for port, each in enumerate(stats)})

    def warm_up(self) -> None:
        """Wait until links are up, before the program forwards."""
        states = (self.telemetry.ask(f"/ethdev/link_status,{port}") for port in (0, 1))
        wait_for("links", lambda: all(state["status"] == "UP" for state in states), 12)
        self.generator.client.start()
        wait_for("frames", lambda: min(self.count("ipackets").values()) > 0, 12)
        self.generator.client.stop()
        self.settled()

    def settled(self) -> Sent:
        seen: list[object] = []

        def still() -> bool:
            seen.append((self.generator.sent(), self.count("opackets")))
            return seen[-1:] == seen[-2:-1]

        wait_for("an end", still)
        return self.generator.sent()

    def carry(self) -> tuple[Sent, Counter[int]]:
        """Send once; return what the generator counted, and what left by each port."""
        before = self.count("opackets")
        self.generator.client.start()
        self.generator.client.wait_stopped(10, self.child.check)
        sent = self.settled()
        after = self.count("opackets")
        return sent, Counter({port: after[port] - before[port] for port in after})


def run_between(run: RunDirectory, name: str, wire: Wire) -> tuple[Sent, Counter[int]]:
    cores, memory = Cores.choose(), Memory.choose()
    generator = Generator(run, cores.control, memory, wire, flood=False)
    try:
        generator.configure(Traffic(wire.locations, 64, FRAMES / PPS, PPS))
        prefix = run.new_prefix("forwarder")
        command = forwarder(name).command(cores, memory, prefix, wire)
        assert command is not None
        with (
            Child(command, run) as child,
            connect(socket_path(run.path, prefix), 10, child.check) as telemetry,
        ):
            ports = TwoPorts(generator, telemetry, child)
            ports.warm_up()
            for _ in range(5):
                sent, left = ports.carry()
                # On a machine with other work the sender may lose some.
                if sent.accepted == sent.received == 2 * FRAMES:
                    break
            return sent, left
    finally:
        generator.close()


@pytest.mark.parametrize("name", one_of_each([*L3FWD, *GRAPH, *OURS]))
def test_frames_leave_by_the_port_that_the_rules_name(runtime: Path, name: str) -> None:
    """The counts by port are exact: a forwarder that does not know a flow drops or returns it."""
    need("generator")
    can_run([name])
    forwarder(name).prepare()
    with (
        RunDirectory(runtime) as run,
        link("memif2").open(LinkContext(run.path, 64)) as wire,
    ):
        sent, left = run_between(run, name, wire)
    assert sent.accepted == sent.received == 2 * FRAMES
    share = Counter(rules.out_port(flow.destination, 2) for flow in flows.flows())
    assert share[0] != share[1]
    assert left == {port: 2 * FRAMES // flows.FLOWS * count for port, count in share.items()}


@pytest.mark.skipif(nearfree_obstacle() is not None, reason=str(nearfree_obstacle()))
@pytest.mark.parametrize("name", one_of_each([*GRAPH, *OURS]))
def test_frames_that_a_driver_makes_are_routed_again_and_again(runtime: Path, name: str) -> None:
    """They are routed more often than their hop limit, and none is dropped."""
    can_run([name])
    if name in OURS:
        need("l3fwd-graph")
    forwarder(name).prepare()
    place = link("nearfree2-ip")
    place.prepare()
    with (
        RunDirectory(runtime) as run,
        place.open(LinkContext(run.path, 64)) as wire,
    ):
        prefix = run.new_prefix("forwarder")
        command = forwarder(name).command(Cores.choose(), Memory(hugepages=False), prefix, wire)
        assert command is not None
        with (
            Child(command, run) as child,
            connect(socket_path(run.path, prefix), 20, child.check) as telemetry,
        ):

            def sent() -> list[int]:
                return [int(telemetry.ask(f"/ethdev/stats,{port}")["opackets"]) for port in (0, 1)]

            # Each ring holds at most a thousand packets, and each packet must survive 64 hops.
            child.wait_until(lambda: min(sent()) > 1_000_000, 20, "a million packets: not")
            if name in OURS:
                nodes = telemetry.ask("/linerate/graph/nodes")
                assert sum(int(node["dropped"]) for node in nodes) == 0
            assert child.stop() == 0


@pytest.mark.second_tier
@pytest.mark.skipif(nearfree_obstacle() is not None, reason=str(nearfree_obstacle()))
def test_large_tables_are_routed_and_filtered_by_without_a_packet_lost(tmp_path: Path) -> None:
    """There are more routes than the C programs have room for by default, and as many flows: each
    finds its route.
    """
    need("reflect", "l3fwd-graph")
    can_run(["c-l3fwd-lpm", "c-l3fwd-graph"])
    with empty_before_and_after() as base:
        run = Run(
            base, tmp_path / "run", "--link", "nearfree2-ip", "--routes", "3000", "--rules", "50",
            "--blocks", "1", "--no-probe", experiment="l3fwd",
        )  # fmt: skip
        code, output, errors = run.finish(300)
        assert code == 0, errors
    check_files(run)
    assert "By routes, on nearfree2-ip" in output
    trials = [trial for trial in run.trials() if trial.role == "measure"]
    by = {
        (trial.cell.name.rpartition(":")[2], trial.forwarder)
        for trial in trials
        # Nothing is held back or dropped: everything received is sent.
        if trial.valid or disturbed(trial, STARVED)
    }
    assert by == {
        *(("3000-routes", name) for name in ("c-l3fwd-lpm", "c-l3fwd-graph", *ROUTING)),
        *(("50-rules", name) for name in ("c-l3fwd-acl", "c-l3fwd-graph-acl", *ROUTING)),
    }, [(trial.forwarder, trial.invalid) for trial in trials]
