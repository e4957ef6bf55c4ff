# SPDX-License-Identifier: BSD-3-Clause
"""The telemetry client with a correct server, and with faulty ones."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import TelemetryServer
from mutations import nested

from linerate.host.errors import TelemetryError
from linerate.telemetry.client import Telemetry, ask_when_known, connect

Start = Callable[[dict[str, Any]], TelemetryServer]


def fine() -> None:
    """A process that is alive."""


def test_ask_and_read(telemetry_server: Start) -> None:
    server = telemetry_server({"/ethdev/stats,0": {"ipackets": 7}})
    with Telemetry(server.path) as telemetry:
        assert telemetry.version == "DPDK 22.11.11"
        assert telemetry.ask("/ethdev/stats,0") == {"ipackets": 7}
        reading = telemetry.read_tight("/ethdev/stats,0")
        assert reading.before_ns <= reading.at_ns <= reading.after_ns


def test_an_unknown_command_is_an_error(telemetry_server: Start) -> None:
    with (
        Telemetry(telemetry_server({}).path) as telemetry,
        pytest.raises(TelemetryError, match="not known"),
    ):
        telemetry.ask("/nothing")


@pytest.mark.parametrize("answer", ["hang up", "silence"])
def test_a_server_that_fails_is_an_error_in_bounded_time(
    telemetry_server: Start, answer: str
) -> None:
    server = telemetry_server({"/x": answer})
    with Telemetry(server.path, timeout_s=0.2) as telemetry, pytest.raises(TelemetryError):
        telemetry.ask("/x")


@pytest.mark.parametrize("answer", [b"[" * 16_000, b"{", b"\xff"])
def test_an_answer_that_is_no_json_is_an_error(telemetry_server: Start, answer: bytes) -> None:
    server = telemetry_server({"/x": answer})
    with (
        Telemetry(server.path) as telemetry,
        pytest.raises(TelemetryError, match="/x: not JSON"),
    ):
        telemetry.ask("/x")


@pytest.mark.parametrize("levels", [202, 900, 4000, 7000])
def test_an_answer_nested_without_end_is_an_error(telemetry_server: Start, levels: int) -> None:
    for answer in (nested(levels), f'{{"/x":{nested(levels)}}}'):
        server = telemetry_server({"/x": answer.encode()})
        with Telemetry(server.path) as telemetry, pytest.raises(TelemetryError, match="recursion"):
            telemetry.ask("/x")


GREETING = {"version": "DPDK 22.11.11", "pid": 1, "max_output_len": 16384}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_output_len": -99999}, "max_output_len: Input should be greater than 0"),
        ({"max_output_len": 0}, "max_output_len: Input should be greater than 0"),
        ({"max_output_len": 10**11}, "max_output_len: Input should be less than or equal to"),
        ({"max_output_len": 10**30}, "max_output_len: Input should be less than or equal to"),
        ({"max_output_len": float("inf")}, "max_output_len: Input should be a valid integer"),
        ({"max_output_len": "16384"}, "max_output_len: Input should be a valid integer"),
        ({"pid": -1}, "pid: Input should be greater than or equal to 0"),
        ({"pid": 10**20}, "pid: Input should be less than or equal to"),
        ({"version": ["x"]}, "version: Input should be a valid string"),
        ({"version": "x" * 1000}, "version: String should have at most 200 characters"),
    ],
)
def test_a_greeting_with_a_wrong_field_is_an_error(
    telemetry_server: Start, changes: dict[str, Any], message: str
) -> None:
    server = telemetry_server({})
    server.greeting = json.dumps(GREETING | changes).encode()
    with pytest.raises(TelemetryError, match=f"no telemetry on {server.path}: {message}"):
        Telemetry(server.path)


@pytest.mark.parametrize("greeting", [b"[" * 4000, b"{", b"[]", b"{}", b"x" * 9000])
def test_a_greeting_of_another_form_is_an_error(telemetry_server: Start, greeting: bytes) -> None:
    server = telemetry_server({})
    server.greeting = greeting
    with pytest.raises(TelemetryError, match=f"no telemetry on {server.path}"):
        Telemetry(server.path)


def test_the_user_at_the_other_end_is_the_kernel_s_to_say(telemetry_server: Start) -> None:
    with Telemetry(telemetry_server({}).path) as telemetry:
        assert (telemetry.peer_pid(), telemetry.peer_user()) == (os.getpid(), os.geteuid())


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([], "should be a valid dictionary"),
        ({"ipackets": 1}, "lacks opackets"),
        ({"ipackets": -1, "opackets": 1}, "ipackets.*greater than or equal to 0"),
        ({"ipackets": 2**64, "opackets": 1}, "ipackets.*less than"),
        ({"ipackets": "many", "opackets": 1}, "ipackets.*valid integer"),
    ],
)
def test_counters_are_counters(telemetry_server: Start, answer: object, message: str) -> None:
    server = telemetry_server({"/ethdev/stats,3": answer})
    with Telemetry(server.path) as telemetry:
        for read in (telemetry.port_stats, telemetry.port_stats_tight):
            with pytest.raises(TelemetryError, match=f"/ethdev/stats,3: .*{message}"):
                read(3)
        server.answers["/ethdev/stats,3"] = {"ipackets": 2**64 - 1, "opackets": 0, "q_ipackets": []}
        assert telemetry.port_stats(3).value["ipackets"] == 2**64 - 1


def test_a_command_registered_late(telemetry_server: Start) -> None:
    server = telemetry_server({"/": ["/"]})
    tries = 0

    def alive() -> None:
        nonlocal tries
        tries += 1
        if tries == 3:
            server.answers = {"/": ["/", "/linerate/clock"], "/linerate/clock": {"tsc_hz": 5}}

    with Telemetry(server.path) as telemetry:
        clock = ask_when_known(telemetry, "/linerate/clock", 5, alive)
    assert clock == {"tsc_hz": 5}


def test_no_socket(tmp_path: Path) -> None:
    with pytest.raises(TelemetryError, match=r"after 0\.05 s"):
        connect(tmp_path / "absent", 0.05, fine)


def test_a_stale_socket(tmp_path: Path) -> None:
    path = tmp_path / "stale"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as owner:
        owner.bind(str(path))
    with pytest.raises(TelemetryError, match="no telemetry"):
        connect(path, 0.05, fine)


def test_a_path_that_no_socket_can_have(tmp_path: Path) -> None:
    with pytest.raises(TelemetryError, match="107 bytes"):
        Telemetry(tmp_path / ("x" * 100))
