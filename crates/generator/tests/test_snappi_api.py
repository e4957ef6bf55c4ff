# SPDX-License-Identifier: BSD-3-Clause
"""The Open Traffic Generator API as the generator serves it, through an unmodified snappi 1.62.

Frames come back over a ring in the generator itself; with our l2fwd beside it they also go
over memif.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import snappi
from farend import forwarder, memif
from harness import Generator, eventually, generator, run
from traffic import errors, flow_metrics, looped, port_metrics, published, stopped, transmit

pytest_plugins = ["rig"]


def checking(running: Generator, release: str | None) -> Any:
    """A client that compares versions before its first request, as of that release."""
    api = snappi.api(location=running.url, version_check=True)
    if release is not None:
        api.get_local_version().api_spec_version = release
    return api


@pytest.mark.parametrize("release", [None, "1.0.0", "1.3.0", "1.41.0", "1.61.0", "1.99.0"])
def test_clients_of_any_release_of_the_model_are_compatible(
    running: Generator, release: str | None
) -> None:
    api = checking(running, release)
    api.check_version_compatibility()
    api.set_config(snappi.Config())
    version = api.get_version()
    assert version.api_spec_version == ">=1.0.0,<2.0.0"
    assert version.sdk_version == "1.62.0"


@pytest.mark.parametrize("release", ["0.13.7", "2.0.0"])
def test_clients_of_another_model_are_told(running: Generator, release: str) -> None:
    api = checking(running, release)
    with pytest.raises(Exception, match=f"'{release}' is not semver compatible"):
        api.set_config(snappi.Config())


def test_every_frame_comes_back_and_is_counted(ring: Generator) -> None:
    api = ring.api
    config = published(flows=3)
    assert list(api.set_config(config).warnings) == []
    assert api.get_config().serialize("dict") == config.serialize("dict")
    transmit(api, "start")
    eventually(lambda: stopped(api))
    eventually(lambda: all(metric.frames_rx == 5000 for metric in flow_metrics(api).values()))
    metrics = flow_metrics(api)
    assert sorted(metrics) == ["f0", "f1", "f2"]
    for metric in metrics.values():
        assert (metric.frames_tx, metric.bytes_tx, metric.bytes_rx) == (5000, 320000, 320000)
        assert (metric.port_tx, metric.port_rx, metric.loss) == ("p1", "p1", 0.0)
    port = port_metrics(api)["p1"]
    assert (port.frames_tx, port.frames_rx) == (15000, 15000)
    assert (port.link, port.transmit) == ("up", "stopped")
    books = ring.port()
    assert (books["intended"], books["attempted"], books["accepted"]) == (15000, 15000, 15000)
    assert (books["received"], books["foreign"], books["stale"]) == (15000, 0, 0)
    assert (books["duplicates"], books["reordered"], books["corrupt"]) == (0, 0, 0)
    flow = ring.flow()
    assert "latency_hdr" not in flow  # no latency was asked for
    assert "gap_hdr" in flow
    clock = ring.ask("/linerate/clock")
    # 5000 frames at 20,000 a second.
    seconds = flow["tx_duration_tsc"] / clock["tsc_hz"]
    assert seconds == pytest.approx(0.25, abs=0.05)
    assert ring.ask("/linerate/generator/flow,nobody") is None


def test_start_clears_counters_and_stop_does_not(ring: Generator) -> None:
    api = ring.api
    config = published(flows=2)
    for flow in config.flows:
        flow.duration.choice = flow.duration.CONTINUOUS
    api.set_config(config)
    transmit(api, "start")
    eventually(lambda: flow_metrics(api)["f0"].frames_rx > 100)
    transmit(api, "stop", ["f0"])
    one = flow_metrics(api)["f0"].frames_tx
    assert one > 100
    assert flow_metrics(api)["f1"].transmit == "started"
    transmit(api, "stop")
    assert flow_metrics(api)["f0"].frames_tx == one
    two = flow_metrics(api)["f1"].frames_tx
    transmit(api, "start", ["f1"])
    transmit(api, "stop")
    assert flow_metrics(api)["f0"].frames_tx == one
    assert flow_metrics(api)["f1"].frames_tx < two


def test_fixed_seconds_send_the_intended_count(ring: Generator) -> None:
    api = ring.api
    config = published()
    flow = config.flows[0]
    flow.rate.pps = 12345
    flow.duration.fixed_seconds.seconds = 0.5
    for size in (64, 65, 513, 1518):
        flow.size.fixed = size
        api.set_config(config)
        transmit(api, "start")
        eventually(lambda: stopped(api))
        eventually(lambda: flow_metrics(api)["f0"].frames_rx == 6173)
        assert flow_metrics(api)["f0"].bytes_rx == 6173 * size


def test_columns_are_chosen(ring: Generator) -> None:
    api = ring.api
    api.set_config(published())
    only = port_metrics(api, ["frames_tx", "link"])["p1"].serialize("dict")
    assert only == {"name": "p1", "frames_tx": "0", "link": "up"}


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda c: c.flows[0].packet.gtpv2(), "flows[0].packet[3].gtpv2"),
        (lambda c: setattr(c.flows[0].size, "fixed", 2000), "flows[0].size.fixed"),
        (lambda c: c.flows[0].packet.vxlan().ethernet(), "flows[0].size: "),
        (lambda c: setattr(c.flows[0].rate, "percentage", 10), "flows[0].rate.percentage"),
        (lambda c: setattr(c.flows[0].duration.continuous, "gap", 13), "flows[0].duration.con"),
        (
            lambda c: c.flows[0].packet[1].src.metric_tags.add(name="t", offset=1),
            "flows[0].packet[1].ipv4.src.metric_tags[0]",
        ),
        (
            lambda c: setattr(c.flows[0].packet[1].src.auto, "choice", "dhcp"),
            "flows[0].packet[1].ipv4.src.auto",
        ),
        (lambda c: setattr(c.flows[0].tx_rx.port, "tx_name", "x"), "flows[0].tx_rx.port.tx_name"),
        (
            lambda c: c.flows[0].tx_rx.device.deserialize({"tx_names": ["d"], "rx_names": ["e"]}),
            "flows[0].tx_rx.device.tx_names[0]",
        ),
        (lambda c: c.flows[0].egress_packet.rsvp(), "flows[0].egress_packet[0].rsvp"),
        (lambda c: c.flows.append(published().flows[0]), "flows[1].name"),
        (
            lambda c: setattr(c.devices.device(name="d")[-1].bgp, "router_id", "1.1.1.1"),
            "devices[0].bgp",
        ),
        (lambda c: c.lags.lag(name="l"), "lags"),
        (lambda c: setattr(c.events.cp_events, "enable", True), "events"),
        (
            lambda c: setattr(
                c.layer1.layer1(name="l", port_names=["p1"])[-1].flow_control,
                "choice",
                "ieee_802_3x",
            ),
            "layer1[0].flow_control.choice",
        ),
        (lambda c: c.captures.capture(name="c", port_names=["p9"]), "captures[0].port_names"),
        (lambda c: c.ports.port(name="p2", location="no-such-if"), "ports[1].location"),
        (lambda c: c.ports.port(name="p2", location="vdev:net_nothing0"), "ports[1].location"),
        (
            lambda c: c.ports.port(name="p2", location="vdev:net_pcap0,tx_pcap=/x"),
            "ports[1].location",
        ),
        (
            lambda c: c.ports.port(name="p2", location="vdev:net_ring1,internal=1"),
            "ports[1].location",
        ),
        (lambda c: c.ports.port(name="p2", location="memif:/dev/null"), "ports[1].location"),
        (lambda c: c.ports.port(name="p2", location="vdev:net_ring0"), "ports[1].location"),
        (lambda c: c.ports.port(name="p2", location="pci:ffff:ff:1f.7"), "ports[1].location"),
    ],
)
def test_what_is_refused_is_named_and_changes_nothing(
    ring: Generator, change: Callable[[Any], Any], path: str
) -> None:
    api = ring.api
    good = published()
    good.flows[0].duration.choice = "continuous"
    api.set_config(good)
    transmit(api, "start")
    bad = published()
    change(bad)
    found = errors(lambda: api.set_config(bad))
    assert any(error.startswith(path) for error in found), found
    before = flow_metrics(api)["f0"]
    assert before.transmit == "started"
    eventually(lambda: flow_metrics(api)["f0"].frames_tx > before.frames_tx)
    assert api.get_config().serialize("dict") == good.serialize("dict")


def test_what_changes_no_frame_is_ignored_with_a_warning(ring: Generator) -> None:
    """As others' suites write it, for every kind of port: unmodified, they run."""
    api = ring.api
    config = published()
    config.options.port_options.location_preemption = True
    layer1 = config.layer1.layer1(name="l", port_names=["p1"])[-1]
    layer1.speed, layer1.media, layer1.mtu = layer1.SPEED_1_GBPS, layer1.FIBER, 9000
    layer1.ieee_media_defaults = layer1.auto_negotiate = False
    layer1.auto_negotiation.rs_fec = True
    warnings = list(api.set_config(config).warnings)
    paths = {warning.partition(": ignored: ")[0] for warning in warnings}
    assert paths == {
        "options.port_options.location_preemption",
        *(f"layer1[0].{name}" for name in ("media", "mtu", "ieee_media_defaults")),
        "layer1[0].auto_negotiate",
        "layer1[0].auto_negotiation.rs_fec",
    }
    assert any("--max-frame 9018" in warning for warning in warnings)
    state = api.control_state()
    state.protocol.all.state = state.protocol.all.START
    (warning,) = api.set_control_state(state).warnings
    assert warning == "protocol.all: ignored: there are no devices, and so no protocols"
    assert run(api, config)["f0"].frames_rx == 5000


