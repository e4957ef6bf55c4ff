# SPDX-License-Identifier: BSD-3-Clause
"""Requests that take long: others are answered meanwhile, and running traffic can be stopped.

No times are asserted, but which answer came while another was still to come.
"""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from harness import TIMEOUT_S, Generator, eventually, resident, started
from traffic import looped, transmit

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
        ["flows: 500000 entries; at most 1024 are supported"],
    )
    # While it is sent and received some are answered anyway.
    assert answered > 20


def test_memory_of_many_objects_goes_back(ring: Generator) -> None:
    before = resident(ring)
    for flows in ([{"a": 1}] * 500_000, [{"a": 1}] * 600_000):
        status, _ = post(ring, "/config", {"flows": flows})
        assert status == 400
        eventually(lambda: resident(ring) - before < 32 << 20, lambda: resident(ring) - before)


def test_only_configurations_are_large(ring: Generator) -> None:
    names = ["a" * 60] * 20_000
    body = {"choice": "flow", "flow": {"flow_names": names}}
    status, error = post(ring, "/monitor/metrics", body)
    assert (status, error["errors"]) == (
        413,
        ["the body is larger than 1048576 bytes, the most for this request"],
    )
