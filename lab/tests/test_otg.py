# SPDX-License-Identifier: BSD-3-Clause
"""What a generator is sent: the OTG model."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from linerate.host.errors import GeneratorError
from linerate.traffic.otg import LONGEST_ANSWER, Access, Ip, OtgClient, Slice, Traffic


def told(traffic: Traffic) -> Any:
    client = OtgClient("http://127.0.0.1:1")
    try:
        return json.loads(client._configuration(traffic).serialize())
    finally:
        client.close()


@pytest.mark.parametrize(
    ("ip", "source", "destination"),
    [(4, "198.18.0.1", "198.19.0.1"), (6, "2001:2::1", "2001:2:0:8000::1")],
)
def test_frames_are_ip_and_udp_of_the_networks_for_benchmarks(
    ip: Ip, source: str, destination: str
) -> None:
    flow = told(Traffic(("a",), 128, 1.0, 1e5, ip=ip))["flows"][0]
    assert [each["choice"] for each in flow["packet"]] == ["ethernet", f"ipv{ip}", "udp"]
    header = flow["packet"][1][f"ipv{ip}"]
    assert header["src"]["increment"]["start"] == source
    assert header["dst"]["increment"]["start"] == destination
    assert header["src"]["increment"]["count"] == 1000


def test_requests_by_arp_ask_for_the_flows_destinations() -> None:
    flow = told(Traffic(("a",), 64, 1.0, 1e3, protocol="arp", latency=True))["flows"][0]
    assert [each["choice"] for each in flow["packet"]] == ["ethernet", "arp"]
    header = flow["packet"][1]["arp"]
    assert header["sender_protocol_addr"]["increment"]["start"] == "198.18.0.1"
    assert header["target_protocol_addr"]["increment"]["start"] == "198.19.0.1"
    assert header["target_protocol_addr"]["increment"]["count"] == 1000
    assert flow["metrics"]["latency"]["enable"]


def test_one_sender_still_has_all_ports_to_receive_at() -> None:
    model = told(Traffic(("a", "b"), 64, 1.0, 1e5, senders=1))
    assert [port["name"] for port in model["ports"]] == ["p0", "p1"]
    assert [flow["name"] for flow in model["flows"]] == ["f0"]
    assert model["flows"][0]["tx_rx"]["port"] == {"tx_name": "p0", "rx_names": ["p0", "p1"]}
    assert len(told(Traffic(("a", "b"), 64, 1.0, 1e5))["flows"]) == 2


def test_a_burst_is_a_number_of_frames() -> None:
    duration = told(Traffic(("a",), 64, 1.0, 1e5, frames=77))["flows"][0]["duration"]
    assert duration["choice"] == "fixed_packets"
    assert duration["fixed_packets"]["packets"] == 77
    assert told(Traffic(("a",), 64, 2.0, 1e5))["flows"][0]["duration"]["choice"] == "fixed_seconds"


def test_slices_are_flows_that_begin_later() -> None:
    slices = (Slice(0.5, 10, 1e3), Slice(0.51, 20, 2e3))
    model = told(Traffic(("a", "b"), 64, 0.5, 1e4, frames=5000, slices=slices))
    flows = {flow["name"]: flow for flow in model["flows"]}
    assert list(flows) == ["f0", "f0.1", "f0.2", "f1", "f1.1", "f1.2"]
    last = flows["f1.2"]
    assert last["duration"]["fixed_packets"]["packets"] == 20
    assert last["duration"]["fixed_packets"]["delay"]["nanoseconds"] == pytest.approx(5.1e8)
    assert int(last["rate"]["pps"]) == 2000
    assert last["tx_rx"]["port"]["tx_name"] == "p1"
    assert flows["f0"]["duration"]["fixed_packets"]["packets"] == 5000


@pytest.mark.parametrize(("frames", "choice"), [(None, "fixed_seconds"), (77, "fixed_packets")])
def test_a_lead_delays_every_flow_and_none_is_not_told(frames: int | None, choice: str) -> None:
    traffic = Traffic(("a",), 64, 1.0, 1e5, frames=frames, lead_s=0.01)
    delay = told(traffic)["flows"][0]["duration"][choice]["delay"]
    assert delay == {"choice": "nanoseconds", "nanoseconds": pytest.approx(1e7)}
    at_once = told(Traffic(("a",), 64, 1.0, 1e5, frames=frames))["flows"][0]["duration"][choice]
    assert "delay" not in at_once


def test_a_lead_delays_slices_by_as_much() -> None:
    slices = (Slice(0.5, 10, 1e3),)
    model = told(Traffic(("a",), 64, 0.5, 1e4, frames=5000, slices=slices, lead_s=0.01))
    delays = [flow["duration"]["fixed_packets"]["delay"]["nanoseconds"] for flow in model["flows"]]
    assert delays == pytest.approx([1e7, 5.1e8])


# -- answers without an end ----------------------------------------------------------------------

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"


@contextmanager
def answering(send: Callable[[socket.socket], None]) -> Iterator[str]:
    """The URL of a server that accepts one request and answers with this."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                connection, _ = server.accept()
                with connection:
                    connection.recv(1 << 16)
                    connection.sendall(HEAD)
                    send(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        server.close()
        thread.join(10)


def flood(connection: socket.socket) -> None:
    for _ in range(LONGEST_ANSWER // (1 << 16) * 4):
        connection.sendall(b" " * (1 << 16))


def drip(connection: socket.socket) -> None:
    for _ in range(100):
        connection.sendall(b" ")
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("send", "message"), [(flood, "longer than 16 MiB"), (drip, "too long to come to its end")]
)
def test_an_answer_without_an_end_is_an_error(
    send: Callable[[socket.socket], None], message: str
) -> None:
    with answering(send) as url:
        client = OtgClient(url, Access(timeout_s=0.5))
        before = time.monotonic()
        with pytest.raises(GeneratorError, match=f"get version: .*{message}"):
            client.version()
        assert time.monotonic() - before < 8
        client.close()


def test_a_generator_that_does_not_answer_in_time_is_named_with_the_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it accepts, and says nothing
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        client = OtgClient(url, Access(timeout_s=0.5))
        with pytest.raises(GeneratorError) as raised:
            client.clear()
        client.close()
    assert str(raised.value) == f"generator {url}: set_config: no answer within 0.5 s"


def test_an_answer_of_lists_in_lists_is_an_error() -> None:
    deep = b"[" * 4000 + b"]" * 4000
    with answering(lambda connection: connection.sendall(deep)) as url:
        client = OtgClient(url)
        with pytest.raises(GeneratorError, match="get version"):
            client.version()
        client.close()
