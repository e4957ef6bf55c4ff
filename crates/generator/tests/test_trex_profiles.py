# SPDX-License-Identifier: BSD-3-Clause
"""TRex profiles, converted and sent: every frame as the profile's instructions make it."""

from __future__ import annotations

import json
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import snappi
from frames import drawn, ip, ones_sum, write_pcap
from harness import Generator, eventually, generator, sent
from trex_frames import packets

from linerate.traffic.trex import described, execution
from linerate.traffic.trex.convert import Asked, Converted, convert
from linerate.traffic.trex.execution import Tunables

pytest_plugins = ["rig"]
PROFILES = Path(__file__).parents[3] / "lab" / "tests" / "trex_profiles"
COUNT = 60
SRC, DST = "02:00:00:00:00:01", "02:00:00:00:00:02"
FRAMES = [bytes([2, 0, 0, 0, 0, k] * 2) + b"\x08\x00" + bytes(60 + 5 * k) for k in range(20)]


@cache
def described_streams(path: Path, **named: int | float | str) -> dict[str, described.Stream]:
    found = execution.describe(path, Tunables(named, []), 1)
    assert found.streams is not None
    return {
        each.name or f"stream{at + 1}": each
        for at, each in enumerate(found.streams[0])
        if isinstance(each, described.Stream)
    }


@cache
def converted_of(path: Path, tunables: str = "") -> Converted:
    return convert(Asked(path, tunables=tunables))


def alone(converted: Converted, name: str, count: int = COUNT) -> Any:
    """A configuration with one of the flows, captured where it comes back."""
    (flow,) = (each for each in converted.config["flows"] if each["name"] == name)
    flow = json.loads(json.dumps(flow))
    flow["tx_rx"]["port"] = {"tx_name": "p1", "rx_names": ["p1"]}
    flow["rate"] = {"choice": "pps", "pps": 20_000}
    flow["duration"] = {"choice": "fixed_packets", "fixed_packets": {"packets": count}}
    config = snappi.Config()
    config.deserialize(
        {
            "ports": [{"name": "p1", "location": "ring:r"}],
            "captures": [{"name": "c", "port_names": ["p1"]}],
            "flows": [flow],
        }
    )
    return config


def own_packet(stream: described.Stream) -> bytes:
    """As TRex sends the first, with the port's addresses where it has none of its own."""
    packet = bytes.fromhex(stream.packet.bytes or "")
    ends = [
        packet[:6] if stream.packet.own_dst else bytes.fromhex(DST.replace(":", "")),
        packet[6:12] if stream.packet.own_src else bytes.fromhex(SRC.replace(":", "")),
    ]
    return b"".join(ends) + packet[12:]


@pytest.mark.parametrize(
    ("profile", "named"),
    [
        ("counters", {}),
        ("counters", {"op": "dec"}),
        ("parts_of_fields", {}),
        ("tuples", {}),
        ("sizes", {}),
        ("headers", {}),
        ("bursts", {}),
    ],
)
def test_every_frame_is_as_the_profile_says(
    running: Generator, profile: str, named: dict[str, str]
) -> None:
    path = PROFILES / f"{profile}.py"
    tunables = ",".join(f"{name}={value}" for name, value in named.items())
    converted = converted_of(path, tunables)
    streams = described_streams(path, **named)
    assert converted.config["flows"]
    for flow in converted.config["flows"]:
        stream = streams[flow["name"]]
        found = sent(running, alone(converted, flow["name"]))
        wanted = packets(stream, own_packet(stream), COUNT)
        if flow["name"] == "listed":
            # A mix has the shares of the list; its order is its own.
            assert sorted(map(len, found)) == sorted(map(len, wanted))
            found.sort(key=len)
            wanted.sort(key=len)
        for number, (have, want) in enumerate(zip(found, wanted, strict=True)):
            assert have.hex(" ") == want.hex(" "), f"{flow['name']}, frame {number}"


def test_random_values_are_in_their_ranges_with_good_checksums(running: Generator) -> None:
    converted = converted_of(PROFILES / "random_values.py")
    found = sent(running, alone(converted, "random", 500))
    sources = {frame[26:30] for frame in found}
    assert all(source[:2] == bytes([16, 0]) for source in sources)
    assert len(sources) > 490
    assert {frame[22] for frame in found} == set(range(10, 20))
    ports = [int.from_bytes(frame[36:38], "big") for frame in found]
    assert 200 < ports.count(80) < 300
    assert ports.count(443) == 500 - ports.count(80)
    repeated = [int.from_bytes(frame[34:36], "big") for frame in found]
    assert repeated == repeated[:5] * 100
    assert set(repeated) <= set(range(1, 10))
    for frame in found:
        assert ones_sum(frame[14:34]) == 0xFFFF
        pseudo = frame[26:34] + bytes([0, 6]) + (len(frame) - 34).to_bytes(2, "big")
        assert ones_sum(pseudo + frame[34:]) == 0xFFFF


