# SPDX-License-Identifier: BSD-3-Clause
"""As many flows as there can be: each is counted, and others are answered meanwhile."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from harness import Generator, eventually

pytest_plugins = ["rig"]

FLOWS, FRAMES, PPS = 16_384, 3, 10


def configuration() -> str:
    """Flows of one port. Every other one has a VLAN tag, and so the short mark of 14 bits."""
    plain: list[Any] = [{"ethernet": {}}, {"ipv4": {}}, {"udp": {}}]
    tagged = [plain[0], {"vlan": {}}, *plain[1:]]
    same = {
        "tx_rx": {"port": {"tx_name": "p1", "rx_names": ["p1"]}},
        "size": {"fixed": 64},
        "rate": {"pps": PPS},
        "duration": {"choice": "fixed_packets", "fixed_packets": {"packets": FRAMES}},
        "metrics": {"enable": True, "loss": True},
    }
    flows = [
        {"name": f"f{number}", "packet": tagged if number % 2 else plain, **same}
        for number in range(FLOWS)
    ]
    return json.dumps({"ports": [{"name": "p1", "location": "ring:r"}], "flows": flows})


def meanwhile(running: Generator, ask: Callable[[], tuple[int, Any]]) -> tuple[Any, int]:
    """An answer that takes long, and how many the control plane gave others until then."""
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(ask)
        answered = 0
        while not answer.done():
            assert running.request("POST", "/monitor/metrics", "{}")[0] == 200
            answered += 1
    status, found = answer.result()
    assert status == 200, found
    return found, answered


def test_each_of_16384_flows_is_counted_and_holds_nobody_up(ring: Generator) -> None:
    set_config = meanwhile(ring, lambda: ring.request("POST", "/config", configuration()))
    warnings = set_config[0]["warnings"]
    assert any("no histograms of gaps" in warning for warning in warnings)
    assert any(warning.startswith("and 8142 more flows without") for warning in warnings)
    ring.transmit("start")
    ask = {"choice": "flow", "flow": {"flow_names": []}}

    def metrics() -> list[Any]:
        status, found = ring.request("POST", "/monitor/metrics", json.dumps(ask))
        assert status == 200
        return list(found["flow_metrics"])

    def done() -> bool:
        port = ring.request("POST", "/monitor/metrics", "{}")[1]["port_metrics"][0]
        return bool(port["frames_rx"] == str(FLOWS * FRAMES) and port["transmit"] == "stopped")

    eventually(done, timeout_s=60)
    found, answered = meanwhile(
        ring, lambda: ring.request("POST", "/monitor/metrics", json.dumps(ask))
    )
    assert [flow["name"] for flow in found["flow_metrics"]] == [f"f{n}" for n in range(FLOWS)]
    counts = {
        (flow["frames_tx"], flow["frames_rx"], flow["loss"], flow["transmit"])
        for flow in found["flow_metrics"]
    }
    assert counts == {(str(FRAMES), str(FRAMES), 0.0, "stopped")}
    # Others were answered while both were.
    assert set_config[1] > 5
    assert answered > 1
    last = ring.flow(f"f{FLOWS - 1}")
    assert (last["received"], last["duplicates"], last["mark"]) == (FRAMES, 0, "short")
    # A few of many, and all but a few gone.
    ask["flow"]["flow_names"] = [f"f{number}" for number in range(0, FLOWS, 2)]  # type: ignore[index]
    assert len(metrics()) == FLOWS // 2
    names = [f"f{number}" for number in range(FLOWS - 2)]
    body = {"config_delete_list": [{"flows": names}]}
    assert ring.request("PATCH", "/config/delete", json.dumps(body))[0] == 200
    ask["flow"]["flow_names"] = []  # type: ignore[index]
    assert [flow["name"] for flow in metrics()] == [f"f{FLOWS - 2}", f"f{FLOWS - 1}"]
