# SPDX-License-Identifier: BSD-3-Clause
"""The output of a running run, and its width if nobody looks at it."""

from __future__ import annotations

import sys
import time
from io import StringIO

import pytest
from rich.console import Console
from simulated import printed, quiet
from trials import made_trial

from linerate.cli.console import WIDE, wide_console
from linerate.host.text import counted
from linerate.runs.progress import Monitor

TRIAL = made_trial(
    experiment="overload", seed=1, arm="c-l2fwd", forwarder="c-l2fwd", link="null", size=64,
    block=0, position=0, role="measure", load="self-driven", started_at="",
)  # fmt: skip


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def last_line(console: Console) -> str:
    return printed(console).splitlines()[-1]


def test_there_is_no_remaining_time_until_a_block_is_over(clock: Clock) -> None:
    console = quiet()
    monitor = Monitor(console, 40)
    clock.now += 600  # Programs are built.
    with monitor:
        for _ in range(4):
            clock.now += 10
            monitor.finished(TRIAL)
            assert last_line(console).endswith("/40 trials, null 64 B c-l2fwd")
        monitor.block_over()
        clock.now += 10
        monitor.finished(TRIAL)
    # 35 trials are to come, of 10 s each; what was prepared does not count.
    assert last_line(console) == "5/40 trials, null 64 B c-l2fwd, 5 min 50 s left"


def test_blocks_of_earlier_sessions_tell_of_no_time(clock: Clock) -> None:
    console = quiet()
    with Monitor(console, 30) as monitor:
        for _ in range(10):
            monitor.replayed(TRIAL)
        monitor.block_over()
        clock.now += 100
        monitor.finished(TRIAL)
        assert last_line(console).endswith("11/30 trials, null 64 B c-l2fwd")
        monitor.block_over()
        clock.now += 100
        monitor.finished(TRIAL)
    assert last_line(console).endswith("12/30 trials, null 64 B c-l2fwd, 30 min 00 s left")


def test_a_pipe_is_wider_than_every_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", StringIO())
    assert wide_console().width == WIDE


@pytest.mark.parametrize(("count", "words"), [(0, "0 blocks"), (1, "1 block"), (2, "2 blocks")])
def test_one_is_no_plural(count: int, words: str) -> None:
    assert counted(count, "block") == words
