# SPDX-License-Identifier: BSD-3-Clause
"""Control groups as the directories and files that they are, of either version.

Lifecycle: who makes a group removes it. Any thread.
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
    """A file of a group; None when this kernel has none of that name."""
    try:
        return host.read_text(path)
    except OSError:
        return None


def words(path: Path, host: Host = LOCAL) -> list[str]:
    """The words of a file; none if it is not there."""
    return (read(path, host) or "").split()


def number(path: Path) -> int | None:
    """A file that has a number."""
    told = (read(path) or "").strip()
    return int(told) if told.isdigit() else None


def table(path: Path) -> dict[str, int]:
    """A file of lines `KEY NUMBER`; nothing when it is not there."""
    lines = (line.split() for line in (read(path) or "").splitlines())
    return {line[0]: int(line[1]) for line in lines if len(line) == 2 and line[1].isdigit()}


def write(path: Path, text: str) -> None:
    """One write, as the kernel takes it; never makes a file."""
    try:
        LOCAL.set_value(path, text)
    except OSError as error:
        raise MachineError(f"{path}: {text!r} cannot be written: {error.strerror}") from error


def pids(directory: Path) -> list[int]:
    """Processes of a group. Those that cannot be seen from here, in other containers, are 0."""
    return [int(word) for word in words(directory / "cgroup.procs")]
