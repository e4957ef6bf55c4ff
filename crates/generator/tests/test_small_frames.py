# SPDX-License-Identifier: BSD-3-Clause
"""Flows whose frames have no room for the full mark: frames and losses are counted all the same.

Frames go over a ring in the generator, over memif through our l2fwd (which rewrites MAC addresses),
and through our impair, which says what it dropped and copied.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import snappi
from farend import forwarder, memif, part
from harness import BIN, Generator, environment, eventually
from traffic import errors

pytest_plugins = ["rig"]

FRAMES = 3000
UNMEASURED = ("duplicates", "reordered", "received_disturbed", "missing_disturbed", "corrupt")


def vlan_udp(made: Any) -> None:
    made.packet.ethernet().vlan().ipv4().udp()
    made.packet[3].src_port.increment.start, made.packet[3].src_port.increment.count = 1000, 200


def tcp(made: Any) -> None:
    _, ipv4, _ = made.packet.ethernet().ipv4().tcp()
    ipv4.dst.value = "198.19.0.1"
    made.packet[2].src_port.increment.start, made.packet[2].src_port.increment.count = 1000, 200


def vlan_tcp(made: Any) -> None:
    made.packet.ethernet().vlan().ipv4().tcp()


def ipv6(made: Any) -> None:
    _, ip = made.packet.ethernet().ipv6()
    ip.dst.increment.start, ip.dst.increment.count = "2001:db8:1::", 5000
    ip.dst.increment.step = "::1"


def ipv6_imix(made: Any) -> None:
    _, ip = made.packet.ethernet().ipv6()
    ip.dst.value = "2001:db8:2::1"
    made.size.weight_pairs.predefined = "ipv6_imix"


def mpls_udp(made: Any) -> None:
    made.packet.ethernet().mpls().ipv4().udp()


def vlan_ipv6(made: Any) -> None:
    made.packet.ethernet().vlan().ipv6()


def fragments(made: Any) -> None:
    """No header that is known stands behind that of IPv4."""
    _, ip, custom = made.packet.ethernet().ipv4().custom()
    ip.src.value, ip.fragment_offset.value, ip.protocol.value = "198.18.0.3", 20, 6
    custom.bytes = "ab" * 24


def ipv4_options(made: Any) -> None:
    _, ip, _ = made.packet.ethernet().ipv4().udp()
    ip.src.value = "198.18.0.4"
    ip.options.add().choice = "router_alert"


def udp(made: Any) -> None:
    made.packet.ethernet().ipv4().udp()


# Each stack with the mark that 64 bytes of it have room for.
STACKS: dict[str, tuple[Callable[[Any], None], str]] = {
    "vlan-udp": (vlan_udp, "short"),
    "tcp": (tcp, "fields"),
    "vlan-tcp": (vlan_tcp, "fields"),
    "ipv6": (ipv6, "fields"),
    "ipv6-vlan": (vlan_ipv6, "fields"),
    "ipv6-imix": (ipv6_imix, "fields"),
    "mpls-udp": (mpls_udp, "short"),
    "fragments": (fragments, "fields"),
    "ipv4-options": (ipv4_options, "short"),
    "udp": (udp, "full"),
}


def configured(location: str, stacks: Sequence[str] = tuple(STACKS), pps: int = 4000) -> Any:
    config = snappi.Config()
    config.ports.port(name="p1", location=location)
    for name in stacks:
        made = config.flows.flow(name=name)[-1]
        made.tx_rx.port.tx_name, made.tx_rx.port.rx_names = "p1", ["p1"]
        made.size.fixed, made.rate.pps = 64, pps
        STACKS[name][0](made)
        made.duration.fixed_packets.packets = FRAMES
        made.metrics.enable = made.metrics.loss = made.metrics.timestamps = True
    return config


def check(running: Generator, name: str) -> tuple[Any, dict[str, Any]]:
    """A flow's metrics and its books, which say its mark and have nothing that it does not tell."""
    metric, books, mark = running.flows()[name], running.flow(name), STACKS[name][1]
    assert books["mark"] == mark
    assert books["accepted"] == metric.frames_tx == FRAMES
    assert books["received"] == metric.frames_rx
    told = {"fields": (), "short": UNMEASURED[:-1], "full": UNMEASURED}[mark]
    assert tuple(key for key in UNMEASURED if key in books) == told
    assert "latency_hdr" not in books
    return metric, books


