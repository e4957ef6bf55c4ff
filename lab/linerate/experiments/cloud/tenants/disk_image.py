# SPDX-License-Identifier: BSD-3-Clause
"""The disk of a tenant: a sparse file without a name, with a fixed maximum size.

Lifecycle: the file exists while the lab or the tenant has it open, however these end; nothing has
to be removed. The tenant opens it by the lab's descriptor. Sizes are MiB.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from linerate.host.errors import MachineError
from linerate.host.host import LOCAL
from linerate.host.process import checkpoint

# Persistent across reboots and so usually on a disk; /tmp and /run may be memory.
DIRECTORY = Path("/var/tmp")
_PIECE = 1 << 20
_IN_MEMORY = ("tmpfs", "ramfs")


def filesystem(directory: Path) -> str | None:
    """Return the type of a directory's file system; None if the kernel does not say."""
    number = directory.stat().st_dev
    wanted = f"{os.major(number)}:{os.minor(number)}"
    for line in LOCAL.read_text("/proc/self/mountinfo").splitlines():
        mount, _, rest = line.partition(" - ")
        if mount.split()[2] == wanted and rest:
            return rest.split()[0]
    return None


class DiskImage:
    """A disk. `direct`: reads and writes reach the device, past the page cache."""

    def __init__(self, size_mib: int, directory: Path = DIRECTORY) -> None:
        """Make it. Raises `MachineError` if only memory is available."""
        self.size_mib = size_mib
        try:
            kind = filesystem(directory)
            if kind in _IN_MEMORY:
                raise MachineError(
                    f"{directory} is in memory ({kind}): a tenant's I/O would reach no device",
                    "name a directory on a disk",
                )
            self._file = tempfile.TemporaryFile(dir=directory)  # noqa: SIM115 - closed by `close`
            os.ftruncate(self._file.fileno(), size_mib << 20)
        except OSError as error:
            raise MachineError(
                f"no disk image can be made in {directory}: {error.strerror}",
                "free some space there, or name another directory",
            ) from error
        self.path = f"/proc/{os.getpid()}/fd/{self._file.fileno()}"
        self.direct = _takes_direct(self.path)

    def fill(self) -> None:
        """Write all of it: reads of unwritten parts would not reach the device."""
        piece = bytes(_PIECE)
        try:
            for at in range(0, self.size_mib << 20, _PIECE):
                checkpoint()
                os.pwrite(self._file.fileno(), piece, at)
            os.fsync(self._file.fileno())
        except OSError as error:
            raise MachineError(
                f"no disk image of {self.size_mib} MiB can be written: {error.strerror}",
                "free some space there, or name another directory",
            ) from error

    def let_anyone_open(self) -> None:
        """Let any user with its descriptor open it: it has no name for others."""
        os.fchmod(self._file.fileno(), 0o666)

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> DiskImage:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _takes_direct(path: str) -> bool:
    try:
        os.close(os.open(path, os.O_RDWR | os.O_DIRECT | os.O_CLOEXEC))
    except OSError:
        return False
    return True