def test_a_flow_without_a_size_has_the_smallest(ring: Generator) -> None:
    api = ring.api
    config = looped(["f"])
    config.flows[0].packet.clear()
    config.flows[0].packet.ethernet().vlan().ipv6().udp()
    config.flows[0].duration.fixed_packets.packets = 100
    (warning,) = api.set_config(config).warnings
    assert warning.startswith("flows[0].size: not given: frames have 88 bytes, the smallest size")
    metric = run(api, config)["f"]
    assert (metric.frames_rx, metric.bytes_rx, metric.loss) == (100, 88 * 100, 0)


def test_ports_say_when_their_link_last_changed(ring: Generator, directory: Path) -> None:
    api = ring.api
    begin = time.time_ns()
    api.set_config(published(f"memif:{directory}/s"))
    opened = port_metrics(api)["p1"].last_change
    assert begin < opened < time.time_ns()
    with forwarder(directory, "l2fwd", [memif(directory / "s")], ["-p", "1", "-T", "0"]) as far:
        far.wait()
        eventually(lambda: port_metrics(api)["p1"].link == "up")
        up = port_metrics(api)["p1"].last_change
        assert opened < up < time.time_ns()
        # The same as long as nothing changes.
        assert port_metrics(api, ["last_change"])["p1"].last_change == up
        far.stop()
    # Nobody asks meanwhile: it is seen all the same, within a second.
    ended = time.time_ns()
    time.sleep(2.5)
    down = port_metrics(api)["p1"]
    assert down.link == "down"
    assert up < down.last_change < ended + 1_500_000_000


