# SPDX-License-Identifier: BSD-3-Clause
"""Archives in cpio's `newc` format, which the kernel unpacks as its first file system.

The same entries give the same bytes: nothing of the writing machine (times, owners, inode numbers)
is stored. Every entry belongs to root.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable
from dataclasses import dataclass

_MAGIC = b"070701"
_END = "TRAILER!!!"
_ALIGNMENT = 4


@dataclass(frozen=True)
class Entry:
    """An entry. `name`: without a leading slash. `mode`: type and permissions. `device`: major and
    minor.
    """

    name: str
    mode: int
    content: bytes = b""
    device: tuple[int, int] = (0, 0)


def directory(name: str) -> Entry:
    return Entry(name, stat.S_IFDIR | 0o755)


def file(name: str, content: bytes, *, executable: bool = False) -> Entry:
    return Entry(name, stat.S_IFREG | (0o755 if executable else 0o644), content)


def symlink(name: str, target: str) -> Entry:
    return Entry(name, stat.S_IFLNK | 0o777, target.encode())


def device(name: str, major: int, minor: int) -> Entry:
    """Return a character device for root only."""
    return Entry(name, stat.S_IFCHR | 0o600, device=(major, minor))


def archive(entries: Iterable[Entry]) -> bytes:
    """Return an archive of the entries in their order, in which directories must precede their
    contents.
    """
    written = bytearray()
    for number, entry in enumerate(entries, start=1):
        _write(written, number, entry)
    _write(written, 0, Entry(_END, 0))
    return bytes(written)


def _write(to: bytearray, number: int, entry: Entry) -> None:
    name = entry.name.encode() + b"\0"
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    fields = (
        number, entry.mode, 0, 0, links, 0, len(entry.content), 0, 0, *entry.device, len(name), 0,
    )  # fmt: skip
    to += _MAGIC + b"".join(b"%08X" % field for field in fields) + name
    _align(to)
    to += entry.content
    _align(to)


def _align(to: bytearray) -> None:
    to += bytes(-len(to) % _ALIGNMENT)
