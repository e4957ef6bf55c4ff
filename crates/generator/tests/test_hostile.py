# SPDX-License-Identifier: BSD-3-Clause
"""Requests that are wrong, too large or too slow: each is answered or ended.

Traffic that runs meanwhile keeps its pace, and its books close.
"""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Iterator

import pytest
import snappi
from frames import read_pcap
from harness import TIMEOUT_S, Generator, eventually, resident
from traffic import capture, captured, errors, flow_metrics, looped, transmit

pytest_plugins = ["rig"]


@contextlib.contextmanager
def undisturbed(running: Generator) -> Iterator[None]:
    """Traffic that must keep its pace meanwhile, and lose nothing."""
    api = running.api
    api.set_config(looped(["f"]))
    transmit(api, "start")
    before, begin = flow_metrics(api)["f"].frames_tx, time.monotonic()
    yield
    metric, passed = flow_metrics(api)["f"], time.monotonic() - begin
    assert metric.transmit == "started"
    # 10,000 frames a second: no slot is ever given up, however late it is served.
    assert 0.8 * 10_000 * passed - 1_000 < metric.frames_tx - before < 1.2 * 10_000 * passed + 1_000
    transmit(api, "stop")
    eventually(lambda: flow_metrics(api)["f"].loss == 0)
    books = running.ask("/linerate/generator/flow,f")
    # What was due at the very moment of the stop is intended all the same.
    assert books["attempted"] <= books["intended"]
    assert books["attempted"] == books["accepted"] + books["lost_at_ingress"]
    assert (books["received"], books["duplicates"]) == (books["accepted"], 0)


def test_wrong_requests_are_answered_by_name(ring: Generator) -> None:
    many = json.loads(looped(["f"]).serialize())
    many["flows"] = many["flows"] * 10_000
    port = many["ports"][0]
    requests: list[tuple[str, str, bytes | str | None, int, str]] = [
        ("POST", "/config", b"", 400, ""),
        ("POST", "/config", b"{", 400, ""),
        ("POST", "/config", b"[]", 400, ""),
        ("POST", "/config", b"\xff\xfe", 400, ""),
        ("POST", "/config", b'{"ports":[],"ports":[]}', 400, ""),
        ("POST", "/config", b'{"a":' * 100_000, 400, ""),
        ("POST", "/config", b'{"flows":' + b"[" * 5_000 + b"]" * 5_000 + b"}", 400, ""),
        ("POST", "/config", b" " * (33 << 20), 413, ""),
        ("POST", "/config", json.dumps({"ports": [port] * 65}), 400, "ports"),
        ("POST", "/config", json.dumps({"flows": [{}] * 10_000}), 400, "flows"),
        ("POST", "/config", json.dumps({"flows": {"name": 1}}), 400, "flows: "),
        ("POST", "/config", json.dumps({"ports": [{"name": 1}]}), 400, "ports[0].name"),
        ("POST", "/config", json.dumps({"prots": []}), 400, "prots"),
        ("POST", "/config", json.dumps({"devices": [{"name": 1}]}), 400, "devices[0].name"),
        ("POST", "/config", json.dumps({"lags": [{"name": "d"}]}), 400, "lags"),
        ("POST", "/config", json.dumps({"lldp": [{"name": "d"}]}), 400, "lldp"),
        ("POST", "/config", json.dumps({"stateful_flows": [{}]}), 400, "stateful_flows"),
        ("PATCH", "/config", b"{}", 400, "flows: is missing"),
        ("PATCH", "/config", b'{"choice":"protocols"}', 400, "protocols"),
        ("POST", "/control/state", b'{"choice":"port"}', 400, "port"),
        (
            "POST",
            "/control/state",
            b'{"choice":"protocol","protocol":{"choice":"lacp","lacp":{}}}',
            400,
            "protocol.lacp: not supported",
        ),
        (
            "POST",
            "/control/action",
            b'{"choice":"protocol","protocol":{"choice":"bgp","bgp":{"choice":"notification"}}}',
            400,
            "protocol.bgp.notification: not supported",
        ),
        ("POST", "/control/action", b"{}", 400, "choice: not supported"),
        ("POST", "/monitor/metrics", b'{"choice":"bgpv4"}', 400, 'choice: "bgpv4"'),
        ("POST", "/monitor/states", b'{"choice":"bgp_prefixes"}', 400, "bgp_prefixes: not supp"),
        ("POST", "/monitor/capture", b"{}", 400, "port_name"),
        ("POST", "/monitor/capture", b'{"port_name":"p1"}', 400, 'port_name: port "p1" has'),
        ("DELETE", "/config", None, 405, "DELETE /config"),
        ("GET", "/nothing", None, 404, "GET /nothing"),
    ]
    with undisturbed(ring):
        for method, path, body, status, error in requests:
            answer_status, answer = ring.request(method, path, body)
            assert answer_status == status, (method, path, body and body[:100], answer)
            assert (answer["code"], answer["kind"]) == (status, "validation")
            assert answer["errors"][0].startswith(error), answer
    # As many flows as the body has room for are too many by their number.
    status, answer = ring.request("POST", "/config", json.dumps(many))
    assert status in (400, 413)
    assert "flows" in answer["errors"][0]


