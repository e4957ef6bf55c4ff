# SPDX-License-Identifier: BSD-3-Clause
"""The common parts of all turns: run directory, CPU, starts of programs, and checks of their ends.

Lifecycle: a `Bench` lives as long as the soak; its run directory goes with it. A `Started` lives
inside its context and is killed at its end, if it has not ended by then.
"""

from __future__ import annotations

import os
import random
import re
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from linerate.host import sampler
from linerate.host.errors import LabError, MachineError, MissingError, ProcessError
from linerate.host.host import LOCAL, Host
from linerate.host.leftovers.traces import Traces, left_behind
from linerate.host.process import Child, Command, RunDirectory, pause, thread_states
from linerate.host.sampler import Activity, Wanted
from linerate.host.text import last_words
from linerate.links.eal import Memory
from linerate.telemetry.client import Telemetry, connect, socket_path

# Long enough on a machine that is full of other work.
TIMEOUT_S = 120.0
# How often a program is looked at meanwhile.
LOOK_S = 0.002
# A time limit grows to so many times its length while others have the program's CPU.
MOST_TIMES = 10
# More words of one turn say nothing new.
MOST_FAULTS = 20


@dataclass(frozen=True)
class Bench:
    """The resources of a turn. `source`: draws all random moments. `records`: the file of results;
    findings are kept beside it.
    """

    run: RunDirectory
    source: random.Random
    records: Path
    memory: Memory

    @property
    def cpu(self) -> int:
        return max(os.sched_getaffinity(0))

    def eal(self, prefix: str, *vdevs: str, lcores: int = 2) -> list[str]:
        """Return options of EAL; all lcores are on the last CPU."""
        options = [
            "--lcores", ",".join(f"{lcore}@{self.cpu}" for lcore in range(lcores)),
            *self.memory.options(), "--no-pci", "--file-prefix", prefix,
        ]  # fmt: skip
        return options + [f"--vdev={vdev}" for vdev in vdevs]


class Patience:
    """A time limit for a program: the time in which it wanted to run while other processes had its
    CPU is added, up to `MOST_TIMES` the limit.

    A lab that measures has a hundred times the CPU weight of other processes, and a thousand times
    or more that of processes under `nice`: beside it, a program may run for milliseconds in half a
    minute.
    """

    def __init__(self, pid: int, limit_s: float) -> None:
        self._pid, self._limit_s = pid, limit_s
        self._before = activity(pid)
        self._began = time.monotonic()
        self._waited_s = 0.0
        self._ran_s: float | None = None

    @property
    def over(self) -> bool:
        """Return True if the time is over; to be asked over and over."""
        passed = time.monotonic() - self._began
        if passed < self._limit_s + self._waited_s:
            return False
        now, before = activity(self._pid), self._ran_s
        self._ran_s = now.ran_s
        longest_s = MOST_TIMES * self._limit_s
        # The kernel adds what a thread waited when it runs again.
        waits = before in (None, now.ran_s) and "R" in thread_states(self._pid)
        if waits and passed < longest_s:
            return False
        waited_s = now.waited_for_others_s(self._before)
        self._waited_s = min(waited_s, longest_s - self._limit_s)
        return passed >= self._limit_s + self._waited_s

    def __str__(self) -> str:
        """Return the limit in words, for what did not happen `within` it."""
        others = f", and {self._waited_s:.1f} s in which other processes had its CPU"
        return f"{self._limit_s:g} s{others if self._waited_s >= 1 else ''}"


def activity(pid: int) -> Activity:
    """Return how long each thread of a process ran, and waited for a CPU."""
    return sampler.take(Wanted((pid,))).processes[pid]


