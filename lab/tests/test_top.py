# SPDX-License-Identifier: BSD-3-Clause
"""`linerate top` as a command, with a simulated program that has the probe."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time

import pytest
from conftest import Last
from mutations import STEERS, nested
from probed import Steps, latency_entry, plain_answers, polling_entry, port_stats, probed_answers
from top_command import Start, objects, top

from linerate.host.errors import TelemetryError
from linerate.telemetry.client import Telemetry
from linerate.telemetry.top import sample


def test_tables_one_after_the_other(telemetry_server: Start) -> None:
    path = str(telemetry_server(probed_answers()).path)
    done = top(path, "--interval", "0.1", "--count", "2")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert done.stdout.count("p99.9") == 2
    rows = [line.split() for line in done.stdout.splitlines()]
    # Everything except the rates is the same at each step.
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


def test_nothing_that_a_program_says_steers_the_terminal(telemetry_server: Start) -> None:
    answers = plain_answers()
    answers["/ethdev/info,0"] = {"name": f"[/x]{STEERS}"}
    answers["/ethdev/link_status,0"] = {"status": f"[/x]{STEERS}"}
    server = telemetry_server(answers)
    server.greeting = json.dumps(
        {"version": f"DPDK{STEERS}", "pid": 1, "max_output_len": 16384}
    ).encode()
    for options in ((), ("--json",)):
        done = top(str(server.path), "--interval", "0.1", "--count", "1", *options)
        assert (done.returncode, done.stderr) == (0, "")
        assert "[/x]" in done.stdout or "[/X]" in done.stdout
        assert all(each.isprintable() or each == "\n" for each in done.stdout), repr(done.stdout)


@pytest.mark.parametrize(
    ("question", "answer", "message"),
    [
        ("/", b'{"/":' + nested(900).encode() + b"}", "recursion limit"),
        ("/", b'{"/":' + nested(4000).encode() + b"}", "recursion limit"),
        ("/", [["/ethdev/list"]], "0: Input should be a valid string"),
        ("/ethdev/list", list(range(2000)), "at most 1024 items"),
        ("/ethdev/list", [-1], "0: Input should be greater than or equal to 0"),
        ("/ethdev/stats,0", port_stats(1, ipackets=10**400), "ipackets: .*less than"),
        ("/ethdev/stats,0", port_stats(1, ipackets=-1), "ipackets: .*greater than"),
        ("/ethdev/info,0", {"name": "x" * 2000}, "name: .*at most 1024 characters"),
        ("/linerate/probe/latency", [latency_entry(0, 0, 1, hdr=["x", {}])], "a list of strings"),
        ("/linerate/probe/latency", [latency_entry(0, 0, 1, hdr=["x"])], "no HDR histogram"),
        ("/linerate/clock", {"tsc_hz": 0}, "tsc_hz: .*greater than 0"),
        ("/linerate/clock", {"tsc_hz": 1, "clock_cost_cycles": float("nan")}, "clock_cost_cycles"),
        ("/linerate/probe/clock", {"tsc_hz": 1, "clock_cost_cycles": 1e999}, "clock_cost_cycles"),
    ],
)
def test_what_no_program_answers_is_an_error_that_names_it(
    telemetry_server: Start, question: str, answer: object, message: str
) -> None:
    answers = probed_answers()
    answers[question] = answer
    if question == "/linerate/clock":
        del answers["/linerate/probe/clock"]
        answers["/"].remove("/linerate/probe/clock")
    done = top(str(telemetry_server(answers).path), "--interval", "0.1", "--count", "1")
    assert done.returncode == 4
    assert re.search(f"{question}.*{message}", done.stderr), done.stderr
    assert "fault of the lab" not in done.stderr


def test_late_answers_of_many_ports_end_it(
    telemetry_server: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late() -> dict[str, int]:
        time.sleep(0.1)
        return port_stats(1)

    answers = plain_answers(ports=100)
    answers |= {f"/ethdev/stats,{port}": late for port in range(100)}
    monkeypatch.setattr(sample, "ROUND_S", 0.5)
    with (
        Telemetry(telemetry_server(answers).path) as telemetry,
        pytest.raises(TelemetryError, match=r"a round of questions took longer than 0\.5 s"),
    ):
        sample.Sampler(telemetry).take()


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
    """It is noticed immediately, not when the next screen is due."""
    answers = plain_answers(ports=0)
    # The last request of a round.
    answers["/info"] = Last(answers["/info"])
    done = top(str(telemetry_server(answers).path), "--interval", "3000")
    assert done.returncode == 0
    assert done.stdout.endswith("has ended\n")


def test_a_program_that_does_not_answer_is_an_error_not_an_end(telemetry_server: Start) -> None:
    answers = plain_answers()
    answers["/ethdev/list"] = "silence"
    done = top(str(telemetry_server(answers).path))
    assert done.returncode == 4
    assert "does not answer" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--interval", "0"], 2, "from 0.1 to 3600"),
        (["--interval", "nan"], 2, "from 0.1 to 3600"),
        (["--count", "0"], 2, "at least 1"),
        (["no-such-prefix"], 4, "no DPDK program with the file prefix no-such-prefix"),
        (["/no/such/socket"], 4, "no DPDK program"),
    ],
)
def test_errors_on_the_command_line(arguments: list[str], code: int, message: str) -> None:
    done = top(*arguments)
    assert (done.returncode, message in done.stderr) == (code, True), done.stderr
    assert "Traceback" not in done.stderr


def test_a_closed_standard_output_is_an_error_without_a_trace(telemetry_server: Start) -> None:
    path = str(telemetry_server(plain_answers()).path)
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-m", "linerate", "top", path,
         "--count", "1"],
        stderr=subprocess.PIPE, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (4, "linerate: standard output is closed\n")
