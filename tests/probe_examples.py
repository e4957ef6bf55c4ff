# SPDX-License-Identifier: BSD-3-Clause
"""Runs the programs of crates/probe/examples with the probe.

They print lines of JSON and wait for a line after each. A `Program` reads these, and lets the
program go on once the probe has reached what the program will poll.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from linerate.telemetry.client import Telemetry, connect, socket_path

ROOT = Path(__file__).resolve().parents[1]
RELEASE = ROOT / "target" / "release"
EXAMPLES = ROOT / "target" / "checked" / "examples"
TIMEOUT_S = 30.0
PREFIX = "probed"
PROBE = "liblinerate_probe.so"


def build() -> None:
    """Build the probe as users have it, and the programs; `make test` has built both before.

    The commands are the same as there: with other packages, cargo would choose other features and
    build everything again.
    """
    programs = ["env", "-u", "MAKELEVEL", "make", "--silent", "programs"]
    cargo = [str(ROOT / "scripts" / "cargo"), "build", "--workspace", "--locked", "--quiet"]
    for command in (programs, [*cargo, "--profile", "checked", "--examples"]):
        subprocess.run(command, cwd=ROOT, check=True, timeout=900)


def until(what: str) -> Iterator[None]:
    """Yield once for each look at something that has to happen; fail if it does not in time."""
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        yield
        time.sleep(0.001)
    raise AssertionError(f"{what}: not in {TIMEOUT_S:g} s")


class Program:
    """A running program, and the questions that a test asks it."""

    def __init__(
        self,
        directory: Path,
        program: str | Path,
        devices: list[str],
        options: list[str],
        *,
        lcores: int = 1,
        environment: Mapping[str, str] | None = None,
        probe: bool = True,
        second: str | None = None,
        deaf: bool = False,
    ) -> None:
        self.directory = directory
        cpus = sorted(os.sched_getaffinity(0))
        places = ",".join(f"{n}@{cpus[n % len(cpus)]}" for n in range(lcores))
        eal = ["--lcores", places, "--no-pci", "--no-huge", "--no-shconf", "-m", "256"]
        eal += ["--file-prefix", PREFIX]
        # By name, for EAL takes no plugin from a path below a directory that all may write to.
        eal += ["-d", PROBE] if probe else []
        eal += ["-d", second] if second else []
        for device in devices:
            eal += ["--vdev", device]
        path = EXAMPLES / program if isinstance(program, str) else program
        self.errors = directory / "stderr"
        with contextlib.ExitStack() as files:
            errors = files.enter_context(self.errors.open("wb"))
            if deaf:
                # Nobody reads its standard error. (Rust's programs ignore SIGPIPE.)
                readable, writable = os.pipe()
                os.close(readable)
                errors = files.enter_context(os.fdopen(writable, "wb"))
            self.process = subprocess.Popen(
                [str(path), *eal, "--", *options],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=directory,
                env={
                    **os.environ,
                    "XDG_RUNTIME_DIR": str(directory),
                    "RUNTIME_DIRECTORY": str(directory),
                    "LD_LIBRARY_PATH": f"{RELEASE}:{directory}/plugins",
                    **(environment or {}),
                },
            )
        self._rest = b""
        self._telemetry: Telemetry | None = None

    def __enter__(self) -> Program:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if self._telemetry is not None:
            self._telemetry.close()
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        if kind is not None:
            print(self.said())

    def said(self) -> str:
        """Return what the program, EAL and the probe wrote to standard error."""
        return self.errors.read_text(errors="replace")

    def check(self) -> None:
        assert self.process.poll() is None, f"it ended: {self.process.returncode}\n{self.said()}"

    @property
    def telemetry(self) -> Telemetry:
        if self._telemetry is None:
            path = socket_path(self.directory, PREFIX)
            self._telemetry = connect(path, TIMEOUT_S, self.check)
        return self._telemetry

    def ask(self, command: str) -> Any:
        return self.telemetry.ask(command)

    def line(self) -> Any:
        """Return the next line of JSON; what EAL prints between is left out."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            line, found, self._rest = self._rest.partition(b"\n")
            if found and line.startswith(b"{"):
                return json.loads(line)
            if found:
                continue
            self._rest = line
            left = max(0.0, deadline - time.monotonic())
            assert select.select([self.process.stdout], [], [], left)[0], f"silent\n{self.said()}"
            more = os.read(self.process.stdout.fileno(), 1 << 16)
            assert more, f"it ended: {self.process.wait(TIMEOUT_S)}\n{self.said()}"
            self._rest += more

    def go_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def next(self) -> Any:
        """Return the next line that asks for something else than the probe. The program waits after
        it.
        """
        while True:
            line = self.line()
            if "rx_queues" not in line:
                return line
            for _ in until(f"the probe is on {line['rx_queues']} queues"):
                self.check()
                # A ring port has more queues before it is configured.
                state = self.ask("/linerate/probe")
                sending = state["tx_queues"] >= line["rx_queues"] or state["one_in"] == 0
                if state["rx_queues"] >= line["rx_queues"] and sending:
                    break
            self.go_on()

    def end(self) -> int:
        """Let the program end by itself; return its exit code."""
        self.go_on()
        return self.process.wait(TIMEOUT_S)

    def status(self) -> dict[str, str]:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}

    def leftovers(self) -> list[str]:
        """Return the files in EAL's run-time directory; EAL itself never removes the directory."""
        return sorted(path.name for path in (self.directory / "dpdk" / PREFIX).glob("*"))


def histogram(entry: Mapping[str, Any]) -> list[int]:
    """Return the polls that returned 0, 1, ... packets, without zeros at the end."""
    counts = [int(count) for count in entry["burst_histogram"]]
    while counts and counts[-1] == 0:
        counts.pop()
    return counts


def own_books(line: Mapping[str, Any]) -> dict[tuple[int, int, int], list[int]]:
    """Return what a program counted itself, by (lcore, port, queue)."""
    return {
        (lcore["lcore"], entry["port"], entry["queue"]): histogram(entry)
        for lcore in line["books"]
        for entry in lcore["queues"]
    }


def probe_books(program: Program) -> dict[tuple[int, int, int], list[int]]:
    """Return what the probe counted. Polls, empty polls and packets must match the histogram."""
    books = {}
    for short in program.ask("/linerate/polling"):
        entry = short
        if "burst_histogram" not in short:
            (entry,) = program.ask(f"/linerate/polling,{short['port']},{short['queue']}")
        counts = histogram(entry)
        assert entry["polls"] == sum(counts)
        assert entry["empty_polls"] == (counts or [0])[0]
        assert entry["packets"] == sum(size * count for size, count in enumerate(counts))
        assert len(entry["burst_histogram"]) > entry["burst_limit"] > 0
        assert 0 <= entry["busy_tsc"] <= entry["total_tsc"]
        books[entry["lcore"], entry["port"], entry["queue"]] = counts
    return books
