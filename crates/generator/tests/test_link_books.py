# SPDX-License-Identifier: BSD-3-Clause
"""The books: every frame that was offered is found again, whatever happens.

    attempted = accepted + lost_at_ingress + refused
    accepted = received + dropped by the forwarder + unattributed

On memif, vhost-user and ring `unattributed` is 0; on veth, where the kernel drops frames in places
that nobody can ask, it is what the counters of the interfaces leave over, and each part of it is
shown. The load is a share of what the same forwarder carried a moment before.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from farend import Forwarder, forwarder
from harness import Generator, eventually, generator
from linked import IMIX, LINKS, SECONDS, check_flows, closed, configure, connected, go, up
from netns import FAR, NEAR, counters, inside

pytest_plugins = ["rig"]


# Of the ways to reach a peer, one.
ALL_LINKS = [
    name if name == "memif" else pytest.param(name, marks=pytest.mark.second_tier) for name in LINKS
]


@pytest.mark.parametrize("name", ALL_LINKS)
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


@pytest.mark.second_tier
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
