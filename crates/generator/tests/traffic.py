# SPDX-License-Identifier: BSD-3-Clause
"""What the tests ask of a generator over OTG: configurations, requests, and errors."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import snappi

# Bytes of the FCS at the end of each frame, which captures have unless told otherwise.
FCS = 4
LOSSLESS_PPS = 10_000
"""A rate at which a busy machine has to stand still for 0.4 s before a ring of 4096 is full."""


def published(location: str = "vdev:net_ring0", flows: int = 1) -> Any:
    """The published traffic, by the API's own classes."""
    config = snappi.Config()
    config.ports.port(name="p1", location=location)
    for number in range(flows):
        flow = config.flows.flow(name=f"f{number}")[-1]
        flow.tx_rx.port.tx_name = "p1"
        flow.tx_rx.port.rx_names = ["p1"]
        ethernet, ipv4, udp = flow.packet.ethernet().ipv4().udp()
        ethernet.src.value, ethernet.dst.value = "02:00:00:00:01:00", "02:00:00:00:00:00"
        ipv4.src.increment.start, ipv4.src.increment.count = "198.18.0.1", 16126
        ipv4.dst.increment.start, ipv4.dst.increment.count = "198.19.0.1", 16126
        for field in (udp.src_port, udp.dst_port):
            field.increment.start, field.increment.step, field.increment.count = 10000, 1, 1000
        flow.size.fixed = 64
        flow.rate.pps = 20000
        flow.duration.fixed_packets.packets = 5000
        flow.metrics.enable = True
        flow.metrics.loss = True
    return config


def looped(flow_names: list[str], pps: int = 10_000) -> Any:
    """A port whose frames come back, and plain flows of UDP that do not end."""
    config = snappi.Config()
    config.ports.port(name="p1", location="ring:r")
    for name in flow_names:
        flow = config.flows.flow(name=name)[-1]
        flow.tx_rx.port.tx_name, flow.tx_rx.port.rx_names = "p1", ["p1"]
        flow.packet.ethernet().ipv4().udp()
        flow.rate.pps = pps
        flow.metrics.enable = flow.metrics.loss = True
    return config


def flow(
    config: Any,
    name: str,
    tx: str,
    rx: Sequence[str],
    *,
    size: int = 64,
    pps: int = LOSSLESS_PPS,
    frames: int | None = None,
    latency: bool = False,
) -> Any:
    """A UDP flow that counts everything; continuous without a number of frames."""
    made = config.flows.flow(name=name)[-1]
    made.tx_rx.port.tx_name, made.tx_rx.port.rx_names = tx, list(rx)
    ethernet, ipv4, udp = made.packet.ethernet().ipv4().udp()
    ethernet.src.value, ethernet.dst.value = "02:00:00:00:01:00", "02:00:00:00:00:00"
    ipv4.src.value = "198.18.0.1"
    ipv4.dst.increment.start, ipv4.dst.increment.count = "198.19.0.1", 100
    udp.src_port.increment.start, udp.src_port.increment.count = 10000, 1000
    udp.dst_port.value = 9
    made.size.fixed, made.rate.pps = size, pps
    if frames is None:
        made.duration.choice = made.duration.CONTINUOUS
    else:
        made.duration.fixed_packets.packets = frames
    made.metrics.enable = made.metrics.loss = True
    if latency:
        made.metrics.latency.enable = True
        made.metrics.latency.mode = made.metrics.latency.CUT_THROUGH
    return made


def captured_flow(count: int) -> tuple[Any, Any]:
    """A configuration whose frames come back and are captured, and its flow, without headers."""
    config = snappi.Config()
    config.ports.port(name="p1", location="ring:r")
    config.captures.capture(name="c", port_names=["p1"])
    flow = config.flows.flow(name="f")[-1]
    flow.tx_rx.port.tx_name, flow.tx_rx.port.rx_names = "p1", ["p1"]
    flow.rate.pps = 20_000
    flow.duration.fixed_packets.packets = count
    return config, flow


def transmit(api: Any, state: str, names: list[str] | None = None) -> list[str]:
    """Flows start, stop, pause or resume. Returns the warnings."""
    control = snappi.ControlState()
    control.choice = control.TRAFFIC
    control.traffic.choice = control.traffic.FLOW_TRANSMIT
    control.traffic.flow_transmit.state = state
    if names is not None:
        control.traffic.flow_transmit.flow_names = names
    return list(api.set_control_state(control).warnings)


def capture(api: Any, state: str, names: list[str] | None = None) -> None:
    """Captures start or stop."""
    control = snappi.ControlState()
    control.port.capture.state = state
    if names is not None:
        control.port.capture.port_names = names
    api.set_control_state(control)


def captured(api: Any, port: str, first: int | None = None, count: int = 100) -> bytes:
    """The file of a port's capture, or so many of its frames from the first one on."""
    request = snappi.CaptureRequest(port_name=port)
    if first is not None:
        request.packets.slice.initial.start = first
        request.packets.slice.initial.count = count
    content: bytes = api.get_capture(request).read()
    return content


def without_fcs(frame: bytes) -> bytes:
    """A frame of a capture without its FCS, which has to be right (IEEE 802.3)."""
    assert frame[-FCS:] == zlib.crc32(frame[:-FCS]).to_bytes(FCS, "little")
    return frame[:-FCS]


def flow_metrics(api: Any) -> dict[str, Any]:
    request = snappi.MetricsRequest()
    request.flow.flow_names = []
    return {metric.name: metric for metric in api.get_metrics(request).flow_metrics}


def port_metrics(api: Any, columns: list[str] | None = None) -> dict[str, Any]:
    request = snappi.MetricsRequest()
    request.port.port_names = []
    if columns is not None:
        request.port.column_names = columns
    return {metric.name: metric for metric in api.get_metrics(request).port_metrics}


def stopped(api: Any) -> bool:
    return all(metric.transmit == "stopped" for metric in flow_metrics(api).values())


def errors(call: Callable[[], Any]) -> list[str]:
    """The errors that the API answers with, through snappi."""
    with pytest.raises(Exception, match="errors") as info:  # snappi raises nothing finer
        call()
    error = info.value.args[0]
    assert isinstance(error, snappi.Error), error
    assert (error.code, error.kind) == (400, "validation")
    return list(error.errors)
