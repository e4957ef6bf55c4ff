# SPDX-License-Identifier: BSD-3-Clause
"""Devices on one port whose frames come back, over HTTP and gRPC."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import snappi
from devices import MACS, add_device, neighbors, protocols, resolved
from frames import read_pcap
from harness import Generator, eventually, generator
from traffic import LOSSLESS_PPS, capture, captured, errors, transmit, without_fcs

pytest_plugins = ["rig"]
FRAMES = 1000


def back_to_back(*, tags: tuple[int, ...] = ()) -> Any:
    """Two devices, each the other's gateway, and flows of IPv4 and IPv6 between them."""
    config = snappi.Config()
    config.ports.port(name="p1", location="ring:r")
    config.captures.capture(name="c", port_names=["p1"])
    for n in (1, 2):
        add_device(
            config,
            n,
            "p1",
            (f"10.0.0.{n}", f"10.0.0.{3 - n}"),
            ipv6=(f"2001:db8::{n}", f"2001:db8::{3 - n}"),
            tags=tags,
        )
    for kind in ("v4", "v6"):
        flow = config.flows.flow(name=kind)[-1]
        flow.tx_rx.device.tx_names, flow.tx_rx.device.rx_names = [f"{kind}-1"], [f"{kind}-2"]
        stack = flow.packet.ethernet()
        for tag in tags:
            stack = stack.vlan()
            stack[-1].id.value = tag
        (stack.ipv4() if kind == "v4" else stack.ipv6()).udp()
        flow.size.fixed, flow.rate.pps = 128, LOSSLESS_PPS
        flow.duration.fixed_packets.packets = FRAMES
        flow.metrics.enable = flow.metrics.loss = True
    return config


@pytest.mark.parametrize("tags", [(), (7,), (7, 9)], ids=["untagged", "tagged", "QinQ"])
def test_devices_resolve_each_other(ring: Generator, tags: tuple[int, ...]) -> None:
    api = ring.api
    assert list(api.set_config(back_to_back(tags=tags)).warnings) == []
    wanted = {("e1", "10.0.0.2"): MACS[2], ("e2", "10.0.0.1"): MACS[1]}
    eventually(lambda: neighbors(api) == wanted, lambda: neighbors(api))
    wanted = {("e1", "2001:db8::2"): MACS[2], ("e2", "2001:db8::1"): MACS[1]}
    eventually(lambda: neighbors(api, 6) == wanted, lambda: neighbors(api, 6))
    assert neighbors(api, 4, ["e2"]) == {("e2", "10.0.0.1"): MACS[1]}
    capture(api, "start")
    transmit(api, "start")
    eventually(lambda: ring.stopped() and all(m.frames_rx == FRAMES for m in ring.flows().values()))
    capture(api, "stop")
    frames = [without_fcs(record.data) for record in read_pcap(captured(api, "p1"))]
    at = 12 + 4 * len(tags)
    own = [frame for frame in frames if frame[at : at + 2] in (b"\x08\x00", b"\x86\xdd")]
    own = [frame for frame in own if len(frame) == 124]
    assert len(own) == 2 * FRAMES
    macs = bytes.fromhex((MACS[2] + MACS[1]).replace(":", ""))
    assert {frame[:12] for frame in own} == {macs}
    assert {frame[at + 14 : at + 22] for frame in own if frame[at] == 8} == {
        bytes([10, 0, 0, 1, 10, 0, 0, 2])
    }
    # Neither flows nor ports count what devices ask and answer.
    port, books = ring.ports()["p1"], ring.port()
    assert (port.frames_tx, port.frames_rx, port.bytes_rx) == (2 * FRAMES, 2 * FRAMES, 256 * FRAMES)
    assert (books["foreign"], books["stale"], books["misdirected"]) == (0, 0, 0)
    assert books["neighbor_tx"] >= 8


def test_a_gateway_that_does_not_answer_keeps_its_flows_from_starting(ring: Generator) -> None:
    api = ring.api
    config = back_to_back()
    config.devices[0].ethernets[0].ipv4_addresses[0].gateway = "10.0.0.77"
    api.set_config(config)
    eventually(lambda: len(resolved(api, 6)) == 2)
    assert neighbors(api) == {("e1", "10.0.0.77"): None, ("e2", "10.0.0.1"): MACS[1]}
    begin = time.monotonic()
    (error,) = errors(lambda: transmit(api, "start"))
    assert 2.5 < time.monotonic() - begin < 6
    assert error.startswith(
        'flow "v4": the gateway 10.0.0.77 of device "d1" (ethernet "e1") has no known MAC'
    )
    assert ring.ports()["p1"].frames_tx == 0
    transmit(api, "start", ["v6"])
    eventually(lambda: ring.flow("v6")["received"] == FRAMES)


