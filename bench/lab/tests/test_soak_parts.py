# SPDX-License-Identifier: BSD-3-Clause
"""Each part of the soak finds the fault that is planted for it, and no fault if none is planted."""

from __future__ import annotations

import contextlib
import copy
import itertools
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from linerate.host.errors import LabError, ProcessError, TelemetryError
from linerate.host.host import LOCAL, Host
from linerate.host.leftovers.traces import Traces, left_behind
from linerate.host.process import Child, Command, RunDirectory, thread_states
from linerate.host.sampler import Activity
from linerate.links.eal import Memory
from linerate.telemetry.client import socket_path
from linerate_bench.soak import bench as bench_module
from linerate_bench.soak import exchanges, frames, fuzz, generator, labs
from linerate_bench.soak.bench import (
    MOST_TIMES,
    Bench,
    Patience,
    Started,
    Until,
    hears,
    started,
    wrong_end,
)
from linerate_bench.soak.programs import Program, await_traffic
from linerate_bench.soak.starts import counted, killed, stopped
from linerate_bench.soak.wires import changes, heard, marked

# -- frames ----------------------------------------------------------------------------------------

NO_LOSSES = {"imissed": 0, "ierrors": 0, "oerrors": 0, "rx_nombuf": 0}
WHOLE: dict[str, Any] = {
    "state": "ended",
    "total": {"sent": 50, "received": 50, "dropped": 0},
    "ports": [
        {"name": "p0", "sent": 20, "received": 30,
         "ethdev": {"ipackets": 30, "opackets": 20, **NO_LOSSES}},
        {"name": "p1", "sent": 30, "received": 20,
         "ethdev": {"ipackets": 20, "opackets": 30, **NO_LOSSES}},
    ],
    "pool": {"name": "mbuf_pool", "size": 8192, "in_use": 0},
}  # fmt: skip


def test_frames_that_are_not_lost_are_counted() -> None:
    found = frames.judged(WHOLE)
    assert (found.number, found.faults) == (50, ())


@pytest.mark.parametrize(
    ("place", "value", "told"),
    [
        (("total", "sent"), 49, "50 frames received, 49 sent, 0 dropped"),
        (("total", "dropped"), 1, "50 frames received, 50 sent, 1 dropped"),
        (("state",), "forwarding", "l2fwd wrote no last statistics"),
        (("ports", 0, "ethdev", "ipackets"), 31, "p0: ipackets 31, but l2fwd received 30"),
        (("ports", 1, "ethdev", "opackets"), 29, "p1: opackets 29, but l2fwd sent 30"),
        (("ports", 1, "ethdev", "rx_nombuf"), 3, "p1: rx_nombuf 3"),
        (("pool", "in_use"), 1, "1 of 8192 mbufs did not come back"),
        (("pool",), None, "l2fwd did not say whether its pool is whole"),
    ],
)
def test_a_lost_frame_is_found(place: tuple[Any, ...], value: object, told: str) -> None:
    planted = copy.deepcopy(WHOLE)
    at: Any = planted
    for step in place[:-1]:
        at = at[step]
    at[place[-1]] = value
    assert frames.judged(planted).faults == (told,)


# -- starts and kills ------------------------------------------------------------------------------


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with RunDirectory(tmp_path) as run:
        yield Bench(run, random.Random(1), tmp_path / "soak.jsonl", Memory(False))


def planted(script: str, end: str = "exit 0", before: str = "") -> Program:
    """A shell that acts like a program on EAL: it does this, then its telemetry is there, which it
    removes when it is told to end. `before`: what it does before it handles signals.
    """

    def argv(bench: Bench, prefix: str) -> list[str]:
        place = f"{bench.run.path}/dpdk/{prefix}"
        whole = (
            f"{before}\ntrap 'rm -rf {place}; {end}' TERM INT\n{script}\nmkdir -p {place}\n"
            f": >{place}/dpdk_telemetry.v2\nwhile :; do sleep 0.01; done\n"
        )
        return ["sh", "-c", whole]

    return Program("planted", argv, forwards=False)


