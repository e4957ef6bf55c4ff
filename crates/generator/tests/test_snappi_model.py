# SPDX-License-Identifier: BSD-3-Clause
"""What a snappi script can ask beyond sending and counting.

Any stack of headers, captures, updates, and a service for other machines. Run as test_snappi_api.
"""

from __future__ import annotations

import json
import socket
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
import test_snappi_api as base
from test_snappi_api import Generator, directory, errors, eventually, ring, stopped, transmit

snappi = pytest.importorskip("snappi")
__all__ = ["directory", "ring"]


def capture(api: Any, state: str) -> None:
    control = snappi.ControlState()
    control.port.capture.state = state
    api.set_control_state(control)


def captured(api: Any, first: int | None = None, count: int = 1) -> list[bytes]:
    """The frames of port p1's pcap file."""
    request = snappi.CaptureRequest(port_name="p1")
    if first is not None:
        request.packets.slice.initial.start = first
        request.packets.slice.initial.count = count
    data = api.get_capture(request).read()
    assert data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1")
    frames, at = [], 24
    while at < len(data):
        _, _, length, whole = struct.unpack_from("<IIII", data, at)
        assert length == whole
        frames.append(data[at + 16 : at + 16 + length])
        at += 16 + length
    return frames


def one_flow(packets: int = 8) -> tuple[Any, Any]:
    config = snappi.Config()
    config.ports.port(name="p1", location="vdev:net_ring0")
    config.captures.capture(name="c", port_names=["p1"])
    flow = config.flows.flow(name="f0")[-1]
    flow.tx_rx.port.tx_name = "p1"
    flow.tx_rx.port.rx_names = ["p1"]
    flow.rate.pps = 10_000
    flow.duration.fixed_packets.packets = packets
    flow.metrics.enable = True
    return config, flow


def run(api: Any, config: Any) -> list[bytes]:
    api.set_config(config)
    capture(api, "start")
    transmit(api, "start")
    eventually(lambda: stopped(api))
    eventually(
        lambda: base.flow_metrics(api)["f0"].frames_rx == base.flow_metrics(api)["f0"].frames_tx
    )
    capture(api, "stop")
    return captured(api)


def test_a_deep_stack_is_sent_as_it_is_described(ring: Generator) -> None:
    config, flow = one_flow()
    ethernet, vlan, ipv4, udp, vxlan, _, ipv6, tcp = (
        flow.packet.ethernet().vlan().ipv4().udp().vxlan().ethernet().ipv6().tcp()
    )
    ethernet.dst.value = "02:00:00:00:00:01"
    vlan.id.increment.start, vlan.id.increment.count = 5, 3
    ipv4.src.values = ["10.0.0.1", "10.0.0.2"]
    ipv4.dst.decrement.start, ipv4.dst.decrement.count = "10.1.0.1", 2
    ipv4.priority.dscp.phb.value = 46
    ipv4.header_checksum.generated = "bad"
    udp.checksum.custom = 0xBEEF
    vxlan.vni.value = 0x123456
    ipv6.src.increment.start, ipv6.src.increment.count = "fd00::ffff", 2
    tcp.src_port.random.min, tcp.src_port.random.max = 1000, 1003
    tcp.src_port.random.count = 8
    tcp.ctl_syn.value = 1
    flow.size.fixed = 200
    flow.payload.fixed.pattern = "dead"
    frames = run(ring.api, config)
    assert len(frames) == 8
    assert {len(frame) for frame in frames} == {196}
    for i, frame in enumerate(frames):
        assert frame[:6] == bytes.fromhex("020000000001")
        assert frame[12:18] == bytes([0x81, 0, 0, 5 + i % 3, 8, 0])
        assert frame[18:20] == bytes([0x45, 46 << 2])
        assert frame[30:34] == bytes([10, 0, 0, 1 + i % 2])
        assert frame[34:38] == (bytes([10, 1, 0, 1]), bytes([10, 1, 0, 0]))[i % 2]
        words = sum(struct.unpack(">10H", frame[18:38]))
        assert (words & 0xFFFF) + (words >> 16) != 0xFFFF, "a wrong checksum"
        assert frame[40:46] == struct.pack(">HHH", 4789, 196 - 38, 0xBEEF)
        assert frame[46:54] == bytes.fromhex("0800000012345600")
        assert frame[66:68] == b"\x86\xdd"
        assert frame[76:92] == bytes.fromhex("fd00" + "00" * 10) + struct.pack(">I", 0xFFFF + i % 2)
        assert 1000 <= int.from_bytes(frame[108:110], "big") <= 1003
        assert frame[121] == 2, "SYN"
        assert frame[128:132] == bytes.fromhex("deaddead")
    assert captured(ring.api, 3, 2) == frames[2:4]


def test_bytes_of_no_protocol_and_sizes_that_grow(ring: Generator) -> None:
    config, flow = one_flow(packets=5)
    flow.packet.custom()[-1].bytes = "01:80:c2:00:00:01 020000000002 8808 0001"
    flow.size.increment.start, flow.size.increment.end = 64, 70
    flow.size.increment.step = 2
    frames = run(ring.api, config)
    assert [len(frame) for frame in frames] == [60, 62, 64, 66, 60]
    assert {frame[:16].hex() for frame in frames} == {"0180c200000102000000000288080001"}


