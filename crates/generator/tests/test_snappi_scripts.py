# SPDX-License-Identifier: BSD-3-Clause
"""Traffic as snappi's users script it: rates, bursts, pauses, changes, metrics, credentials."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any

import pytest
import requests
import snappi
from farend import forwarder, memif
from frames import read_pcap
from harness import Generator, basic, certificate, eventually, generator, run
from traffic import (
    capture,
    captured,
    captured_flow,
    errors,
    flow_metrics,
    looped,
    port_metrics,
    published,
    stopped,
    transmit,
)

pytest_plugins = ["rig"]


def update(api: Any, properties: list[str], flow: Any) -> None:
    """Changes a flow's rate, sizes or both, whether it runs or not."""
    change = snappi.ConfigUpdate()
    change.choice = change.FLOWS
    change.flows.property_names = properties
    change.flows.flows.append(flow)
    api.update_config(change)


def test_quick_start(ring: Generator, directory: Path) -> None:
    """snappi's own quick start, on both sides of a device under test."""
    api = snappi.api(location=ring.url, verify=False)
    config = api.config()
    p1 = config.ports.port(name="p1", location=f"memif:{directory}/a")[-1]
    p2 = config.ports.port(name="p2", location=f"memif:{directory}/b")[-1]
    f1 = config.flows.flow(name="f1")[-1]
    f1.tx_rx.port.tx_name = p1.name
    f1.tx_rx.port.rx_names = [p2.name]
    f1.metrics.enable = True
    f1.size.fixed = 128
    f1.rate.pps = 1000
    f1.duration.fixed_packets.packets = 1000
    eth, _, _, udp = f1.packet.ethernet().vlan().ipv4().udp()
    eth.src.value = "00:11:22:33:44:55"
    udp.src_port.increment.start, udp.src_port.increment.count = 5000, 100
    api.set_config(config)
    devices = [memif(directory / "a"), memif(directory / "b", port=1)]
    with forwarder(directory, "l2fwd", devices, ["-p", "3", "-q", "2", "-T", "0"]) as far:
        far.wait()
        eventually(lambda: all(port.link == "up" for port in port_metrics(api).values()))
        control = api.control_state()
        control.traffic.flow_transmit.state = control.traffic.flow_transmit.START
        api.set_control_state(control)
        request = api.metrics_request()
        request.flow.flow_names = [f1.name]

        def done() -> bool:
            (metric,) = api.get_metrics(request).flow_metrics
            return bool(metric.transmit == metric.STOPPED and metric.frames_rx == metric.frames_tx)

        eventually(done)
        (metric,) = api.get_metrics(request).flow_metrics
        sent_ = metric.frames_tx
        # All but those that found the link full, should the forwarder have stood still.
        assert sent_ + ring.flow("f1")["lost_at_ingress"] == 1000
        assert sent_ > 500
        assert metric.bytes_rx == 128 * sent_
        assert (metric.port_tx, metric.port_rx) == ("p1", "p2")
        ports = port_metrics(api)
        assert (ports["p1"].frames_tx, ports["p2"].frames_rx) == (sent_, sent_)
        assert (ports["p1"].frames_rx, ports["p2"].frames_tx) == (0, 0)
        far.stop()


def test_rates_change_while_the_flow_runs(running: Generator) -> None:
    api = running.api
    config = looped(["f", "g"], pps=1_000)
    api.set_config(config)
    transmit(api, "start")
    flow = config.flows[0]
    flow.rate.pps = 40_000
    update(api, ["rate"], flow)
    assert api.get_config().flows[0].rate.pps == 40_000
    begin = flow_metrics(api)
    eventually(lambda: flow_metrics(api)["f"].frames_rx > begin["f"].frames_rx + 8_000)
    end = flow_metrics(api)
    # One runs at the new rate, the other as before: in the same time forty times as many.
    ratio = (end["f"].frames_tx - begin["f"].frames_tx) / (
        end["g"].frames_tx - begin["g"].frames_tx
    )
    assert 38 < ratio < 42
    flow.size.fixed = 500
    update(api, ["size", "rate"], flow)
    assert flow_metrics(api)["f"].transmit == "started"
    transmit(api, "stop")
    eventually(lambda: all(m.frames_rx == m.frames_tx for m in flow_metrics(api).values()))
    metric = flow_metrics(api)["f"]
    small = (500 * metric.frames_tx - metric.bytes_tx) // (500 - 64)
    assert metric.bytes_tx == 64 * small + 500 * (metric.frames_tx - small)
    assert 0 < small < metric.frames_tx
    assert metric.loss == 0


