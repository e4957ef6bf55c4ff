# SPDX-License-Identifier: BSD-3-Clause
"""The way to what is written: links that another user has put there are not followed.

Whoever may write to one directory on the way, as everybody may to `/tmp`, could else have root's
file written to any other directory. Links of root's and of one's own are followed, in the middle of
a path and at its end. Directories of other users are none of it: who owns one can read and remove
what is written there, and no more than that.

Each step is taken from the directory before it, by its descriptor (openat(2)), so that nothing
which is exchanged meanwhile leads elsewhere. For Rust programs: `crates/host/src/files.rs`.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from linerate.host.foreign import is_trusted

# The kernel's own limit of links on a way.
_MOST_LINKS = 40
_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


@contextmanager
def reached(path: Path) -> Iterator[Path]:
    """A name for `path` by which it is reached whatever is changed on the way, for as long as the
    context lasts. What is at its end is not followed. Raises `OSError` as `resolved`.
    """
    directory, name = _walked(path, last=False)
    try:
        yield _by_descriptor(directory) / name
    finally:
        os.close(directory)


def resolved(path: Path) -> Path:
    """The path without links, those at its end followed too; what it leads to need not be there.

    Raises `OSError` whose `strerror` names a link of another user's, or a directory on the way that
    is not there.
    """
    directory, name = _walked(path, last=True)
    try:
        return Path(_by_descriptor(directory).readlink()) / name
    finally:
        os.close(directory)


def open_directory(path: Path) -> int:
    """A directory, opened to read; raises `OSError` as `resolved`."""
    directory, name = _walked(path, last=True)
    try:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
        return os.open(name or ".", flags, dir_fd=directory)
    finally:
        os.close(directory)


def _by_descriptor(directory: int) -> Path:
    return Path(f"/proc/self/fd/{directory}")


def _walked(path: Path, *, last: bool) -> tuple[int, str]:
    """The directory that the path's end is in, opened, and the end's name; "" if the end is a
    directory itself. `last`: a link at the end is followed.
    """
    steps = _steps(os.fspath(path))
    directory = os.open("/" if path.is_absolute() else ".", _DIRECTORY)
    links = 0
    try:
        while steps:
            step = steps.pop()
            if not steps and not last:
                return directory, step
            try:
                found = os.open(step, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
            except FileNotFoundError:
                if steps:
                    raise
                return directory, step
            kind = os.fstat(found)
            if stat.S_ISLNK(kind.st_mode):
                try:
                    links += 1
                    target = _target(found, kind, step, links)
                finally:
                    os.close(found)
                if target.startswith("/"):
                    os.close(directory)
                    directory = os.open("/", _DIRECTORY)
                steps += _steps(target)
            elif stat.S_ISDIR(kind.st_mode):
                os.close(directory)
                directory = found
            else:
                os.close(found)
                if steps:
                    raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
                return directory, step
    except BaseException:
        os.close(directory)
        raise
    return directory, ""


def _steps(path: str) -> list[str]:
    """The names on the way, the first one last."""
    return [each for each in reversed(path.split("/")) if each not in ("", ".")]


def _target(link: int, kind: os.stat_result, name: str, links: int) -> str:
    """Where an open link leads, if it may be followed; `links`: how many there were."""
    if links > _MOST_LINKS:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
    if not is_trusted(kind.st_uid):
        raise PermissionError(
            errno.EPERM, f"{name}: a link of user {kind.st_uid}'s is not followed", name
        )
    return os.readlink("", dir_fd=link)
