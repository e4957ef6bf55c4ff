# SPDX-License-Identifier: BSD-3-Clause
"""`linerate top` on a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conftest import wait_for
from probed import Steps, plain_answers, port_stats, probed_answers
from top_command import Start


class Terminal:
    """A terminal of 80 columns that `linerate top` runs on."""

    def __init__(self, *arguments: str) -> None:
        self.output = b""
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "linerate", "top", *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**os.environ, "TERM": "xterm-256color"},
            start_new_session=True,
        )
        os.close(slave)

    def read(self, timeout_s: float = 0.1) -> bytes:
        """All output so far, and what arrives within the time."""
        while select.select([self._master], [], [], timeout_s)[0]:
            try:
                piece = os.read(self._master, 65536)
            except OSError:  # the other side is closed
                break
            self.output += piece
            if not piece:
                break
        return self.output

    def finish(self, timeout_s: float = 30) -> int:
        deadline = time.monotonic() + timeout_s
        while self.process.poll() is None and time.monotonic() < deadline:
            self.read()
        self.read()
        return self.process.wait(1)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)


@pytest.fixture
def terminal() -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def start(*arguments: str) -> Terminal:
        opened.append(Terminal(*arguments))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_terminal_is_left_as_it_was(
    telemetry_server: Start, terminal: Callable[..., Terminal], number: signal.Signals
) -> None:
    live = terminal(str(telemetry_server(probed_answers()).path), "--interval", "0.1")
    wait_for("a screen", lambda: b"p99.9" in live.read(), 60)
    live.process.send_signal(number)
    assert live.finish() == 128 + number
    # Cursor, screen and scrollback are restored; the last figures are in it.
    _, _, after = live.output.rpartition(b"\x1b[?1049l")
    assert b"\x1b[?25h" in live.output
    assert b"p99.9" in after
    assert b"linerate: interrupted" in after
    assert b"Traceback" not in live.output


def test_a_program_that_does_not_answer_is_waited_for_on_a_terminal(
    telemetry_server: Start, terminal: Callable[..., Terminal]
) -> None:
    answers = probed_answers()
    goes_on = threading.Event()

    def late(step: int) -> dict[str, Any]:
        if step == 3:
            goes_on.wait(60)
        # A late answer must not be taken for the next one.
        return port_stats(step)

    answers["/ethdev/stats,0"] = Steps(late)
    live = terminal(str(telemetry_server(answers).path), "--interval", "0.1", "--count", "3")
    wait_for("silence", lambda: b"does not answer" in live.read(), 60)
    assert b"p99.9" in live.output.rpartition(b"does not answer")[2]
    assert live.process.poll() is None
    goes_on.set()
    assert live.finish() == 0
    after = live.output.rpartition(b"\x1b[?1049l")[2]
    assert b"p99.9" in after
    assert b"does not answer" not in after


def test_a_silent_program_is_left_by_ctrl_c(
    telemetry_server: Start, terminal: Callable[..., Terminal]
) -> None:
    answers = plain_answers()
    answers["/ethdev/list"] = "silence"
    live = terminal(str(telemetry_server(answers).path))
    wait_for("silence", lambda: b"does not answer" in live.read(), 60)
    live.process.send_signal(signal.SIGINT)
    assert live.finish() == 130
    assert b"Traceback" not in live.output
