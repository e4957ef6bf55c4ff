# SPDX-License-Identifier: BSD-3-Clause
"""The clocks over which packets are counted, and when a program must be at its limit."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from conftest import need_veth, wait_for

from linerate.cli.duel_options import how
from linerate.experiments.duel.advice import advice_on, relative_files
from linerate.experiments.duel.programs import program_of
from linerate.experiments.duel.rounds import Asked
from linerate.forwarders import FORWARDERS
from linerate.host.errors import LinkError
from linerate.host.host import LOCAL
from linerate.host.netns import Namespaces
from linerate.host.process import Child, Command, RunDirectory, stands_still
from linerate.links import KernelThread, link
from linerate.telemetry.client import Reading
from linerate.trial.running import Ports, Running
from linerate.trial.starts import apart
from linerate.trial.starts.clocks import CpuClock, PathClock, polls_at_rest
from linerate.trial.starts.faults import FaultError, refuse
from linerate.trial.starts.start import Start
from linerate.trial.starts.window import Offered, Slice, Window

XDP = "./fw program.o {rx} {tx}"
BUSY = "while True: pass"
SLEEPS = "import time; time.sleep(60)"
CPU = (max(os.sched_getaffinity(0)),)


@pytest.mark.parametrize(
    ("where", "words", "method", "per"),
    [
        ("veth", (XDP, XDP), "turns", "cpu-and-napi"),
        ("veth1-af-xdp", ("xdp-redirect", "af-packet-mmap"), "turns", "cpu-and-napi"),
        # The kernel also receives for programs on DPDK.
        ("veth", ("c-l2fwd", "kernel-bridge"), "turns", "cpu-and-napi"),
        # There the cost is the writer's, on any CPU.
        ("tap", ("c-l2fwd", "rust-l2fwd"), "turns", "time"),
        ("memif", ("c-l2fwd", "rust-l2fwd"), "turns", "cpu"),
        ("null2", ("c-l2fwd", "rust-l2fwd"), "standing", "cpu"),
    ],
)
def test_the_link_says_what_packets_are_counted_over(
    where: str, words: tuple[str, str], method: str, per: str
) -> None:
    programs = [program_of(word, letter) for word, letter in zip(words, "AB", strict=True)]
    asked = how(link(where), programs, "auto", Asked())
    assert (asked.method, asked.per) == (method, per)


# -- clocks ----------------------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunDirectory]:
    with RunDirectory(tmp_path) as directory:
        yield directory


@contextmanager
def started(run: RunDirectory, *programs: str) -> Iterator[list[Child]]:
    """Start Python programs, all on one CPU."""
    children: list[Child] = []
    try:
        for text in programs:
            command = Command("program", (sys.executable, "-c", text), CPU)
            children.append(LOCAL.start(command, run))
        yield children
    finally:
        for child in children:
            child.stop()


def thread(pid: int, role: str = KernelThread.FORWARDER) -> KernelThread:
    return KernelThread(role, "napi/f0", pid, CPU[0])


def test_the_path_s_time_is_that_of_the_program_and_of_the_threads(run: RunDirectory) -> None:
    with started(run, BUSY, BUSY, BUSY) as children:
        pids = [child.pid for child in children]
        clocks = [CpuClock(pid) for pid in pids]
        wait_for("all ran", lambda: all(clock.now_ns() > 10**6 for clock in clocks))
        for child in children:
            child.freeze()
        wait_for("they stand still", lambda: all(map(stands_still, pids)))
        had = [clock.now_ns() for clock in clocks]
        assert PathClock(pids[0], [thread(pids[1]), thread(pids[2])]).now_ns() == sum(had)
        # The kernel forwards alone.
        assert PathClock(None, [thread(pids[1])]).now_ns() == had[1]


def test_what_it_starts_later_counts_from_the_next_look_on(run: RunDirectory) -> None:
    script = (
        "import subprocess, sys, time\n"
        "sys.stdin.readline()\n"
        f"child = subprocess.Popen([sys.executable, '-c', {BUSY!r}])\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    command = Command("program", (sys.executable, "-c", script), CPU, hold_stdin=True)
    with LOCAL.start(command, run) as child:
        clock = PathClock(child.pid, [])
        child.tell("begin")
        wait_for("it started one", lambda: child.output().strip())
        helper = CpuClock(int(child.output()))
        wait_for("that works", lambda: helper.now_ns() > 2 * 10**8)
        assert clock.now_ns() < 2 * 10**8
        clock.look()
        assert clock.now_ns() >= 2 * 10**8


def test_who_left_its_session_counts_in_a_namespace_of_its_own(run: RunDirectory) -> None:
    """For example a daemon that does the work of a program which stays in the foreground."""
    need_veth()
    script = (
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-c', {BUSY!r}], start_new_session=True)\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    command = Command("program", (sys.executable, "-c", script), CPU)
    with Namespaces(("clock",)) as made, made.host("clock").start(command, run) as child:
        wait_for("it started one", lambda: child.output().strip())
        pid = int(child.output())
        helper, clock = CpuClock(pid), PathClock(child.pid, [])
        wait_for("that works", lambda: helper.now_ns() > 2 * 10**8)
        assert clock.now_ns() >= 2 * 10**8
        os.kill(pid, 9)


def test_what_a_script_started_counts_also_when_it_ended(run: RunDirectory) -> None:
    script = (
        "import subprocess, sys, time\n"
        "busy = 'import time\\nwhile time.process_time() < .2: pass\\ntime.sleep(60)'\n"
        "child = subprocess.Popen([sys.executable, '-c', busy])\n"
        "print(child.pid, flush=True)\n"
        "child.wait()\n"
        "time.sleep(60)\n"
    )
    with started(run, script) as (child,):
        wait_for("it started one", lambda: child.output().strip())
        helper = int(child.output())
        clock = PathClock(child.pid, [])
        wait_for("that worked", lambda: clock.now_ns() > 2 * 10**8)
        before = clock.now_ns()
        os.kill(helper, 9)
        wait_for("it is gone", lambda: not Path(f"/proc/{helper}").exists())
        assert clock.now_ns() >= before


def test_a_thread_that_cannot_be_read_is_named(run: RunDirectory) -> None:
    with started(run, SLEEPS) as (child,):
        pid = child.pid
    with pytest.raises(LinkError, match=rf"thread napi/f0 \(pid {pid}\), which receives for"):
        PathClock(None, [thread(pid)])


def test_a_program_that_ended_is_named(run: RunDirectory) -> None:
    with started(run, SLEEPS) as (child,):
        pass
    start = Start(1, Running(Counted(), child), "cpu-and-napi", threads=[])
    with pytest.raises(FaultError) as raised:
        start._now()
    assert (raised.value.arm, raised.value.kind) == (1, "ended")


def test_who_wants_the_cpu_while_nothing_comes_polls(run: RunDirectory) -> None:
    with started(run, BUSY, SLEEPS) as (busy, sleeper):
        wait_for("it started", lambda: CpuClock(busy.pid).now_ns() > 10**8)
        wait_for("it sleeps", lambda: _state(sleeper.pid) == "S")
        assert polls_at_rest([busy.pid], lambda: 0)
        assert not polls_at_rest([sleeper.pid], lambda: 0)
        assert not polls_at_rest([], lambda: 0)
        # Packets waiting for it are drained first.
        counts = itertools.chain(range(4), itertools.repeat(4))
        assert not polls_at_rest([sleeper.pid], lambda: next(counts))
        assert next(counts) == 4


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


# -- its limit -------------------------------------------------------------------------------------


class Counted(Ports):
    """Two ports with these counters, and how often they were read."""

    def __init__(self, received: int = 1, sent: int = 1) -> None:
        self.figures = {"ipackets": received, "opackets": sent}
        self.times = 0

    def readings(self) -> list[Reading]:
        self.times += 1
        return [Reading(self.figures, 0, 0)] * 2

    def up(self) -> bool:
        return True


@pytest.mark.parametrize(("program", "cost_only"), [(BUSY, False), (SLEEPS, True)])
def test_only_who_sleeps_without_packets_needs_no_limit(
    run: RunDirectory, program: str, cost_only: bool
) -> None:
    with started(run, program, SLEEPS) as (child, generator):
        wait_for("it started", lambda: CpuClock(child.pid).now_ns() > 10**6)
        wait_for("it works or sleeps", lambda: (_state(child.pid) == "S") == cost_only)
        sender = cast(Any, SimpleNamespace(child=generator, check=lambda: None))
        start = Start(0, Running(Counted(), child), "cpu-and-napi", sender, threads=[])
        assert apart._polls(start, sender) is not cost_only
        # Its generator continues.
        wait_for("it runs", lambda: _state(generator.pid) == "S")


def test_interfaces_count_what_is_sent_and_the_program_what_it_took(run: RunDirectory) -> None:
    """Interfaces count frames as received even if the program's socket had no room for them."""
    program, interfaces = Counted(70, 60), Counted(100, 50)
    with started(run, BUSY) as (child,):
        running = Running(program, child)
        start = Start(0, running, "cpu-and-napi", threads=[], interfaces=interfaces)
        sample = start.sample()
        assert (sample.received, sample.sent) == ((70, 70), (50, 50))
        assert program.times == 1
        # The number received does not matter if time is the cost of packets.
        start.cost_only = True
        assert start.sample().received == (100, 100)
        assert program.times == 1


