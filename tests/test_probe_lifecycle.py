# SPDX-License-Identifier: BSD-3-Clause
"""The probe in programs whose ports, queues and threads come and go: it counts every poll once,
leaves nothing behind, and ends no program.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from probe_examples import (
    PREFIX,
    PROBE,
    RELEASE,
    TIMEOUT_S,
    Program,
    build,
    own_books,
    probe_books,
    until,
)

from linerate.host.errors import TelemetryError
from linerate.telemetry.client import Telemetry, socket_path

NULL = "net_null0"
# `malloc` keeps pieces in caches of each thread, and DPDK allocates a thing or two when it is first
# asked. What the probe lost in each of 200 cycles, or with each of 160 devices, would be more: it
# is some dozen bytes for every queue.
SLACK_BYTES = 1024
# The kernel counts resident pages by thread, and up to 64 of them late.
RSS_SLACK_KB = 512


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    build()


def memory(program: Program, line: dict[str, Any]) -> dict[str, int]:
    heap = program.ask("/eal/heap_info,0")
    status = program.status()
    return {
        "malloc": line["malloced"],
        "heap": heap["Alloc_size"],
        "heap_pieces": heap["Alloc_count"],
        "rss_kb": int(status["VmRSS"].split()[0]),
        "threads": int(status["Threads"]),
    }


def cycles(directory: Path, probe: bool) -> dict[int, dict[str, int]]:
    """Run a thousand cycles; return the memory after some of them. With the probe its counts must
    be right.
    """
    directory.mkdir()
    devices = [f"net_null{n}" for n in range(4)]
    found = {}
    with Program(directory, "cycling", devices, ["cycles=1000"], lcores=2, probe=probe) as program:
        while True:
            line = program.next() if probe else program.line()
            if "books" in line:
                break
            if "cycle" in line:
                found[line["cycle"]] = memory(program, line)
            program.go_on()
        if probe:
            own = own_books(line)
            assert {(port, queue) for _, port, queue in own} >= {(0, 0), (0, 1), (1, 0), (1, 1)}
            assert all(sum(polls) > 1000 for polls in own.values())
            # Devices that receive nothing were polled too.
            assert 0 < own[0, 0, 0][0] < sum(own[0, 0, 0])
            assert probe_books(program) == own
        assert program.end() == 0
        assert program.leftovers() == []
    return found


def least_growth(found: dict[int, dict[str, int]]) -> int:
    """How much more the program has from `malloc` from one look to the next, at least: a leak is in
    every interval, a cache that a thread fills once is in one.
    """
    sizes = [at["malloc"] for _, at in sorted(found.items())]
    return min(after - before for before, after in pairwise(sizes))


def test_a_thousand_starts_and_stops_are_counted_and_nothing_is_lost(tmp_path: Path) -> None:
    """They happen under traffic: a worker forwards all the time between two other ports."""
    probed = cycles(tmp_path / "probed", probe=True)
    # DPDK itself loses memory with each net_null that is removed: as much without the probe.
    plain = cycles(tmp_path / "plain", probe=False)

    def growth(found: dict[int, dict[str, int]], what: str) -> int:
        return found[1000][what] - found[200][what]

    assert growth(probed, "heap_pieces") == growth(plain, "heap_pieces")
    assert growth(probed, "heap") == growth(plain, "heap")
    assert least_growth(probed) <= max(0, least_growth(plain)) + SLACK_BYTES
    assert growth(probed, "rss_kb") <= growth(probed, "heap") // 1024 + RSS_SLACK_KB
    assert len({at["threads"] for at in probed.values()}) == 1
    # The probe's own thread. (The other client of telemetry has one in both.)
    assert probed[200]["threads"] == plain[200]["threads"] + 1


def run_to_books(program: Program) -> dict[tuple[int, int, int], list[int]]:
    return own_books(program.next())


def test_two_threads_may_poll_a_queue_in_turn(tmp_path: Path) -> None:
    with Program(tmp_path, "threads", [NULL], ["way=turns"]) as program:
        own = run_to_books(program)
        assert {lcore for lcore, _, _ in own} == {0, 2**32 - 1}
        assert probe_books(program) == own
        assert program.end() == 0


def test_threads_that_come_and_go_leave_nothing(tmp_path: Path) -> None:
    """A thousand have lcore ids that others had before, and a thousand have none."""
    with Program(tmp_path, "threads", [NULL], ["way=comers", "rounds=1000"]) as program:
        found = {}
        while "books" not in (line := program.next()):
            found[line["round"]] = memory(program, line)
            program.go_on()
        assert probe_books(program) == own_books(line)
        assert program.end() == 0
    assert least_growth(found) <= SLACK_BYTES
    assert found[1000]["heap"] == found[200]["heap"]
    assert found[1000]["threads"] == found[200]["threads"]
    assert found[1000]["rss_kb"] <= found[200]["rss_kb"] + RSS_SLACK_KB


@pytest.mark.parametrize("queues", [64, 200])
def test_many_queues_are_all_told_of(tmp_path: Path, queues: int) -> None:
    """DPDK's answers end after 16 KiB, and what does not fit is left out silently."""
    with Program(tmp_path, "threads", [NULL], ["way=many", f"queues={queues}"]) as program:
        own = run_to_books(program)
        raw = program.telemetry
        whole = raw_answer(program, "/linerate/polling")
        if whole is not None:
            assert len(whole) == queues
        for queue in range(queues):
            (entry,) = raw.ask(f"/linerate/polling,0,{queue}")
            assert entry["burst_histogram"][: len(own[0, 0, queue])] == own[0, 0, queue]
        assert (whole is None) == (queues == 200)
        assert raw.ask("/linerate/polling,1") == []
        assert program.end() == 0


