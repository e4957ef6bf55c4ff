# SPDX-License-Identifier: BSD-3-Clause
"""Counters of one core, by the kernel and the processor.

Context switches and the last-level cache's references and misses are counted by perf_event_open(2),
for all that runs on the core; bytes to and from memory by resctrl, if it is mounted and the core
has such a monitor. A virtual machine usually has only the first: figures that cannot be counted are
absent. Time and softirqs are those of /proc/stat and /proc/softirqs.

Lifecycle: `CoreCounters` holds open files until its context ends. One thread.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct
from dataclasses import dataclass

from linerate.experiments.cloud.window import CoreWindow
from linerate.host.cores.cpus import CPUS
from linerate.host.host import LOCAL, Host

_LIBC = ctypes.CDLL(None, use_errno=True)
# perf_event_open has no function in the C library.
_SYSCALL = {"x86_64": 298, "aarch64": 241}
_ATTRIBUTES_BYTES = 112
_ANY_PROCESS, _NO_GROUP, _CLOSE_ON_EXEC = -1, -1, 8
# Type and number of an event in linux/perf_event.h.
_EVENTS = {"switches": (1, 3), "cache_references": (0, 2), "cache_misses": (0, 3)}


@dataclass(frozen=True)
class Reading:
    """Counts since some beginning; None if not counted here."""

    at_s: float
    busy_ticks: int
    softirq_ticks: int
    steal_ticks: int
    softirqs: dict[str, int]
    events: dict[str, int]
    memory_bytes: int | None


class CoreCounters:
    """The counters of one CPU, for everything that runs there."""

    def __init__(self, cpu: int, host: Host = LOCAL) -> None:
        self.cpu = cpu
        self.host = host
        self._events = {name: fd for name in _EVENTS if (fd := _open(cpu, *_EVENTS[name])) >= 0}

    def read(self) -> Reading:
        sample = self.host.sample(CPUS)
        times = sample.cpus[self.cpu]
        return Reading(
            at_s=sample.at_s,
            busy_ticks=times.busy,
            softirq_ticks=times.softirq,
            steal_ticks=times.steal,
            softirqs=softirqs_of(self.host.read_text("/proc/softirqs"), self.cpu),
            events={name: _count(fd) for name, fd in self._events.items()},
            memory_bytes=moved_bytes(self.host),
        )

    def close(self) -> None:
        for fd in self._events.values():
            os.close(fd)
        self._events.clear()

    def __enter__(self) -> CoreCounters:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def between(cpu: int, before: Reading, after: Reading) -> CoreWindow:
    """Return the difference of two readings."""
    tick_s = 1 / os.sysconf("SC_CLK_TCK")
    events = {
        name: max(count - before.events[name], 0)
        for name, count in after.events.items()
        if name in before.events
    }
    moved = None
    if before.memory_bytes is not None and after.memory_bytes is not None:
        moved = max(after.memory_bytes - before.memory_bytes, 0)
    return CoreWindow(
        cpu=cpu,
        seconds=after.at_s - before.at_s,
        busy_s=max(after.busy_ticks - before.busy_ticks, 0) * tick_s,
        softirq_s=max(after.softirq_ticks - before.softirq_ticks, 0) * tick_s,
        steal_s=max(after.steal_ticks - before.steal_ticks, 0) * tick_s,
        softirqs={
            kind: found
            for kind, count in after.softirqs.items()
            if (found := count - before.softirqs.get(kind, 0)) > 0
        },
        switches=events.get("switches"),
        cache_references=events.get("cache_references"),
        cache_misses=events.get("cache_misses"),
        memory_bytes=moved,
    )


def softirqs_of(text: str, cpu: int) -> dict[str, int]:
    """Return softirqs by kind, from one column of /proc/softirqs, which has one for each online
    CPU.
    """
    heads, *lines = text.splitlines()
    column = heads.split().index(f"CPU{cpu}")
    return {
        kind.strip(): int(counts.split()[column])
        for kind, _, counts in (line.partition(":") for line in lines)
    }


def moved_bytes(host: Host = LOCAL) -> int | None:
    """Return the bytes moved in all domains of the last-level cache: resctrl counts these, not
    cores.
    """
    counts = []
    for path in host.glob("/sys/fs/resctrl/mon_data", "mon_L3_*/mbm_total_bytes"):
        # `Unavailable` where the hardware has no value.
        with contextlib.suppress(OSError, ValueError):
            counts.append(int(host.read_text(path)))
    return sum(counts) if counts else None


def _open(cpu: int, kind: int, number: int) -> int:
    """Return a counter's file descriptor; below 0 if this core has no such counter, or this user
    may not use it.
    """
    syscall = _SYSCALL.get(platform.machine())
    if syscall is None:
        return -1
    attributes = struct.pack("IIQ", kind, _ATTRIBUTES_BYTES, number).ljust(_ATTRIBUTES_BYTES, b"\0")
    buffer = ctypes.create_string_buffer(attributes, _ATTRIBUTES_BYTES)
    return int(_LIBC.syscall(syscall, buffer, _ANY_PROCESS, cpu, _NO_GROUP, _CLOSE_ON_EXEC))


def _count(fd: int) -> int:
    return int.from_bytes(os.read(fd, 8), "little")
