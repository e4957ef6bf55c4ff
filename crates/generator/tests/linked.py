# SPDX-License-Identifier: BSD-3-Clause
"""Links to a forwarder that echoes, flows of several sizes on them, and their books."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import snappi
from farend import Forwarder, forwarder, part
from harness import Generator, eventually
from traffic import flow

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
