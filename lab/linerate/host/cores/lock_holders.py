# SPDX-License-Identifier: BSD-3-Clause
"""Find the process that holds a lock (flock) on a file: from /proc/locks, never from the file.

Anybody may have written the file, but /proc/locks shows every lock.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from linerate.host.foreign import user_name
from linerate.host.text import printable

_MOST_SHOWN = 80
# States of a process in /proc/PID/stat: stopped (Ctrl-Z), and stopped by a debugger.
_STOPPED = frozenset("Tt")


@dataclass(frozen=True)
class Holder:
    """The process that holds a lock. `pid` is None when it is not visible from this container."""

    pid: int | None
    command: str = ""
    user: str = ""

    def __str__(self) -> str:
        if self.pid is None:
            return "a process that is not visible here, for instance in another container"
        return f"pid {self.pid} ({self.command}, user {self.user})"


def holder(path: Path) -> Holder:
    """Return the holder of the lock on this file; `Holder(None)` if none is visible here."""
    with suppress(OSError):
        found = path.lstat()
        device = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}"
        fallback = None
        for line in Path("/proc/locks").read_text().splitlines():
            # 1: FLOCK  ADVISORY  WRITE 4242 fe:00:9805825 0 EOF
            words = line.split()
            if words[1] != "FLOCK" or int(words[4]) <= 0:
                continue
            place, _, inode = words[5].rpartition(":")
            if int(inode) != found.st_ino:
                continue
            if place == device:
                return _process(int(words[4]))
            # Btrfs shows another device number here than in stat.
            fallback = int(words[4])
        if fallback is not None:
            return _process(fallback)
    return Holder(None)


def is_stopped(pid: int) -> bool:
    """Return True if a process is stopped until it is continued (SIGSTOP, tracing)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state in _STOPPED


def _process(pid: int) -> Holder:
    place = Path(f"/proc/{pid}")
    try:
        words = (place / "cmdline").read_bytes().decode(errors="replace").split("\0")
        user = user_name(place.stat().st_uid)
    except OSError:
        return Holder(pid, "command unknown", "unknown")
    return Holder(pid, _shown(words) or "command unknown", user)


def _shown(argv: list[str]) -> str:
    """Format a command for the user, without the interpreter. Another user may have chosen its
    text.
    """
    if len(argv) > 1 and Path(argv[0]).name.startswith("python") and not argv[1].startswith("-"):
        argv = argv[1:]
    words = [Path(argv[0]).name, *argv[1:]]
    line = printable(" ".join(words).strip())
    return line if len(line) <= _MOST_SHOWN else f"{line[:_MOST_SHOWN]}..."