def test_percentage_needs_a_line_rate(directory: Path) -> None:
    with generator(directory, "--line-rate", "40000") as running:
        api = running.api
        config = published()
        config.flows[0].rate.percentage = 25
        config.flows[0].duration.fixed_seconds.seconds = 0.5
        api.set_config(config)
        transmit(api, "start")
        eventually(lambda: stopped(api))
        assert flow_metrics(api)["f0"].frames_tx == 5000


def test_a_flood_offers_refused_frames_again(directory: Path) -> None:
    with generator(directory, "--flood") as running:
        api = running.api
        config = published()
        config.flows[0].duration.fixed_packets.packets = 100_000
        api.set_config(config)
        transmit(api, "start")
        eventually(lambda: stopped(api))
        eventually(lambda: flow_metrics(api)["f0"].frames_rx == 100_000)
        books = running.flow()
        assert books["accepted"] == 100_000
        assert books["lost_at_ingress"] == 0
        assert books["attempted"] == books["accepted"] + books["refused"]
        assert books["pacing"] == "flood"
        assert "pacing_error_ppm" not in books


def test_a_start_waits_for_the_link_and_then_names_the_port(
    ring: Generator, directory: Path
) -> None:
    api = ring.api
    socket_path = directory / "s"
    config = published(f"memif:{socket_path}")
    api.set_config(config)
    api.set_config(config)  # the same ports stay
    assert socket_path.is_socket()
    assert port_metrics(api)["p1"].link == "down"
    (error,) = errors(lambda: transmit(api, "start"))
    assert '"p1"' in error
    assert "down" in error
    assert flow_metrics(api)["f0"].frames_tx == 0
    api.set_config(snappi.Config())
    assert not socket_path.exists()


