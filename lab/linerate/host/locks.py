# SPDX-License-Identifier: BSD-3-Clause
"""Locks (flock) on objects that a lab makes outside itself; they show others that it still runs.

The kernel releases a lock when its owner ends, in whatever way. Locks are visible in other
containers that share the path, where the owner's pid is not.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from pathlib import Path

# A child that a killed lab had just forked holds its locks, too, until it runs another program.
PATIENCE_S = 0.3
_LOOK_S = 0.005


def hold(path: Path, flags: int = 0, *, shared: bool = False) -> int | None:
    """Hold a path until the returned file descriptor is closed. `flags`: more flags of `os.open`.

    None if another process holds or has removed it. `shared`: others may hold a shared lock as
    well.
    """
    lock = -1
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        lock = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | flags)
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(lock), path.lstat()):
            return lock
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.ENOENT):
            raise
    if lock >= 0:
        os.close(lock)
    return None


def is_held(path: Path, flags: int = 0) -> bool:
    """Whether somebody holds it, or it is gone; leaves it as it is."""
    lock = hold(path, flags, shared=True)
    if lock is not None:
        os.close(lock)
    return lock is None


def hold_by(deadline: float, path: Path, flags: int = 0) -> int | None:
    """Try to hold a path until the deadline (time.monotonic), at least once."""
    while True:
        lock = hold(path, flags)
        if lock is not None or time.monotonic() >= deadline or not path.exists():
            return lock
        time.sleep(_LOOK_S)
