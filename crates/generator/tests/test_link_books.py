# SPDX-License-Identifier: BSD-3-Clause
"""The books: every frame that was offered is found again, whatever happens.

    attempted = accepted + lost_at_ingress + refused
    accepted = received + dropped by the forwarder + unattributed

On memif, vhost-user and ring `unattributed` is 0; on veth, where the kernel drops frames in places
that nobody can ask, it is what the counters of the interfaces leave over, and each part of it is
shown. The load is a share of what the same forwarder carried a moment before.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import snappi
from farend import Forwarder, forwarder, memif, part
from harness import CPUS, TIMEOUT_S, Generator, eventually, generator, started
from netns import FAR, NEAR, counters, inside
from traffic import flow

pytest_plugins = ["rig"]

SECONDS = 0.2
# The simple IMIX: seven short frames, four of 570 bytes, one long.
IMIX = {"short": (64, 7), "middle": (570, 4), "long": (1518, 1)}


def configure(running: Generator, location: str, total_pps: int, seconds: float) -> Any:
    """Flows of different sizes and rates on one port, `total_pps` frames per second together."""
    config = snappi.Config()
    config.ports.port(name="p1", location=location)
    shares = sum(share for _, share in IMIX.values())
    for name, (size, share) in IMIX.items():
        pps = max(1, total_pps * share // shares)
        made = flow(config, name, "p1", ["p1"], size=size, pps=pps, frames=1)
        if total_pps:
            made.duration.fixed_packets.packets = max(1, round(pps * seconds))
        else:
            made.duration.fixed_seconds.seconds = seconds
    running.api.set_config(config)
    return config


def check_flows(running: Generator, names: Sequence[str], *, complete: bool) -> dict[str, Any]:
    """Each flow's books and metrics close and add up to the port's. Returns the port's books."""
    port, metrics = running.port(), running.flows()
    sums = dict.fromkeys(("attempted", "accepted", "lost_at_ingress", "refused", "received"), 0)
    for name in names:
        books, metric = running.flow(name), metrics[name]
        size, _ = IMIX.get(name, (64, 1))
        offered = books["accepted"] + books["lost_at_ingress"] + books["refused"]
        assert books["attempted"] == offered
        if complete:
            assert books["attempted"] == books["intended"]
        assert (metric.frames_tx, metric.frames_rx) == (books["accepted"], books["received"])
        assert metric.bytes_tx == books["accepted"] * size
        assert metric.bytes_rx == books["received"] * size
        assert books["received"] <= books["accepted"]
        kinds = ("duplicates", "reordered", "reordered_or_duplicate", "corrupt")
        assert [books[kind] for kind in kinds if kind in books] in ([0] * 4, [0])
        for kind in sums:
            sums[kind] += books[kind]
    assert {kind: port[kind] for kind in sums} == sums
    assert [port[kind] for kind in ("foreign", "stale", "misdirected", "corrupt")] == [0] * 4
    assert port["rx_frames"] == port["received"]
    metric = running.ports()["p1"]
    assert (metric.frames_tx, metric.frames_rx) == (port["accepted"], port["received"])
    return port


@dataclass(frozen=True)
class Link:
    """A link to a forwarder: our location, and its device."""

    location: str
    device: str
    # The end that makes the socket comes first.
    forwarder_first: bool = False


LINKS = {
    "memif": Link("memif:{d}/s", "net_memif0,role=client,socket={d}/s,socket-abstract=no"),
    "memif client": Link(
        "memif:{d}/s,role=client",
        "net_memif0,role=server,socket={d}/s,socket-abstract=no",
        forwarder_first=True,
    ),
    "vhost": Link("vhost:{d}/s", "net_virtio_user0,path={d}/s,queues=1"),
    "virtio_user": Link("virtio_user:{d}/s", "net_vhost0,iface={d}/s", forwarder_first=True),
}


@contextmanager
def connected(running: Generator, directory: Path, link: Link) -> Iterator[tuple[Forwarder, str]]:
    """Both ends of a link, up."""
    location = link.location.format(d=directory)
    if not link.forwarder_first:
        configure(running, location, 1000, SECONDS)
    with forwarder(directory, "reflect", [link.device.format(d=directory)]) as far:
        if link.forwarder_first:
            far.wait_for_ports()
            configure(running, location, 1000, SECONDS)
        far.wait()
        eventually(lambda: running.link() == "up")
        yield far, location
        part(running, far)


def up(running: Generator) -> bool:
    return running.link() == "up"


def beyond(running: Generator, kind: str, count: int) -> bool:
    return bool(running.flow()[kind] > count)


def closed(running: Generator, far: Forwarder, before: tuple[int, int]) -> None:
    """Waits until all that the port took is at the forwarder, and all from there back."""

    def now() -> bool:
        port, (received, sent) = running.port(), far.packets()
        return (port["accepted"], port["rx_frames"]) == (received - before[0], sent - before[1])

    eventually(now, lambda: (running.port(), before, far.packets()))