def window(*, received: int, sent: int, offered: int, cost_only: bool) -> Window:
    one = Slice((received,), (sent,), 10**6, Offered(offered, 0), cost_only)
    return Window(1, (one,) * 3)


def test_a_cost_needs_no_limit() -> None:
    refuse([window(received=10**5, sent=10**5, offered=10**5, cost_only=True)])
    with pytest.raises(FaultError) as raised:
        refuse([window(received=10**5, sent=10**5, offered=10**5, cost_only=False)])
    assert raised.value.kind == "unsaturated"


def test_who_loses_packets_on_the_way_back_may_have_taken_all() -> None:
    """Its sent packets are then what its generator could receive, which says nothing about it."""
    with pytest.raises(FaultError) as raised:
        refuse([window(received=10**5, sent=5 * 10**4, offered=10**5, cost_only=False)])
    assert raised.value.kind == "unsaturated"


def test_who_copies_packets_does_other_work() -> None:
    def copies(arm: int, times: int) -> Window:
        return Window(arm, (Slice((10**6,), (times * 10**6,), 10**9),) * 3)

    with pytest.raises(FaultError, match="it sent 200% as many packets as it received") as raised:
        refuse([copies(0, 1), copies(1, 2)])
    assert (raised.value.arm, raised.value.kind) == (1, "work")
    # All do, or there is no other to compare with.
    refuse([copies(0, 2), copies(1, 2)])
    refuse([copies(1, 2)])


