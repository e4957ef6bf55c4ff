# SPDX-License-Identifier: BSD-3-Clause
"""What packets are counted over, and the clocks that tell it.

On a veth a program's packets are received by threads of the kernel (NAPI), which the lab pins to
the forwarder's CPU. An XDP program runs in them, and is in no process's CPU time. So what a packet
costs there is the CPU time of these threads and of the program's processes together
(docs/how-it-measures.md#kernel-threads).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from linerate.host.errors import LinkError
from linerate.host.host import LOCAL
from linerate.host.process import pause, thread_states
from linerate.links import KernelThread, Link

# CPU time of the program's process; the same and that of the kernel's threads which receive for it;
# time; or the part of the process's CPU time in which its lcores were busy with packets, as the
# probe in it counts.
Per = Literal["cpu", "cpu-and-napi", "time", "busy"]
# A process that wants the CPU in more of so many looks polls, if nothing comes.
_POLLS = 0.5
_LOOKS = 10
_LOOK_S = 0.002
# Within this time it has taken what waits in its sockets when the generator stops, and has done
# with its start: it may forward on one port while it still prepares the other.
_AT_REST_S = 0.5


class Clock(Protocol):
    """What packets are counted over, in nanoseconds since some moment."""

    def now_ns(self) -> int:
        """Raises `OSError` where the process is gone."""


class WallClock:
    """The time, whoever had the CPU."""

    def now_ns(self) -> int:
        return time.monotonic_ns()


class CpuClock:
    """The CPU time of one process, or of one thread of the kernel."""

    def __init__(self, pid: int) -> None:
        self._clock = cpu_clock(pid)

    def now_ns(self) -> int:
        return time.clock_gettime_ns(self._clock)


class PathClock:
    """The CPU time of a program's processes, and of the kernel's threads that receive for it.

    `pid`: of the process that works; None: the kernel forwards alone. Other processes of its group
    are counted too, as those are that a script started; what they had stays when they end.
    """

    def __init__(self, pid: int | None, threads: Sequence[KernelThread]) -> None:
        """Raises `LinkError` where the CPU time of a thread of the kernel cannot be read."""
        self._own = [CpuClock(pid)] if pid else []
        group = set(_group_of(pid)) - {pid} if pid else set()
        self._helpers = dict.fromkeys(group, 0)
        self._threads = [CpuClock(thread.pid) for thread in threads]
        for thread, clock in zip(threads, self._threads, strict=True):
            try:
                clock.now_ns()
            except OSError as error:
                raise LinkError(
                    f"the CPU time of the kernel's thread {thread.name} (pid {thread.pid}), which "
                    f"receives for the program, cannot be read: {error.strerror}"
                ) from error

    def now_ns(self) -> int:
        for helper in self._helpers:
            # Nobody misses a helper that ended.
            try:
                self._helpers[helper] = CpuClock(helper).now_ns()
            except OSError:
                continue
        known = (*self._own, *self._threads)
        return sum(clock.now_ns() for clock in known) + sum(self._helpers.values())


def cpu_clock(pid: int) -> int:
    """Linux: the clock of another process's CPU time, CPUCLOCK_SCHED of its thread group."""
    return (~pid << 3) | 2


def per_of(link: Link, *, own: bool) -> Per:
    """What packets are counted over on a link. `own`: all work is in the programs' processes."""
    if link.receives_by_threads:
        return "cpu-and-napi"
    return "cpu" if own else "time"


def polls_at_rest(pid: int | None, received: Callable[[], object]) -> bool:
    """Whether a process wants the CPU also while nothing comes; its generator stands still.

    Then its CPU time is not what its packets cost, unless there was always a packet to take.
    `received`: its counters, by which it is seen that it has taken what waited for it.
    """
    if pid is None:
        return False
    deadline = time.monotonic() + _AT_REST_S
    while time.monotonic() < deadline:
        at_first, wanted = received(), 0
        for _ in range(_LOOKS):
            pause(_LOOK_S)
            wanted += "R" in thread_states(pid)
        if wanted <= _POLLS * _LOOKS and received() == at_first:
            return False
    return True


def _group_of(pid: int) -> list[int]:
    """The processes of its group; none of one that has ended."""
    found: list[int] = []
    try:
        group = os.getpgid(pid)
    except ProcessLookupError:
        return found
    for path in LOCAL.glob("/proc", "[0-9]*"):
        try:
            if os.getpgid(int(path.name)) == group:
                found.append(int(path.name))
        except OSError:
            continue
    return found