def test_a_capture_filters_and_cuts(ring: Generator) -> None:
    config, flow = one_flow()
    _, ipv4 = flow.packet.ethernet().ipv4()
    ipv4.src.values = ["10.0.0.1", "10.0.0.2"]
    entry = config.captures[0]
    entry.filters.ipv4()[-1].src.value = "0a000002"
    frames = run(ring.api, config)
    assert [frame[26:30].hex() for frame in frames] == ["0a000002"] * 4


def test_rates_and_sizes_change_while_a_flow_runs(ring: Generator) -> None:
    api = ring.api
    config, flow = one_flow()
    flow.packet.ethernet()
    flow.duration.choice = "continuous"
    api.set_config(config)
    transmit(api, "start")
    eventually(lambda: base.flow_metrics(api)["f0"].frames_rx > 0)
    update = snappi.ConfigUpdate()
    update.flows.property_names = ["rate", "size"]
    changed = flow.clone()
    changed.rate.pps, changed.size.fixed = 500, 1000
    update.flows.flows.append(changed)
    api.update_config(update)
    stored = api.get_config().flows[0]
    assert (stored.rate.pps, stored.size.fixed) == (500, 1000)
    capture(api, "start")
    eventually(lambda: len(captured(api)) > 3)
    assert {len(frame) for frame in captured(api)} <= {60, 996}
    assert len(captured(api)[-1]) == 996
    changed.size.fixed = 9000
    (error,) = errors(lambda: api.update_config(update))
    assert error.startswith("flows.flows[0].size.fixed: frames of 9000 bytes")
    assert api.get_config().flows[0].size.fixed == 1000
    before = base.flow_metrics(api)["f0"]
    assert before.transmit == "started"
    transmit(api, "pause")
    eventually(lambda: base.flow_metrics(api)["f0"].transmit == "paused")
    transmit(api, "resume")
    eventually(lambda: base.flow_metrics(api)["f0"].frames_tx > before.frames_tx)


def test_metrics_have_what_was_asked_for(ring: Generator) -> None:
    config, flow = one_flow(packets=100)
    flow.packet.ethernet()
    flow.size.fixed = 128
    flow.metrics.loss = flow.metrics.timestamps = flow.metrics.latency.enable = True
    config.options.port_options.data_integrity = True
    config.options.flow_options.packet_loss_duration = True
    api = ring.api
    (warning,) = api.set_config(config).warnings
    assert "store_forward" in warning
    transmit(api, "start")
    eventually(lambda: base.flow_metrics(api)["f0"].frames_rx == 100)
    metric = base.flow_metrics(api)["f0"]
    assert (metric.loss, metric.packet_loss_duration.value) == (0, 0)
    assert 0 < metric.latency.minimum_ns <= metric.latency.average_ns <= metric.latency.maximum_ns
    assert metric.timestamps.first_timestamp_ns < metric.timestamps.last_timestamp_ns
    integrity = base.port_metrics(api)["p1"].data_integrity
    assert (integrity.total_frames_rx, integrity.error_frames_rx) == (100, 0)


def test_what_needs_devices_is_refused_by_name(ring: Generator) -> None:
    api = ring.api
    states = snappi.StatesRequest()
    states.bgp_prefixes.bgp_peer_names = []
    (error,) = errors(lambda: api.get_states(states))
    assert error.startswith("bgp_prefixes: not supported")
    action = snappi.ControlAction()
    action.protocol.ipv4.ping.requests.add(src_name="x", dst_ip="1.1.1.1")
    (error,) = errors(lambda: api.set_control_action(action))
    assert error.startswith("protocol.ipv4.ping: not supported")
    control = snappi.ControlState()
    control.protocol.all.state = "start"
    (error,) = errors(lambda: api.set_control_state(control))
    assert error.startswith("protocol.all: not supported")


def test_who_reads_too_slowly_is_cut_off(ring: Generator) -> None:
    config, flow = one_flow(packets=20_000)
    flow.packet.ethernet()
    flow.size.fixed, flow.rate.pps = 1518, 50_000
    whole = sum(len(frame) for frame in run(ring.api, config))
    assert whole > 25_000_000, "more than sockets hold"
    body = json.dumps({"port_name": "p1"})
    with socket.socket() as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        peer.connect(("127.0.0.1", ring.port))
        head = f"POST /monitor/capture HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}"
        peer.sendall(f"{head}\r\n\r\n{body}".encode())
        descriptors = Path(f"/proc/{ring.process.pid}/fd")

        def connections() -> int:
            return sum(path.readlink().name.startswith("socket:") for path in descriptors.iterdir())

        before = connections()
        eventually(lambda: connections() < before)
    assert ring.request("GET", "/config")[0] == 200


def test_other_machines_need_tls_and_the_password(directory: Path) -> None:
    certificate, key, password = (directory / name for name in ("cert.pem", "key.pem", "password"))
    request = "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost"
    made = [*request.split(), "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(made, check=True, capture_output=True)
    password.write_text("two words @ work\n")
    options = ["--tls-cert", str(certificate), "--tls-key", str(key)]
    options += ["--otg-user", "tester", "--otg-password-file", str(password)]
    with base.generator(directory, *options) as running:
        host = f"127.0.0.1:{running.port}"

        def ask(user: str) -> Any:
            return snappi.api(location=f"https://{user}{host}", verify=False).get_config()

        ask("tester:two%20words%20%40%20work@")
        for user in ("", "tester:two@", "nobody:two%20words%20%40%20work@"):
            with pytest.raises(Exception, match="Authorization") as info:
                ask(user)
            assert info.value.args[0].code == 401
