# SPDX-License-Identifier: BSD-3-Clause
"""Read files that another user or program may have made: runs, definitions, designs, programs,
passwords.

Every such file is read here and nowhere else. A pipe or a device is refused before it is opened,
because it may have no end, and opening it may block or act on the device. A file of the kernel is
refused before it is read, for the same reasons: what is read from `/proc/kmsg` is lost to others.
Each kind of file has a size limit, and JSON a limit of nested levels. For files whose content the
lab would act on, the owner is checked as well.

Sockets of other programs: `linerate.telemetry.client`. Text from others on a terminal:
`linerate.host.text.printable`.
"""

from __future__ import annotations

import ctypes
import errno
import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from linerate.host.errors import UsageError

MIB = 1 << 20
# Size limits in bytes, by kind of file. The comments have real sizes.
MOST_DEFINITIONS = MIB  # up to 5 KB
MOST_DESIGN = MIB  # 2 KB
MOST_BASELINE = MIB  # 10 KB
MOST_SECRET = 4096  # one line
MOST_CERTIFICATES = 16 * MIB  # a system's bundle: 250 KB
MOST_RUN = 16 * MIB  # 10 KB for each session
MOST_SUMMARY = 64 * MIB  # up to 1 MB
MOST_RECORDS = 256 * MIB  # 1 to 20 KB for each trial
MOST_RECORD = 4 * MIB
MOST_PROGRAM = 2048 * MIB  # with everything for a debugger

# File systems whose files are functions of the kernel: proc, sysfs, debugfs, tracefs, and both
# versions of cgroup (linux/magic.h). They claim to be regular.
_KERNEL = {0x9FA0, 0x62656572, 0x64626720, 0x74726163, 0x27E0EB, 0x63677270}
_STATFS_BYTES = 256
"""More than `struct statfs` has; its first word is the type of the file system."""
_LIBC = ctypes.CDLL(None, use_errno=True)

_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@contextmanager
def opened(path: Path, most: int) -> Iterator[BufferedReader]:
    """Open a regular file of at most `most` bytes for reading, following symbolic links.

    Raises `OSError` whose `strerror` says what is wrong.
    """
    try:
        there = path.stat()
    except ValueError as error:
        # A null byte, for instance, of a path that another file names.
        raise OSError(errno.EINVAL, f"no name of a file: {error}", str(path)) from error
    _refuse_others_than_files(path, there)
    # Another file may have replaced it since: do not wait for a pipe.
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with os.fdopen(number, "rb") as file:
        found = os.fstat(number)
        _refuse_others_than_files(path, found)
        _refuse_files_of_the_kernel(path, number)
        if found.st_size > most:
            raise _too_large(path, most)
        yield file


def content(path: Path, most: int) -> bytes:
    """Return the content of a file; raises `OSError` like `opened`."""
    with opened(path, most) as file:
        # The file may grow.
        found = file.read(most + 1)
    if len(found) > most:
        raise _too_large(path, most)
    return found


def text(path: Path, most: int) -> str:
    """Return the content of a file as text. Raises `UnicodeDecodeError` if it is not UTF-8."""
    return content(path, most).decode()


def parsed(json: bytes | str) -> Any:
    """Parse JSON from an untrusted source.

    Raises `ValueError`, also for more than 200 nested levels of lists and objects. Python's own
    parser allows about as many as its stack has room for, and code that later walks through the
    value (comparing, printing) then runs out of stack.
    """
    return from_json(json)


def refuse_other_users(path: Path, purpose: str, hint: str) -> None:
    """Raise `UsageError` if another user controls the content of a file or directory.

    `purpose`: the use of the file, for the message. Root is trusted, and so is the user who became
    root by sudo.
    """
    found = path.stat()
    if found.st_uid not in _trusted_users():
        raise UsageError(f"{path} belongs to user {user_name(found.st_uid)}, and {purpose}", hint)
    if found.st_mode & stat.S_IWOTH:
        raise UsageError(f"every user may write to {path}, and {purpose}", hint)


def is_trusted(user: int) -> bool:
    """Return True if files of this user are trusted like one's own."""
    return user in _trusted_users()


def user_name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)


def _trusted_users() -> set[int]:
    own = os.geteuid()
    found = {0, own}
    by_sudo = os.environ.get("SUDO_UID", "")
    if own == 0 and by_sudo.isascii() and by_sudo.isdigit():
        found.add(int(by_sudo))
    return found


def _refuse_others_than_files(path: Path, found: os.stat_result) -> None:
    if stat.S_ISREG(found.st_mode):
        return
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    kind = next((words for fits, words in _KINDS if fits(found.st_mode)), "something else")
    raise OSError(errno.EINVAL, f"{kind}, not a regular file", str(path))


def _refuse_files_of_the_kernel(path: Path, number: int) -> None:
    buffer = ctypes.create_string_buffer(_STATFS_BYTES)
    if _LIBC.fstatfs(number, buffer) != 0:
        failed = ctypes.get_errno()
        raise OSError(failed, os.strerror(failed), str(path))
    kind = ctypes.c_long.from_buffer(buffer).value & 0xFFFFFFFF
    if kind in _KERNEL:
        raise OSError(errno.EINVAL, "a file of the kernel, not a regular file", str(path))


def _too_large(path: Path, most: int) -> OSError:
    size = f"{most // MIB} MiB" if most >= MIB else f"{most} bytes"
    return OSError(errno.EFBIG, f"larger than {size}, the most that is read", str(path))