def raw_answer(program: Program, command: str) -> Any:
    """Return an answer, which may be null."""
    try:
        return program.ask(command)
    except TelemetryError:
        return None


@contextlib.contextmanager
def asking(program: Program, commands: list[str]) -> Iterator[threading.Semaphore]:
    """Ask these again and again, until the program has ended or the context ends."""
    asked = threading.Semaphore(0)
    stop = threading.Event()
    path = socket_path(program.directory, PREFIX)

    def ask() -> None:
        with contextlib.suppress(TelemetryError), Telemetry(path, TIMEOUT_S) as telemetry:
            while not stop.is_set():
                for command in commands:
                    telemetry.ask(command)
                asked.release()

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield asked
    finally:
        stop.set()
        thread.join(TIMEOUT_S)
        assert not thread.is_alive()


READ = ["/linerate/polling", "/linerate/latency", "/linerate/probe", "/linerate/clock"]


def test_changes_in_full_traffic_do_no_harm(tmp_path: Path) -> None:
    changes = [f"/linerate/probe,{change}" for change in (
        "polling=off", "polling=on", "one_in=1", "one_in=0", "one_in=1000000", "one_in=64",
    )]  # fmt: skip
    with Program(tmp_path, "threads", [NULL], ["way=forward", "end=return"]) as program:
        assert program.next() == {"forwarding": True}
        with asking(program, changes) as changed, asking(program, READ) as asked:
            for _ in range(100):
                assert changed.acquire(timeout=TIMEOUT_S)
            assert asked.acquire(timeout=TIMEOUT_S)
        assert program.ask("/linerate/probe")["polling"] == "on"
        program.go_on()
        # Less was seen than there was: the probe was off at times.
        own = run_to_books(program)
        seen = probe_books(program)
        assert seen.keys() == own.keys()
        assert 0 < sum(seen[0, 0, 0]) < sum(own[0, 0, 0])
        assert program.end() == 0


def test_a_new_rate_of_sampling_loses_no_poll(tmp_path: Path) -> None:
    with Program(tmp_path, "threads", [NULL], ["way=forward", "end=return"]) as program:
        assert program.next() == {"forwarding": True}
        for rate in [1, 0, 1 << 30, 7] * 20:
            state = program.ask(f"/linerate/probe,one_in={rate}")
            assert state["one_in"] == rate
            assert (state["rx_queues"], state["tx_queues"]) == (1, int(rate > 0))
        # The last one holds, though the one before it would have waited for days.
        for _ in until("another burst is stamped"):
            if program.ask("/linerate/probe")["stamped"] > state["stamped"]:
                break
        program.go_on()
        own = run_to_books(program)
        assert probe_books(program) == own
        assert program.end() == 0


def looks(program: Program) -> int:
    """Return how often the probe's thread has gone to sleep."""
    status = probe_thread(program)
    return int(status["voluntary_ctxt_switches"])


def probe_thread(program: Program) -> dict[str, str]:
    for task in Path(f"/proc/{program.process.pid}/task").iterdir():
        lines = (task / "status").read_text().splitlines()
        status = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if status["Name"] == "linerate-probe":
            return status
    raise AssertionError("the probe has no thread")


