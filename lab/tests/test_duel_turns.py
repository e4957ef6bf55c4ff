# SPDX-License-Identifier: BSD-3-Clause
"""Programs that take turns: exactly one runs, and all continue in the end."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from linerate.host.errors import DisconnectedError, ProcessError
from linerate.host.host import LOCAL
from linerate.host.process import Child, Command, RunDirectory, stands_still
from linerate.telemetry.client import Reading
from linerate.traffic.sender import Sender, Sent
from linerate.trial.running import Ports, Running
from linerate.trial.starts import alone as turns
from linerate.trial.starts.alone import alone, take_turns
from linerate.trial.starts.faults import FaultError
from linerate.trial.starts.start import Start

# A program with two threads that work all the time; it ends when asked to.
BUSY = """
import os, signal, threading
def work():
    while True: pass
signal.signal(signal.SIGINT, lambda *_: os._exit(7))
threading.Thread(target=work, daemon=True).start()
work()
"""


class Counters(Ports):
    """Counts one packet for each microsecond of its CPU time."""

    def __init__(self, child: Child) -> None:
        self.child = child
        self.reset = 0

    def readings(self) -> list[Reading]:
        count = time.clock_gettime_ns((~self.child.pid << 3) | 2) // 1000 - self.reset
        return [Reading({"ipackets": count, "opackets": count}, 0, 0)]

    def up(self) -> bool:
        return True


@pytest.fixture
def starts(tmp_path: Path) -> Iterator[list[Start]]:
    with RunDirectory(tmp_path) as run:
        command = Command("busy", (sys.executable, "-c", BUSY), (max(os.sched_getaffinity(0)),))
        children = [LOCAL.start(command, run) for _ in range(3)]
        try:
            yield [
                Start(arm, Running(Counters(child), child), "cpu")
                for arm, child in enumerate(children)
            ]
        finally:
            for child in children:
                child.stop()


def pids(starts: list[Start]) -> list[int]:
    return [start.pid for start in starts if start.pid]


def test_one_runs_and_the_others_stand_still(
    starts: list[Start], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def look(seconds: float) -> None:
        seen.append([stands_still(pid) for pid in pids(starts)])
        time.sleep(seconds)

    monkeypatch.setattr(turns, "pause", look)
    with alone(starts):
        assert all(map(stands_still, pids(starts)))
        windows = take_turns(starts, random.Random(1), 0.02, 2)
        assert all(map(stands_still, pids(starts)))
    # Three starts with two turns each, in which each start settles and is measured.
    assert len(seen) == 12
    assert all(sorted(each) == [False, True, True] for each in seen)
    assert [window.arm for window in windows] == [0, 1, 2]
    assert all(len(window.slices) == 2 for window in windows)
    # By CPU time, whatever else the machine does: one packet per microsecond.
    assert all(0.9e6 < window.pps < 1.1e6 for window in windows)
    assert not any(map(stands_still, pids(starts)))


def test_all_go_on_when_a_turn_fails(starts: list[Start]) -> None:
    with pytest.raises(RuntimeError), alone(starts):
        raise RuntimeError
    assert not any(map(stands_still, pids(starts)))


def test_who_ends_in_its_turn_is_named(starts: list[Start]) -> None:
    with alone(starts):
        os.kill(pids(starts)[1], signal.SIGKILL)
        starts[1].running.children[0].wait(5)
        with pytest.raises(FaultError) as raised:
            take_turns(starts, random.Random(1), 0.02, 1)
    assert (raised.value.arm, raised.value.kind) == (1, "ended")


class Flood(Sender):
    """A generator of which only the process is real."""

    def __init__(self, child: Child) -> None:
        self.child = child

    def links_up(self) -> bool:
        return True

    def sent(self) -> Sent:
        assert self.child
        if self.child.wait(0):
            raise DisconnectedError("the program closed the connection")
        return Sent(accepted=10**6, received=0)

    def close(self) -> None:
        """Do nothing; the fixture closes it."""


def test_a_generator_that_ends_is_not_the_program_s_fault(starts: list[Start]) -> None:
    generator = starts[2].running.children[0]
    one = Start(0, starts[0].running, "cpu", Flood(generator))
    assert one.sample().offered
    os.kill(generator.pid, signal.SIGKILL)
    generator.wait(5)
    for look in (one.check, one.sample, one._offered):
        with pytest.raises(ProcessError, match="busy was killed by signal 9") as raised:
            look()
        assert not isinstance(raised.value, FaultError)


def test_who_ends_while_it_is_read_has_ended(
    starts: list[Start], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its telemetry is closed shortly before the process is gone."""

    def closed() -> list[Reading]:
        os.kill(pids(starts)[0], signal.SIGKILL)
        raise DisconnectedError("the program closed the connection")

    monkeypatch.setattr(starts[0].running.ports, "readings", closed)
    with pytest.raises(FaultError, match="killed by signal 9") as raised:
        starts[0].sample()
    assert (raised.value.arm, raised.value.kind) == (0, "ended")


def test_counters_that_go_back_are_named(starts: list[Start]) -> None:
    first = starts[0].sample()
    counters = starts[0].running.ports
    assert isinstance(counters, Counters)
    counters.reset = 10**9
    with pytest.raises(FaultError, match="a counter went back") as raised:
        starts[0].slice(first, starts[0].sample())
    assert raised.value.kind == "counters"


def test_a_child_that_stands_still_is_asked_to_end_as_others_are(starts: list[Start]) -> None:
    child = starts[2].running.children[0]
    child.wait_until(lambda: starts[2].sample().received[0] > 100_000, 10, "it does nothing")
    starts[2].halt()
    # By SIGINT, which it handles when it continues, and not by SIGKILL.
    assert child.stop() == 7
