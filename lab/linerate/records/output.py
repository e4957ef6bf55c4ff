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
import stat
import tempfile
from pathlib import Path

from linerate.host.errors import LabError, OutputError, RunError, UsageError
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
            self._make(path)
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
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
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
                path.unlink()

    def _make(self, path: Path) -> None:
        for folder in reversed([path, *path.parents]):
            if not folder.exists():
                folder.mkdir()
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
        _refuse_others_link(path, option)
        # For a symbolic link such as /dev/stdout, replace its target.
        self.path = path.resolve()
        if self.path.exists() and not self.path.is_file():
            raise UsageError(f"{option} {path}: not a regular file", "name a file")
        try:
            with tempfile.TemporaryFile(dir=self.path.parent) as probe:
                probe.write(b"x")
        except OSError as error:
            raise _not_writable(path, error, f"choose another {option}") from error

    def remove(self) -> None:
        """Remove the file of an earlier command, so that it is not taken for this one's."""
        self.path.unlink(missing_ok=True)

    def write(self, content: str) -> None:
        """Write the whole file, or leave the old one."""
        write_atomically(self.path, content, self.option)


def _refuse_others_link(path: Path, option: str) -> None:
    """Refuse another user's symbolic link: its owner could redirect the lab to a file that only the
    lab may write.
    """
    with contextlib.suppress(OSError):
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode) and found.st_uid not in (0, os.geteuid()):
            raise UsageError(
                f"{option} {path}: a link of user {found.st_uid}'s is not followed",
                "remove it, or name another file",
            )


def _not_writable(path: Path, error: OSError, hint: str) -> LabError:
    kind = UsageError if error.errno in _WRONGLY_NAMED else OutputError
    return kind(f"cannot write to {path}: {error.strerror}", hint)


def _new(path: str, flags: int) -> int:
    """Open a new file. Another user with write access to the directory could have put a link of
    that name there, so links are not followed.
    """
    with contextlib.suppress(FileNotFoundError):
        Path(path).unlink()
    return os.open(path, flags | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)


def write_atomically(path: Path, content: str, option: str = "--out") -> Path:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(temporary, "w", encoding="utf-8", opener=_new) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise OutputError(
            f"cannot write {path}: {error.strerror}", f"free some space, or choose another {option}"
        ) from error
    return path
