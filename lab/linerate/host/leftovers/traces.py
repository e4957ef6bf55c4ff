# SPDX-License-Identifier: BSD-3-Clause
"""What programs could leave on the machine: taken before and after, and compared."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

from linerate.host.machine import hugepage_memory_mib


@dataclass(frozen=True)
class Traces:
    """What there is: interfaces of this network namespace, and what has to do with one run-time
    directory: its files, sockets below it, processes that name it.
    """

    hugepages_mib: int
    interfaces: frozenset[str]
    sockets: frozenset[str]
    processes: frozenset[int]
    files: frozenset[str] = frozenset()

    @classmethod
    def of(cls, runtime: Path, *, files: bool = False) -> Traces:
        """`files`: those below the directory count as well."""
        names = Path("/proc/net/unix").read_text().splitlines()
        return cls(
            hugepage_memory_mib(),
            frozenset(path.name for path in Path("/sys/class/net").iterdir()),
            frozenset(line.split()[-1] for line in names if str(runtime) in line),
            frozenset(_naming(str(runtime))),
            frozenset(map(str, runtime.rglob("*"))) if files else frozenset(),
        )

    def more_than(self, before: Traces) -> list[str]:
        """What is there now and was not before, in words."""
        found = [
            *(f"interface {name}" for name in sorted(self.interfaces - before.interfaces)),
            *(f"socket {name}" for name in sorted(self.sockets - before.sockets)),
            *(f"process {pid}" for pid in sorted(self.processes - before.processes)),
            *(f"file {name}" for name in sorted(self.files - before.files)),
        ]
        if (less := before.hugepages_mib - self.hugepages_mib) > 0:
            found.append(f"{less} MiB of hugepages")
        return found


def left_behind(
    runtime: Path, before: Traces, *, files: bool = False, patience_s: float = 10.0
) -> list[str]:
    """What is there and was not before; who is just ending is waited for."""
    deadline = time.monotonic() + patience_s
    while left := Traces.of(runtime, files=files).more_than(before):
        if time.monotonic() >= deadline:
            break
        time.sleep(0.01)
    return left


def _naming(word: str) -> list[int]:
    """Pids of processes with this in their command lines or environments."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            told = (path / "cmdline").read_bytes() + (path / "environ").read_bytes()
            if word.encode() in told and int(path.name) != os.getpid():
                found.append(int(path.name))
    return found
