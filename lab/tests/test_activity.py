# SPDX-License-Identifier: BSD-3-Clause
"""Which processes had the forwarder's CPU: its own receiving thread is not another process."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import cast

import pytest
from trials import made_trial

from linerate.host.host import LOCAL, Local
from linerate.host.process import Child, Command
from linerate.host.sampler import Activity, Sample, Wanted
from linerate.links import KernelThread
from linerate.records.trial import Process, Program, Trial
from linerate.runs.run_summary import crowding
from linerate.trial.activity import Watch, waiting_of


def _activity(ran: float, waited: float = 0.0, switches: tuple[int, int] = (0, 0)) -> Activity:
    return Activity(*switches, ran, waited, {1: (ran, waited)})


class Scheduler:
    """A forwarder whose times are scripted."""

    def __init__(self) -> None:
        self.now = _activity(1.0, 1.0)
        self.command = Command("forwarder", ("prog",), (1,))

    def activity(self) -> Activity:
        return self.now


@pytest.mark.parametrize(
    ("ran", "waited", "link_ran", "starved"),
    [(0.9, 0.1, 0.0, False), (0.5, 0.5, 0.0, True), (0.5, 0.5, 0.5, False), (0.5, 0.5, 0.2, True)],
)
def test_what_the_link_s_thread_had_was_the_forwarder_s(
    monkeypatch: pytest.MonkeyPatch, ran: float, waited: float, link_ran: float, starved: bool
) -> None:
    child = Scheduler()
    clock = SimpleNamespace(ran_s=3.0)

    def sample(host: Local, wanted: Wanted) -> Sample:
        return Sample(0.0, 100, {pid: _activity(clock.ran_s) for pid in wanted.pids})

    monkeypatch.setattr(Local, "sample", sample)
    threads = [
        KernelThread(KernelThread.FORWARDER, "napi/f0", 7, 1),
        # On the other core: it takes nothing away.
        KernelThread(KernelThread.GENERATOR, "napi/g0", 8, 0),
    ]
    record = made_trial(
        experiment="overload", seed=1, block=0, position=0, role="measure", arm="a", forwarder="a",
        link="veth", size=64, load="flood", started_at="2026-01-01T00:00:00.000+00:00",
    )  # fmt: skip
    watch = Watch(record, LOCAL, [cast(Child, child)], threads)
    child.now = _activity(1.0 + ran, 1.0 + waited, (3, 4))
    clock.ran_s += link_ran
    watch.enter()
    assert [each.role for each in record.program.processes] == [
        "forwarder", "forwarder-link", "generator-link",
    ]  # fmt: skip
    first = record.program.processes[0]
    assert (first.voluntary_switches, first.involuntary_switches) == (3, 4)
    assert (first.ran_s, first.waited_s) == pytest.approx((ran, waited))
    assert record.program.processes[1].ran_s == pytest.approx(link_ran)
    assert (record.invalid_code == "starved") is starved


def test_what_the_scheduler_does_not_tell_is_absent() -> None:
    child = Scheduler()
    record = _trial()
    watch = Watch(record, LOCAL, [cast(Child, child)], [])
    child.now = Activity(0, 0, 0.0, 0.0)
    watch.enter()
    (process,) = record.program.processes
    assert (process.ran_s, process.waited_s, process.voluntary_switches) == (None, None, None)
    assert record.valid


@pytest.mark.parametrize(
    ("worker", "helper", "others"),
    [
        # The helper and the forwarder kept each other waiting, and no other process had the CPU.
        ((0.6, 0.4), (0.4, 0.6), 0.0),
        # Others had it for longer than the helper.
        ((0.5, 0.5), (0.2, 0.8), 0.3),
        # A process that does next to nothing, waiting behind one that spins.
        ((1.0, 0.0), (0.0, 0.9), 0.0),
    ],
)
def test_its_own_threads_are_no_others(
    worker: tuple[float, float], helper: tuple[float, float], others: float
) -> None:
    # CPU time before the window does not count: the other process had started the program.
    before = Activity(0, 0, 9.0, 1.0, {1: (9.0, 1.0)})
    then = {1: (9.0 + helper[0], 1.0 + helper[1]), 2: worker}
    assert Activity(0, 0, 10.0, 2.0, then).waited_for_others_s(before) == pytest.approx(others)


def test_a_process_that_is_gone_did_nothing() -> None:
    sample = LOCAL.sample(Wanted(pids=(1 << 23, os.getpid())))
    gone = sample.processes[1 << 23]
    assert gone == Activity(0, 0, 0.0, 0.0)
    assert not gone.told
    now = sample.processes[os.getpid()]
    assert now.ran_s == sum(ran for ran, _ in now.threads.values()) > 0


def _trial(*processes: Process) -> Trial:
    return made_trial(
        experiment="paths", seed=1, block=0, position=0, role="measure", arm="a", forwarder="a",
        link="veth", size=64, load="flood", started_at="2026-01-01T00:00:00.000+00:00",
        processes=list(processes),
    )  # fmt: skip


def _process(role: str, name: str, cpu: int, ran_s: float, waited_s: float = 0.0) -> Process:
    return Process(role=role, argv=[name], cpus=[cpu], ran_s=ran_s, waited_s=waited_s)


def test_who_is_said_to_have_had_the_forwarder_s_cpu() -> None:
    waits = _process("forwarder", "prog", 1, 0.49, 0.51)
    link = KernelThread.FORWARDER

    def told(*threads: Process) -> list[str]:
        return crowding([_trial(waits, *threads)])

    # All waiting was for the kernel's own thread, which also ran while the forwarder slept.
    (kernel,) = told(_process(link, "napi/f0", 1, 0.6))
    assert "packet thread" in kernel
    assert "(napi/f0)" in kernel
    assert "51%" in kernel
    # It explains a part of the waiting; only the rest is attributed to others.
    kernel, others = told(_process(link, "napi/f0", 1, 0.3), _process(link, "napi/f1", 1, 0.11))
    assert "(napi/f0, napi/f1)" in kernel
    assert "41%" in kernel
    assert others.startswith("other programs")
    assert "10%" in others
    # On another CPU, or at the other end of the link, it explains nothing.
    for thread in (
        _process(link, "napi/f0", 2, 0.6),
        _process(KernelThread.GENERATOR, "napi/g0", 1, 0.6),
    ):
        (others,) = told(thread)
        assert others.startswith("other programs")
        assert "51%" in others
    # Links without such threads do not hide those that have some, and vice versa.
    still = _trial(_process("forwarder", "prog", 1, 1.0))
    busy = _trial(waits, _process(link, "napi/f0", 1, 0.6))
    (kernel,) = crowding([still, still, busy])
    assert "51%" in kernel
    assert crowding([still]) == []


def test_others_on_the_forwarder_s_cpu_are_named() -> None:
    trials = [_trial(_process("forwarder", "prog", 1, 0.9, 0.1)) for _ in range(3)]
    (unknown,) = crowding(trials)
    assert unknown.startswith("other programs used the forwarder's CPU: it waited")
    trials[0].others = {"0": {"python": 0.9}, "1": {"rustc": 0.08, "cc1": 0.02, "as": 0.001}}
    trials[1].others = {"1": {"rustc": 0.04}}
    (named,) = crowding(trials)
    assert named.startswith("other programs used the forwarder's CPU (rustc 6%, cc1 1%): it waited")


def test_the_process_of_an_xdp_program_keeps_no_frame_waiting() -> None:
    """Beside other work all windows of XDP programs at fixed loads were void as starved."""
    waits = _process("forwarder", "xdp-fwd", 1, 0.001, 0.021)
    trial = _trial(waits)
    assert waiting_of(trial, waits) is not None
    assert crowding([trial])
    trial.program.described = Program(language="Rust", kind="xdp")
    assert waiting_of(trial, waits) is None
    assert crowding([trial]) == []