def test_frames_of_a_new_size_have_their_payload(running: Generator) -> None:
    api = running.api
    config, flow = captured_flow(1)
    flow.duration.continuous.gap = 12
    flow.rate.pps = 2_000
    flow.metrics.enable = True
    config.options.port_options.data_integrity = True
    flow.size.fixed = 100
    flow.payload.fixed.pattern = "c3"
    flow.packet.ethernet().ipv4().udp()
    api.set_config(config)
    transmit(api, "start")
    eventually(lambda: flow_metrics(api)["f"].frames_rx > 100)
    flow.size.fixed = 301
    update(api, ["size"], flow)
    before = flow_metrics(api)["f"].frames_rx
    eventually(lambda: flow_metrics(api)["f"].frames_rx > before + 50)
    capture(api, "start")
    eventually(lambda: len(read_pcap(captured(api, "p1"))) > 50)
    transmit(api, "stop")
    for record in read_pcap(captured(api, "p1")):
        # Headers of 42 bytes; at the end 22 of mark and payload's checksum, and one of padding.
        assert len(record.data) == 301
        assert record.data[42 : 297 - 23] == b"\xc3" * (297 - 42 - 23)
    assert running.flow("f")["corrupt"] == 0


def test_seconds_that_are_left_run_at_the_new_rate(running: Generator) -> None:
    api = running.api
    config = looped(["f"], pps=1_000)
    flow = config.flows[0]
    flow.duration.fixed_seconds.seconds = 1
    api.set_config(config)
    transmit(api, "start")
    eventually(lambda: flow_metrics(api)["f"].frames_tx > 200)
    flow.rate.pps = 20_000
    update(api, ["rate"], flow)
    eventually(lambda: stopped(api))
    found = running.flow("f")
    assert found["attempted"] == found["intended"]
    # Between 0.2 s and all of the second at the first rate.
    assert 1_000 <= found["intended"] < 200 + 0.8 * 20_000 + 20


def test_an_update_that_cannot_be_changes_nothing(running: Generator) -> None:
    api = running.api
    config = looped(["f", "g"], pps=1_000)
    api.set_config(config)
    flow = config.flows[1]
    flow.rate.percentage = 10
    (error,) = errors(lambda: update(api, ["rate"], flow))
    assert error.startswith('flows.flows[0].rate.percentage: port "p1" has no line rate; say one')
    flow.size.fixed = 9000
    (error,) = errors(lambda: update(api, ["size"], flow))
    assert error.startswith("flows.flows[0].size.fixed: frames of 9000 bytes are longer than 1518")
    assert [f.rate.pps for f in api.get_config().flows] == [1_000, 1_000]
    flow.duration.continuous.delay.bytes = 1_000
    flow.size.fixed, flow.rate.pps = 64, 1_000
    (error,) = errors(lambda: api.set_config(config))
    assert error.startswith("flows[1].duration.continuous.delay.bytes: port")


