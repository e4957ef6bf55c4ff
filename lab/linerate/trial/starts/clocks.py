# SPDX-License-Identifier: BSD-3-Clause
"""The clocks over which packets are counted.

On a veth a program's packets are received by kernel threads (NAPI), which the lab pins to the
forwarder's CPU. An XDP program runs in them, and is in no process's CPU time. So the cost of a
packet there is the CPU time of these threads and of the program's processes together
(docs/how-it-measures.md#kernel-threads).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Literal, Protocol

from linerate.host.errors import LinkError
from linerate.host.host import LOCAL
from linerate.host.process import pause, thread_states
from linerate.links import KernelThread, Link

# CPU time of the program's process; the same and that of the kernel's threads which receive for it;
# time; or the part of the process's CPU time in which its lcores were busy with packets, as the
# probe in it counts.
Per = Literal["cpu", "cpu-and-napi", "time", "busy"]
# A process polls if it wants the CPU in more than this share of checks, while nothing comes.
_POLLS = 0.5
_LOOKS = 10
_LOOK_S = 0.002
# The time to take what waits in its sockets after the generator stopped, and to finish its start:
# it may forward on one port while it still prepares the other.
_AT_REST_S = 0.5


class Clock(Protocol):
    """A clock over which packets are counted, in nanoseconds since some moment."""

    def now_ns(self) -> int:
        """Return the time in ns. Raises `OSError` if the process is gone."""


class WallClock:
    """The wall clock, whoever has the CPU."""

    def now_ns(self) -> int:
        return time.monotonic_ns()


class CpuClock:
    """The CPU time of one process, or of one kernel thread."""

    def __init__(self, pid: int) -> None:
        self._clock = cpu_clock(pid)

    def now_ns(self) -> int:
        return time.clock_gettime_ns(self._clock)


class PathClock:
    """The CPU time of a program's processes, and of the kernel threads that receive for it.

    `pid`: of the process that works; None if the kernel forwards alone. Other processes of its
    group are counted too, such as those that a script started, and those in its network namespace,
    if that is not the lab's: they belong to it, even in another session. Their time still counts
    after they end.
    """

    def __init__(self, pid: int | None, threads: Sequence[KernelThread]) -> None:
        """Find the clocks. Raises `LinkError` if the CPU time of a kernel thread cannot be read."""
        self._own = [CpuClock(pid)] if pid else []
        self._pid = pid
        self._helpers: dict[int, int] = {}
        self.look()
        self._threads = [CpuClock(thread.pid) for thread in threads]
        for thread, clock in zip(threads, self._threads, strict=True):
            try:
                clock.now_ns()
            except OSError as error:
                raise LinkError(
                    f"the CPU time of the kernel's thread {thread.name} (pid {thread.pid}), which "
                    f"receives for the program, cannot be read: {error.strerror}"
                ) from error

    @property
    def pids(self) -> set[int]:
        """The program's processes, including those that ended."""
        return {*self._helpers, *([self._pid] if self._pid else [])}

    def look(self) -> None:
        """Add processes that it has started since. Not during a measurement: it adds all of their
        CPU time at one moment.
        """
        for helper in _beside(self._pid) if self._pid else ():
            self._helpers.setdefault(helper, 0)

    def now_ns(self) -> int:
        for helper in self._helpers:
            # A helper that has ended does not matter.
            try:
                self._helpers[helper] = CpuClock(helper).now_ns()
            except OSError:
                continue
        known = (*self._own, *self._threads)
        return sum(clock.now_ns() for clock in known) + sum(self._helpers.values())


def cpu_clock(pid: int) -> int:
    """Return the clock of another process's CPU time. Linux: CPUCLOCK_SCHED of its thread group."""
    return (~pid << 3) | 2


def per_of(link: Link, *, own: bool) -> Per:
    """Choose the clock for a link. `own`: all work is in the programs' processes."""
    if link.receives_by_threads:
        return "cpu-and-napi"
    return "cpu" if own else "time"


def polls_at_rest(pids: Collection[int], received: Callable[[], object]) -> bool:
    """Return True if one of a program's processes wants the CPU while nothing comes; its generator
    is stopped.

    Then its CPU time is not the cost of its packets, unless there was always a packet to take.
    `received`: its counters, which show that it has taken all waiting packets.
    """
    if not pids:
        return False
    deadline = time.monotonic() + _AT_REST_S
    while time.monotonic() < deadline:
        at_first, wanted = received(), 0
        for _ in range(_LOOKS):
            pause(_LOOK_S)
            wanted += any("R" in thread_states(pid) for pid in pids)
        if wanted <= _POLLS * _LOOKS and received() == at_first:
            return False
    return True


def _beside(pid: int) -> set[int]:
    """Return the other processes of its group and in its network namespace; empty if it has
    ended.
    """
    found: set[int] = set()
    try:
        group, network = os.getpgid(pid), _network(pid)
        if network == _network(os.getpid()):
            network = None
    except OSError:
        return found
    for path in LOCAL.glob("/proc", "[0-9]*"):
        other = int(path.name)
        with suppress(OSError):
            if os.getpgid(other) == group or (network and _network(other) == network):
                found.add(other)
    return found - {pid}


def _network(pid: int) -> str | None:
    """Identify the network namespace of a process; None if it is not visible, because the process
    is another user's or has ended.
    """
    name = LOCAL.resolve(f"/proc/{pid}/ns/net").name
    return name if ":" in name else None
