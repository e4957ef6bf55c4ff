# SPDX-License-Identifier: BSD-3-Clause
"""The books close over pauses, new rates and new starts, on any number of lcores and queues."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import snappi
from farend import forwarder, memif, part
from harness import CPUS, MEMORY, Generator, eventually, generator
from linked import LINKS, check_flows, closed, connected
from traffic import flow

pytest_plugins = ["rig"]

EAL = (*MEMORY, "--file-prefix", "g")
# Two lcores on one CPU: one sends, the other receives, and each waits for the other's turn.
SPLIT = ("--lcores", f"0@{CPUS[0]},1@{CPUS[0]}", *EAL)


@pytest.mark.parametrize("eal", [(), SPLIT], ids=["one lcore", "two lcores"])
def test_books_close_over_pauses_and_new_rates(directory: Path, eal: tuple[str, ...]) -> None:
    with (
        generator(directory, eal=eal) as running,
        connected(running, directory, LINKS["memif"]) as (far, location),
    ):
        config = snappi.Config()
        config.ports.port(name="p1", location=location)
        flow(config, "endless", "p1", ["p1"], pps=5000, latency=True)
        flow(config, "counted", "p1", ["p1"], pps=5000, frames=3000, latency=True)
        timed = flow(config, "timed", "p1", ["p1"], pps=4000, latency=True)
        timed.duration.fixed_seconds.seconds = 0.5
        running.api.set_config(config)
        eventually(lambda: running.link() == "up")
        before = far.packets()
        running.transmit("start")
        eventually(lambda: running.flow("counted")["accepted"] > 500)
        running.transmit("pause", ["counted", "timed"])
        states = {name: metric.transmit for name, metric in running.flows().items()}
        assert states == {"endless": "started", "counted": "paused", "timed": "paused"}
        paused = [running.flow(name)["attempted"] for name in ("counted", "timed")]
        endless = running.flow("endless")["attempted"]
        eventually(lambda: running.flow("endless")["attempted"] > endless + 300)
        assert [running.flow(name)["attempted"] for name in ("counted", "timed")] == paused
        update = snappi.ConfigUpdate()
        update.flows.property_names = [update.flows.RATE]
        for made in config.flows:
            made.rate.pps = 9000
            update.flows.flows.append(made)
        running.api.update_config(update)
        running.transmit("resume", ["counted", "timed"])
        eventually(lambda: running.flow("counted")["transmit"] == "stopped")
        eventually(lambda: running.flow("timed")["transmit"] == "stopped")
        running.transmit("stop")
        closed(running, far, before)
        check_flows(running, ["endless", "counted", "timed"], complete=False)
        counted, timed_books = running.flow("counted"), running.flow("timed")
        assert counted["intended"] == counted["attempted"] == 3000
        assert timed_books["intended"] == timed_books["attempted"] > paused[1]
        # Half a second at 4000 and 9000 frames per second.
        assert 2000 <= timed_books["attempted"] <= 4500
        assert running.flow("endless")["intended"] >= running.flow("endless")["attempted"]


def test_a_flow_that_starts_again_leaves_the_ports_books_whole(directory: Path) -> None:
    with (
        generator(directory) as running,
        connected(running, directory, LINKS["memif"]) as (far, location),
    ):
        config = snappi.Config()
        config.ports.port(name="p1", location=location)
        flow(config, "f0", "p1", ["p1"], pps=5000)
        flow(config, "f1", "p1", ["p1"], pps=5000)
        running.api.set_config(config)
        eventually(lambda: running.link() == "up")
        before = far.packets()
        running.transmit("start")
        eventually(lambda: running.flow("f0")["received"] > 300)
        running.transmit("start", ["f0"])
        eventually(lambda: running.flow("f0")["received"] > 300)
        running.transmit("stop")
        closed(running, far, before)
        port = running.port()
        assert port["attempted"] == port["accepted"] + port["lost_at_ingress"] + port["refused"]
        assert port["rx_frames"] == port["received"] + port["stale"] == port["accepted"]
        for name in ("f0", "f1"):
            books = running.flow(name)
            assert books["received"] == books["accepted"]
            assert books["duplicates"] == books["reordered"] == 0


def test_two_lcores_tell_order_as_one_does(directory: Path) -> None:
    rules = ["--drop", "7", "--duplicate", "5"]
    with generator(directory, eal=SPLIT) as running:
        config = snappi.Config()
        config.ports.port(name="p1", location=f"memif:{directory}/s")
        for number in range(2):
            flow(config, f"f{number}", "p1", ["p1"], pps=5000, frames=1500, latency=True)
        running.api.set_config(config)
        with forwarder(directory, "impair", [memif(directory / "s")], rules) as link:
            link.wait()
            eventually(lambda: running.link() == "up")
            running.transmit("start")
            eventually(running.stopped)
            eventually(lambda: link.ask("/linerate/impair")["sent"] == running.port()["rx_frames"])
            did = link.ask("/linerate/impair")
            port = running.port()
            flows = [running.flow(f"f{number}") for number in range(2)]
            part(running, link)
        assert did["received"] == sum(books["accepted"] for books in flows)
        assert did["duplicated"] == sum(books["duplicates"] for books in flows) > 0
        assert did["sent"] == sum(books["received"] for books in flows)
        assert [books["reordered"] for books in flows] == [0, 0]
        assert port["duplicates"] == did["duplicated"]


# Each kind of link, and each number of lcores, once in the first tier.
FIRST = {("ring", 4), ("memif", 3), ("vhost", 2)}


@pytest.mark.parametrize(
    ("kind", "lcores"),
    [
        pytest.param(*each, marks=() if each in FIRST else pytest.mark.second_tier)
        for each in itertools.product(["ring", "memif", "vhost"], [2, 3, 4])
    ],
)
def test_any_number_of_lcores_and_queues(directory: Path, kind: str, lcores: int) -> None:
    """Two receive queues are asked for: a ring has them, the others' peers have one each."""
    places = ",".join(f"{lcore}@{CPUS[lcore % len(CPUS)]}" for lcore in range(lcores))
    with generator(directory, "--rx-queues", "2", eal=("--lcores", places, *EAL)) as running:
        if kind == "ring":
            several(running, "ring:r")
            eventually(lambda: running.port()["received"] == running.port()["accepted"])
            check_flows(running, ["f0", "f1", "f2"], complete=True)
            return
        with connected(running, directory, LINKS[kind]) as (far, location):
            before = far.packets()
            several(running, location)
            closed(running, far, before)
            check_flows(running, ["f0", "f1", "f2"], complete=True)
            assert all(running.flow(f"f{number}")["accepted"] > 0 for number in range(3))


def test_a_port_has_buffers_for_the_queues_that_it_has(directory: Path) -> None:
    places = ",".join(f"{lcore}@{CPUS[0]}" for lcore in range(4))
    with generator(directory, "--rx-queues", "2", eal=("--lcores", places, *EAL)) as running:
        config = snappi.Config()
        config.ports.port(name="p1", location=f"memif:{directory}/one")
        config.ports.port(name="p2", location="ring:two")
        running.api.set_config(config)
        pools = [name for name in running.ask("/mempool/list") if name.startswith("port")]
        # One for each queue in either direction: the memif has one, the ring two.
        assert [running.ask(f"/mempool/info,{name}")["size"] for name in pools] == [4095] * 6


def several(running: Generator, location: str) -> None:
    config = snappi.Config()
    config.ports.port(name="p1", location=location)
    for number in range(3):
        flow(config, f"f{number}", "p1", ["p1"], pps=3000, frames=600, latency=True)
    running.api.set_config(config)
    eventually(lambda: running.link() == "up")
    running.transmit("start")
    eventually(running.stopped)
