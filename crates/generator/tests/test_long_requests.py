# SPDX-License-Identifier: BSD-3-Clause
"""Requests that take long: others are answered meanwhile, and running traffic can be stopped.

No times are asserted, but which answer came while another was still to come.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from harness import TIMEOUT_S, Generator, eventually, resident, started
from traffic import capture, looped, transmit

pytest_plugins = ["rig"]

START = {"choice": "flow_transmit", "flow_transmit": {"state": "start"}}
UPDATE = {"property_names": ["rate"], "flows": [{"name": "f", "rate": {"pps": 7}}]}


def post(running: Generator, path: str, body: Any, method: str = "POST") -> tuple[int, Any]:
    return running.request(method, path, json.dumps(body))


@contextlib.contextmanager
def opening(running: Generator, directory: Path) -> Iterator[Future[tuple[int, Any]]]:
    """The answer to a configuration whose port waits for its other end, which comes at the end."""
    path = directory / "v"
    config = {"ports": [{"name": "v", "location": f"virtio_user:{path},role=server"}]}
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(post, running, "/config", config)
        try:
            eventually(lambda: path.exists() or answer.done())
            yield answer
        finally:
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as peer:
                peer.connect(str(path))


def test_a_configuration_cannot_be_made_larger_than_a_request(ring: Generator) -> None:
    config = json.loads(looped(["f"]).serialize())
    assert post(ring, "/config", config)[0] == 200
    # What is null is not there, but it is kept as it was posted.
    flow = {**config["flows"][0], "x" * (17 << 20): None}
    for name, status in (("g", 200), ("h", 413)):
        appended = [{"choice": "flows", "flows": [{**flow, "name": name}]}]
        body = {"config_append_list": appended}
        found, answer = post(ring, "/config/append", body, method="PATCH")
        assert found == status, answer
    assert set(ring.flows()) == {"f", "g"}


def test_a_port_that_is_opened_holds_nobody_up(ring: Generator, directory: Path) -> None:
    ring.api.set_config(looped(["f"]))
    transmit(ring.api, "start")
    eventually(lambda: ring.flows()["f"].frames_rx > 0)
    before = ring.request("GET", "/config")
    with opening(ring, directory) as answer:
        assert ring.request("GET", "/config") == before
        assert ring.link() == "up"
        assert ring.flows()["f"].transmit == "started"
        assert ring.flow("f")["transmit"] == "started"
        assert ring.port("p1")["link"] == "up"
        ring.transmit("pause")
        ring.transmit("stop")
        assert ring.stopped()
        # All that was while the port was still to be opened.
        assert not answer.done()
    status, error = answer.result()
    assert status == 400, error
    assert "ports[0].location" in error["errors"][0]
    # What was there is as it was.
    assert ring.request("GET", "/config") == before
    transmit(ring.api, "start")
    assert not ring.stopped()


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/control/state", {"choice": "traffic", "traffic": START}),
        ("PATCH", "/config", {"choice": "flows", "flows": UPDATE}),
    ],
)
def test_who_needs_the_next_configuration_is_told_how_far_it_is(
    ring: Generator, directory: Path, method: str, path: str, body: Any
) -> None:
    ring.api.set_config(looped(["f"]))
    with opening(ring, directory) as answer:
        status, error = post(ring, path, body, method)
        assert not answer.done()
    assert status == 409, error
    (words,) = error["errors"]
    assert f"opening ports[0] (virtio_user:{directory}/v,role=server)" in words
    # Once it has been answered, as ever.
    assert answer.result()[0] == 400
    assert post(ring, path, body, method)[0] == 200


def test_a_stop_withdraws_a_start_that_waits(ring: Generator, directory: Path) -> None:
    ring.api.set_config(looped(["f"]))
    with opening(ring, directory) as answer, ThreadPoolExecutor() as pool:
        start = pool.submit(post, ring, "/control/state", {"choice": "traffic", "traffic": START})
        # Until the start is there, and so before this stop.
        while not start.done():
            ring.transmit("stop")
        assert not answer.done()
    status, error = start.result()
    assert status == 409, error
    assert "replaced" in error["errors"][0]
    assert ring.stopped()


def test_configurations_are_set_in_turn(ring: Generator, directory: Path) -> None:
    with opening(ring, directory) as first, ThreadPoolExecutor() as pool:
        config = {"ports": [{"name": "p1", "location": "null"}]}
        second = pool.submit(post, ring, "/config", config)
        # Longer than others wait.
        time.sleep(1.5)
        assert not first.done()
        assert not second.done()
    assert first.result()[0] == 400
    assert second.result() == (200, {"warnings": []})
    assert list(ring.ports()) == ["p1"]


def test_configurations_of_clients_that_have_gone_are_forgotten(
    ring: Generator, directory: Path
) -> None:
    """They keep neither memory nor turns, and not many wait."""
    post(ring, "/config", {})
    before = resident(ring)
    # As much memory as one may take that is not read alone.
    body = json.dumps({"flows": [{"a": 1}] * 7000}, separators=(",", ":")).encode()
    head = b"POST /config HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
    with opening(ring, directory):
        for _ in range(200):
            with socket.create_connection(("127.0.0.1", ring.http_port), TIMEOUT_S) as peer:
                peer.sendall(head + body)
                # Until it was read, most likely.
                time.sleep(0.005)
        assert resident(ring) - before < 150 << 20
    eventually(lambda: resident(ring) - before < 64 << 20, lambda: resident(ring) - before)


def test_few_configurations_wait(ring: Generator, directory: Path) -> None:
    request = b"POST /config HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}"
    with contextlib.ExitStack() as opened:
        with opening(ring, directory) as first:
            peers = [
                opened.enter_context(
                    socket.create_connection(("127.0.0.1", ring.http_port), TIMEOUT_S)
                )
                for _ in range(20)
            ]
            for peer in peers:
                peer.sendall(request)
            refused: list[socket.socket] = []
            while len(refused) < 4:
                refused, _, _ = select.select(peers, [], [], TIMEOUT_S)
                assert not first.done()
            assert len(refused) == 4
        answers = [peer.recv(1 << 12) for peer in refused]
        assert all(answer.startswith(b"HTTP/1.1 503 ") for answer in answers)
        assert b"16 configurations wait for one that is being set (opening ports[0]" in answers[0]
        assert first.result()[0] == 400
        for peer in peers:
            if peer not in refused:
                assert peer.recv(1 << 12).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    ("path", "request_of"),
    [
        ("/monitor/metrics", lambda names: {"choice": "flow", "flow": {"flow_names": names}}),
        ("/monitor/metrics", lambda names: {"choice": "flow", "flow": {"metric_names": names}}),
        ("/monitor/metrics", lambda names: {"choice": "port", "port": {"port_names": names}}),
        (
            "/control/state",
            lambda names: {
                "choice": "traffic",
                "traffic": {"flow_transmit": {"state": "stop", "flow_names": names}},
            },
        ),
        (
            "/control/state",
            lambda names: {
                "choice": "port",
                "port": {"link": {"state": "up", "port_names": names}},
            },
        ),
    ],
)
def test_lists_of_names_are_no_longer_than_configurations(
    ring: Generator, path: str, request_of: Callable[[list[str]], Any]
) -> None:
    """With 1024 flows, 170,000 names took three seconds, in which nobody was answered."""
    status, error = post(ring, path, request_of(["f"] * 16_385))
    assert status == 400
    assert "16385 entries; at most 16384 are supported" in error["errors"][0]


def test_files_of_captures_that_are_made_hold_nobody_up(ring: Generator) -> None:
    config, total, api = looped(["f"]), 200_000, ring.api
    config.flows[0].rate.pps = 200_000
    config.flows[0].duration.fixed_packets.packets = total
    config.captures.capture(name="c", port_names=["p1"])
    api.set_config(config)
    capture(api, "start")
    transmit(api, "start")
    eventually(lambda: ring.flows()["f"].frames_rx == total, timeout_s=60)
    capture(api, "stop")
    # Each looks at all frames, and has none.
    packets = {"choice": "slice", "slice": {"initial": {"start": 10**9, "count": 1}}}
    body = json.dumps({"port_name": "p1", "packets": packets}).encode()
    head = b"POST /monitor/capture HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
    with contextlib.ExitStack() as opened:
        peers = [
            opened.enter_context(socket.create_connection(("127.0.0.1", ring.http_port), TIMEOUT_S))
            for _ in range(30)
        ]
        for peer in peers:
            peer.sendall(head % len(body) + body)
        assert ring.request("GET", "/config")[0] == 200
        answered, _, _ = select.select(peers, [], [], 0)
        assert len(answered) < len(peers)
        for peer in peers:
            assert peer.recv(1 << 12).startswith(b"HTTP/1.1 200 ")


def test_a_generator_ends_while_a_port_is_opened(directory: Path) -> None:
    with started(directory) as running:
        with opening(running, directory) as answer:
            assert not answer.done()
            running.process.terminate()
        assert running.process.wait(TIMEOUT_S) == 0


def test_a_body_that_is_read_holds_nobody_up(ring: Generator) -> None:
    body = json.dumps({"flows": [{"a": 1}] * 500_000})
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(ring.request, "POST", "/config", body)
        answered = 0
        while not answer.done():
            assert ring.request("GET", "/config") == (200, {})
            answered += 1
    status, error = answer.result()
    assert (status, error["errors"]) == (
        400,
        ["flows: 500000 entries; at most 16384 are supported"],
    )
    # While it is sent and received some are answered anyway.
    assert answered > 20


def test_memory_of_many_objects_goes_back(ring: Generator) -> None:
    before = resident(ring)
    for flows in ([{"a": 1}] * 500_000, [{"a": 1}] * 1_200_000):
        status, _ = post(ring, "/config", {"flows": flows})
        assert status == 400
        eventually(lambda: resident(ring) - before < 32 << 20, lambda: resident(ring) - before)


def test_only_configurations_are_large(ring: Generator) -> None:
    names = ["a" * 60] * 40_000
    body = {"choice": "flow", "flow": {"flow_names": names}}
    status, error = post(ring, "/monitor/metrics", body)
    assert (status, error["errors"]) == (
        413,
        ["the body is larger than 2097152 bytes, the most for this request"],
    )