def test_protocols_start_and_stop(ring: Generator) -> None:
    api = ring.api
    config = back_to_back()
    config.options.protocol_options.auto_start_all = False
    api.set_config(config)
    (error, _) = errors(lambda: transmit(api, "start"))
    assert "protocols are stopped; start them first (protocol.all)" in error
    assert resolved(api) == {}
    assert ring.port()["neighbor_tx"] == 0
    assert protocols(api, "start") == []
    eventually(lambda: len(resolved(api)) == 2)
    transmit(api, "start")
    eventually(lambda: all(m.frames_rx == FRAMES for m in ring.flows().values()))
    protocols(api, "stop")
    assert resolved(api) == {}


def test_destinations_stay_when_sizes_and_rates_change(ring: Generator) -> None:
    api = ring.api
    config = back_to_back()
    for flow in config.flows:
        flow.duration.choice = flow.duration.CONTINUOUS
    api.set_config(config)
    transmit(api, "start")
    eventually(lambda: all(m.frames_rx > 100 for m in ring.flows().values()))
    update = snappi.ConfigUpdate()
    update.flows.property_names = [update.flows.SIZE, update.flows.RATE]
    for flow in config.flows:
        flow.size.fixed, flow.rate.pps = 256, 1000
        update.flows.flows.append(flow)
    api.update_config(update)
    capture(api, "start")
    before = {name: m.frames_rx for name, m in ring.flows().items()}
    eventually(lambda: all(m.frames_rx > before[name] + 100 for name, m in ring.flows().items()))
    capture(api, "stop")
    transmit(api, "stop")
    frames = [without_fcs(record.data) for record in read_pcap(captured(api, "p1"))]
    macs = bytes.fromhex((MACS[2] + MACS[1]).replace(":", ""))
    assert {frame[:12] for frame in frames if len(frame) == 252} == {macs}


def test_a_mesh_sends_to_every_gateway_in_turn(ring: Generator) -> None:
    config = snappi.Config()
    config.ports.port(name="p1", location="ring:r")
    config.captures.capture(name="c", port_names=["p1"])
    for n in (1, 2, 3):
        add_device(config, n, "p1", (f"10.0.0.{n}", f"10.0.0.{n % 3 + 1}"))
    flow = config.flows.flow(name="f")[-1]
    flow.tx_rx.device.tx_names, flow.tx_rx.device.rx_names = ["v4-1", "v4-2"], ["v4-3"]
    flow.packet.ethernet().ipv4().udp()
    flow.size.fixed, flow.rate.pps, flow.duration.fixed_packets.packets = 128, LOSSLESS_PPS, 100
    flow.metrics.enable = flow.metrics.loss = True
    api = ring.api
    api.set_config(config)
    eventually(lambda: len(resolved(api)) == 3)
    capture(api, "start")
    transmit(api, "start")
    eventually(lambda: ring.flow("f")["received"] == 100)
    capture(api, "stop")
    frames = [without_fcs(record.data) for record in read_pcap(captured(api, "p1"))]
    own = [frame for frame in frames if len(frame) == 124]
    found = [(frame[:12].hex(":"), frame[26:34]) for frame in own]
    first = (f"{MACS[2]}:{MACS[1]}", bytes([10, 0, 0, 1, 10, 0, 0, 3]))
    second = (f"{MACS[3]}:{MACS[2]}", bytes([10, 0, 0, 2, 10, 0, 0, 3]))
    assert found == [first, second] * 50


def test_grpc_serves_devices_too(directory: Path) -> None:
    with generator(directory) as running:
        api = snappi.api(location=f"127.0.0.1:{running.http_port}", transport=snappi.Transport.GRPC)
        api.set_config(back_to_back())
        eventually(lambda: len(resolved(api)) == len(resolved(api, 6)) == 2)
        assert protocols(api, "start") == []
        transmit(api, "start")
        eventually(lambda: all(m.frames_rx == FRAMES for m in running.flows().values()))
        api.close() if hasattr(api, "close") else None