def starts(bench: Bench, program: Program) -> list[str]:
    found = counted(bench, program, stopped, Until(60, 6), patience_s=0.3)
    return list(found.faults)


def test_a_program_that_leaves_nothing_has_no_faults(bench: Bench) -> None:
    found = counted(bench, planted(""), stopped, Until(60, 3))
    assert (found.number, found.faults) == (3, ())
    found = counted(bench, planted(""), killed, Until(60, 2))
    assert (found.number, found.faults) == (2, ())


def test_what_was_counted_before_an_error_stays_counted(bench: Bench) -> None:
    done: list[str] = []

    def once(bench: Bench, program: Program, host: Host) -> list[str]:
        done.append(program.name)
        if len(done) == 3:
            raise ProcessError("it has gone")
        return []

    found = counted(bench, planted(""), once, Until(60, 9))
    assert (found.number, found.faults) == (2, ("it has gone",))


def test_answers_are_waited_for_as_long_as_programs_are(tmp_path: Path) -> None:
    """An exchange of XDP programs took more than the five seconds of other answers."""
    script = (
        "import socket, sys, time, pathlib\n"
        "path = pathlib.Path(sys.argv[1]); path.parent.mkdir(parents=True)\n"
        "server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
        "server.bind(str(path)); server.listen(1)\n"
        "peer = server.accept()[0]\n"
        'peer.send(b\'{"version": "DPDK 22.11", "pid": 1, "max_output_len": 16384}\')\n'
        "peer.recv(100); time.sleep(6); peer.send(b'{\"/slow\": 7}'); time.sleep(60)\n"
    )
    # A path of pytest's is longer than a socket's may be.
    with RunDirectory() as run:
        bench = Bench(run, random.Random(1), tmp_path / "soak.jsonl", Memory(False))
        prefix = run.new_prefix("slow")
        argv = [sys.executable, "-c", script, str(socket_path(run.path, prefix))]
        with started(bench, argv, prefix) as running, running.connect() as telemetry:
            assert telemetry.ask("/slow") == 7


def test_a_start_after_a_kill_is_told_to_end_when_it_handles_signals(bench: Bench) -> None:
    """Where it is slow, the socket of the killed one is there before it runs."""
    found = counted(bench, planted("", before="sleep 0.6"), killed, Until(60, 5), patience_s=0.3)
    assert (found.number, found.faults) == (5, ())


def test_a_file_that_is_left_is_found(bench: Bench) -> None:
    faults = starts(bench, planted(": >$RUNTIME_DIRECTORY/left"))
    assert f"left file {bench.run.path}/left" in faults


def test_a_socket_that_is_left_is_found(bench: Bench) -> None:
    """The process that owns it goes on, in a session of its own."""
    path = f"{bench.run.path}/s"
    left = f"import socket, time; s = socket.socket(1); s.bind('{path}'); time.sleep(60)"
    script = f'setsid {sys.executable} -c "{left}" &\nwhile [ ! -S {path} ]; do sleep 0.01; done'
    faults = starts(bench, planted(script))
    assert f"left socket {path}" in faults
    assert any(fault.startswith("left process ") for fault in faults)


def test_a_wrong_exit_status_is_found(bench: Bench) -> None:
    faults = starts(bench, planted("", "exit 3"))
    assert any(fault.startswith("ended with 3 after SIG") for fault in faults)


def test_ends_are_judged_by_what_was_promised() -> None:
    term = signal.SIGTERM
    assert wrong_end(0, term, heard=True) is None
    assert wrong_end(-15, term, heard=False) is None
    assert wrong_end(143, term, heard=True, after_signal=143) is None
    assert wrong_end(-15, term, heard=True) == "was ended by SIGTERM after SIGTERM, not with 0"
    assert wrong_end(-11, term, heard=False) == "was ended by SIGSEGV after SIGTERM, not with 0"
    assert wrong_end(1, term, heard=False) == "ended with 1 after SIGTERM, not with 0"
    assert wrong_end(None, term, heard=True) == "did not end within 120 s of SIGTERM"