def test_all_frames_of_64_bytes_come_back(ring: Generator) -> None:
    warnings = list(ring.api.set_config(configured("ring:r")).warnings)
    assert len(warnings) == len(STACKS) - 1
    assert warnings[:2] == [
        'flow "vlan-udp": 64 bytes have no room for the 18-byte mark; '
        "the 8-byte mark tells loss, order and duplicates, "
        "but no latency",
        'flow "tcp": 64 bytes have no room for the 18-byte mark; '
        "header fields tell loss, but no order, duplicates or latency",
    ]
    ring.transmit("start")
    eventually(ring.stopped)
    eventually(lambda: all(each.frames_rx == FRAMES for each in ring.flows().values()))
    for name, (_, mark) in STACKS.items():
        metric, books = check(ring, name)
        assert metric.loss == 0
        assert metric.timestamps.last_timestamp_ns > metric.timestamps.first_timestamp_ns
        if mark != "fields":
            assert books["duplicates"] == books["reordered"] == 0
        sizes = (64,) if name != "ipv6-imix" else (64, 1518)
        assert sizes[0] * FRAMES <= metric.bytes_rx <= sizes[-1] * FRAMES
        assert metric.bytes_rx == metric.bytes_tx
    port = ring.port()
    assert (port["foreign"], port["stale"], port["misdirected"], port["corrupt"]) == (0, 0, 0, 0)
    assert port["received"] == port["rx_frames"] == FRAMES * len(STACKS)
    # Of the frames that it gets, some have no numbers.
    assert not {"duplicates", "reordered"} & port.keys()
    # Once more: nothing of the first run counts.
    ring.transmit("start")
    eventually(ring.stopped)
    eventually(lambda: all(each.frames_rx == FRAMES for each in ring.flows().values()))


def test_a_forwarder_may_rewrite_mac_addresses(ring: Generator, directory: Path) -> None:
    ring.api.set_config(configured(f"memif:{directory}/s"))
    with forwarder(directory, "l2fwd", [memif(directory / "s")], ["-p", "1", "-T", "0"]) as far:
        far.wait()
        eventually(lambda: ring.link() == "up")
        ring.transmit("start")
        eventually(ring.stopped)
        eventually(lambda: all(each.frames_rx == FRAMES for each in ring.flows().values()))
        for name in STACKS:
            assert check(ring, name)[0].loss == 0
        assert ring.port()["foreign"] == 0
        part(ring, far)


def test_a_router_may_change_hop_limits(ring: Generator, directory: Path) -> None:
    stacks = ("tcp", "ipv6-imix", "ipv6", "udp")
    # Slow, for both lcores of the forwarder share a CPU.
    config = configured(f"memif:{directory}/s", stacks, pps=1000)
    for flow in config.flows:
        if flow.name == "udp":
            flow.packet[1].dst.value = "198.19.0.2"
    ring.api.set_config(config)
    routes = {"ipv4": directory / "routes4", "ipv6": directory / "routes6"}
    routes["ipv4"].write_text("R198.19.0.0/16 0\n")
    routes["ipv6"].write_text("R2001:db8::/32 0\n")
    options = ["-p", "1", "-P", "--config", "(0,0,1)"]
    options += [word for kind, path in routes.items() for word in (f"--routes_{kind}", str(path))]
    devices = [memif(directory / "s")]
    with forwarder(directory, "l3fwd-graph", devices, options, lcores=2) as far:
        far.wait()
        eventually(lambda: ring.link() == "up", far.log.read_text)
        ring.transmit("start")
        eventually(ring.stopped)
        eventually(
            lambda: all(each.frames_rx == FRAMES for each in ring.flows().values()),
            lambda: [(each.name, each.frames_rx) for each in ring.flows().values()],
        )
        for name in stacks:
            assert check(ring, name)[0].loss == 0
        assert ring.port()["foreign"] == 0
        part(ring, far)


@pytest.mark.parametrize("stack", ["vlan-udp", "tcp", "vlan-tcp", "ipv6", "ipv6-imix"])
def test_losses_and_copies_are_counted_exactly(
    ring: Generator, directory: Path, stack: str
) -> None:
    numbered = STACKS[stack][1] == "short"
    rules = ["--drop", "7", *(("--duplicate", "5") if numbered else ())]
    ring.api.set_config(configured(f"memif:{directory}/s", [stack]))
    with forwarder(directory, "impair", [memif(directory / "s")], rules) as far:
        far.wait()
        eventually(lambda: ring.link() == "up")
        ring.transmit("start")
        eventually(ring.stopped)

        def still() -> bool:
            told, books = far.ask("/linerate/impair"), ring.port()
            return (books["accepted"], books["rx_frames"]) == (told["received"], told["sent"])

        eventually(still)
        metric, books = check(ring, stack)
        did = far.ask("/linerate/impair")
        part(ring, far)
    dropped = FRAMES // 7
    assert did["dropped_on_purpose"] == dropped
    assert metric.loss == pytest.approx(100 * dropped / FRAMES, rel=1e-6)
    copies = (FRAMES - dropped) // 5 if numbered else 0
    assert did["duplicated"] == copies
    assert books["received"] == FRAMES - dropped + copies
    if numbered:
        assert (books["duplicates"], books["reordered"]) == (copies, 0)