def test_lists_of_random_values_have_what_a_random_field_has(running: Generator) -> None:
    """Of a field for which the model has no random values."""
    converted = converted_of(PROFILES / "random_values.py")
    (flow,) = converted.config["flows"]
    ttl = flow["packet"][1]["ipv4"]["time_to_live"]
    src = flow["packet"][1]["ipv4"]["src"]["random"]
    assert len(ttl["values"]) == 4096
    found = sent(running, alone(converted, "random", 50))
    assert [frame[22] for frame in found] == ttl["values"][:50]
    low, high = (int.from_bytes(ip(src[end]), "big") for end in ("min", "max"))
    wanted = drawn(src["seed"], low, high, 50)
    assert [int.from_bytes(frame[26:30], "big") for frame in found] == wanted


@pytest.mark.parametrize(
    "profile",
    ["counters", "parts_of_fields", "random_values", "tuples", "sizes", "bursts", "headers",
     "statistics"],
)  # fmt: skip
def test_the_generator_takes_what_is_written(running: Generator, profile: str) -> None:
    """Unmodified, and snappi's model has all of it."""
    converted = converted_of(PROFILES / f"{profile}.py")
    config = snappi.Config()
    config.deserialize(json.dumps(converted.config))
    running.api.set_config(config)
    status, answer = running.request(
        "POST", "/config", json.dumps(converted.config), {"Content-Type": "application/json"}
    )
    assert status == 200, answer


def test_streams_start_each_other_and_bursts_end(running: Generator) -> None:
    converted = converted_of(PROFILES / "bursts.py")
    config = snappi.Config()
    config.deserialize(json.dumps(converted.config))
    running.api.set_config(config)
    running.transmit("start")

    def sent_of(name: str) -> int:
        return int(running.flow(name)["accepted"])

    wanted = {"first": 11, "second": 5, "multi": 12, "again": 12}
    eventually(lambda: {name: sent_of(name) for name in wanted} == wanted)
    eventually(lambda: sent_of("third") > 100)
    assert sent_of("slow") <= 20
    running.transmit("stop")
    assert {name: sent_of(name) for name in wanted} == wanted


def test_counted_streams_are_received_and_have_latency(running: Generator) -> None:
    converted = convert(Asked(PROFILES / "statistics.py", ports=["a=ring:r"], multiplier="2kpps"))
    config = snappi.Config()
    config.deserialize(json.dumps(converted.config))
    running.api.set_config(config)
    running.transmit("start")
    eventually(lambda: running.flow("counted")["accepted"] > 100)
    # A busy machine can disturb all frames so far, and disturbed frames give no latency.
    eventually(lambda: (running.flows()["latency"].latency.maximum_ns or 0) > 0)
    running.transmit("stop")
    eventually(lambda: running.flows()["counted"].loss == running.flows()["latency"].loss == 0)
    # As in TRex, the multiplier is for streams that measure no latency: of 2,000 packets per
    # second these have 3 and 1 parts.
    rates = {name: running.flow(name)["intended"] for name in ("counted", "plain", "latency")}
    assert rates["counted"] == pytest.approx(3 * rates["plain"], rel=0.1, abs=5)
    assert rates["latency"] == pytest.approx(2 * rates["plain"], rel=0.1, abs=5)


def test_frames_of_a_capture_file_are_sent(directory: Path) -> None:
    profile = directory / "capture.py"
    shutil.copy(PROFILES / "capture.py", profile)
    write_pcap(directory / "traffic.pcap", [(10**18 + k, each) for k, each in enumerate(FRAMES)])
    converted = convert(Asked(profile))
    ((name, path),) = converted.replays.items()
    assert name == "stream2"
    (flow,) = (each for each in converted.config["flows"] if each["name"] == name)
    assert flow["rate"] == {"choice": "pps", "pps": 10_000}
    assert flow["duration"]["fixed_packets"]["packets"] == 2 * len(FRAMES)
    with generator(directory, f"--replay={name}={path}") as running:
        assert sent(running, alone(converted, name, 2 * len(FRAMES))) == [*FRAMES, *FRAMES]
        assert sent(running, alone(converted, "first", 3)) == [FRAMES[0]] * 3