class Started:
    """A program that runs."""

    def __init__(self, child: Child, runtime: Path, prefix: str) -> None:
        self.child = child
        self.socket = socket_path(runtime, prefix)

    @property
    def running(self) -> bool:
        return self.child.running

    def patience(self, limit_s: float) -> Patience:
        return Patience(self.child.pid, limit_s)

    def wait_until(self, come: Callable[[], bool], complaint: str) -> None:
        """Wait until something has come. Raises `ProcessError` with the complaint if it has not in
        time, or if the program ended.
        """
        patience = self.patience(TIMEOUT_S)
        while not come():
            self.child.check()
            if patience.over:
                raise ProcessError(f"{complaint} within {patience}")
            time.sleep(LOOK_S)

    def connect(self) -> Telemetry:
        """Connect to its telemetry. Beside a lab that measures, the answer to an exchange of XDP
        programs was seen to take more than the usual five seconds.
        """
        return connect(self.socket, TIMEOUT_S, self.child.check, answer_s=TIMEOUT_S)

    def hears(self, number: signal.Signals) -> bool:
        """Return True if the program handles the signal itself."""
        with suppress(OSError):
            return hears(Path(f"/proc/{self.child.pid}/status").read_text(), number)
        return False

    def end(self, number: signal.Signals) -> tuple[int | None, str]:
        """Send a signal; return the exit code and the end of what the program printed. The code is
        negative if a signal ended the program, and None if it did not end in time.
        """
        with suppress(ProcessLookupError):
            os.kill(self.child.pid, number)
        ended = self.child.wait(TIMEOUT_S)
        said = last_words(self.child.output())
        code = self.child.stop()
        return (code if ended else None), said


def hears(status: str, number: signal.Signals) -> bool:
    """Return True if the text of /proc/PID/status has a handler for the signal."""
    caught = re.findall(r"^SigCgt:\s*([0-9a-f]+)$", status, re.MULTILINE)
    return bool(caught) and bool(int(caught[0], 16) >> (number - 1) & 1)


@contextmanager
def started(
    bench: Bench,
    argv: Sequence[str],
    prefix: str = "",
    host: Host = LOCAL,
    directory: Path | None = None,
) -> Iterator[Started]:
    """Start a program, and kill it at the end of the context. `prefix`: its file prefix, if it has
    a telemetry socket as programs on EAL do.
    """
    command = Command(Path(argv[0]).name, tuple(argv), (bench.cpu,), directory=directory)
    child = host.start(command, bench.run)
    try:
        yield Started(child, bench.run.path, prefix)
    finally:
        if child.running:
            with suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGKILL)
            child.wait(TIMEOUT_S)
        child.stop()


def wrong_end(
    code: int | None, number: signal.Signals, heard: bool, after_signal: int = 0
) -> str | None:
    """Return words for a wrong exit code; None if it is right.

    `heard`: the program had a handler when the signal was sent; without one the signal itself may
    end it. `after_signal`: the exit code that the program promises then.
    """
    if code is None:
        return f"did not end within {TIMEOUT_S:g} s of {number.name}"
    if code == after_signal or (code == -number and not heard):
        return None
    how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
    return f"{how} after {number.name}, not with {after_signal}"


class Looks:
    """Compares the machine before and after a start, and names what was left behind."""

    def __init__(self, bench: Bench, patience_s: float = 10.0) -> None:
        self._runtime, self._patience_s = bench.run.path, patience_s
        self._before = Traces.of(self._runtime, files=True)

    def left(self) -> list[str]:
        found = left_behind(self._runtime, self._before, files=True, patience_s=self._patience_s)
        # EAL's directory for all programs stays while the run directory does.
        return [f"left {each}" for each in found if each != f"file {self._runtime / 'dpdk'}"]


class Until:
    """Ends a turn after its time, after its number of counts, or after too many faults."""

    def __init__(self, seconds: float, wanted: int) -> None:
        self._deadline, self._wanted = time.monotonic() + seconds, wanted
        self.number = 0
        self.faults: list[str] = []

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Count an error as a fault, which ends the block; what was counted before stays counted.
        An error that says that the row cannot run on this machine is raised.
        """
        try:
            yield
        except (MissingError, MachineError):
            raise
        except LabError as error:
            self.faults.append(str(error))

    @property
    def on(self) -> bool:
        pause(0)
        return (
            time.monotonic() < self._deadline
            and self.number < self._wanted
            and len(self.faults) < MOST_FAULTS
        )

    @property
    def rest_s(self) -> float:
        return max(self._deadline - time.monotonic(), 0.0)
