# SPDX-License-Identifier: BSD-3-Clause
"""Several starts of both programs at once on one CPU; the kernel's scheduler interleaves them.

The figure of a start is its packets over the CPU time of its process, so that changes of the
machine affect both programs equally (docs/how-it-measures.md#standing-programs). That is the cost
of a packet only if a program has work whenever it runs: on links whose driver always delivers.

Lifecycle: `standing` is a context manager; everything that it started ends with it. Children are
started from the main thread, one after the other, and do not wait for each other: EAL's start takes
most of a second, and they share the CPU for it.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from linerate.forwarders import Forwarder
from linerate.host.process import pause
from linerate.links import Wire
from linerate.trial.running import START_TIMEOUT_S, begun
from linerate.trial.starts.faults import FaultError, blamed
from linerate.trial.starts.start import Sample, Start, refuse_shared
from linerate.trial.starts.window import Window
from linerate.trial.trial import Bench

# The time until all have finished their start, and their caches are warm.
SETTLE_S = 0.15
# The interval of checks whether a program has begun.
_LOOK_S = 0.02


@contextmanager
def standing(
    bench: Bench, wire: Wire, programs: Sequence[Forwarder], order: Sequence[int]
) -> Iterator[list[Start]]:
    """Start programs in this order, each named by its index in `programs`; yield them when all
    forward and have settled.

    Raises `FaultError` if a program does not start or forward.
    """
    with ExitStack() as stack:
        beginnings = []
        for arm in order:
            with blamed(arm):
                launching = begun(programs[arm], bench.run, bench.cores, bench.memory, wire)
                beginnings.append(stack.enter_context(launching))
        # Ask all to end before waiting for any.
        for each in beginnings:
            if each.child:
                stack.callback(each.child.ask_to_end)
        starts: list[Start] = []
        patience = _Patience.of(len(order))
        for arm, beginning in zip(order, beginnings, strict=True):
            with blamed(arm):
                running = beginning.running(programs[arm].ready.within_s * len(order))
            starts.append(Start(arm, running, "cpu"))
            # Never stop a process that the lab did not start.
            refuse_shared(starts[-1], starts[:-1])
            _await_packets(starts[-1], patience)
            # The CPU is free for those that still start.
            stack.callback(starts[-1].go_on)
            starts[-1].halt()
        for start in starts:
            start.answer_soon()
            start.go_on()
        pause(SETTLE_S)
        yield starts


@dataclass
class _Patience:
    """The remaining time to wait for all starts together, in seconds."""

    received: float
    sent: float

    @classmethod
    def of(cls, starts: int) -> _Patience:
        # A program that lacks a port, or sends nothing, may be broken: it has less time.
        return cls(START_TIMEOUT_S * starts, START_TIMEOUT_S / 2)


def _await_packets(start: Start, patience: _Patience) -> None:
    """Wait for packets: telemetry answers before a program has set up its ports, and ports receive
    before it has set up its tables. A start that never begins is reported by its window.
    """
    patience.received -= _await(start, patience.received, lambda seen: any(seen.received))
    patience.sent -= _await(
        start, patience.sent, lambda seen: all(seen.received) and any(seen.sent)
    )


def _await(start: Start, seconds: float, goal: Callable[[Sample], bool]) -> float:
    """Wait until the goal is reached, for `seconds` at most; return how long it took. A program
    that ends before did not start: telemetry answers before a program has made its memory pools.
    """
    begin = time.monotonic()
    try:
        while not goal(start.sample()) and time.monotonic() < begin + seconds:
            pause(_LOOK_S)
    except FaultError as fault:
        if fault.kind != "ended":
            raise
        raise FaultError(fault.arm, "start", str(fault.message)) from fault
    return time.monotonic() - begin


def together(starts: Sequence[Start], seconds: float, slices: int) -> list[Window]:
    """Measure slices of all of them at once, in this time; raises `FaultError` if they are not
    comparable.
    """
    samples = [[start.sample() for start in starts]]
    for _ in range(slices):
        pause(seconds / slices)
        samples.append([start.sample() for start in starts])
    return [
        Window(start.arm, tuple(start.slice(*pair) for pair in itertools.pairwise(mine)))
        for start, mine in zip(starts, zip(*samples, strict=True), strict=True)
    ]