SPIN = [sys.executable, "-c", "while True: pass"]


@contextlib.contextmanager
def spinning(nice: int) -> Iterator[subprocess.Popen[bytes]]:
    """A process that wants the last CPU all the time."""
    with subprocess.Popen(SPIN) as process:
        try:
            os.sched_setaffinity(process.pid, {max(os.sched_getaffinity(0))})
            usual = os.getpriority(os.PRIO_PROCESS, process.pid)
            os.setpriority(os.PRIO_PROCESS, process.pid, min(usual + nice, 19))
            yield process
        finally:
            process.kill()


def test_time_that_others_take_from_a_program_is_not_counted() -> None:
    with spinning(0), spinning(15) as starved:
        time.sleep(0.5)
        patience, end = Patience(starved.pid, 1.0), time.monotonic() + 1.3
        while time.monotonic() < end:
            assert not patience.over
            time.sleep(0.01)
    with subprocess.Popen(["sleep", "60"]) as idle:
        while "R" in thread_states(idle.pid):
            time.sleep(0.01)
        patience = Patience(idle.pid, 0.2)
        assert not patience.over
        time.sleep(0.3)
        assert patience.over
        assert str(patience) == "0.2 s"
        idle.kill()


def test_a_program_that_runs_has_no_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = itertools.count(1.0, 0.01)
    monkeypatch.setattr(
        bench_module, "activity", lambda pid: Activity(0, 0, n := next(ran), 0.0, {1: (n, 0.0)})
    )
    monkeypatch.setattr(bench_module, "thread_states", lambda pid: iter("R"))
    patience = Patience(1, 0.1)
    time.sleep(0.15)
    assert not patience.over, "whether it waits is known from two looks"
    assert patience.over


def test_a_limit_grows_to_its_multiple_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    waited = [0.0]
    monkeypatch.setattr(
        bench_module, "activity", lambda pid: Activity(0, 0, 0.0, 0.0, {1: (0.0, waited[0])})
    )
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    patience = Patience(1, 30.0)
    now[0], waited[0] = 135.0, 20.0
    assert not patience.over
    now[0] = 149.0
    assert not patience.over
    waited[0] = 10_000.0
    now[0] = 100.0 + MOST_TIMES * 30.0 - 1
    assert not patience.over
    now[0] += 2
    assert patience.over
    assert str(patience) == "30 s, and 270.0 s in which other processes had its CPU"


def test_a_handler_is_seen_in_a_process_s_status() -> None:
    assert hears("SigIgn:\t0000\nSigCgt:\t0000000000004000\n", signal.SIGTERM)
    assert not hears("SigIgn:\t4000\nSigCgt:\t0000000000000002\n", signal.SIGTERM)
    assert not hears("", signal.SIGTERM)


def test_what_is_left_on_interfaces_is_found() -> None:
    quiet: list[dict[str, object]] = [
        {"ifname": "lo", "promiscuity": 0}, {"ifname": "f0", "promiscuity": 0}, {"ifname": "f1"}
    ]  # fmt: skip
    assert changes(quiet) == []
    assert changes([*quiet, {"ifname": "tap0"}]) == ["left interface tap0"]
    assert changes([{"ifname": "f0", "promiscuity": 1}]) == ["left f0 promiscuous"]
    assert changes([{"ifname": "f1", "xdp": {"mode": 1}}]) == ["left an XDP program on f1"]


def test_who_is_just_ending_is_waited_for(tmp_path: Path) -> None:
    before = Traces.of(tmp_path, files=True)
    with subprocess.Popen(["sleep", "0.3"], env={**os.environ, "HERE": str(tmp_path)}) as process:
        assert Traces.of(tmp_path).more_than(before) == [f"process {process.pid}"]
        assert left_behind(tmp_path, before, patience_s=0.0) == [f"process {process.pid}"]
        # A zombie has no environment.
        assert left_behind(tmp_path, before, patience_s=10.0) == []


