# SPDX-License-Identifier: BSD-3-Clause
"""Find the disk of a directory, in the form that limits and counters of I/O use. Reads only; any
thread.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from linerate.host.errors import MachineError
from linerate.host.host import LOCAL, Host


def disk_of(path: Path, host: Host = LOCAL) -> str:
    """Return `MAJOR:MINOR` of the whole disk of a path, not of a partition.

    Limits and counters of control groups apply to whole disks. Raises `MachineError` if there is
    none: in memory, over a network, or on layers (overlay) whose disk is not visible.
    """
    try:
        number = path.stat().st_dev
    except OSError as error:
        raise MachineError(f"{path}: {error.strerror}") from error
    named = f"{os.major(number)}:{os.minor(number)}"
    if not host.exists(f"/sys/dev/block/{named}"):
        # Some file systems (btrfs) have a device number of their own although they are on a disk.
        named = _source(named, host) or named
    if not host.exists(f"/sys/dev/block/{named}"):
        raise MachineError(f"{path} is not on a visible disk", "name a directory on a disk")
    real = host.resolve(f"/sys/dev/block/{named}")
    if host.exists(real / "partition"):
        return host.read_text(real.parent / "dev").strip()
    return named


def _source(wanted: str, host: Host) -> str | None:
    """Return the device that is mounted as the file system of that number, or None."""
    for line in host.read_text("/proc/self/mountinfo").splitlines():
        mount, _, rest = line.partition(" - ")
        kinds = rest.split()
        if mount.split()[2] != wanted or len(kinds) < 2 or not kinds[1].startswith("/dev/"):
            continue
        try:
            found = Path(kinds[1]).stat()
        except OSError:
            continue
        if stat.S_ISBLK(found.st_mode):
            return f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}"
    return None
