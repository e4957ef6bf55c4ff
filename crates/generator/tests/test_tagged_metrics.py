# SPDX-License-Identifier: BSD-3-Clause
"""Tagged metrics: a flow's frames counted by what tells them apart, through the kernel's routing.

The kernel routes what `va` sends to `vc` and `vg`, by destination address, counts hop limits down
and writes MAC addresses of its own. So what each row must count is known in advance. Needs root
and is skipped where no network namespace can be made.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import snappi
from harness import Generator, eventually, generator
from netns import FAR, NEAR, inside, ip
from traffic import errors, looped

pytest_plugins = ["rig"]
pytestmark = pytest.mark.usefixtures("veth")

FRAMES, PPS = 600, 1000
NEXT_HOPS = {"vd": ("198.19.0.1", "02:00:00:00:00:19"), "vh": ("198.20.0.1", "02:00:00:00:00:20")}


def route() -> str:
    """Sets the kernel up as a router. Returns the MAC address of its end of `va`."""
    for near, far in (("vc", "vd"), ("vg", "vh")):
        ip("link", "add", near, "netns", NEAR, "type", "veth", "peer", "name", far, "netns", FAR)
        ip("-n", NEAR, "link", "set", near, "up")
        ip("-n", FAR, "link", "set", far, "addrgenmode", "none", "up")
    with inside(FAR):
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    ip("-n", FAR, "address", "add", "198.18.255.254/16", "dev", "vb")
    for far, (address, mac) in NEXT_HOPS.items():
        ip("-n", FAR, "address", "add", address.replace("0.1", "255.254/16"), "dev", far)
        ip("-n", FAR, "neighbour", "add", address, "lladdr", mac, "dev", far)
    (link,) = json.loads(ip("-n", FAR, "-j", "link", "show", "dev", "vb"))
    return str(link["address"])


@pytest.fixture
def routed(directory: Path) -> Iterator[tuple[Generator, str]]:
    """A generator at the router, and the router's MAC address."""
    gateway = route()
    there = ["ip", "netns", "exec", NEAR]
    with inside(NEAR), generator(directory, before=there) as running:
        yield running, gateway


def configured(gateway: str) -> tuple[Any, Any]:
    """Of three frames two go to p2 and one to p3."""
    config = snappi.Config()
    for name, interface in (("p1", "va"), ("p2", "vc"), ("p3", "vg")):
        config.ports.port(name=name, location=interface)
    made = config.flows.flow(name="f")[-1]
    made.tx_rx.port.tx_name, made.tx_rx.port.rx_names = "p1", ["p2", "p3"]
    ethernet, ip4, _ = made.packet.ethernet().ipv4().udp()
    ethernet.dst.value, ip4.src.value = gateway, "198.18.0.1"
    ip4.dst.values = ["198.19.0.1", "198.19.0.1", "198.20.0.1"]
    made.size.fixed, made.rate.pps = 128, PPS
    made.duration.fixed_packets.packets = FRAMES
    made.metrics.enable = made.metrics.loss = True
    return config, made


def sent(running: Generator, config: Any) -> list[str]:
    """Sends all, until all has come back; the warnings."""
    warnings = list(running.api.set_config(config).warnings)
    running.transmit("start")
    eventually(running.stopped)
    eventually(
        lambda: running.flows()["f"].frames_rx == FRAMES, lambda: running.flows()["f"].frames_rx
    )
    return warnings


def asked(running: Generator, **tagged: Any) -> list[Any]:
    """The rows of the flow that pass the filters `filters`, each a name and values."""
    request = snappi.MetricsRequest()
    request.flow.flow_names = ["f"]
    for name, values in tagged.pop("filters", {}).items():
        request.flow.tagged_metrics.filters.filter(name=name, values=list(values))
    request.flow.tagged_metrics.set(**tagged)
    (metric,) = running.api.get_metrics(request).flow_metrics
    return list(metric.tagged_metrics)


