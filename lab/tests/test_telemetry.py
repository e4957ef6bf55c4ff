# SPDX-License-Identifier: BSD-3-Clause
"""The telemetry client against a server that behaves, and one that does not."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import TelemetryServer

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
