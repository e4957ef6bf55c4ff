# SPDX-License-Identifier: BSD-3-Clause
"""Links whose driver makes the frames: nothing can be stopped, so counters are read as it runs."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from simulated_lab import blank

from linerate.records.cells import Arm, Cell
from linerate.records.trial import Trial
from linerate.telemetry.client import THREADS, Reading
from linerate.trial import trial as trials
from linerate.trial.trial import Plan

ARM = Arm("l2fwd", "c-l2fwd")
PID, WAIT_NS = 4711, 2_000_000


class Machine:
    """A program that polls; what answers waits for its turn unless it is preferred."""

    def __init__(self) -> None:
        self.preferred: list[tuple[int, str]] = []
        self.now_ns = 0

    def prefer(self, pid: int, name: str) -> None:
        self.preferred.append((pid, name))

    def read_tight(self, _: str) -> Reading:
        before = self.now_ns
        self.now_ns += 100_000 if (PID, THREADS) in self.preferred else WAIT_NS
        packets = self.now_ns
        return Reading({"ipackets": packets, "opackets": packets}, before, self.now_ns)

    def sleep(self, seconds: float) -> None:
        self.now_ns += round(seconds * 1e9)


def measured(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Trial:
    monkeypatch.setattr(trials, "prefer_threads", machine.prefer)
    monkeypatch.setattr(trials, "time", SimpleNamespace(sleep=machine.sleep))
    trial = blank(Cell("null", 64, 1), ARM, 0, "measure", "self-driven", 1)
    bench: Any = SimpleNamespace(window_s=0.1)
    setup: Any = SimpleNamespace(
        ready=lambda: (None, None), link=SimpleNamespace(ports=1), context=SimpleNamespace(size=64)
    )
    running: Any = SimpleNamespace(
        telemetry=machine,
        forwarder=SimpleNamespace(working_pid=PID),
        wait_until=lambda *_: None,
        check=lambda: None,
    )
    polls: Any = SimpleNamespace(await_known=lambda _: None, read=lambda: None)
    trials._Attempt(bench, Plan(ARM, "self-driven", 0, 0), setup, trial)._self_driven(
        running, polls
    )
    return trial


def test_what_answers_does_not_wait_behind_what_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    trial = measured(machine, monkeypatch)
    assert machine.preferred == [(PID, THREADS)]
    assert trial.invalid is None


def test_counters_that_are_known_too_late_void_the_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    monkeypatch.setattr(machine, "prefer", lambda *_: nullcontext())
    assert measured(machine, monkeypatch).invalid_code == "unreadable"
