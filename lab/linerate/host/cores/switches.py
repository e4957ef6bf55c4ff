# SPDX-License-Identifier: BSD-3-Clause
"""Which processes used a CPU, from the kernel's records of context switches (perf_event_open(2)).

They are exact, unlike samples of /proc: a compiler's processes live for a part of a second.
Recording adds some hundred nanoseconds to each switch, so do not watch a CPU whose programs sleep
and wake for every packet.

Requires CAP_PERFMON, which root has, or kernel.perf_event_paranoid at 0 or below. Lifecycle:
`watched` opens the records of some CPUs and closes them. Any thread.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)
_CALL = {"x86_64": 298, "aarch64": 241}
# struct perf_event_attr: type, size, config, period, sample type, read format, flags, wake-up,
# breakpoint (3), branches, registers, stack and clock.
_ATTR = struct.Struct("=IIQQQQQIIQQQQIi")
_SOFTWARE, _DUMMY = 1, 9
_TID_AND_TIME = 1 << 1 | 1 << 2
_COMM, _ID_ALL, _CLOCK_ID, _SWITCHES = 1 << 9, 1 << 18, 1 << 25, 1 << 26
_CLOSE_ON_EXEC = 8
# Offset, in the page before the ring, of the number of bytes written.
_HEAD = 1024
_HEADER, _ID, _PAIR = struct.Struct("=IHH"), struct.Struct("=IIQ"), struct.Struct("=II")
_NAME, _SWITCH = 3, 15
# The largest record, in bytes.
_LARGEST = 128
_OUT = 1 << 13
# 512 KiB have room for some 4,700 switches.
_RING_PAGES = 128


@dataclass(frozen=True)
class Use:
    """Observed use of one CPU. `others`: share of the time (0 to 1) that each process outside the
    lab used, by name, the greatest first. `complete`: there was room for all records; otherwise the
    shares may be too small.
    """

    others: Mapping[str, float]
    complete: bool


@contextmanager
def watched(cpus: Iterable[int], is_own: Callable[[int], bool]) -> Iterator[dict[int, Use] | None]:
    """Watch CPUs during the context; the result is filled when it ends. None if this user may not.

    `is_own`: tells if a pid is the lab's.
    """
    with ExitStack() as stack:
        try:
            rings = {cpu: stack.enter_context(_ring(cpu)) for cpu in cpus}
        except OSError:
            yield None
            return
        found: dict[int, Use] = {}
        # The name of a process that ends meanwhile cannot be read any more.
        names = {int(path.parent.name): _name(path) for path in Path("/proc").glob("[0-9]*/comm")}
        began_ns = time.monotonic_ns()
        yield found
        end_ns = time.monotonic_ns()
        for cpu, ring in rings.items():
            records, complete = _records(ring)
            others = _others(records, began_ns, end_ns, dict(names), is_own)
            found[cpu] = Use(others, complete)


@contextmanager
def _ring(cpu: int) -> Iterator[mmap.mmap]:
    """Map the ring into which the kernel writes the switches of a CPU. Raises `OSError`."""
    if (call := _CALL.get(platform.machine())) is None:
        raise OSError(f"the number of perf_event_open is not known for {platform.machine()}")
    flags = _COMM | _ID_ALL | _CLOCK_ID | _SWITCHES
    attributes = _ATTR.pack(
        _SOFTWARE, _ATTR.size, _DUMMY, 0, _TID_AND_TIME, 0, flags, 0, 0, 0, 0, 0, 0, 0,
        time.CLOCK_MONOTONIC,
    )  # fmt: skip
    opened = _LIBC.syscall(call, attributes, -1, cpu, -1, ctypes.c_ulong(_CLOSE_ON_EXEC))
    if opened < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    try:
        with mmap.mmap(opened, (1 + _RING_PAGES) * mmap.PAGESIZE) as ring:
            yield ring
    finally:
        os.close(opened)


@dataclass(frozen=True)
class _Record:
    kind: int
    misc: int
    body: bytes


def _records(ring: mmap.mmap) -> tuple[list[_Record], bool]:
    """Return the records written so far, and True if there was room for all of them."""
    size = len(ring) - mmap.PAGESIZE
    # Nothing was read yet, so nothing was overwritten: the kernel stops when the ring is full.
    whole = int.from_bytes(ring[_HEAD : _HEAD + 8], "little")
    found = []
    at = 0
    while at + _HEADER.size <= whole:
        begin = mmap.PAGESIZE + at
        kind, misc, length = _HEADER.unpack_from(ring, begin)
        found.append(_Record(kind, misc, ring[begin + _HEADER.size : begin + length]))
        at += max(length, _HEADER.size)
    return found, whole + _LARGEST < size


def _others(
    records: Iterable[_Record],
    began_ns: int,
    end_ns: int,
    names: dict[int, str],
    is_own: Callable[[int], bool],
) -> dict[str, float]:
    """Return the share of each process: the sum of its times between switches."""
    ran_ns: Counter[int] = Counter()
    since_ns, running = began_ns, 0
    for record in records:
        pid, _, at_ns = _ID.unpack(record.body[-_ID.size :])
        if at_ns > end_ns:
            break
        if record.kind == _NAME and len(set(_PAIR.unpack_from(record.body))) == 1:
            # The thread's name, which a program can choose.
            pid, _ = _PAIR.unpack_from(record.body)
            name, _, _ = record.body[_PAIR.size : -_ID.size].partition(b"\0")
            names[pid] = name.decode(errors="replace")
        elif record.kind == _SWITCH and record.misc & _OUT:
            ran_ns[pid] += max(at_ns - since_ns, 0)
            since_ns = max(at_ns, since_ns)
            running, _ = _PAIR.unpack_from(record.body)
    ran_ns[running] += max(end_ns - since_ns, 0)
    others: Counter[str] = Counter()
    for pid, ns in ran_ns.items():
        # 0 is the idle task.
        if pid > 0 and ns > 0 and not is_own(pid):
            others[names.get(pid) or _name(Path(f"/proc/{pid}/comm"))] += ns
    whole_ns = max(end_ns - began_ns, 1)
    return {name: ns / whole_ns for name, ns in others.most_common()}


def _name(comm: Path) -> str:
    """Return a process's name; kernel threads of one kind share one name."""
    try:
        return comm.read_text().strip().partition("/")[0]
    except OSError:
        return "a process that has ended"