def test_snappi_is_told_what_is_outside(ring: Generator) -> None:
    api = ring.api
    api.set_config(looped(["f"]))
    states, metrics = snappi.StatesRequest(), snappi.MetricsRequest()
    states.bgp_prefixes.bgp_peer_names = []
    metrics.bgpv4.peer_names = []
    protocols = snappi.ControlState()
    protocols.protocol.lacp.admin.state = "up"
    action = snappi.ControlAction()
    action.protocol.ipv4.ping.requests.add(src_name="a", dst_ip="192.0.2.1")
    for call, error in [
        (lambda: api.get_states(states), "bgp_prefixes: not supported; devices resolve addresses"),
        (lambda: api.get_metrics(metrics), "bgpv4: not supported"),
        (lambda: api.set_control_state(protocols), "protocol.lacp: not supported"),
        (lambda: api.set_control_action(action), "protocol.ipv4.ping: not supported"),
    ]:
        assert errors(call)[0].startswith(error)


def test_slow_clients_hold_nothing_up(ring: Generator) -> None:
    writer = socket.create_connection(("127.0.0.1", ring.http_port), TIMEOUT_S)
    writer.sendall(b"POST /config HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
    # It asks for far more than the socket's buffers hold, and takes none of it.
    reader = socket.create_connection(("127.0.0.1", ring.http_port), TIMEOUT_S)
    with undisturbed(ring):
        ask = b'{"choice":"port"}'
        head = b"POST /monitor/metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
        reader.settimeout(0.5)
        with contextlib.suppress(TimeoutError):
            for _ in range(100_000):
                reader.sendall(head % len(ask) + ask)
        api = ring.api
        for _ in range(50):
            assert flow_metrics(api)["f"].transmit == "started"
    reader.close()
    writer.close()


@pytest.mark.second_tier
def test_slow_readers_of_captures_hold_nothing_up_and_take_bounded_memory(ring: Generator) -> None:
    config, total, api = looped(["f", "big"]), 46_000, ring.api
    big = config.flows[1]
    big.size.fixed, big.rate.pps, big.duration.fixed_packets.packets = 1518, 60_000, total
    config.captures.capture(name="c", port_names=["p1"])
    api.set_config(config)
    capture(api, "start")
    transmit(api, "start")
    # It is nearly 64 MiB.
    eventually(lambda: flow_metrics(api)["big"].frames_rx == total)
    capture(api, "stop")
    before, begin = flow_metrics(api)["f"].frames_tx, time.monotonic()
    memory, body = resident(ring), b'{"port_name":"p1"}'
    head = b"POST /monitor/capture HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
    readers, served, refused = [], 0, 0
    for _ in range(12):
        reader = socket.socket()
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.settimeout(TIMEOUT_S)
        reader.connect(("127.0.0.1", ring.http_port))
        reader.sendall(head % len(body) + body)
        answer = reader.recv(1024)
        readers.append(reader)
        if answer.startswith(b"HTTP/1.1 200 "):
            served += 1
        else:
            assert answer.startswith(b"HTTP/1.1 503 ")
            while b"at most 256 MiB together" not in answer:
                answer += reader.recv(1024)
            refused += 1
        # Another client has its answers meanwhile.
        assert flow_metrics(api)["f"].transmit == "started"
    assert served >= 2
    assert refused >= 6
    assert resident(ring) - memory < (256 + 32) << 20
    metric, passed = flow_metrics(api)["f"], time.monotonic() - begin
    assert 0.8 * 10_000 * passed - 1_000 < metric.frames_tx - before < 1.2 * 10_000 * passed + 1_000
    for reader in readers:
        reader.close()
    # Who has gone makes room, and there is as much memory as before.
    eventually(lambda: resident(ring) - memory < 32 << 20)
    assert len(read_pcap(captured(api, "p1"))) > 40_000
    transmit(api, "stop")


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "http://127.0.0.1"}, {"Origin": "null"}, {"Host": "evil.example"}, {"Host": ""}],
)
def test_web_pages_are_refused(ring: Generator, headers: dict[str, str]) -> None:
    for method, path in [("GET", "/config"), ("POST", "/config"), ("OPTIONS", "/x")]:
        status, answer = ring.request(method, path, "{}", headers)
        assert (status, answer["code"]) == (403, 403)
        assert answer["errors"][0].startswith(next(iter(headers)))
    assert ring.request("GET", "/config", headers={"Host": "localhost:1"})[0] == 200


@pytest.mark.second_tier
def test_connections_without_a_request_are_few_and_end(ring: Generator) -> None:
    api = ring.api
    api.set_config(snappi.Config())

    def connect(first: bytes) -> socket.socket:
        peer = socket.create_connection(("127.0.0.1", ring.http_port), TIMEOUT_S)
        peer.sendall(first)
        return peer

    idle = [connect(b"" if number % 2 else b"GET /config HT") for number in range(63)]
    writer = connect(b"POST /config HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")
    time.sleep(0.2)
    begin = time.monotonic()
    # One more has the place of whoever says nothing for longest.
    extra = connect(b"")
    assert idle[0].recv(1) == b""
    assert time.monotonic() - begin < 5
    extra.close()
    api.get_config()
    for peer in idle:
        while peer.recv(1 << 12):
            pass
        peer.close()
    assert 5 < time.monotonic() - begin < 14
    # Who does not send all of the body is told so.
    assert writer.recv(1 << 12).startswith(b"HTTP/1.1 408 ")
    writer.close()
    api.get_config()
