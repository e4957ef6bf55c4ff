# SPDX-License-Identifier: BSD-3-Clause
"""`linerate top`: its screens, and the command against a program with the probe and real ones."""

from __future__ import annotations

import fcntl
import json
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
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from conftest import Last, TelemetryServer, wait_for
from probed import Steps, latency_entry, plain_answers, polling_entry, port_stats, probed_answers
from rich.console import Console

from linerate import schemas
from linerate.errors import TelemetryError
from linerate.places import rust_binary
from linerate.process import Child, Command, RunDirectory
from linerate.telemetry import Telemetry, socket_path
from linerate.top import screen
from linerate.top.figures import (
    Figures,
    LatencyFigures,
    LcoreFigures,
    PollingFigures,
    PortFigures,
    QueueFigures,
)
from linerate.top.sample import Sampler
from linerate.top.screen import Style

Start = Callable[[dict[str, Any]], TelemetryServer]


def top(*arguments: str, timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "linerate", "top", *arguments],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def drawn(figures: Figures, width: int, ascii_only: bool = False) -> str:
    console = Console(file=StringIO(), width=width)
    console.print(screen.render(figures, width, ascii_only))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def objects(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in done.stdout.splitlines()]
    for one in found:
        jsonschema.validate(one, schemas.stored("top-1.json"))
    return found


# Screens


def figures(**changes: Any) -> Figures:
    fields: dict[str, Any] = {
        "time": "2026-01-02T03:04:05.678+00:00", "prefix": "rte", "pid": 7, "program": "l2fwd",
        "dpdk": "DPDK 22.11.11", "interval_s": 1.0,
    }  # fmt: skip
    return Figures(**{**fields, **changes})


def worst() -> Figures:
    """The widest figures there are."""
    port = PortFigures(
        port=1023, name="net_virtio_user_with_a_long_name7", link="down", speed_mbps=400_000,
        rx_mpps=1488.095, tx_mpps=999.9996, rx_gbps=999.999, tx_gbps=1000.0, imissed_per_s=999_499,
        rx_nombuf_per_s=123.4e6, ierrors_per_s=0.01, oerrors_per_s=99.95e3,
    )  # fmt: skip
    lcore = LcoreFigures(
        lcore=127, rx_mpps=1488.1, busy_share=0.99999, empty_polls_share=0.00001,
        average_rx_burst=511.99, average_nonempty_rx_burst=511.99, full_polls_share=0.99999,
        busy_cycles_per_packet=1_234_567.8, burst_limit=512, burst_histogram=[1] * 512,
        queues=[QueueFigures(port=31, queue=1023)],
    )  # fmt: skip
    return figures(
        program="a-program-with-a-long-name", prefix="a-prefix-with-a-long-name",
        ports=[port, port], lcores=[lcore], rx_mpps=2976.19, tx_mpps=1999.9992,
    )  # fmt: skip


@pytest.mark.parametrize("width", [80, 130])
def test_the_widest_figures_fit(width: int) -> None:
    text = drawn(worst(), width)
    assert all(len(line) <= width for line in text.splitlines())
    assert "…" not in text
    for word in (
        "1488",
        "999k",
        "123M",
        "<0.1",
        "100k",
        ">99.9",
        "1234568",
        "127 p31q1023",
        "|512",
        "2976.2",
    ):
        assert word in text
    # Names differ at their ends.
    assert "name7" in text
    # The tables' rows are one line each.
    assert sum(line.lstrip().startswith("1023 ") for line in text.splitlines()) == 2


