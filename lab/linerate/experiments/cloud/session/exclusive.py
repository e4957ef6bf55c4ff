# SPDX-License-Identifier: BSD-3-Clause
"""Allow one run of this experiment at a time on a machine: tenants of one would disturb the other.

Lifecycle: `Exclusive` holds a lock (flock) on a file in a directory of the machine until its
context ends; the kernel releases it when its owner ends, in whatever way, and the next run takes
over the remaining file. A session leases its CPUs first, for which it may wait, and then takes this
lock, for which it never waits, so no deadlock is possible.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from datetime import UTC, datetime
from pathlib import Path

from linerate.host.errors import MachineError

PATH = Path("/run/lock/linerate-cloud")
_MOST_READ = 4096


class Exclusive:
    """The machine, for one run. `what`: the message to others that find it taken."""

    def __init__(self, what: str, path: Path = PATH) -> None:
        self._path = path
        self._what = what
        self._lock = -1

    def __enter__(self) -> Exclusive:
        while self._lock < 0:
            opened = self._open()
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                told = os.pread(opened, _MOST_READ, 0).decode(errors="replace").strip()
                os.close(opened)
                raise MachineError(
                    "another run of experiment cloud has this machine: "
                    f"{told or 'it began just now'}",
                    "wait until it ends: tenants of two runs would be neighbours of both",
                ) from None
            # Its owner may have removed it since it was opened.
            if self._is_there(opened):
                self._lock = opened
            else:
                os.close(opened)
        os.ftruncate(self._lock, 0)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        os.pwrite(self._lock, f"pid {os.getpid()} since {now}, {self._what}\n".encode(), 0)
        return self

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            opened = os.open(self._path, flags, 0o644)
        except OSError as error:
            raise self._unfit(error.strerror) from error
        # The directory is everyone's: a FIFO can be opened and locked, and not be written.
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            os.close(opened)
            raise self._unfit("not a regular file")
        return opened

    def _unfit(self, why: str | None) -> MachineError:
        return MachineError(
            f"{self._path}: {why}: it keeps two runs of experiment cloud apart",
            "remove it if it is there, and run as root",
        )

    def _is_there(self, opened: int) -> bool:
        try:
            return os.path.samestat(os.fstat(opened), self._path.lstat())
        except FileNotFoundError:
            return False

    def close(self) -> None:
        if self._lock >= 0:
            with contextlib.suppress(OSError):
                self._path.unlink()
            os.close(self._lock)
            self._lock = -1

    def __exit__(self, *_: object) -> None:
        self.close()
