# SPDX-License-Identifier: BSD-3-Clause
"""No parameter of a telemetry command ends a program of ours, not even with DPDK's own commands.

Without a guard `/ethdev/info,65536`, `/eal/heap_info,65535` and `/eal/memzone_info,-1` end any
program with DPDK 22.11.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
RELEASE = ROOT / "target" / "release"
CPUS = sorted(os.sched_getaffinity(0))
EAL = ["--no-pci", "--no-huge", "--no-shconf", "-m", "256", "--file-prefix", "asked"]
TIMEOUT_S = 60.0
# The longest request that DPDK reads, and the most of an answer.
LONGEST = 1023
MOST = 1 << 16

NUMBERS = [0, 1, 2, 7, 31, 32, 63, 64, 254, 255, 256, 1023, 2559, 2560, 32767, 32768]
NUMBERS += [65534, 65535, 65536, 131072, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63, 2**64, 10**30]
TEXTS = [
    "",
    ",",
    ",,",
    " ",
    "x",
    "-",
    "0x0",
    "0x10000",
    "00",
    "010",
    "1e9",
    "NaN",
    "%s%n",
    "../..",
    "a b",
    "'\"\\",
]
TEXTS += [
    "null",
    "true",
    "hide_zero=true",
    "hide_zero=",
    "net_null0",
    "/ethdev/info",
    "\n",
    "\t",
    "\0",
    "0\0",
    "\0,0",
]
TEXTS += ["x" * 64, "9" * 64, "x" * 900, "9" * 900, "0," * 450, "x" * 2000, "-1," * 1000]
WORDS = [*map(str, NUMBERS), *(f"-{number}" for number in NUMBERS), *TEXTS]
PARAMETERS: list[bytes | None] = [None, *(word.encode() for word in WORDS), b"\xff\xfe", b"0,\xff"]
PARAMETERS += [f"0,{word}".encode() for word in WORDS]
# What is no command, or none with a usual comma.
ODD = [
    b",",
    b",,",
    b"/",
    b"//",
    b",/ethdev/info,65536",
    b",,/eal/heap_info,65535",
    b"/ethdev/info,,65536",
]
ODD += [
    b"/" * LONGEST,
    b"x",
    b"\0",
    b"\xff" * 100,
    b"/ethdev/info\0,65536",
    b'/"',
    b"/\\",
    b"/none,0",
]


class Client:
    """A client of a telemetry socket."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(TIMEOUT_S)
        self.socket.connect(str(path))
        self.greeting = json.loads(self.socket.recv(MOST))
        self.close = self.socket.close

    def send(self, request: bytes) -> dict[str, Any]:
        """Send a request; return the whole answer, which is JSON whatever was asked."""
        self.socket.send(request)
        answer = self.socket.recv(MOST)
        assert answer, f"{request!r} ended it"
        found: dict[str, Any] = json.loads(answer)
        assert len(found) == 1, (request, answer)
        return found

    def ask(self, command: str) -> Any:
        return self.send(command.encode())[command.partition(",")[0]]


def plugin() -> list[str]:
    return ["-d", str(RELEASE / "liblinerate_probe.so")]