def lines_of(figures: Figures, height: int, width: int = 80) -> list[str]:
    """As on a terminal of this size."""
    console = Console(file=StringIO(), width=width, height=height)
    console.print(screen.fit(figures, console))
    assert isinstance(console.file, StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_a_terminal_that_is_too_short_keeps_the_lcores_and_counts_what_is_missing() -> None:
    queues = [QueueFigures(port=port, queue=0, rx_mpps=1.0) for port in range(8)]
    many = figures(
        ports=[PortFigures(port=port) for port in range(8)],
        lcores=[LcoreFigures(lcore=lcore, rx_mpps=8.0, queues=queues) for lcore in (1, 2)],
    )
    every = lines_of(many, 100)
    assert sum(line.startswith(" p7q0") for line in every) == 2
    assert not any("more lines" in line for line in every)
    assert lines_of(many, len(every)) == every
    for height in (24, 10):
        few = lines_of(many, height)
        assert len(few) <= height
        assert [line[0] for line in few if line[:2] in ("1 ", "2 ")] == ["1", "2"]
        assert not any(line.startswith(" p") for line in few)
        missing = len(every) - (len(few) - 1)
        assert few[-1] == (f"{missing} more lines: a taller terminal, or linerate top rte | less")


def test_a_terminal_that_is_too_narrow_is_said_instead_of_half_figures() -> None:
    assert lines_of(worst(), 24, 79) == ["linerate top needs 80 columns; here are 79."]
    assert lines_of(worst(), 50, 80)[0].startswith("a-program")


def test_long_cycles_keep_their_magnitude() -> None:
    entry = LatencyFigures(
        port=0, queue=0, span="rx-return_tx-call", packets=1_234_567_890,
        **{f"{point}_cycles": 344_249_612 for point in ("p50", "p90", "p99", "p999", "max")},
    )  # fmt: skip
    slow = LcoreFigures(lcore=1, busy_cycles_per_packet=34_424_961.0)
    text = drawn(figures(latency=[entry], lcores=[slow]), 80)
    assert "…" not in text
    assert text.count("344.2M") == 5
    assert "1.2G" in text
    assert "34.4M" in text


def test_what_is_unknown_is_a_dash_and_never_0() -> None:
    lcore = LcoreFigures(lcore=1)
    text = drawn(figures(ports=[PortFigures(port=3)], lcores=[lcore]), 80)
    port_row, lcore_row = (
        next(line for line in text.splitlines() if line.lstrip().startswith(start))
        for start in ("3 ", "1 ")
    )
    assert port_row.split() == ["3", *["-"] * 10]
    assert lcore_row.split() == ["1", *["-"] * 8]


def test_names_cannot_steer_the_terminal() -> None:
    named = figures(program="l2\x1b[2Jfwd", ports=[PortFigures(port=0, name="\x9b31mred\n")])
    text = drawn(named, 80)
    assert "l2?[2Jfwd" in text
    assert "\x1b" not in text
    assert "\x9b" not in text


def test_bursts_are_merged_by_doublings_and_full_ones_stand_alone() -> None:
    histogram = [5, *range(1, 33)]
    buckets = screen.doublings(histogram, 32)
    assert [start for start, _ in buckets] == [1, 2, 4, 8, 16, 32]
    assert [polls for _, polls in buckets] == [1, 5, 22, 92, sum(range(16, 32)), 32]
    assert [start for start, _ in screen.doublings([0, 1], 1)] == [1]
    assert [start for start, _ in screen.doublings([0] * 21, 20)] == [1, 2, 4, 8, 16, 20]
    # Calls that asked for more before the limit fell.
    assert screen.doublings([0, 0, 0, 0, 2, 0, 0, 1], 4) == [(1, 0), (2, 0), (4, 2), (7, 1)]
    assert sum(polls for _, polls in screen.doublings(histogram, 4)) == sum(histogram[1:])


def test_bars() -> None:
    some = PollingFigures(burst_limit=4, burst_histogram=[9, 800, 0, 1, 400])
    assert screen.bars(some, Style()) == "1|█▁▅|4"
    assert screen.bars(some, Style(ascii_only=True)) == "1|@.+|4"
    nothing = PollingFigures(burst_limit=4, burst_histogram=[9, 0, 0, 0, 0])
    assert screen.bars(nothing, Style()) == screen.bars(PollingFigures(), Style()) == "-"


@pytest.mark.parametrize(
    ("write", "value", "text"),
    [
        (screen.mpps, 0.0, "0.000"),
        (screen.mpps, 0.0004, "<0.001"),
        (screen.mpps, 14.88095, "14.881"),
        (screen.mpps, 99.9996, "100.00"),
        (screen.mpps, 148.8095, "148.81"),
        (screen.mpps, 1488.095, "1488.1"),
        (screen.per_second, 0.0, "0"),
        (screen.per_second, 0.01, "<0.1"),
        (screen.per_second, 9.94, "9.9"),
        (screen.per_second, 9.96, "10"),
        (screen.per_second, 999.4, "999"),
        (screen.per_second, 999.6, "1.0k"),
        (screen.per_second, 99_960, "100k"),
        (screen.per_second, 1.5e12, "1.5e+12"),
        (screen.percent, 0.0, "0.0"),
        (screen.percent, 0.0001, "<0.1"),
        (screen.percent, 0.9999, ">99.9"),
        (screen.percent, 1.0, "100.0"),
        (screen.burst, 0.001, "<0.01"),
        (screen.burst, 32.0, "32.00"),
        (screen.burst, 255.6, "256"),
    ],
)
def test_how_figures_are_written(
    write: Callable[[float | None], str], value: float, text: str
) -> None:
    assert write(value) == text
    assert write(None) == "-"


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (88.5, "88 ns"), (999.4, "999 ns"), (999.6, "1.00 us"), (9_994, "9.99 us"),
        (12_345, "12.3 us"), (123_456, "123 us"), (4_032_984, "4.03 ms"), (1.5e9, "1.50 s"),
    ],
)  # fmt: skip
def test_how_times_are_written(ns: float, text: str) -> None:
    assert screen.duration(ns) == text


