# SPDX-License-Identifier: BSD-3-Clause
"""Sends 500 frames and reads all figures, by whatever release of snappi this Python has.

    python by_snappi.py URL

Its check of versions is on. Only what the oldest release has is used. Prints what the client was
told, as one JSON document.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import snappi

FRAMES, SIZE = 500, 128
TIMEOUT_S = 15.0


def configured(api: Any) -> Any:
    config = api.config()
    config.ports.port(name="p1", location="ring:r")
    config.captures.capture(name="c", port_names=["p1"], format="pcapng")
    layer1 = config.layer1.layer1(name="l", port_names=["p1"])[-1]
    layer1.speed, layer1.auto_negotiate = layer1.SPEED_1_GBPS, False
    config.options.port_options.location_preemption = True
    flow = config.flows.flow(name="f")[-1]
    flow.tx_rx.port.tx_name, flow.tx_rx.port.rx_names = "p1", ["p1"]
    ethernet, vlan, ip, udp = flow.packet.ethernet().vlan().ipv4().udp()
    ethernet.src.value, ethernet.dst.value = "02:00:00:00:00:01", "02:00:00:00:00:02"
    vlan.id.value = 7
    ip.src.increment.start, ip.src.increment.count = "198.18.0.1", 100
    ip.dst.values = ["198.19.0.1", "198.19.0.2"]
    udp.dst_port.value = 9
    flow.size.fixed, flow.rate.pps = SIZE, 5000
    flow.duration.fixed_packets.packets = FRAMES
    flow.metrics.enable = flow.metrics.loss = flow.metrics.latency.enable = True
    return config


def metrics(api: Any, kind: str) -> list[Any]:
    request = api.metrics_request()
    getattr(request, kind)  # the choice
    found: list[Any] = list(getattr(api.get_metrics(request), f"{kind}_metrics"))
    return found


def main() -> None:
    api = snappi.api(location=sys.argv[1], version_check=True)
    config = configured(api)
    warnings = list(api.set_config(config).warnings)
    state = api.control_state()
    state.port.capture.state = "start"
    api.set_control_state(state)
    state = api.control_state()
    state.traffic.flow_transmit.state = "start"
    api.set_control_state(state)
    end = time.monotonic() + TIMEOUT_S
    while True:
        (flow,) = metrics(api, "flow")
        done = flow.transmit == "stopped" and flow.frames_rx == FRAMES
        if done or time.monotonic() > end:
            break
        time.sleep(0.02)
    state = api.control_state()
    state.port.capture.state = "stop"
    api.set_control_state(state)
    request = api.capture_request()
    request.port_name = "p1"
    captured = api.get_capture(request).read()
    (port,) = metrics(api, "port")
    told = {
        "release": api.get_local_version().api_spec_version,
        "warnings": warnings,
        "same": api.get_config().serialize("dict") == config.serialize("dict"),
        "flow": flow.serialize("dict"),
        "port": port.serialize("dict"),
        "captured": len(captured),
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
