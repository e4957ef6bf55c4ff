# SPDX-License-Identifier: BSD-3-Clause
"""Kills the lab (SIGKILL) during a run, which the next one resumes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from linerate.host.leftovers.traces import Traces, left_behind
from linerate.host.process import base_directory, pause
from linerate.records.run_file import RUN
from linerate.records.trial import RECORDS, end_of_lines
from linerate_bench.soak.bench import TIMEOUT_S, Bench, Until
from linerate_bench.soak.plan import Row
from linerate_bench.soak.records import Counted
from linerate_bench.soak.starts import KILLS

# A run with more blocks than a turn has time for, at a rate that any machine keeps.
OPTIONS = (
    "--link", "null,memif", "--blocks", "500", "--forwarders", "c-l2fwd,rust-l2fwd", "--line-rate",
    "100000", "--seed", "3", "--method", "fresh", "--keep-going",
)  # fmt: skip


def whole_lines(path: Path) -> bytes:
    """Return the complete lines of a file; empty if there is no file."""
    content = path.read_bytes() if path.exists() else b""
    return content[: end_of_lines(content)]


def begin(out: Path, runtime: Path) -> subprocess.Popen[bytes]:
    """Start a run in `out`, or resume the one that is there."""
    options = ["--resume", str(out)] if (out / RUN).exists() else ["--out", str(out), *OPTIONS]
    log = (runtime.parent / "lab.log").open("wb")
    with log:
        return subprocess.Popen(
            [sys.executable, "-m", "linerate", "run", "overload", *options],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            env={**os.environ, "XDG_RUNTIME_DIR": str(runtime)},
        )  # fmt: skip


def await_begin(lab: subprocess.Popen[bytes], runtime: Path) -> bool:
    """Wait until the lab has made its run directory, which it does after it has removed those of
    killed labs. Returns False if it ended before, or waited too long for CPUs of other labs.
    """
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline and lab.poll() is None:
        if any(runtime.glob(f"linerate-*-{lab.pid}-*")):
            return True
        pause(0.05)
    return False


def last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    return lines[-1] if lines else "it said nothing"


def count(bench: Bench, seconds: float, wanted: int) -> Counted:
    until = Until(seconds, wanted)
    with tempfile.TemporaryDirectory(prefix="soak-", dir=base_directory()) as made:
        runtime, out = Path(made) / "r", Path(made) / "run"
        runtime.mkdir(mode=0o700)
        before = Traces.of(Path(made))
        lab: subprocess.Popen[bytes] | None = None
        try:
            seen = b""
            while until.on:
                lab = begin(out, runtime)
                pause(bench.source.uniform(0.2, 6.0))
                if lab.poll() is not None:
                    said = last_line(Path(made) / "lab.log")
                    until.faults.append(f"ended by itself with {lab.returncode}: {said}")
                lab.kill()
                lab.wait(TIMEOUT_S)
                until.faults += [
                    f"left {each}"
                    for each in left_behind(Path(made), before)
                    # The next lab removes these: the kernel frees a socket with its process.
                    if not each.startswith("socket")
                ]
                done = whole_lines(out / RECORDS)
                if not done.startswith(seen):
                    until.faults.append("records of finished trials were changed")
                seen = done
                until.number += 1
            # A lab that is asked to end removes what the killed ones left.
            lab = begin(out, runtime)
            begun = await_begin(lab, runtime)
            lab.send_signal(signal.SIGINT)
            lab.wait(TIMEOUT_S)
            until.faults += [f"left {each}" for each in left_behind(Path(made), before)]
            if begun:
                until.faults += [f"left {each}" for each in runtime.glob("linerate-*")]
        finally:
            if lab is not None and lab.poll() is None:
                with suppress(ProcessLookupError):
                    lab.kill()
                lab.wait(TIMEOUT_S)
    return Counted(until.number, tuple(until.faults))


def rows() -> list[Row]:
    return [Row("kills", "lab", "SIGKILLs", KILLS, count, leases=False)]