def test_an_lcore_that_rests_is_said_in_a_line() -> None:
    """testpmd's main lcore polls only when it starts."""
    rests = LcoreFigures(lcore=0, rx_mpps=0.0, queues=[QueueFigures(port=0, queue=0, rx_mpps=0.0)])
    text = drawn(figures(lcores=[rests, LcoreFigures(lcore=1, rx_mpps=1.0)]), 80)
    assert "Polled before and not in this interval: lcore 0." in text
    assert not any(line.startswith("0 ") for line in text.splitlines())
    assert any(line.startswith("1 ") for line in text.splitlines())


def test_why_there_is_no_busy_time_is_said_once() -> None:
    late = [LcoreFigures(lcore=lcore, rx_mpps=1.0, busy_from_before=True) for lcore in (1, 2)]
    text = drawn(figures(lcores=late), 90)
    assert text.count("Busy time from before this interval ended in it: no busy %") == 1
    assert "Busy time from before" not in drawn(figures(lcores=[LcoreFigures(lcore=1)]), 90)


def test_why_there_is_no_latency_is_said() -> None:
    def text(stamped: int, *packets: int | None, one_in: int = 64) -> str:
        probe = {"version": "0.1.0", "polling": True, "one_in": one_in, "stamped": stamped}
        measured = [
            LatencyFigures(port=0, queue=queue, span="rx-return_tx-call", packets=count)
            for queue, count in enumerate(packets)
        ]
        return " ".join(drawn(figures(probe=probe, latency=measured), 80).split())

    said = "packets were stamped and none was seen being sent: the program drops them, sends copies"
    assert f"7 {said}, or overwrites ol_flags." in text(7)
    assert f"7 {said}" in text(7, 0, 0)
    for other in (text(0, 0), text(7, 0, 3), text(7, None), text(7, one_in=0)):
        assert said not in other


def test_a_program_that_sends_nothing_or_only_sends_is_told() -> None:
    nothing = "Nothing is sent"
    assert nothing in drawn(figures(rx_mpps=1.0, tx_mpps=0.0), 80)
    for rx, tx in ((1.0, 0.001), (0.0, 0.0), (1.0, None)):
        assert nothing not in drawn(figures(rx_mpps=rx, tx_mpps=tx), 80)
    only = "Lcores that only send are not seen"
    probe = {"version": "0.1.0", "polling": True, "one_in": 64}
    rests = LcoreFigures(lcore=0, rx_mpps=0.0)
    polls = LcoreFigures(lcore=1, rx_mpps=0.0, average_rx_burst=0.0)
    assert only in drawn(figures(probe=probe, tx_mpps=1.0), 80)
    assert only in drawn(figures(probe=probe, tx_mpps=1.0, lcores=[rests]), 80)
    for other in (
        figures(probe=probe, tx_mpps=1.0, lcores=[rests, polls]),
        figures(probe=probe, tx_mpps=0.0),
        figures(tx_mpps=1.0),
    ):
        assert only not in drawn(other, 80)


def test_hints_say_how_to_see_more() -> None:
    assert "linerate attach -- l2fwd" in drawn(figures(), 80)
    assert "busy time" in drawn(figures(), 80)
    off = {"version": "0.1.0", "polling": False, "one_in": 0}
    text = drawn(figures(probe=off), 80)
    assert "/linerate/probe,polling=on" in text
    assert "/linerate/probe,one_in=64" in text
    waiting = drawn(figures(probe={"version": "0.1.0", "polling": True, "one_in": 64}), 80)
    assert "no queue has been polled yet" in waiting