class Receiving(Started):
    """A `Started` whose port 0 answers with these numbers of packets in turn; None: an error."""

    def __init__(self, child: Child, *ipackets: int | None) -> None:
        super().__init__(child, Path(), "planted")
        self._ipackets = iter(ipackets)

    def connect(self) -> Any:
        return nullcontext(self)

    def ask(self, command: str) -> dict[str, int]:
        assert command == "/ethdev/stats,0"
        found = next(self._ipackets)
        if found is None:
            raise TelemetryError("no such port")
        return {"ipackets": found}


def test_traffic_is_awaited_until_port_0_has_received(bench: Bench) -> None:
    with LOCAL.start(Command("planted", ("sleep", "60"), (bench.cpu,)), bench.run) as child:
        running = Receiving(child, None, 0, 3)
        await_traffic(running)
        with pytest.raises(StopIteration):
            running.ask("/ethdev/stats,0")


def test_traffic_of_a_program_that_ended_is_not_awaited(bench: Bench) -> None:
    with LOCAL.start(Command("planted", ("false",), (bench.cpu,)), bench.run) as child:
        running = Receiving(child, *[None] * 1000)
        with pytest.raises(ProcessError, match="planted ended with exit code 1"):
            await_traffic(running)


def test_less_memory_is_found() -> None:
    before = Traces(64, frozenset(), frozenset(), frozenset())
    after = Traces(60, frozenset({"tap0"}), frozenset(), frozenset())
    assert after.more_than(before) == ["interface tap0", "4 MiB of hugepages"]
    assert before.more_than(before) == []


def test_records_are_compared_by_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    assert labs.whole_lines(path) == b""
    path.write_bytes(b"one\ntwo\nhal")
    assert labs.whole_lines(path) == b"one\ntwo\n"