def go(running: Generator, far: Forwarder, names: Sequence[str]) -> dict[str, Any]:
    """One run, and that its books close without a rest. Returns the port's books."""
    before = far.packets()
    running.transmit("start")
    eventually(running.stopped)
    closed(running, far, before)
    return check_flows(running, names, complete=True)


@pytest.mark.parametrize("name", LINKS)
def test_nothing_is_unattributed_at_any_load(
    directory: Path, name: str, record_property: Any
) -> None:
    link = LINKS[name]
    with generator(directory, "--flood") as flood, connected(flood, directory, link) as (far, at):
        configure(flood, at, 0, SECONDS)
        flood.transmit("start")
        eventually(flood.stopped)
        closed(flood, far, (0, 0))
        port = check_flows(flood, list(IMIX), complete=False)
        capacity = round(port["received"] / SECONDS)
        assert capacity > 0
    record_property("capacity_pps", capacity)
    with generator(directory) as running, connected(running, directory, link) as (far, at):
        for percent in (10, 90, 150):
            configure(running, at, capacity * percent // 100, SECONDS)
            far.wait()
            eventually(lambda: running.link() == "up")
            port = go(running, far, list(IMIX))
            record_property(f"at {percent} %", {kind: port[kind] for kind in KINDS})


KINDS = ("attempted", "accepted", "lost_at_ingress", "received")


@pytest.mark.parametrize("options", [[], ["--flood"]])
def test_a_ring_gives_everything_back(directory: Path, options: list[str]) -> None:
    with generator(directory, *options) as running:
        config = configure(running, "ring:r", 300_000, SECONDS)
        running.transmit("start")
        eventually(running.stopped)
        eventually(lambda: running.port()["received"] == running.port()["accepted"])
        port = check_flows(running, list(IMIX), complete=not options)
        frames = sum(flow.duration.fixed_packets.packets for flow in config.flows)
        assert port["accepted"] + port["lost_at_ingress"] == frames


# The kernel's interfaces.


def rest(running: Generator, far: Forwarder) -> None:
    """Until the flows have ended and nothing moves any more."""
    eventually(running.stopped)
    seen: list[Any] = [None]

    def still() -> bool:
        seen.append((running.port()["rx_frames"], far.packets()))
        if seen[-1] != seen[-2]:
            time.sleep(0.2)
            return False
        return True

    eventually(still)


def parts(running: Generator, far: Forwarder, before: Sequence[int]) -> list[int]:
    """Counters along the way of a frame, from the port to the port, since `before`."""
    a, b = counters(NEAR, "va"), counters(FAR, "vb")
    received, sent = far.packets()
    way = [a["tx"]["packets"], b["rx"]["packets"], received, sent, b["tx"]["packets"]]
    way += [a["rx"]["packets"]]
    since = [now - then for now, then in zip(way, before or [0] * len(way), strict=True)]
    return since if not before else [running.port()["accepted"], *since, running.port()["received"]]


def test_on_veth_what_the_kernel_dropped_is_shown(
    veth: None, directory: Path, record_property: Any
) -> None:
    capacity = 0
    peer = forwarder(directory, "reflect", ["net_af_packet0,iface=vb"])
    with inside(FAR), peer as far, inside(NEAR):
        far.wait()
        for options, percent in ((["--flood"], 0), ([], 10), ([], 90), ([], 150)):
            with generator(directory, *options) as running:
                configure(running, "va", capacity * percent // 100, SECONDS)
                eventually(partial(up, running))
                before = parts(running, far, [])
                running.transmit("start")
                rest(running, far)
                port = check_flows(running, list(IMIX), complete=not options)
                way = parts(running, far, before)
            # A frame that is at one place was at the one before it.
            steps = [earlier - later for earlier, later in itertools.pairwise(way)]
            assert min(steps) >= 0, way
            dropped = way[3] - way[4]
            unattributed = sum(steps) - dropped
            assert port["accepted"] == port["received"] + dropped + unattributed
            record_property(f"at {percent} %", {"unattributed": unattributed, "way": way})
            print(f"{percent} %: {unattributed} unattributed of {port['accepted']}: {way}")
            if not capacity:
                capacity = round(port["received"] / SECONDS)
                assert capacity > 0


# Changes under way.

EAL = ("--no-pci", "--no-huge", "--no-shconf", "-m", "512", "--file-prefix", "g")
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


# Several lcores and queues.


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


@pytest.mark.parametrize("lcores", [2, 3, 4])
@pytest.mark.parametrize("kind", ["ring", "memif", "vhost"])
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


def several(running: Generator, location: str) -> None:
    config = snappi.Config()
    config.ports.port(name="p1", location=location)
    for number in range(3):
        flow(config, f"f{number}", "p1", ["p1"], pps=3000, frames=600, latency=True)
    running.api.set_config(config)
    eventually(lambda: running.link() == "up")
    running.transmit("start")
    eventually(running.stopped)


# What is killed.

HALF_A_REQUEST = """
import socket, sys, time
peer = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
peer.sendall(b"POST /config HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Length: 9999\\r\\n\\r\\n{")
print(flush=True)
time.sleep(60)
"""


def test_a_killed_client_changes_nothing(directory: Path) -> None:
    with generator(directory) as running:
        config = snappi.Config()
        config.ports.port(name="p1", location="ring:r")
        flow(config, "f0", "p1", ["p1"])
        running.api.set_config(config)
        running.transmit("start")
        port = running.http_port
        clients = [
            subprocess.Popen(
                [sys.executable, "-c", HALF_A_REQUEST, str(port)], stdout=subprocess.PIPE
            )
            for _ in range(4)
        ]
        for client in clients:
            assert client.stdout is not None
            client.stdout.readline()
            client.kill()
            client.wait(TIMEOUT_S)
            client.stdout.close()
        # One that asks and is gone before the answer, too.
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", port)) as peer:
                peer.sendall(b"GET /config HTTP/1.1\r\nHost: localhost\r\n\r\n")
        before = running.flow()["attempted"]
        eventually(lambda: running.flow()["attempted"] > before + 100)
        assert running.api.get_config().serialize("dict") == config.serialize("dict")
        running.transmit("stop")
        eventually(lambda: running.port()["received"] == running.port()["accepted"])
        check_flows(running, ["f0"], complete=False)


def test_after_a_killed_generator_the_next_one_goes_on(directory: Path) -> None:
    link = LINKS["memif"]
    location = link.location.format(d=directory)
    config = snappi.Config()
    config.ports.port(name="p1", location=location)
    flow(config, "f0", "p1", ["p1"], frames=2000)
    with contextlib.ExitStack() as stack:
        victim = stack.enter_context(started(directory))
        endless = config.clone()
        endless.flows[0].duration.choice = "continuous"
        victim.api.set_config(endless)
        far = stack.enter_context(forwarder(directory, "reflect", [memif(directory / "s")]))
        far.wait()
        eventually(lambda: victim.link() == "up")
        victim.transmit("start")
        eventually(lambda: victim.flow()["received"] > 200)
        victim.process.kill()
        victim.process.wait(TIMEOUT_S)
        far.kill()
        left = victim.telemetry.parent
        assert left.is_dir()
        assert (directory / "s").is_socket()
        with generator(directory) as next_one:
            assert not left.exists()
            next_one.api.set_config(config)
            far = stack.enter_context(forwarder(directory, "reflect", [memif(directory / "s")]))
            far.wait()
            eventually(lambda: next_one.link() == "up")
            assert go(next_one, far, ["f0"])["accepted"] == 2000
            part(next_one, far)


@pytest.mark.parametrize("options", [[], ["--flood"]])
def test_a_killed_peer_is_a_link_that_is_down(directory: Path, options: list[str]) -> None:
    """Over vhost-user, whose driver waits for a poll to end before it lets go of the rings."""
    link = LINKS["vhost"]
    config = snappi.Config()
    config.ports.port(name="p1", location=link.location.format(d=directory))
    flow(config, "f0", "p1", ["p1"])
    with generator(directory, *options) as running:
        running.api.set_config(config)
        for attempt in range(2):
            with forwarder(directory, "reflect", [link.device.format(d=directory)]) as far:
                far.wait()
                eventually(lambda: running.link() == "up")
                if attempt == 0:
                    running.transmit("start")
                before = running.flow()["received"]
                eventually(partial(beyond, running, "received", before + 200))
                far.kill()
            eventually(lambda: running.link() == "down")
            books = running.flow()
            assert books["transmit"] == "started"
            # No frame is taken by a link that is down; every offer is counted.
            eventually(partial(beyond, running, "attempted", books["attempted"] + 100))
            assert running.flow()["accepted"] == books["accepted"]
            assert running.port()["link"] == "down"
        running.transmit("stop")
        port = running.port()
        assert port["attempted"] == port["accepted"] + port["lost_at_ingress"] + port["refused"]
        assert 400 < port["received"] <= port["accepted"]
        assert [port[kind] for kind in ("duplicates", "reordered", "foreign", "stale")] == [0] * 4
        (error,) = starts_with_errors(running)
        assert '"p1"' in error
        assert "down" in error


def starts_with_errors(running: Generator) -> list[str]:
    with pytest.raises(Exception, match="errors") as info:  # snappi raises nothing finer
        running.transmit("start")
    return list(info.value.args[0].errors)


def test_a_killed_memif_peer_is_a_link_that_is_down_too(directory: Path) -> None:
    """Its driver lets go of rings that are being polled (see `part`): so at rest, between runs."""
    config = snappi.Config()
    config.ports.port(name="p1", location=f"memif:{directory}/s")
    flow(config, "f0", "p1", ["p1"], frames=300)
    with generator(directory) as running:
        running.api.set_config(config)
        for _ in range(2):
            with forwarder(directory, "reflect", [memif(directory / "s")]) as far:
                far.wait()
                eventually(lambda: running.link() == "up")
                port = go(running, far, ["f0"])
                assert port["received"] == 300
                time.sleep(1.2)  # an lcore rests when nothing has moved for a second
                far.kill()
            eventually(lambda: running.link() == "down")
        assert running.port()["received"] == 300