def test_packets_that_waited_before_a_slice_are_no_copies() -> None:
    """A program that others keep from its CPU finds few packets in a slice, and sends those that
    it received before.
    """
    offered = Offered(10**6, 0)
    starved = Slice((2000,), (2400,), 10**7, offered)
    usual = Slice((2000,), (1900,), 10**7, offered)
    refuse([Window(0, (starved,) * 20), Window(1, (usual,) * 20)])
    copies = Slice((2000,), (4000,), 10**7, offered)
    with pytest.raises(FaultError) as raised:
        refuse([Window(0, (copies,) * 20), Window(1, (usual,) * 20)])
    assert (raised.value.arm, raised.value.kind) == (0, "work")


# -- advice ----------------------------------------------------------------------------------------

LIMIT = FaultError(1, "unsaturated", "it took all that the generator offered")


@pytest.mark.parametrize(
    ("where", "words", "advised"),
    [
        ("memif2", ("c-l2fwd", "rust-l2fwd"), "--link null2 has no generator"),
        ("memif", ("c-l2fwd", "rust-l2fwd"), "--link null has no generator"),
        ("veth", (XDP, XDP), "--link veth-af-xdp has a faster generator"),
        ("veth", (XDP, "c-l2fwd"), "--link veth-af-xdp has a faster generator"),
        ("veth-af-xdp", (XDP, XDP), "no link that both work on has a faster generator"),
    ],
)
def test_no_link_is_advised_that_a_program_does_not_work_on(
    where: str, words: tuple[str, str], advised: str
) -> None:
    programs = [program_of(word, letter) for word, letter in zip(words, "AB", strict=True)]
    (told,) = advice_on(LIMIT, link(where), programs)
    assert told.startswith(advised)


def test_files_with_relative_paths_are_pointed_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.o", "rules", "fw"):
        (tmp_path / name).touch()
    line = f"./fw a.o b.o --rules=rules {tmp_path}/a.o {{rx}} --out={{tx}}"
    program = program_of(line, "A")
    assert relative_files(program) == ["a.o", "rules"]
    assert relative_files(FORWARDERS["c-l2fwd"]) == []
    ended = FaultError(0, "start", "no such file")
    told = advice_on(ended, link("veth"), [program, program])
    assert told[0].endswith(f"a new, empty directory: write {tmp_path}/a.o")
    assert len(told) == 2
    assert not advice_on(FaultError(0, "drops", "it sent nothing"), link("veth"), [program])