# Samples


def test_a_list_too_long_for_an_answer_is_asked_port_by_port(telemetry_server: Start) -> None:
    answers = probed_answers()
    whole = [polling_entry(1, 0, 0, 1), polling_entry(2, 0, 1, 1), polling_entry(1, 1, 0, 1)]
    answers["/linerate/probe/polling"] = None
    for port in (0, 1):
        answers[f"/linerate/probe/polling,{port}"] = [e for e in whole if e["port"] == port]
    with Telemetry(telemetry_server(answers).path) as telemetry:
        found = Sampler(telemetry).take().polling
    assert found is not None
    assert [entry.packets for entry in found.values()] == [entry["packets"] for entry in whole]


def test_lists_that_were_cut_are_asked_queue_by_queue(telemetry_server: Start) -> None:
    answers = probed_answers(polled=[(1, 0, 0), (2, 0, 0), (1, 1, 3)])
    whole = [polling_entry(1, 0, 0, 1), polling_entry(2, 0, 0, 1), polling_entry(1, 1, 3, 1)]
    short = [{name: entry[name] for name in entry if name != "burst_histogram"} for entry in whole]
    measured = latency_entry(0, 0, 1)
    answers["/linerate/probe/polling"] = short
    answers["/linerate/probe/polling,0,0"] = whole[:2]
    answers["/linerate/probe/latency"] = [
        {name: measured[name] for name in measured if name != "hdr"}
    ]
    answers["/linerate/probe/latency,0,0"] = [measured]
    with Telemetry(telemetry_server(answers).path) as telemetry:
        sample = Sampler(telemetry).take()
    assert sample.polling is not None
    assert sample.latency is not None
    lengths = {key: len(entry.burst_histogram or ()) for key, entry in sample.polling.items()}
    # The third queue had gone when it was asked.
    assert lengths == {(1, 0, 0): 33, (2, 0, 0): 33, (1, 1, 3): 0}
    assert [entry.histogram.total for entry in sample.latency.values() if entry.histogram] == [100]


def test_an_answer_of_another_shape_is_an_error(telemetry_server: Start) -> None:
    answers = probed_answers()
    answers["/linerate/probe/polling"] = [{"lcore": "one"}]
    with (
        Telemetry(telemetry_server(answers).path) as telemetry,
        pytest.raises(TelemetryError, match="answered something else than expected"),
    ):
        Sampler(telemetry).take()


def test_a_command_that_answers_nothing_is_as_one_that_is_not_there(
    telemetry_server: Start,
) -> None:
    answers = probed_answers()
    for command in answers:
        if command.startswith(("/linerate", "/ethdev/info", "/ethdev/link")):
            answers[command] = None
    with Telemetry(telemetry_server(answers).path) as telemetry:
        sample = Sampler(telemetry).take()
    absent = (sample.polling, sample.latency, sample.clock, sample.probe)
    assert absent == (None,) * 4
    assert [(port.name, port.link) for port in sample.ports.values()] == 2 * [(None, None)]


def test_a_port_that_goes_is_left_out(telemetry_server: Start) -> None:
    answers = plain_answers()
    answers["/ethdev/stats,1"] = None
    with Telemetry(telemetry_server(answers).path) as telemetry:
        assert list(Sampler(telemetry).take().ports) == [0]


# The command


def test_tables_one_after_the_other(telemetry_server: Start) -> None:
    path = str(telemetry_server(probed_answers()).path)
    done = top(path, "--interval", "0.1", "--count", "2")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert done.stdout.count("p99.9") == 2
    rows = [line.split() for line in done.stdout.splitlines()]
    # Everything but the rates is the same at each step.
    assert [row[3:] for row in rows if row[:2] == ["2", "p0q1"]] == 2 * [
        ["25.0", "50.0", "100.0", "6.83", "13.67", "16.7", "1|█", "█", "█|32"]
    ]
    assert [row[0] for row in rows if row and row[0] in ("p0q0", "p1q0")].count("p1q0") == 4
    assert "1 in 64 sampled" in done.stdout
    assert "20 cycles, 8 ns" in done.stdout
    assert "linerate attach" not in done.stdout


