# SPDX-License-Identifier: BSD-3-Clause
"""The CPU time of a window on the forwarder's core: no more than what happened in it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import pytest
from trials import made_trial

from linerate.host.host import LOCAL, Local
from linerate.host.process import Child, Command
from linerate.host.sampler import Activity, CpuTimes, Sample, Wanted
from linerate.links import KernelThread
from linerate.trial.cpu_time import CpuMeter, Look

THREADS = [
    KernelThread(KernelThread.FORWARDER, "napi/f0", 7, 1),
    KernelThread(KernelThread.FORWARDER, "napi/f1", 9, 1),
    KernelThread(KernelThread.GENERATOR, "napi/g0", 8, 0),
]


def ran(seconds: float) -> Activity:
    return Activity(0, 0, seconds, 0.0, {1: (seconds, 0.0)})


def meter(threads: list[KernelThread]) -> CpuMeter:
    # The process that was started is 3, a script for example.
    command = Command("forwarder", ("prog",), (1,))
    child = SimpleNamespace(command=command, pid=3, working_pid=4)
    return CpuMeter(LOCAL, cast(Child, child), threads, 1)


def sampled(monkeypatch: pytest.MonkeyPatch, of: Callable[[int], Activity]) -> None:
    """Make the host return these values for each process."""
    cpus = {0: CpuTimes(0, 0, 0, 900), 1: CpuTimes(0, 0, 0, 200)}

    def sample(host: Local, wanted: Wanted) -> Sample:
        return Sample(0.0, 100, {pid: of(pid) for pid in wanted.pids}, cpus)

    monkeypatch.setattr(Local, "sample", sample)


def used(idle: Look, begin: Look, end: Look, threads: list[KernelThread]) -> dict[str, float]:
    found = meter(threads).used(idle, begin, end, 1.0)
    assert all(each.cpus == [1] for each in found)
    return {each.of: each.seconds for each in found}


def test_only_the_forwarder_s_threads_count(monkeypatch: pytest.MonkeyPatch) -> None:
    sampled(monkeypatch, lambda pid: ran(float(pid)))
    look = meter(THREADS).look()
    assert (look.process_s, look.napi_s, look.softirq_s) == (4.0, 16.0, 2.0)


def test_a_time_that_the_scheduler_does_not_tell_is_absent_and_not_0(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # One of two threads has ended, or this kernel has no such counts.
    sampled(monkeypatch, lambda pid: Activity(0, 0, 0.0, 0.0) if pid == 9 else ran(4.0))
    look = meter(THREADS).look()
    assert (look.process_s, look.napi_s) == (4.0, None)
    assert set(used(look, look, look, THREADS)) == {"process", "softirq"}
    untold = Look(0, None, 1.0, 0)
    assert set(used(untold, untold, untold, THREADS)) == {"napi", "softirq"}


@pytest.mark.parametrize(
    ("idle_ran", "ran", "expected"),
    # It polls, also for 0.1 s outside of the window; it sleeps, and all its work was for the
    # window.
    [(0.2, 1.1, 1.0), (0.001, 0.4, 0.4), (0.16, 0.6, 0.52)],
)
def test_polls_beside_the_window_are_not_the_window_s(
    idle_ran: float, ran: float, expected: float
) -> None:
    idle = Look(10.0, 1.0, 3.0, 0.5)
    begin = Look(10.2, 1.0 + idle_ran, 3.0, 0.5)
    end = Look(11.3, 1.0 + idle_ran + ran, 3.3, 0.51)
    found = used(idle, begin, end, THREADS)
    assert found == pytest.approx({"process": expected, "napi": 0.3, "softirq": 0.01})


def test_without_threads_the_kernel_s_part_is_unknown_and_not_0() -> None:
    found = used(Look(0, 0, 0, 0), Look(1, 0, 0, 0), Look(2, 0.5, 0, 0), [])
    assert set(found) == {"process", "softirq"}


def test_where_the_kernel_forwards_alone_its_threads_are_all_that_is_paid() -> None:
    alone = CpuMeter(LOCAL, None, THREADS, 1).used(
        Look(0, 0, 0, 0), Look(1, 0, 0, 0), Look(2, 0, 0.4, 0), 1.0
    )
    assert {each.of: each.seconds for each in alone} == {"process": 0, "napi": 0.4, "softirq": 0}


def test_per_packet_is_per_packet_that_came_back() -> None:
    trial = made_trial(
        experiment="paths", seed=1, block=0, position=0, role="measure", arm="a", forwarder="a",
        link="veth", size=64, load="flood", started_at="2026-01-01T00:00:00.000+00:00",
        attempted=4000, received=1000,
    )  # fmt: skip
    assert trial.frames.cpu_ns_per_packet("process") is None
    trial.frames.cpu_time = meter(THREADS).used(
        Look(0, 0, 0, 0), Look(1, 0, 0, 0), Look(2, 0.003, 0.001, 0), 1.0
    )
    assert trial.frames.cpu_ns_per_packet("process", "napi") == pytest.approx(4000)
    trial.frames.received = 0
    assert trial.frames.cpu_ns_per_packet("process") is None