def values(row: Any) -> tuple[Any, ...]:
    """The values of a row's tags: numbers of bits, words of names."""
    found = (tag.value for tag in row.tags)
    return tuple(int(each.hex, 16) if each.choice == "hex" else each.str for each in found)


def counted(rows: list[Any]) -> dict[tuple[Any, ...], int]:
    """Frames received by values of tags."""
    assert len({values(row) for row in rows}) == len(rows)
    for row in rows:
        assert row.bytes_rx == 128 * row.frames_rx
    return {values(row): row.frames_rx for row in rows}


def test_each_receiving_port_has_a_row(routed: tuple[Generator, str]) -> None:
    running, gateway = routed
    config, made = configured(gateway)
    made.metrics.predefined_metric_tags.rx_name = True
    made.metrics.timestamps = True
    sent(running, config)
    rows = asked(running)
    assert [[tag.name for tag in row.tags] for row in rows] == [["rx_name"]] * 2
    assert counted(rows) == {("p2",): 2 * FRAMES // 3, ("p3",): FRAMES // 3}
    whole = running.flows()["f"].timestamps
    times = [row.timestamps for row in rows]
    assert min(each.first_timestamp_ns for each in times) == whole.first_timestamp_ns
    assert max(each.last_timestamp_ns for each in times) == whole.last_timestamp_ns
    # Each filter of the request.
    assert counted(asked(running, filters={"rx_name": ["p3"]})) == {("p3",): FRAMES // 3}
    assert len(asked(running, filters={"rx_name": []})) == 2
    assert asked(running, include=False) == []
    (row,) = asked(running, filters={"rx_name": ["p2"]}, metric_names=["bytes_rx"])
    assert (row.bytes_rx, row.frames_rx) == (128 * 2 * FRAMES // 3, None)
    wrong = errors(lambda: asked(running, filters={"vlan": []}))
    assert len(wrong) == 1
    assert wrong[0].startswith("flow.tagged_metrics.filters[0].name: no flow that is asked about")
    # All start anew. Ports without frames have rows where they are asked for.
    running.transmit("start")
    eventually(running.stopped)
    eventually(lambda: counted(asked(running)) == {("p2",): 400, ("p3",): 200})
    made.packet[1].dst.values = ["198.20.0.1"]
    sent(running, config)
    assert counted(asked(running)) == {("p3",): FRAMES}
    assert counted(asked(running, include_empty_metrics=True)) == {("p2",): 0, ("p3",): FRAMES}


def test_rows_have_rates(routed: tuple[Generator, str]) -> None:
    running, gateway = routed
    config, made = configured(gateway)
    made.metrics.predefined_metric_tags.rx_name = True
    made.duration.choice = made.duration.CONTINUOUS
    running.api.set_config(config)
    running.transmit("start")

    def right() -> bool:
        rows = {values(row): row for row in asked(running)}
        rates = [rows[port,].frames_rx_rate for port in ("p2", "p3")] if len(rows) == 2 else []
        shares = [PPS * 2 / 3, PPS / 3]
        return bool(rates) and rates == pytest.approx(shares, rel=0.2)

    eventually(right, lambda: [(values(r), r.frames_rx_rate) for r in asked(running)])
    running.transmit("stop")


def test_fields_count_by_what_was_sent(routed: tuple[Generator, str]) -> None:
    """The router counts hop limits down, and drops frames whose last hop it is."""
    running, gateway = routed
    config, made = configured(gateway)
    ip4, udp = made.packet[1], made.packet[2]
    ip4.dst.metric_tags.metrictag(name="net", offset=8, length=8)
    ip4.time_to_live.values = [64, 33]
    ip4.time_to_live.metric_tags.metrictag(name="ttl")
    udp.src_port.increment.start, udp.src_port.increment.count = 1000, 1000
    assert sent(running, config) == []
    rows = {values(row): row for row in asked(running)}
    assert {key: row.frames_rx for key, row in rows.items()} == {
        (64, 19): 200,
        (33, 19): 200,
        (64, 20): 100,
        (33, 20): 100,
    }
    for row in rows.values():
        assert (row.frames_tx, row.bytes_tx) == (row.frames_rx, 128 * row.frames_rx)
        assert row.loss == 0
    only = asked(running, filters={"ttl": ["0x21"], "net": ["14"]})
    assert [(values(row), row.frames_rx) for row in only] == [((33, 20), 100)]
    # One value does not come through: its row says so.
    ip4.time_to_live.values = [64, 1, 33]
    ip4.dst.values = ["198.19.0.1"]
    running.api.set_config(config)
    running.transmit("start")
    eventually(running.stopped)
    eventually(lambda: running.flows()["f"].frames_rx == 400)
    found = {values(row): (row.frames_tx, row.frames_rx, row.loss) for row in asked(running)}
    assert found == {(64, 19): (200, 200, 0), (1, 19): (200, 0, 100), (33, 19): (200, 200, 0)}


def test_fields_count_by_what_is_received(routed: tuple[Generator, str]) -> None:
    """Hop limits and MAC addresses are those that the router wrote."""
    running, gateway = routed
    config, made = configured(gateway)
    made.packet[1].time_to_live.values = [64, 33]
    made.packet[1].time_to_live.metric_tags.metrictag(name="ttl")
    ethernet, ip4 = made.egress_packet.ethernet().ipv4()
    ethernet.dst.metric_tags.metrictag(name="mac", offset=40, length=8)
    ip4.time_to_live.metric_tags.metrictag(name="rx_ttl")
    made.metrics.predefined_metric_tags.rx_name = True
    sent(running, config)
    rows = asked(running)
    assert [tag.name for tag in rows[0].tags] == ["ttl", "mac", "rx_ttl", "rx_name"]
    assert counted(rows) == {
        (64, 0x19, 63, "p2"): 200,
        (33, 0x19, 32, "p2"): 200,
        (64, 0x20, 63, "p3"): 100,
        (33, 0x20, 32, "p3"): 100,
    }
    assert {row.frames_tx for row in rows} == {None}
    # The same by gRPC, whose messages have types of their own.
    grpc = snappi.api(location=f"127.0.0.1:{running.http_port}", transport=snappi.Transport.GRPC)
    request = snappi.MetricsRequest()
    request.flow.tagged_metrics.filters.filter(name="rx_ttl", values=["3f"])
    (metric,) = grpc.get_metrics(request).flow_metrics
    found = {values(row): row.frames_rx for row in metric.tagged_metrics}
    assert found == {(64, 0x19, 63, "p2"): 200, (64, 0x20, 63, "p3"): 100}
    # Frames that do not have the headers have a row of their own, and count by what was sent.
    made.egress_packet.clear()
    vlan = made.egress_packet.ethernet().vlan()[-1]
    vlan.id.metric_tags.metrictag(name="vlan")
    made.metrics.predefined_metric_tags.rx_name = False
    sent(running, config)
    assert counted(asked(running)) == {(64, "absent"): 300, (33, "absent"): 300}


def test_more_values_than_rows_are_counted_together(ring: Generator) -> None:
    config = looped(["f"])
    made = config.flows[0]
    udp = made.packet[2]
    udp.src_port.increment.start, udp.src_port.increment.count = 1, 5000
    udp.src_port.metric_tags.metrictag(name="port")
    made.duration.fixed_packets.packets = 4500
    (warning,) = ring.api.set_config(config).warnings
    assert warning.startswith(
        'flow "f": its metric tags may have 5000 values; the first 4096 that are seen have rows'
    )
    ring.transmit("start")
    # By telemetry: snappi takes seconds to read thousands of rows.
    eventually(lambda: ring.flow("f")["received"] == 4500)
    rows = {values(row): row for row in asked(ring)}
    other = rows.pop(("other",))
    assert len(rows) == 4096
    assert {(row.frames_tx, row.frames_rx) for row in rows.values()} == {(1, 1)}
    assert (other.frames_tx, other.frames_rx) == (404, 404)
