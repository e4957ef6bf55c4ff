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
from functools import partial

from linerate.forwarders import Forwarder
from linerate.host.errors import ProcessError, TrialError
from linerate.host.process import Child, ended_with, pause
from linerate.links import Wire
from linerate.telemetry.client import connect, socket_path
from linerate.trial.running import (
    START_TIMEOUT_S,
    Running,
    ToldPorts,
    await_ready,
    check_stays,
    started_by,
)
from linerate.trial.starts.faults import FaultError
from linerate.trial.starts.start import Start
from linerate.trial.starts.window import Window
from linerate.trial.trial import Bench

# Until all have left what they do at their start, and their caches are theirs.
SETTLE_S = 0.15
# From look to look whether a program has begun.
_LOOK_S = 0.02


@contextmanager
def standing(
    bench: Bench, wire: Wire, programs: Sequence[Forwarder], order: Sequence[int]
) -> Iterator[list[Start]]:
    """Start programs in this order, each named by its place in `programs`; ready when all forward.

    Raises `FaultError` for a program that does not start or forward.
    """
    with ExitStack() as stack:
        note = stack.enter_context(ended_with())
        begun = []
        for arm in order:
            program, prefix = programs[arm], bench.run.new_prefix("duel")
            command = program.command(bench.cores, bench.memory, prefix, wire)
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
                alive = partial(check_stays, child, bench.run, prefix, note)
                telemetry = stack.enter_context(connect(path, ready.within_s * len(order), alive))
            except TrialError as error:
                raise FaultError(arm, "start", str(error.message)) from error
            running = Running(ToldPorts(telemetry, wire.ports), child, telemetry=telemetry)
            found.append(Start(arm, running, telemetry.peer_pid(), "cpu"))
        refuse_shared(found)
        for start in found:
            if start.pid:
                note(start.pid)
        _await_packets(found)
        yield found


def _await_packets(starts: Sequence[Start]) -> None:
    """Telemetry answers before a program has set up its tables. One that never begins is named by
    what it did in its window.
    """
    ends = time.monotonic() + START_TIMEOUT_S * len(starts)
    for start in starts:
        while time.monotonic() < ends and not any(start.sample().received):
            pause(_LOOK_S)


def _ask_to_end(begun: Sequence[tuple[int, Child, str]]) -> None:
    for _, child, _ in begun:
        child.ask_to_end()


def refuse_shared(starts: Sequence[Start]) -> None:
    """Raise `FaultError` unless each is a process of its own, started for this."""
    seen = set()
    for start in starts:
        if start.pid is None:
            continue
        if start.pid in seen:
            raise FaultError(
                start.arm, "shared", f"process {start.pid} answers for two starts of it"
            )
        seen.add(start.pid)
        child, telemetry = start.running.forwarder, start.running.telemetry
        if child and telemetry and not started_by(child, telemetry):
            raise FaultError(
                start.arm,
                "shared",
                f"process {start.pid} answers, which was not started for this: it is no child of "
                "the command line, and has not the RUNTIME_DIRECTORY and the --file-prefix of it",
            )


def together(starts: Sequence[Start], seconds: float, slices: int) -> list[Window]:
    """So many slices in so many seconds, of all of them at once; raises `FaultError` for what makes
    it no comparison.
    """
    samples = [[start.sample() for start in starts]]
    for _ in range(slices):
        pause(seconds / slices)
        samples.append([start.sample() for start in starts])
    return [
        Window(start.arm, tuple(start.slice(*pair) for pair in itertools.pairwise(mine)))
        for start, mine in zip(starts, zip(*samples, strict=True), strict=True)
    ]
