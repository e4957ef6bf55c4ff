# SPDX-License-Identifier: BSD-3-Clause
"""Frames of 9,018 bytes at interfaces of the kernel: sent and received whole, or refused with what
would take them.

Each test has network namespaces of its own; it needs root and is skipped where none can be made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import snappi
from frames import read_pcap
from harness import Generator, eventually, generator, send_captured
from netns import NEAR, counters, inside, ip
from traffic import FCS, captured, flow, without_fcs

pytest_plugins = ["rig"]
pytestmark = pytest.mark.usefixtures("veth")

LONGEST = 9018
# What AF_XDP takes where pages have 4096 bytes.
IN_A_PAGE = 3456
PPS, FRAMES = 2000, 2000


@contextmanager
def pair(directory: Path, *options: str, mtu: int = 9000) -> Iterator[Generator]:
    """A generator beside both ends of a veth, `va` and `vz`."""
    ip("-n", NEAR, "link", "del", "va")
    ip("-n", NEAR, "link", "add", "va", "mtu", str(mtu), "type", "veth", "peer", "name", "vz")
    for interface in ("va", "vz"):
        ip("-n", NEAR, "link", "set", interface, "mtu", str(mtu), "up")
    there = ["ip", "netns", "exec", NEAR]
    with inside(NEAR), generator(directory, *options, before=there) as running:
        yield running


def both_ways(*locations: str) -> Any:
    """Long frames one way, frames of all sizes the other."""
    config = snappi.Config()
    for name, location in zip(("p1", "p2"), locations, strict=True):
        config.ports.port(name=name, location=location)
    config.captures.capture(name="c", port_names=["p2"])
    long = flow(config, "long", "p1", ["p2"], size=LONGEST, pps=PPS, frames=FRAMES, latency=True)
    long.payload.choice = "increment_word"
    mixed = flow(config, "mixed", "p2", ["p1"], pps=PPS, frames=FRAMES, latency=True)
    mixed.size.random.min, mixed.size.random.max = 68, LONGEST
    config.options.port_options.data_integrity = True
    return config


def test_long_frames_arrive_whole(directory: Path) -> None:
    with pair(directory, "--max-frame", str(LONGEST)) as running:
        running.api.set_config(both_ways("af_packet:va", "vz"))
        send_captured(running, FRAMES)
        metrics, ports = running.flows(), running.ports()
        long = metrics["long"]
        assert (long.frames_tx, long.bytes_tx) == (FRAMES, FRAMES * LONGEST)
        assert long.bytes_rx == long.frames_rx * LONGEST
        for name in ("p1", "p2"):
            integrity = ports[name].data_integrity
            assert (integrity.error_frames_rx, running.port(name)["corrupt"]) == (0, 0)
        arrived = read_pcap(captured(running.api, "p2"))
        sent = counters(NEAR, "va")["tx"]
    lengths = Counter(record.length for record in arrived)
    assert lengths[LONGEST] >= 0.98 * FRAMES
    # Without FCS in the kernel's counters.
    assert sent["bytes"] >= FRAMES * (LONGEST - FCS)
    for record in arrived:
        frame = without_fcs(record.data)
        if record.length == LONGEST:
            assert len(frame) == LONGEST - FCS
            payload = frame[42 : LONGEST - FCS - 22]
            assert payload == b"".join(n.to_bytes(2, "big") for n in range(len(payload) // 2))


def errors(call: Callable[[], Any]) -> list[str]:
    with pytest.raises(Exception, match="errors") as info:  # snappi raises nothing finer
        call()
    return list(info.value.args[0].errors)


def refused(running: Generator, location: str) -> str:
    config = snappi.Config()
    config.ports.port(name="p1", location=location)
    (error,) = errors(lambda: running.api.set_config(config))
    return error


def test_what_takes_no_long_frames_says_what_does(directory: Path) -> None:
    with pair(directory, "--max-frame", str(LONGEST)) as running:
        error = refused(running, "af_xdp:va")
        assert "net_af_xdp) supports frames of at most" in error
        assert "or use af_packet: there" in error
        error = refused(running, "tap:jumbo0")
        assert "net_tap) supports frames of at most" in error
        assert "or use af_packet:" in error
        error = refused(running, "vdev:net_af_packet7,iface=va")
        assert "framesz=2048 takes frames of at most 1986 bytes" in error
        assert "framesz=9216,blocksz=36864" in error
        # After all that a port opens.
        running.api.set_config(both_ways("va", "vz"))


def test_af_xdp_takes_what_fits_in_a_page(directory: Path) -> None:
    """Frames of all sizes up to there arrive; an MTU above that is refused."""
    with pair(directory, "--max-frame", str(IN_A_PAGE)) as running:
        error = refused(running, "af_xdp:va")
        assert f"va has an MTU of 9000, and AF_XDP takes {IN_A_PAGE - 18} at most" in error
        assert "or use af_packet:va" in error
        for interface in ("va", "vz"):
            ip("-n", NEAR, "link", "set", interface, "mtu", str(IN_A_PAGE - 18))
        config = snappi.Config()
        for name, location in (("p1", "af_xdp:va,mode=copy"), ("p2", "vz")):
            config.ports.port(name=name, location=location)
        for name, tx, rx in (("there", "p1", "p2"), ("back", "p2", "p1")):
            made = flow(config, name, tx, [rx], pps=500, frames=1000, latency=True)
            made.size.increment.start, made.size.increment.end = IN_A_PAGE - 999, IN_A_PAGE
        config.options.port_options.data_integrity = True
        running.api.set_config(config)
        running.transmit("start")
        eventually(running.stopped)
        eventually(
            lambda: all(each.frames_rx >= 980 for each in running.flows().values()),
            lambda: [(each.name, each.frames_rx) for each in running.flows().values()],
        )
        for name in ("p1", "p2"):
            assert running.port(name)["corrupt"] == 0


def test_an_mtu_that_is_too_small_is_told(directory: Path) -> None:
    with pair(directory, "--max-frame", str(LONGEST), mtu=1500) as running:
        running.api.set_config(both_ways("va", "vz"))
        found = errors(lambda: running.transmit("start"))
        assert any(
            "va: a frame of 9018 bytes is longer than its MTU of 1500 allows" in error
            and "an MTU of 9000" in error
            for error in found
        ), found