def test_a_lab_has_begun_when_it_has_its_run_directory(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as lab:
        (tmp_path / f"linerate-0-{lab.pid + 1}-1").mkdir()
        lab_pid = tmp_path / f"linerate-0-{lab.pid}-1"
        lab_pid.mkdir()
        assert labs.await_begin(lab, tmp_path)
        lab_pid.rmdir()
        lab.kill()
        lab.wait()
        assert not labs.await_begin(lab, tmp_path)


# -- exchanges -------------------------------------------------------------------------------------


def test_rules_are_judged_by_what_is_sent() -> None:
    assert exchanges.judged_rules((5, 9), (5, 10), denied=0) is None
    told = exchanges.judged_rules((5, 9), (7, 10), denied=0)
    assert told == "2 frames of the denied flow were sent"
    told = exchanges.judged_rules((5, 9), (6, 9), denied=1)
    assert told is None
    told = exchanges.judged_rules((5, 9), (5, 9), denied=1)
    assert told == "no frame of the flow that may pass was sent"


def test_a_packet_that_was_lost_in_an_exchange_is_found() -> None:
    assert exchanges.judged_books({"rx": 30, "tx": 20, "denied": 10}) is None
    told = exchanges.judged_books({"rx": 31, "tx": 20, "denied": 10})
    assert told == "31 packets came, 20 were sent and 10 denied: 1 lost"


def test_an_action_is_judged_by_where_a_frame_is_heard() -> None:
    everywhere = dict.fromkeys(("l0", "f0", "r0"), False)
    assert exchanges.judged_places("r0", {**everywhere, "r0": True}) is None
    told = exchanges.judged_places("r0", {**everywhere, "l0": True})
    assert told == "a frame for r0 was heard at l0"
    assert exchanges.judged_places("r0", everywhere) == "a frame for r0 was heard at none"
    told = exchanges.judged_places("f0", dict.fromkeys(everywhere, True))
    assert told == "a frame for f0 was heard at l0 and f0 and r0"


def test_a_frame_that_came_while_others_had_the_cpu_is_heard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    far, near = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    near.setblocking(False)
    # Others have the CPU for ten seconds at a time.
    times = itertools.count(100.0, 10.0)
    monkeypatch.setattr(time, "monotonic", lambda: next(times))
    with far, near:
        far.send(b"of others")
        far.send(marked(7))
        assert heard(near, marked(7)[14:], 5.0) == marked(7)
        assert heard(near, marked(7)[14:], 5.0) is None


def test_a_frame_without_a_counter_is_found() -> None:
    near = {"rx_good_packets": 10, "tx_good_packets": 2, "rx_passed": 3}
    far = {"rx_good_packets": 0, "tx_good_packets": 4, "tx_refused": 1}
    assert exchanges.judged_xdp_books([near, far]) is None
    told = exchanges.judged_xdp_books([near, {**far, "tx_refused": 0}])
    assert told == "10 frames came, 9 are in a counter: 1 lost"


def test_a_route_is_judged_by_the_frame_s_next_hop() -> None:
    one, other = bytes.fromhex("0211000000aa"), bytes.fromhex("0211000000ab")
    assert exchanges.judged_route("10.2.0.2", one + bytes(54)) is None
    told = exchanges.judged_route("10.2.0.2", other + bytes(54))
    assert told == "a frame over 10.2.0.2 was sent to 02:11:00:00:00:ab"
    told = exchanges.judged_route("10.2.0.3", None)
    assert told == "nothing came out by the route over 10.2.0.3"


# -- fuzz targets ----------------------------------------------------------------------------------


def test_executions_are_those_that_libfuzzer_counted() -> None:
    text = "fuzz: frame, 5 s\nstat::number_of_executed_units: 1234\nfuzz: nothing found\n"
    found = fuzz.judged(text, 0)
    assert (found.number, found.faults) == (1234, ())


def test_a_finding_of_libfuzzer_is_a_fault() -> None:
    text = "thread panicked at x.rs\nstat::number_of_executed_units: 9\nTest unit written to ./c\n"
    found = fuzz.judged(text, 1)
    assert found.number == 9
    assert found.faults == ("thread panicked at x.rs / Test unit written to ./c",)
    (told,) = fuzz.judged("no usable rustc\n", 1).faults
    assert told == "no usable rustc"
    (told,) = fuzz.judged("nothing of the kind\n", 0).faults
    assert told == "libFuzzer did not say how much it executed"


# -- the generator ---------------------------------------------------------------------------------


def test_growth_is_counted_after_the_first_sixth() -> None:
    filling = [100, 900, 1000, 1000, 1000, 1000]
    assert generator.growth([*filling, *[1000] * 24, 1000, 1000, 1000, 1000, 1000, 1004]) == 4
    assert generator.growth([5]) == 0
    assert generator.growth(list(range(0, 6000, 100))) == 5900 - 1900


def test_resident_memory_is_read_or_missed() -> None:
    assert generator.resident_kb("Name:\tgenerator\nVmRSS:\t   54860 kB\nRssAnon:\t1 kB\n") == 54860
    with pytest.raises(LabError):
        generator.resident_kb("Name:\tkthread\n")


def test_memory_that_grows_and_frames_that_are_missing_are_found() -> None:
    flat = [generator.Sample(1000, 20)] * 60
    assert generator.judged(flat, 0) == []
    grown = [generator.Sample(1000 + 100 * at, 20) for at in range(60)]
    assert generator.judged(grown, 0) == ["resident memory grew by 4000 KiB"]
    assert generator.judged(flat, 3) == ["3 frames are missing at the end"]


def test_a_program_that_leaks_a_descriptor_is_found() -> None:
    leaking = (
        "import sys\nkept = []\n"
        "for line in sys.stdin:\n    kept.append(open('/dev/null'))\n    print(flush=True)\n"
    )
    samples = []
    with subprocess.Popen(
        [sys.executable, "-c", leaking], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        for step in range(60):
            if step % 20 == 19:
                process.stdin.write("\n")
                process.stdin.flush()
                process.stdout.readline()
            samples.append(generator.sample(process.pid))
        process.stdin.close()
    assert generator.judged(samples, 0) == ["2 more descriptors are open than in the beginning"]
    with pytest.raises(LabError):
        generator.sample(process.pid)
