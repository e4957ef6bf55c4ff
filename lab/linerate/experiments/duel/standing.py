# SPDX-License-Identifier: BSD-3-Clause
"""Several starts of both programs at once on one CPU; the kernel's scheduler interleaves them.

The figure of a start is its packets over the CPU time of its process, so that what the machine does
from one second to the next meets both programs alike (docs/how-it-measures.md#standing-programs).
That is the cost of a packet only where a program has work whenever it runs: on links whose driver
always delivers.

Lifecycle: `standing` is a context manager; all that it started ends with it. Children are started
from the main thread, one after the other, and wait for each other nowhere: EAL's start takes most
of a second, and they share the CPU for it.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from linerate.experiments.duel.faults import FaultError
from linerate.experiments.duel.window import Slice, Window
from linerate.forwarders import Forwarder
from linerate.host.errors import ProcessError, TelemetryError, TrialError
from linerate.host.process import Child, parent_of, pause
from linerate.links import Wire
from linerate.telemetry.client import Telemetry, connect, socket_path
from linerate.trial.running import await_ready
from linerate.trial.trial import Bench

# Until all have left what they do at their start, and their caches are theirs.
SETTLE_S = 0.15
# A reading is good if the program ran for so little while it was made; of so many, the best.
TIGHT_NS = 50_000
_READINGS = 12


@dataclass(frozen=True)
class Sample:
    """Of one start at one moment: packets received and sent by port, and its CPU time.

    The counters were read while its CPU time was `cpu_ns`, give or take `uncertainty_ns`: it may
    run on while the answer is under way. Where it had not the CPU meanwhile, they are exact.
    """

    received: tuple[int, ...]
    sent: tuple[int, ...]
    cpu_ns: int
    uncertainty_ns: int


class Start:
    """One start of one program. `arm`: which of the programs it is."""

    def __init__(self, arm: int, child: Child, telemetry: Telemetry, ports: int) -> None:
        self.arm = arm
        self.child = child
        self.telemetry = telemetry
        self._ports = range(ports)
        # The one that polls: a script's child, where the command is a script.
        self.pid = telemetry.pid
        # Linux: the clock of another process's CPU time, CPUCLOCK_SCHED of its thread group.
        self._clock = (~self.pid << 3) | 2

    def sample(self) -> Sample:
        """Now, as exactly as a few readings give it. Raises `TrialError` when it is gone."""
        best = self._read()
        for _ in range(_READINGS - 1):
            if best.uncertainty_ns <= TIGHT_NS:
                break
            again = self._read()
            if again.uncertainty_ns < best.uncertainty_ns:
                best = again
        return best

    def _read(self) -> Sample:
        before = self._cpu_ns()
        answers = [self.telemetry.ask(f"/ethdev/stats,{port}") for port in self._ports]
        after = self._cpu_ns()
        return Sample(
            tuple(int(each["ipackets"]) for each in answers),
            tuple(int(each["opackets"]) for each in answers),
            (before + after) // 2,
            (after - before) // 2,
        )

    def _cpu_ns(self) -> int:
        try:
            return time.clock_gettime_ns(self._clock)
        except OSError as error:
            raise ProcessError(f"process {self.pid} is gone") from error


@contextmanager
def standing(
    bench: Bench, wire: Wire, programs: Sequence[Forwarder], order: Sequence[int]
) -> Iterator[list[Start]]:
    """Start programs in this order, each named by its place in `programs`; ready when all forward.

    Raises `FaultError` for a program that does not start or forward.
    """
    with ExitStack() as stack:
        begun = []
        for arm in order:
            program, prefix = programs[arm], bench.run.new_prefix("duel")
            command = program.command(bench.cores.forwarder, bench.memory, prefix, wire)
            assert command is not None
            try:
                child = stack.enter_context(wire.host.start(command, bench.run))
            except ProcessError as error:
                raise FaultError(arm, "start", str(error.message)) from error
            begun.append((arm, child, prefix))
        # All are asked to end before any is waited for.
        stack.callback(_ask_to_end, begun)
        found = []
        for arm, child, prefix in begun:
            ready = programs[arm].ready
            try:
                await_ready(child, ready, wire.host)
                path = socket_path(bench.run.path, prefix)
                telemetry = stack.enter_context(
                    connect(path, ready.within_s * len(order), child.check)
                )
            except TrialError as error:
                raise FaultError(arm, "start", str(error.message)) from error
            found.append(Start(arm, child, telemetry, wire.ports))
        _refuse_shared(found)
        yield found


def _ask_to_end(begun: Sequence[tuple[int, Child, str]]) -> None:
    for _, child, _ in begun:
        child.ask_to_end()


def _refuse_shared(starts: Sequence[Start]) -> None:
    """Each must be a process of its own, started for this."""
    seen: dict[int, Start] = {}
    for start in starts:
        if start.pid in seen:
            raise FaultError(
                start.arm, "shared", f"process {start.pid} answers for two starts of it"
            )
        seen[start.pid] = start
        if not _descends(start.pid, start.child.pid):
            raise FaultError(
                start.arm, "shared", f"process {start.pid} answers, which this duel did not start"
            )


def _descends(pid: int, ancestor: int) -> bool:
    while pid > 1 and pid != ancestor:
        found = parent_of(pid)
        if found is None:
            return False
        pid = found
    return pid == ancestor


def measure(starts: Sequence[Start], seconds: float, slices: int) -> list[Window]:
    """So many slices in so many seconds, of all of them at once; raises `FaultError` for what makes
    it no comparison.
    """
    samples = [[_sample(start) for start in starts]]
    for _ in range(slices):
        pause(seconds / slices)
        samples.append([_sample(start) for start in starts])
    return [
        Window(start.arm, tuple(_slice(start, *pair) for pair in itertools.pairwise(mine)))
        for start, mine in zip(starts, zip(*samples, strict=True), strict=True)
    ]


def _slice(start: Start, first: Sample, last: Sample) -> Slice:
    return Slice(
        _since(start, first.received, last.received),
        _since(start, first.sent, last.sent),
        last.cpu_ns - first.cpu_ns,
    )


def _sample(start: Start) -> Sample:
    try:
        start.child.check()
        return start.sample()
    except TelemetryError as error:
        raise FaultError(start.arm, "silent", str(error.message)) from error
    except ProcessError as error:
        raise FaultError(start.arm, "ended", str(error.message)) from error
    except (KeyError, TypeError, ValueError) as error:
        raise FaultError(start.arm, "counters", f"/ethdev/stats lacks {error}") from error


def _since(start: Start, before: Sequence[int], after: Sequence[int]) -> tuple[int, ...]:
    if any(last < first for first, last in zip(before, after, strict=True)):
        raise FaultError(start.arm, "counters", "a counter went back: it wrapped, or was reset")
    return tuple(last - first for first, last in zip(before, after, strict=True))