def test_flows_of_a_port_share_it_exactly(running: Generator) -> None:
    api = running.api
    rates = {"a": 9_000, "b": 3_000, "c": 1_000, "d": 7_000}
    config = looped(list(rates))
    config.captures.capture(name="c", port_names=["p1"])
    for flow, pps in zip(config.flows, rates.values(), strict=True):
        flow.rate.pps, flow.duration.fixed_seconds.seconds = pps, 1
        flow.packet[2].dst_port.value = pps
    api.set_config(config)
    capture(api, "start")
    transmit(api, "start")
    eventually(lambda: stopped(api))
    eventually(lambda: port_metrics(api)["p1"].frames_rx == sum(rates.values()))
    capture(api, "stop")
    assert {name: m.frames_rx for name, m in flow_metrics(api).items()} == rates
    # Interleaved: of every 20 frames 9, 3, 1 and 7, give or take one of each at the edges.
    order = [int.from_bytes(record.data[36:38], "big") for record in read_pcap(captured(api, "p1"))]
    for first in range(0, len(order) - 20, 20):
        part = order[first : first + 20]
        for pps in rates.values():
            assert abs(part.count(pps) - pps // 1000) <= 2, (first, part)


def test_bursts_have_their_gaps(running: Generator) -> None:
    api = running.api
    config = looped(["f"], pps=100_000)
    config.captures.capture(name="c", port_names=["p1"])
    burst = config.flows[0].duration.burst
    burst.bursts, burst.packets = 5, 10
    burst.inter_burst_gap.microseconds = 200_000
    api.set_config(config)
    capture(api, "start")
    transmit(api, "start")
    eventually(lambda: stopped(api))
    eventually(lambda: flow_metrics(api)["f"].frames_rx == 50)
    capture(api, "stop")
    stamps = [record.nanoseconds for record in read_pcap(captured(api, "p1"))]
    gaps = [(later - earlier) / 1e6 for earlier, later in itertools.pairwise(stamps)]
    # Between bursts 200 ms and the interval of a frame, whatever this machine was late by.
    long = [number for number, gap in enumerate(gaps) if gap > 100]
    assert long == [9, 19, 29, 39]
    assert (stamps[40] - stamps[0]) / 1e6 == pytest.approx(4 * 200.1, abs=100)
    assert running.flow("f")["intended"] == 50


def test_a_delay_puts_the_first_frame_off(running: Generator) -> None:
    api = running.api
    config = looped(["now", "later"], pps=1_000)
    for flow in config.flows:
        flow.duration.fixed_packets.packets = 10
        flow.metrics.timestamps = True
    config.flows[1].duration.fixed_packets.delay.microseconds = 300_000
    api.set_config(config)
    transmit(api, "start")
    eventually(lambda: flow_metrics(api)["now"].transmit == "stopped")
    metrics = flow_metrics(api)
    assert (metrics["now"].frames_tx, metrics["later"].frames_tx) == (10, 0)
    assert metrics["later"].transmit == "started"
    eventually(lambda: stopped(api))
    assert flow_metrics(api)["later"].frames_tx == 10


def test_pause_and_resume(running: Generator) -> None:
    api = running.api
    config = looped(["f", "g"], pps=10_000)
    config.flows[0].duration.fixed_packets.packets = 6_000
    api.set_config(config)
    transmit(api, "start")
    eventually(lambda: flow_metrics(api)["f"].frames_tx > 500)
    transmit(api, "pause", ["f"])
    paused = flow_metrics(api)["f"]
    assert (paused.transmit, flow_metrics(api)["g"].transmit) == ("paused", "started")
    other = flow_metrics(api)["g"].frames_tx
    eventually(lambda: flow_metrics(api)["g"].frames_tx > other + 2_000)
    assert flow_metrics(api)["f"].frames_tx == paused.frames_tx < 6_000
    transmit(api, "resume", ["f"])
    eventually(lambda: flow_metrics(api)["f"].transmit == "stopped")
    eventually(lambda: flow_metrics(api)["f"].frames_rx == 6_000)
    found = running.flow("f")
    assert (found["intended"], found["attempted"]) == (6_000, 6_000)
    assert (found["duplicates"], found["reordered"]) == (0, 0)
    # The pause of 0.2 s is no pacing error of 0.6 s of traffic, which has been put off by it.
    assert found["pacing_error_ppm"] < 300_000
    transmit(api, "stop")


def test_only_the_named_flows_start(running: Generator) -> None:
    api = running.api
    config = looped(["a", "b", "c"])
    for flow in config.flows:
        flow.duration.fixed_packets.packets = 100
    api.set_config(config)
    transmit(api, "start", ["a", "c"])
    eventually(lambda: stopped(api))
    eventually(lambda: flow_metrics(api)["c"].frames_rx == 100)
    assert {n: m.frames_rx for n, m in flow_metrics(api).items()} == {"a": 100, "b": 0, "c": 100}
    transmit(api, "start", ["b"])
    eventually(lambda: flow_metrics(api)["b"].frames_rx == 100)
    assert {m.frames_rx for m in flow_metrics(api).values()} == {100}
    # From rest the port counts anew, what it sends as what it receives.
    (port,) = port_metrics(api).values()
    assert (port.frames_tx, port.frames_rx) == (100, 100)
    # Those that rest have no rate because others start.
    rates = {n: (m.frames_tx_rate, m.frames_rx_rate) for n, m in flow_metrics(api).items()}
    assert rates["a"] == rates["c"] == (0.0, 0.0)
    (error,) = errors(lambda: transmit(api, "start", ["nobody"]))
    assert error == 'traffic.flow_transmit.flow_names[0]: there is no flow named "nobody"'


def test_metrics_of_flows_and_ports(running: Generator) -> None:
    api = running.api
    config = looped(["f"], pps=20_000)
    config.options.port_options.data_integrity = True
    config.options.flow_options.packet_loss_duration = True
    flow = config.flows[0]
    flow.size.fixed = 128
    flow.metrics.timestamps = flow.metrics.latency.enable = True
    flow.metrics.latency.mode = flow.metrics.latency.CUT_THROUGH
    flow.duration.fixed_packets.packets = 5_000
    warnings = list(api.set_config(config).warnings)
    assert len(warnings) == 1
    assert "metrics.latency.mode cut_through" in warnings[0]
    # On a busy machine all frames of a run may be disturbed, and then none has a latency.
    for _ in range(10):
        metric = run(api, config)["f"]
        if metric.latency.minimum_ns:
            break
    assert (metric.loss, metric.packet_loss_duration.value) == (0, 0)
    latency = metric.latency
    assert 0 < latency.minimum_ns <= latency.average_ns <= latency.maximum_ns < 1e9
    figures = running.flow("f")
    pdv = [figures[f"pdv_{name}_ns"] for name in ("p50", "p99", "p999")]
    # Histograms tell two digits.
    assert 0 <= pdv[0] <= pdv[1] <= pdv[2] <= 1.02 * (latency.maximum_ns - latency.minimum_ns) + 1
    # From the first frame to the last it takes 4,999 intervals of 50 us, or as late as it was.
    first, last = metric.timestamps.first_timestamp_ns, metric.timestamps.last_timestamp_ns
    assert 0 < first < last
    assert (last - first) / 1e6 == pytest.approx(249.95, rel=0.5)
    port = port_metrics(api)["p1"]
    integrity = port.data_integrity
    assert (integrity.total_frames_rx, integrity.error_frames_rx) == (5_000, 0)


def test_loss_is_counted_against_what_should_come_back(directory: Path) -> None:
    """Frames that go nowhere are all lost; of those that are to come twice, half are."""
    with generator(directory) as running:
        api = running.api
        config = looped(["back", "gone", "twice"], pps=2_000)
        config.options.flow_options.packet_loss_duration = True
        config.ports.port(name="p2", location="null,no-rx=1")
        config.flows[1].tx_rx.port.tx_name = "p2"
        config.flows[2].metrics.rx_tx_ratio.value = 2
        for flow in config.flows:
            flow.duration.fixed_packets.packets = 1_000
        api.set_config(config)
        transmit(api, "start")
        eventually(lambda: stopped(api))
        eventually(lambda: flow_metrics(api)["back"].frames_rx == 1_000)
        eventually(lambda: flow_metrics(api)["twice"].frames_rx == 1_000)
        metrics = flow_metrics(api)
        assert {name: m.loss for name, m in metrics.items()} == {
            "back": 0,
            "gone": 100,
            "twice": 50,
        }
        assert metrics["back"].packet_loss_duration.value == 0
        # A thousand frames at 2,000 a second take 500 ms.
        for name, wanted in (("gone", 500), ("twice", 250)):
            assert metrics[name].packet_loss_duration.value == pytest.approx(wanted, rel=0.5)


def test_rates_are_those_of_now(running: Generator) -> None:
    api = running.api
    config = looped(["f"], pps=10_000)
    config.flows[0].size.fixed = 105
    api.set_config(config)
    transmit(api, "start")
    eventually(lambda: 8_000 < flow_metrics(api)["f"].frames_rx_rate < 12_000)
    metric = flow_metrics(api)["f"]
    assert metric.tx_rate_bytes == pytest.approx(105 * metric.frames_tx_rate)
    assert metric.tx_rate_bps == pytest.approx(840 * metric.frames_tx_rate)
    assert metric.tx_rate_kbps == pytest.approx(0.84 * metric.frames_tx_rate)
    assert metric.tx_l1_rate_bps == pytest.approx(1000 * metric.frames_tx_rate)
    transmit(api, "stop")
    eventually(lambda: flow_metrics(api)["f"].frames_tx_rate == 0)


@pytest.mark.parametrize(
    ("rate", "frames"),
    [
        ({"bps": 672_000}, 1_000),  # 84 bytes on the wire each
        pytest.param({"kbps": 1_344}, 2_000, marks=pytest.mark.second_tier),
        pytest.param({"mbps": 7}, 10_417, marks=pytest.mark.second_tier),
        ({"percentage": 0.05}, 7_441),  # of 10 Gbit/s by layer1.speed
    ],
)
def test_rates_in_other_units(running: Generator, rate: dict[str, float], frames: int) -> None:
    config = looped(["f"])
    config.layer1.layer1(name="l", port_names=["p1"], speed="speed_10_gbps")
    for unit, value in rate.items():
        setattr(config.flows[0].rate, unit, value)
    config.flows[0].duration.fixed_seconds.seconds = 1
    assert run(running.api, config)["f"].frames_tx == frames
    assert port_metrics(running.api)["p1"].speed == 10_000


def test_per_cent_of_the_line_rate_that_was_given(directory: Path) -> None:
    with generator(directory, "--line-rate", "10Gbps") as running:
        config = published()
        config.flows[0].rate.percentage = 0.1
        config.flows[0].size.fixed = 1_230
        config.flows[0].duration.fixed_seconds.seconds = 0.5
        # 10 Mbit/s in frames of 10,000 bits.
        assert run(running.api, config)["f0"].frames_tx == 500


def test_credentials_come_from_the_url(directory: Path) -> None:
    password = directory / "password"
    password.write_text("a secret of mine\n")
    options = [*certificate(directory), "--otg-user=me", f"--otg-password-file={password}"]
    with generator(directory, *options) as running:
        place = running.url.removeprefix("https://")
        api = snappi.api(location=f"https://me:a%20secret%20of%20mine@{place}", verify=False)
        metrics = run(api, published())
        assert metrics["f0"].frames_rx == 5_000
        for wrong in (place, f"me:wrong-password@{place}", f"you:a%20secret%20of%20mine@{place}"):
            other = snappi.api(location=f"https://{wrong}", verify=False)
            with pytest.raises(Exception, match="401") as info:  # snappi raises nothing finer
                other.get_config()
            assert "https://USER:PASSWORD@HOST:PORT" in str(info.value)
        # Other clients send the header themselves.
        head = basic("me", "a secret of mine")
        answer = requests.get(f"{running.url}/config", headers=head, verify=False, timeout=5)
        assert answer.json()["ports"][0]["name"] == "p1"


def test_a_password_without_tls_is_for_loopback(directory: Path) -> None:
    password = directory / "password"
    password.write_text("12345678")
    options = ["--otg-user=me", f"--otg-password-file={password}"]
    with generator(directory, *options) as running:
        place = running.url.removeprefix("http://")
        snappi.api(location=f"http://me:12345678@{place}").set_config(published())
        status, answer = running.request("GET", "/config")
        assert (status, answer["code"]) == (401, 401)
        begin = time.monotonic()
        assert running.request("GET", "/config", headers=basic("me", "12345678"))[0] == 200
        assert time.monotonic() - begin < 5