def test_json_for_scripts(telemetry_server: Start) -> None:
    path = str(telemetry_server(probed_answers()).path)
    done = top(path, "--json", "--interval", "0.1", "--count", "3")
    assert (done.returncode, done.stderr) == (0, "")
    found = objects(done)
    assert len(found) == 3
    for one in found:
        assert [lcore["busy_share"] for lcore in one["lcores"]] == pytest.approx([0.5, 0.25])
        assert [entry["packets"] for entry in one["latency"]] == [100, 100]
        assert one["probe"]["one_in"] == 64
        assert [port["link"] for port in one["ports"]] == ["up", "down"]


def test_no_interval_is_cut_short_after_a_late_answer(telemetry_server: Start) -> None:
    answers = plain_answers(ports=0)

    def late(step: int) -> list[int]:
        time.sleep(1 if step == 2 else 0)
        return []

    answers["/ethdev/list"] = Steps(late)
    path = str(telemetry_server(answers).path)
    found = objects(top(path, "--json", "--interval", "0.4", "--count", "3"))
    lengths = [one["interval_s"] for one in found]
    assert lengths[0] > 0.8
    assert all(length > 0.3 for length in lengths[1:]), lengths


def test_a_program_without_the_probe(telemetry_server: Start) -> None:
    path = str(telemetry_server(plain_answers()).path)
    done = top(path, "--interval", "0.1", "--count", "1")
    assert done.returncode == 0
    assert "0000:05:00.1" in done.stdout
    assert "linerate attach -- python" in done.stdout
    (one,) = objects(top(path, "--json", "--interval", "0.1", "--count", "1"))
    assert one["ports"][0]["rx_mpps"] > 0
    assert not {"lcores", "latency", "probe"} & set(one)


def test_queues_appear_and_counters_fall_while_it_watches(telemetry_server: Start) -> None:
    answers = probed_answers()
    lists = iter(
        [
            [polling_entry(1, 0, 0, 5)],
            [polling_entry(1, 0, 0, 6), polling_entry(2, 1, 0, 1)],
            [polling_entry(1, 0, 0, 1), polling_entry(2, 1, 0, 2)],
            [polling_entry(1, 0, 0, 2), polling_entry(2, 1, 0, 3)],
        ]
    )
    answers["/linerate/probe/polling"] = lambda: next(lists)
    path = str(telemetry_server(answers).path)
    found = objects(top(path, "--json", "--interval", "0.1", "--count", "3"))
    shares = [{lcore["lcore"]: lcore.get("busy_share") for lcore in one["lcores"]} for one in found]
    assert shares == [{1: 0.25, 2: 0.25}, {1: None, 2: 0.25}, {1: 0.25, 2: 0.25}]


@pytest.mark.parametrize("output", [[], ["--json"]])
def test_a_program_that_ends(telemetry_server: Start, output: list[str]) -> None:
    answers = plain_answers(ports=0)
    answers["/ethdev/list"] = Steps(lambda step: "hang up" if step > 2 else [])
    server = telemetry_server(answers)
    done = top(str(server.path), "--interval", "0.1", *output)
    assert done.returncode == 0
    last = (done.stderr if output else done.stdout).splitlines()[-1]
    assert last == f"{server.path.parent.name}{server.path.name} has ended"
    assert "Traceback" not in done.stderr


def test_a_program_that_ends_between_two_screens(telemetry_server: Start) -> None:
    """It is noticed at once, not when the next screen is due."""
    answers = plain_answers(ports=0)
    # The last question of a round.
    answers["/info"] = Last(answers["/info"])
    done = top(str(telemetry_server(answers).path), "--interval", "3000")
    assert done.returncode == 0
    assert done.stdout.endswith("has ended\n")


def test_a_program_that_does_not_answer_is_an_error_not_an_end(telemetry_server: Start) -> None:
    answers = plain_answers()
    answers["/ethdev/list"] = "silence"
    done = top(str(telemetry_server(answers).path))
    assert done.returncode == 1
    assert "does not answer" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--interval", "0"], 2, "from 0.1 to 3600"),
        (["--interval", "nan"], 2, "from 0.1 to 3600"),
        (["--count", "0"], 2, "at least 1"),
        (["no-such-prefix"], 1, "no DPDK program with the file prefix no-such-prefix"),
        (["/no/such/socket"], 1, "no DPDK program"),
    ],
)
def test_errors_on_the_command_line(arguments: list[str], code: int, message: str) -> None:
    done = top(*arguments)
    assert (done.returncode, message in done.stderr) == (code, True), done.stderr
    assert "Traceback" not in done.stderr


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
        """All output so far, and what comes within the time."""
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
    # The cursor is back, and so is the screen with the scrollback; the last figures are in it.
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
        # An answer that came late must not be taken for the next.
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