@contextmanager
def running(
    directory: Path, program: str, *options: str
) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Run a program of ours that forwards on a null port; yield its socket."""
    # The graph's main lcore does not forward.
    lcore = ["--lcores", f"0@{CPUS[0]},1@{CPUS[-1]}" if "graph" in program else f"0@{CPUS[-1]}"]
    argv = [str(RELEASE / program), *lcore, *EAL, *options]
    if program != "generator":
        argv += ["--vdev", "net_null0", "--", "-p", "1"]
        argv += ["--config", "(0,0,1)"] if program == "l3fwd-graph" else []
    else:
        argv += ["--vdev", "net_null0", "--", "--otg-listen", "127.0.0.1:0"]
    runtime = {"RUNTIME_DIRECTORY": str(directory), "XDG_RUNTIME_DIR": str(directory)}
    log = directory / "log"
    with log.open("w") as output:
        process = subprocess.Popen(
            argv, env={**os.environ, **runtime}, stdout=output, stderr=output, text=True
        )
    try:
        yield process, directory / "dpdk" / "asked" / "dpdk_telemetry.v2"
    finally:
        process.kill()
        process.wait()


def connected(process: subprocess.Popen[str], path: Path) -> Client:
    """Connect once the program has registered its commands, long after its socket is guarded."""
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with closing(Client(path)) as early:
                if early.ask("/linerate/clock"):
                    return Client(path)
        except OSError:
            pass
        time.sleep(0.02)
    raise AssertionError(f"{path}: no answer, exit status {process.poll()}")


def storm(path: Path, commands: list[str], seed: int) -> int:
    """Return all unusual parameters in random order, and combinations drawn at random."""
    draw = random.Random(seed)
    requests = [
        command.encode() + (b"" if parameters is None else b"," + parameters)
        for command in commands
        for parameters in PARAMETERS
    ]
    for _ in range(2000):
        words = draw.choices(WORDS, k=draw.randrange(1, 6))
        requests.append(f"{draw.choice(commands)},{','.join(words)}".encode()[:1500])
    requests += ODD
    draw.shuffle(requests)
    with closing(Client(path)) as client:
        for request in requests:
            client.send(request)
    return len(requests)


def good(client: Client, command: str) -> None:
    assert client.ask(command) is not None, command


@pytest.mark.parametrize(
    ("program", "options"),
    [
        ("l2fwd", []),
        ("l2fwd", plugin()),
        ("reflect", []),
        ("impair", []),
        ("l3fwd-graph", []),
        ("generator", []),
    ],
    ids=["l2fwd", "l2fwd-with-the-probe", "reflect", "impair", "l3fwd-graph", "generator"],
)
def test_no_parameter_ends_a_program(program: str, options: list[str], tmp_path: Path) -> None:
    with running(tmp_path, program, *options) as (process, path):
        client = connected(process, path)
        assert client.greeting["pid"] == process.pid
        commands: list[str] = client.ask("/")
        assert {"/ethdev/info", "/eal/memzone_info"} <= set(commands)
        # Several at once: DPDK 22.11 mixes up requests that two of its threads take apart.
        with ThreadPoolExecutor(3) as pool:
            asked = sum(pool.map(lambda seed: storm(path, commands, seed), range(3)))
        assert asked > 3 * len(commands) * len(PARAMETERS)
        assert process.poll() is None, (tmp_path / "log").read_text()

        for command in (
            "/",
            "/info",
            "/help",
            "/help,/ethdev/info",
            "/ethdev/list",
            "/eal/params",
            "/mempool/list",
        ):
            good(client, command)
        # The generator opens no port before a client asks it to.
        counters = [] if program == "generator" else ["stats", "xstats"]
        for command in ("info", *counters, "link_status"):
            good(client, f"/ethdev/{command},0")
        for index in client.ask("/eal/memzone_list"):
            good(client, f"/eal/memzone_info,{index}")
        for index in client.ask("/eal/heap_list"):
            good(client, f"/eal/heap_info,{index}")
        for name in client.ask("/mempool/list"):
            assert client.ask(f"/mempool/info,{name}")["name"] == name
        for refused in (
            "/ethdev/info,65536",
            "/eal/heap_info,65535",
            "/eal/memzone_info,-1",
            "/cnxk/ethdev/info",
        ):
            assert client.ask(refused) is None

        if program not in ("generator", "l3fwd-graph"):
            before = client.ask("/linerate/polling")[0]["packets"]
            deadline = time.monotonic() + TIMEOUT_S
            while client.ask("/linerate/polling")[0]["packets"] == before:
                assert time.monotonic() < deadline, "it forwards no more"
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == 0, (tmp_path / "log").read_text()
    assert not list((tmp_path / "dpdk").iterdir())


def test_nothing_but_the_guarded_socket_can_be_connected_to(tmp_path: Path) -> None:
    with running(tmp_path, "l2fwd") as (process, path):
        connected(process, path).close()
        there = sorted(each.name for each in path.parent.iterdir() if each.is_socket())
        assert there == [path.name]
        # One is DPDK's, whose name leads to the program's own.
        listening = [
            line
            for line in Path("/proc/net/unix").read_text().splitlines()
            if str(path.parent) in line and " 00010000 " in line
        ]
        assert len(listening) == 2
        # Where no lcore is, as DPDK's own threads for it.
        tasks = Path(f"/proc/{process.pid}/task").iterdir()
        guard = next(task for task in tasks if (task / "comm").read_text() == "telemetry\n")
        allowed = os.sched_getaffinity(int(guard.name))
        assert allowed == (set(CPUS) - {CPUS[-1]} or {CPUS[-1]})


def test_without_telemetry_there_is_no_socket(tmp_path: Path) -> None:
    with running(tmp_path, "l2fwd", "--no-telemetry") as (process, path):
        log = tmp_path / "log"
        deadline = time.monotonic() + TIMEOUT_S
        while "Port statistics" not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        assert not path.exists()
        tasks = Path(f"/proc/{process.pid}/task").iterdir()
        assert "telemetry\n" not in [(task / "comm").read_text() for task in tasks]