def test_the_books_close_over_memif(ring: Generator, directory: Path) -> None:
    api = ring.api
    config = published(f"memif:{directory}/s")
    config.flows[0].rate.pps = 100_000
    config.flows[0].duration.fixed_seconds.seconds = 1
    api.set_config(config)
    with forwarder(directory, "l2fwd", [memif(directory / "s")], ["-p", "1", "-T", "0"]) as far:
        far.wait()
        eventually(lambda: port_metrics(api)["p1"].link == "up")
        transmit(api, "start")
        eventually(lambda: stopped(api))

        def closed() -> bool:
            """What is in flight has arrived."""
            books = ring.port()
            return (books["accepted"], books["received"]) == far.packets()

        eventually(closed)
        books = ring.port()
        assert books["attempted"] == books["intended"] == 100_000
        assert (books["foreign"], books["stale"], books["misdirected"]) == (0, 0, 0)
        far.stop()
    eventually(lambda: port_metrics(api)["p1"].link == "down")


def test_flows_are_appended_and_deleted(ring: Generator) -> None:
    api = ring.api
    config = published("ring:r")
    api.set_config(config)
    flow = config.flows[0].clone()
    flow.name = "more"
    more = snappi.ConfigAppend()
    more.config_append_list.add().flows.append(flow)
    assert not api.append_config(more).warnings
    names = [each.name for each in api.get_config().flows]
    assert names == [config.flows[0].name, "more"]
    transmit(api, "start")
    eventually(lambda: stopped(api))
    eventually(lambda: all(each.frames_rx == each.frames_tx > 0 for each in rows(api)))
    assert len(rows(api)) == 2
    # Once more, and in a form that is wrong.
    flow.size.fixed = 20
    found = errors(lambda: api.append_config(more))
    assert [each for each in found if each.startswith("config_append_list[0].flows[0]")], found
    less = snappi.ConfigDelete()
    less.config_delete_list.add().flows = [names[0]]
    api.delete_config(less)
    assert [each.name for each in api.get_config().flows] == ["more"]
    assert errors(lambda: api.delete_config(less)) == [
        f'config_delete_list[0].flows[0]: there is no flow named "{names[0]}"'
    ]


def rows(api: Any) -> list[Any]:
    return list(flow_metrics(api).values())


def test_flows_are_appended_to_a_resting_configuration_only(ring: Generator) -> None:
    config = published("ring:r")
    config.flows[0].duration.choice = "continuous"
    ring.api.set_config(config)
    ring.transmit("start")
    more, flow = snappi.ConfigAppend(), config.flows[0].clone()
    flow.name = "more"
    more.config_append_list.add().flows.append(flow)
    with pytest.raises(Exception, match="flows are sending or paused: stop them") as info:
        ring.api.append_config(more)
    assert info.value.args[0].code == 409
    ring.transmit("stop")
    ring.api.append_config(more)
