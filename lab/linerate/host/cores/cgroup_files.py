# SPDX-License-Identifier: BSD-3-Clause
"""Read and write the directories and files of control groups, of version 1 or 2.

Lifecycle: the caller that makes a group removes it. Any thread.
"""

from __future__ import annotations

from pathlib import Path

from linerate.host.errors import MachineError
from linerate.host.host import LOCAL, Host


def make(directory: Path) -> None:
    directory.mkdir(mode=0o755)


def remove(directory: Path) -> None:
    directory.rmdir()


def read(path: Path, host: Host = LOCAL) -> str | None:
    """Return the content of a file of a group, or None if this kernel has no such file."""
    try:
        return host.read_text(path)
    except OSError:
        return None


def words(path: Path, host: Host = LOCAL) -> list[str]:
    """Return the words of a file; empty if the file does not exist."""
    return (read(path, host) or "").split()


def number(path: Path) -> int | None:
    """Return the number in a file, or None."""
    told = (read(path) or "").strip()
    return int(told) if told.isdigit() else None


def table(path: Path) -> dict[str, int]:
    """Parse a file of lines `KEY NUMBER`; empty if the file does not exist."""
    lines = (line.split() for line in (read(path) or "").splitlines())
    return {line[0]: int(line[1]) for line in lines if len(line) == 2 and line[1].isdigit()}


def write(path: Path, text: str) -> None:
    """Write `text` to an existing file in one system call, as the kernel requires."""
    try:
        LOCAL.set_value(path, text)
    except OSError as error:
        raise MachineError(f"{path}: {text!r} cannot be written: {error.strerror}") from error


def pids(directory: Path) -> list[int]:
    """Return the PIDs in a group. Processes of other containers that are not visible here are 0."""
    return [int(word) for word in words(directory / "cgroup.procs")]