def test_flows_that_cannot_be_told_apart_are_refused(ring: Generator) -> None:
    before = configured("ring:r", ["udp"])
    ring.api.set_config(before)
    config = configured("ring:r", ["tcp", "vlan-tcp"])
    twin = config.flows[0].clone()
    twin.name = "twin"
    config.flows.append(twin)
    (error,) = errors(lambda: ring.api.set_config(config))
    assert error.startswith(
        'flows[2].packet: frames of flow "twin" cannot be told from those of flow "tcp": '
        "frames of 64 bytes have no room"
    )
    assert ring.api.get_config().serialize("dict") == before.serialize("dict")
    config.flows[2].packet[2].dst_port.value = 443
    assert len(ring.api.set_config(config).warnings) == 3
    # Link addresses tell flows apart as well, but not behind a router.
    config.flows[2].packet[2].dst_port.value = 0
    config.flows[2].packet[0].dst.value = "02:00:00:00:00:09"
    assert "MAC addresses" in "".join(ring.api.set_config(config).warnings)


def test_an_update_leaves_flows_their_marks(ring: Generator) -> None:
    config = configured("ring:r", ["tcp", "vlan-udp"])
    ring.api.set_config(config)

    def resize(sizes: Sequence[int]) -> None:
        update = snappi.ConfigUpdate()
        update.flows.property_names = [update.flows.SIZE]
        for flow, size in zip(config.flows, sizes, strict=True):
            flow.size.fixed = size
            update.flows.flows.append(flow)
        ring.api.update_config(update)

    # Larger frames would have room for other marks, which nobody would look for.
    for sizes in ([300, 301], [64, 64]):
        resize(sizes)
        ring.transmit("start")
        eventually(ring.stopped)
        eventually(lambda: all(each.frames_rx == FRAMES for each in ring.flows().values()))
        assert [check(ring, name)[0].loss for name in ("tcp", "vlan-udp")] == [0, 0]
        assert ring.flows()["vlan-udp"].bytes_rx == sizes[1] * FRAMES
    config = configured("ring:r", ["tcp"])
    config.flows[0].size.fixed = 76
    ring.api.set_config(config)
    (error,) = errors(lambda: resize([64]))
    assert error.startswith(
        "flows.flows[0].size: a frame of 64 bytes has no room for the headers (54 bytes) "
        "and the 18-byte mark"
    )


def test_latency_needs_the_full_mark(ring: Generator) -> None:
    config = configured("ring:r", ["tcp"])
    config.flows[0].metrics.latency.enable = True
    (error,) = errors(lambda: ring.api.set_config(config))
    assert error == (
        "flows[0].size: a frame of 64 bytes has no room for ethernet/ipv4/tcp headers (54 bytes) "
        "and the 18-byte mark that latency needs: choose 76 bytes or more, or switch latency off"
    )
    config.flows[0].size.fixed = 76
    ring.api.set_config(config)
    assert ring.flow("tcp")["mark"] == "full"


def test_the_command_says_which_mark_it_was(directory: Path) -> None:
    flows = [
        "name=full", "name=short,vlan.id=7,latency=off", "name=fields,tcp.dst_port=80,latency=off",
    ]  # fmt: skip
    options = [option for flow in flows for option in ("--flow", flow)]
    options += [
        "--port",
        "ring:r",
        "--size",
        "64",
        "--duration",
        "1000frames",
        "--json",
        "out.json",
    ]
    done = subprocess.run(
        [str(BIN / "generator"), *options],
        capture_output=True, text=True, timeout=120, check=False, cwd=directory,
        env=environment(directory),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    document = json.loads((directory / "out.json").read_text())
    told = {flow["name"]: flow for flow in document["flows"]}
    assert [told[name]["mark"] for name in ("full", "short", "fields")] == [
        "full",
        "short",
        "fields",
    ]
    assert all(flow["lost"] == 0 and flow["received"] == 1000 for flow in told.values())
    assert "duplicates" in told["short"]
    assert not {"duplicates", "reordered", "received_disturbed"} & told["fields"].keys()
    assert "Frames of fields have no room for a mark and are known by header fields" in done.stdout
    assert "Frames of short have no room for the full mark" in done.stdout