@pytest.mark.parametrize("end", ["return", "exit", "cleanup"])
def test_a_program_ends_as_without_the_probe(tmp_path: Path, end: str) -> None:
    with Program(tmp_path, "threads", [NULL], ["way=forward", f"end={end}"]) as program:
        line = program.next()
        with asking(program, READ) as asked:
            assert asked.acquire(timeout=TIMEOUT_S)
            if end == "return":
                program.go_on()
                line = program.next()
                assert "books" in line
        if end == "cleanup":
            assert line == {"cleaned_up": 0}
            # DPDK's memory is gone. The probe's thread looks on, and telemetry answers.
            before = looks(program)
            for _ in until("the probe looks"):
                program.check()
                program.ask("/linerate/probe")
                if looks(program) >= before + 3:
                    break
            program.ask("/linerate/probe,polling=off")
            program.ask("/linerate/probe,polling=on")
            assert program.ask("/linerate/probe")["rx_queues"] == 0
            assert len(program.ask("/linerate/polling")) == 0
        with asking(program, READ[:3]):
            assert program.end() == 0
        assert "panic" not in program.said()
        assert program.leftovers() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_forwarder_ends_by_signals_as_without_the_probe(
    tmp_path: Path, number: signal.Signals
) -> None:
    left = {}
    for probe in (False, True):
        directory = tmp_path / f"probe-{probe}"
        directory.mkdir()
        arguments = (directory, RELEASE / "l2fwd", [NULL], ["-p", "1"])
        with Program(*arguments, probe=probe) as program:
            if probe:
                for _ in until("it forwards, and the probe sees it"):
                    program.check()
                    figures = program.ask("/linerate/probe/polling")
                    if figures and figures[0]["packets"] > 10_000:
                        break
                # Signals are for the program's own threads.
                blocked = int(probe_thread(program)["SigBlk"], 16)
                assert blocked & 1 << (number - 1) or number == signal.SIGKILL
            else:
                for _ in until("it forwards"):
                    program.check()
                    if program.ask("/ethdev/stats,0")["opackets"] > 10_000:
                        break
            with asking(program, ["/ethdev/stats,0", *READ[2:]] if probe else ["/ethdev/list"]):
                program.process.send_signal(number)
                code = program.process.wait(TIMEOUT_S)
            left[probe] = code, program.leftovers()
    assert left[True] == left[False]
    assert left[True][0] == (-number if number == signal.SIGKILL else 0)


def test_without_room_for_a_stamp_polls_are_counted(tmp_path: Path) -> None:
    environment = {"LINERATE_PROBE_ONE_IN": "0"}
    options = ["way=forward", "end=full"]
    with Program(tmp_path, "threads", [NULL], options, environment=environment) as program:
        assert program.next() == {"forwarding": True}
        state = program.ask("/linerate/probe,one_in=64")
        assert (state["one_in"], state["rx_queues"], state["tx_queues"]) == (0, 1, 0)
        assert "no room left for a dynamic field of 8 bytes" in program.said()
        program.go_on()
        own = run_to_books(program)
        assert probe_books(program) == own
        assert program.ask("/linerate/latency") == []
        assert program.end() == 0


@pytest.mark.parametrize("required", [False, True])
def test_a_wrong_setting_is_told_by_name(tmp_path: Path, required: bool) -> None:
    environment = {"LINERATE_PROBE_ONE_IN": "often"}
    if required:
        environment["LINERATE_PROBE_REQUIRED"] = "1"
    options = ["way=forward", "end=return"]
    with Program(tmp_path, "threads", [NULL], options, environment=environment) as program:
        if required:
            assert program.process.wait(TIMEOUT_S) == 1
        else:
            assert program.line() == {"rx_queues": 1}
            program.go_on()
            assert program.line() == {"forwarding": True}
            assert "/linerate/probe" not in program.telemetry.commands()
            program.go_on()
            assert own_books(program.line())
            assert program.end() == 0
        assert 'linerate probe: LINERATE_PROBE_ONE_IN="often" is not' in program.said()


def test_nobody_listening_to_its_complaints_does_no_harm(tmp_path: Path) -> None:
    """Many daemons ignore SIGPIPE, and the reader of their messages may have ended."""
    with Program(tmp_path, "threads", [NULL], ["way=forward", "end=return"], deaf=True) as program:
        assert program.next() == {"forwarding": True}
        for wrong in ("one_in=x", "colour=red"):
            assert raw_answer(program, f"/linerate/probe,{wrong}") is None
        program.go_on()
        own = run_to_books(program)
        assert probe_books(program) == own
        assert program.end() == 0


def test_a_second_copy_of_the_probe_does_nothing(tmp_path: Path) -> None:
    copy = f"{PROBE}.copy"
    (tmp_path / "plugins").mkdir()
    shutil.copy2(RELEASE / PROBE, tmp_path / "plugins" / copy)
    environment = {"LINERATE_PROBE_ONE_IN": "1", "LINERATE_PROBE_REQUIRED": "1"}
    options = ["way=forward", "end=return"]
    with Program(
        tmp_path, "threads", [NULL], options, second=copy, environment=environment
    ) as program:
        assert program.next() == {"forwarding": True}
        assert "its second copy does nothing" in program.said()
        program.go_on()
        own = run_to_books(program)
        assert probe_books(program) == own
        (latency,) = program.ask("/linerate/latency")
        packets = sum(size * polls for size, polls in enumerate(own[0, 0, 0]))
        assert latency["count"] == program.ask("/linerate/probe")["stamped"] == packets
        assert program.end() == 0
