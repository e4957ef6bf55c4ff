# SPDX-License-Identifier: BSD-3-Clause
"""One start of one program: read, stop and continue it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from linerate.host.errors import DisconnectedError, GeneratorError, ProcessError, TelemetryError
from linerate.host.process import prefer_threads
from linerate.host.text import complaints
from linerate.links import KernelThread
from linerate.traffic.sender import Sender
from linerate.trial.running import END_S, Ports, Running, started_by
from linerate.trial.starts.busy import Busy, BusyTime
from linerate.trial.starts.clocks import Clock, CpuClock, PathClock, Per, WallClock, cpu_clock
from linerate.trial.starts.faults import FaultError
from linerate.trial.starts.halting import Pair
from linerate.trial.starts.window import Had, Offered, Slice

# A reading is good if it is at least this certain, which allows twice as much time for it;
# otherwise the best of several is used. On a busy machine seven of ten are certain to 0.06 to 0.15
# ms; a slice has some 30 ms of CPU time.
TIGHT_NS = 200_000
_READINGS = 12
# DPDK's name of the threads that answer.
_TELEMETRY = "telemetry-v2"


@dataclass(frozen=True)
class Sample:
    """Counters of one start at one moment: packets received and sent by port, and its time.

    The counters were read at `time_ns`, give or take `uncertainty_ns`. By CPU time they are exact
    if the program did not run during the answer.
    """

    received: tuple[int, ...]
    sent: tuple[int, ...]
    time_ns: int
    uncertainty_ns: int
    offered: Offered | None = None
    busy: Busy | None = None


class Start:
    """A start. `arm`: the index of the program. `sender`: its own generator. `pid`: the process
    that polls; None if the kernel forwards alone.
    """

    def __init__(
        self,
        arm: int,
        running: Running,
        per: Per,
        sender: Sender | None = None,
        busy: BusyTime | None = None,
        *,
        threads: Sequence[KernelThread] = (),
        interfaces: Ports | None = None,
    ) -> None:
        """Prepare. `busy`: by "busy" alone. `threads`: kernel threads that receive for the program.
        `interfaces`: they count in place of the program. Only the program knows how many frames it
        took: it is asked if that matters.
        """
        self.arm = arm
        self.running = running
        self.sender = sender
        self._busy = busy
        self._interfaces = interfaces
        self._per = per
        self._pair = Pair.of(running, sender)
        self.pid = self._pair.pid
        self._clock: Clock = WallClock()
        if per == "cpu-and-napi" or (per == "cpu" and self.pid):
            self._clock = PathClock(self.pid, threads)
        elif per != "time" and self.pid:
            self._clock = CpuClock(self.pid)
        # Its time is the cost of its packets, even if its generator sends less than it could take.
        self.cost_only = per == "busy"

    def check(self) -> None:
        """Raise `FaultError` if one of its processes has ended, and `ProcessError` if its generator
        has, which says nothing about the program.
        """
        if self.sender:
            self.sender.check()
        try:
            self.running.check()
        except ProcessError as error:
            raise FaultError(self.arm, "ended", str(error.message)) from error

    @property
    def pids(self) -> set[int]:
        """The processes whose CPU time is its own."""
        if isinstance(self._clock, PathClock):
            return self._clock.pids
        return {self.pid} if self.pid else set()

    @property
    def said(self) -> str:
        """The complaints in its program's output, if any."""
        return complaints(self.running.forwarder.output()) if self.running.forwarder else ""

    def answer_soon(self) -> None:
        """Let its telemetry thread run as soon as it is asked, although other starts want the same
        CPU. Otherwise each answer waits 4 ms here for the scheduler.
        """
        if self.pid:
            prefer_threads(self.pid, _TELEMETRY)

    # -- reading -------------------------------------------------------------------------------

    def sample(self) -> Sample:
        """Sample now, as exactly as a few readings allow. Raises `FaultError` if it cannot be
        read.
        """
        self.check()
        try:
            best = self._read()
            for _ in range(_READINGS - 1):
                if best.uncertainty_ns <= TIGHT_NS:
                    break
                again = self._read()
                if again.uncertainty_ns < best.uncertainty_ns:
                    best = again
            if self._interfaces and not self.cost_only:
                # Only once: a program with a fully used CPU answers after milliseconds.
                best = replace(best, received=_counts(self.running.ports, "ipackets"))
        except TelemetryError as error:
            if isinstance(error, DisconnectedError):
                self.running.await_end()
            self.check()
            raise FaultError(self.arm, "silent", str(error.message)) from error
        except (KeyError, TypeError, ValueError) as error:
            raise FaultError(self.arm, "counters", f"/ethdev/stats lacks {error}") from error
        return best

    def _read(self) -> Sample:
        before = self._now()
        readings = (self._interfaces or self.running.ports).readings()
        after = self._now()
        return Sample(
            tuple(int(each.value["ipackets"]) for each in readings),
            tuple(int(each.value["opackets"]) for each in readings),
            (before + after) // 2,
            (after - before) // 2,
            self._offered(),
            self._busy.read() if self._busy else None,
        )

    def _offered(self) -> Offered | None:
        if self.sender is None:
            return None
        try:
            sent = self.sender.sent()
        except TelemetryError as error:
            if self.sender.child and isinstance(error, DisconnectedError):
                # `check` then reports how it ended.
                self.sender.child.wait(END_S)
            self.sender.check()
            raise GeneratorError(f"the generator does not answer: {error.message}") from error
        return Offered(
            sent.accepted + (sent.lost_at_ingress or 0), sent.refused or 0, self._generator_cpu()
        )

    def _generator_cpu(self) -> Had | None:
        if self._per != "cpu" or self.sender is None or self.sender.child is None:
            return None
        try:
            used = time.clock_gettime_ns(cpu_clock(self.sender.child.pid))
        except OSError:
            self.sender.check()
            raise
        return Had(used, time.monotonic_ns())

    def _now(self) -> int:
        try:
            return self._clock.now_ns()
        except OSError as error:
            raise FaultError(self.arm, "ended", f"process {self.pid} is gone") from error

    def slice(self, first: Sample, last: Sample) -> Slice:
        """Return the difference of two samples."""
        offered = None
        if first.offered and last.offered:
            offered = last.offered.since(first.offered)
        time_ns = last.time_ns - first.time_ns
        if first.busy and last.busy:
            time_ns = last.busy.since(first.busy, time_ns)
        return Slice(
            self._since(first.received, last.received),
            self._since(first.sent, last.sent),
            time_ns,
            offered,
            self.cost_only,
        )

    def _since(self, before: Sequence[int], after: Sequence[int]) -> tuple[int, ...]:
        if any(last < first for first, last in zip(before, after, strict=True)):
            raise FaultError(self.arm, "counters", "a counter went back: it wrapped, or was reset")
        return tuple(last - first for first, last in zip(before, after, strict=True))

    # -- standing still ------------------------------------------------------------------------

    def halt(self) -> None:
        """Stop the generator, then the program."""
        try:
            self._pair.halt()
        except ProcessError as error:
            self.check()
            raise FaultError(self.arm, "silent", str(error.message)) from error

    def go_on(self) -> None:
        """Continue the program first, so that it takes the first packet."""
        if isinstance(self._clock, PathClock):
            self._clock.look()
        self._pair.go_on()


def _counts(ports: Ports, name: str) -> tuple[int, ...]:
    return tuple(int(each.value[name]) for each in ports.readings())


def refuse_shared(start: Start, before: Sequence[Start] = ()) -> None:
    """Raise `FaultError` unless it is a process of its own, started for this. `before`: the starts
    that were checked already.
    """
    if start.pid is None:
        return
    if start.pid in (each.pid for each in before):
        raise FaultError(start.arm, "shared", f"process {start.pid} answers for two starts of it")
    child, telemetry = start.running.forwarder, start.running.telemetry
    if child and telemetry and not started_by(child, telemetry):
        raise FaultError(
            start.arm,
            "shared",
            f"process {start.pid} answers, but was not started by this command line: it is not its "
            "child, and does not have its RUNTIME_DIRECTORY and --file-prefix",
        )