def test_a_closed_standard_output_is_an_error_without_a_trace(telemetry_server: Start) -> None:
    path = str(telemetry_server(plain_answers()).path)
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-m", "linerate", "top", path,
         "--count", "1"],
        stderr=subprocess.PIPE, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "linerate: standard output is closed\n")


# Real programs

NULL_PORTS = ["--vdev", "net_null0", "--vdev", "net_null1"]


@contextmanager
def running(*before: str) -> Iterator[tuple[Child, str, Path]]:
    """Our l2fwd on two null ports, below a run-time directory that only the kernel's list tells."""
    cpu = max(os.sched_getaffinity(0))
    with RunDirectory() as run:
        prefix = run.new_prefix("top")
        argv = [
            *before, str(rust_binary("l2fwd")), "--no-pci", "--no-huge", "--no-shconf", "-m", "256",
            "--file-prefix", prefix, "--lcores", f"0@{cpu}", *NULL_PORTS, "--",
            "-p", "3", "-q", "2", "-T", "0",
        ]  # fmt: skip
        with Child(Command("forwarder", tuple(argv), (cpu,)), run) as child:
            path = socket_path(run.path, prefix)
            wait_for("polling", lambda: _polls(child, path), 30)
            yield child, prefix, path


@pytest.fixture
def l2fwd() -> Iterator[tuple[Child, str, Path]]:
    with running() as started:
        yield started


def _polls(child: Child, path: Path) -> bool:
    child.check()
    try:
        with Telemetry(path) as telemetry:
            return bool(telemetry.ask("/linerate/polling"))
    except TelemetryError:
        return False


@pytest.mark.e2e
def test_our_l2fwd_without_the_probe(l2fwd: tuple[Child, str, Path]) -> None:
    child, prefix, _ = l2fwd
    done = top(prefix, "--json", "--interval", "0.2", "--count", "2")
    assert done.returncode == 0, done.stderr
    for one in objects(done):
        assert (one["pid"], one["program"]) == (child.pid, "l2fwd")
        assert one["rx_mpps"] > 0
        assert [port["name"] for port in one["ports"]] == ["net_null0", "net_null1"]
        assert "rx_gbps" not in one["ports"][0]
        (lcore,) = one["lcores"]
        assert lcore["average_nonempty_rx_burst"] == lcore["burst_limit"] == 32
        assert 0 < lcore["busy_share"] <= 1
        assert "latency" not in one
    table = top(prefix, "--interval", "0.2", "--count", "1").stdout
    assert "The probe would show latency" in table
    assert "1|     █|32" in table


@pytest.mark.e2e
def test_our_l2fwd_ends_while_it_is_watched(l2fwd: tuple[Child, str, Path]) -> None:
    child, prefix, path = l2fwd
    with subprocess.Popen(
        [sys.executable, "-m", "linerate", "top", str(path), "--json", "--interval", "0.2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["prefix"] == prefix
        child.stop()
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (0, f"{prefix} has ended\n")


@pytest.mark.e2e
def test_our_l2fwd_with_the_probe_in_it() -> None:
    attach = (sys.executable, "-m", "linerate", "attach", "--one-in", "4", "--")
    with running(*attach) as (child, prefix, path):
        wait_for("latency", lambda: _measures(path), 30)
        done = top(prefix, "--json", "--interval", "0.2", "--count", "2")
        assert done.returncode == 0, done.stderr
        for one in objects(done):
            assert (one["pid"], one["program"]) == (child.pid, "l2fwd")
            assert one["probe"]["one_in"] == 4
            (lcore,) = one["lcores"]
            assert len(lcore["queues"]) == 2
            assert 0 < lcore["busy_share"] <= 1
            for entry in one["latency"]:
                assert entry["packets"] > 0
                assert entry["p50_cycles"] <= entry["p999_cycles"] <= entry["max_cycles"]
        # The program ends as it does without the probe.
        assert child.stop() == 0


def _measures(path: Path) -> bool:
    with Telemetry(path) as telemetry:
        return all(entry["count"] for entry in telemetry.ask("/linerate/probe/latency"))
