# SPDX-License-Identifier: BSD-3-Clause
"""The output of a command: the directory of a run (new or resumed, locked, written atomically), and
single files, written atomically.

The lock is on the directory itself (flock): the kernel releases it when the lab ends, in whatever
way, and nothing stays behind.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from linerate.host.errors import LabError, OutputError, RunError, UsageError
from linerate.records.output_paths import open_directory, reached, resolved
from linerate.records.run_file import RUN
from linerate.records.summary import SUMMARY
from linerate.records.trial import RECORDS

REPORT = "report.html"
# The file of `linerate duel --out`, in place of a run's.
DUELS = "duels.json"
FILES = (RUN, RECORDS, SUMMARY, REPORT)
_ANY = (*FILES, DUELS)
NEEDED_BYTES = 32 << 20
# Errors of a wrong name; all others, such as a full disk, are the machine's.
_WRONGLY_NAMED = {
    errno.EACCES, errno.EEXIST, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOENT, errno.ENOTDIR,
    errno.EPERM, errno.EROFS,
}  # fmt: skip


class OutputDirectory:
    """One run's directory, locked by one lab at a time; a context manager that releases it."""

    def __init__(self, path: Path) -> None:
        """Make the directory of `--out`; refuses a directory that already has a run."""
        self.path = path
        self._made: list[Path] = []
        self._lock = -1
        self._refuse_a_run()
        try:
            self._make(path.absolute())
            self._hold()
            self._try_to_write()
            free = shutil.disk_usage(path).free
        except OSError as error:
            self.discard_if_empty()
            raise _not_writable(path, error, "choose another --out") from error
        # Another lab may have made a run before this one locked the directory.
        self._refuse_a_run()
        if free < NEEDED_BYTES:
            self.discard_if_empty()
            raise OutputError(
                f"{path}: {free >> 20} MiB free, a run needs {NEEDED_BYTES >> 20} MiB",
                "free some space, or choose another --out",
            )

    @classmethod
    def existing(cls, path: Path) -> OutputDirectory:
        """Open the directory of a run, to resume it or to write its summary again."""
        if not path.is_dir():
            raise RunError(f"{path}: there is no such directory")
        found = cls.__new__(cls)
        found.path, found._made, found._lock = path, [], -1
        try:
            found._hold()
            found._remove_unfinished()
            found._try_to_write()
        except OSError as error:
            found.close()
            hint = "copy it to where there is space and you may write, and name the copy"
            raise _not_writable(path, error, hint) from error
        return found

    def _refuse_a_run(self) -> None:
        for name in _ANY:
            # Also refuses a dangling link: writing would make its target.
            if os.path.lexists(self.path / name):
                self.close()
                raise UsageError(
                    f"{self.path} already has a run ({name})",
                    "choose another --out; --resume goes on with a run that was interrupted",
                )

    def _hold(self) -> None:
        self._lock = open_directory(self.path)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self.close()
            raise OutputError(
                f"{self.path} is in use: another linerate is writing to it", "wait for its end"
            ) from error

    def _try_to_write(self) -> None:
        with tempfile.TemporaryFile(dir=self.path) as probe:
            probe.write(b"x")
            probe.flush()

    def _remove_unfinished(self) -> None:
        """Remove the temporary files of a killed lab: the file itself has its old content."""
        for name in _ANY:
            for path in self.path.glob(f".{name}.*"):
                # No lab writes a directory: it is somebody else's.
                with contextlib.suppress(IsADirectoryError):
                    path.unlink()

    def _make(self, path: Path) -> None:
        for folder in reversed([path, *path.parents]):
            if not folder.exists():
                with reached(folder) as there:
                    there.mkdir()
                self._made.append(folder)

    def discard_if_empty(self) -> None:
        """Remove the directory if this lab made it and wrote nothing into it, and release it."""
        self.close()
        for folder in reversed(self._made):
            with contextlib.suppress(OSError):
                folder.rmdir()

    def write(self, name: str, content: str) -> Path:
        """Write a whole file, or leave the old one."""
        return write_atomically(self.path / name, content)

    def close(self) -> None:
        """Release the directory."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> OutputDirectory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class OutputFile:
    """A file that a command writes at its end; whether it is writable is checked when the object is
    made.
    """

    def __init__(self, path: Path, option: str) -> None:
        """Check the file. `option`: the option that names it, for messages. Raises `UsageError`, or
        `OutputError`.
        """
        self.option = option
        try:
            # Not a symbolic link such as /dev/stdout would be replaced, but what it leads to.
            self.path = resolved(path)
            if self.path.exists() and not self.path.is_file():
                raise UsageError(f"{option} {path}: not a regular file", "name a file")
            with reached(self.path) as there, tempfile.TemporaryFile(dir=there.parent) as probe:
                probe.write(b"x")
        except OSError as error:
            raise _not_writable(path, error, f"choose another {option}", option) from error

    def remove(self) -> None:
        """What an earlier command left there is not to be taken for this one's."""
        with reached(self.path) as there:
            there.unlink(missing_ok=True)

    def write(self, content: str) -> None:
        """Write the whole file, or leave the old one."""
        write_atomically(self.path, content, self.option)


def _not_writable(path: Path, error: OSError, hint: str, option: str = "") -> LabError:
    kind = UsageError if error.errno in _WRONGLY_NAMED else OutputError
    return kind(f"{option} cannot write to {path}: {error.strerror}".lstrip(), hint)


def _new(path: str, flags: int) -> int:
    """Open a new file. Another user with write access to the directory could have put a link of
    that name there, so links are not followed.
    """
    with contextlib.suppress(FileNotFoundError):
        Path(path).unlink()
    return os.open(path, flags | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)


def write_atomically(path: Path, content: str, option: str = "--out") -> Path:
    """Write a whole file in the place of what is there, be it a link, or leave that. On the way
    there no link of another user's is followed.
    """
    with replacing(path, option) as file:
        file.write(content.encode())
    return path


@contextmanager
def replacing(path: Path, option: str = "--out") -> Iterator[BinaryIO]:
    """A new file that takes the place of `path` when the context ends without an error."""
    try:
        with reached(path) as there:
            temporary = there.with_name(f".{path.name}.{os.getpid()}")
            try:
                with open(temporary, "wb", opener=_new) as file:
                    yield file
                    file.flush()
                    os.fsync(file.fileno())
                temporary.replace(there)
            except BaseException:
                with contextlib.suppress(OSError):
                    temporary.unlink()
                raise
    except OSError as error:
        raise OutputError(
            f"cannot write {path}: {error.strerror}", f"free some space, or choose another {option}"
        ) from error
