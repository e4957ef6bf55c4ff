# SPDX-License-Identifier: BSD-3-Clause
"""The directory a run writes to: made new, written atomically."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from linerate.errors import OutputError
from linerate.records import RECORDS
from linerate.summary import SUMMARY

REPORT = "report.html"
NEEDED_BYTES = 32 << 20


class OutputDirectory:
    """`--out`: refuses a directory that already has a run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._made: list[Path] = []
        for name in (RECORDS, SUMMARY, REPORT):
            if (path / name).exists():
                raise OutputError(f"{path} already has a run ({name})", "choose another --out")
        try:
            self._make(path)
            with tempfile.TemporaryFile(dir=path) as probe:
                probe.write(b"x")
                probe.flush()
            free = shutil.disk_usage(path).free
        except OSError as error:
            self.discard_if_empty()
            raise OutputError(
                f"cannot write to {path}: {error.strerror}", "choose another --out"
            ) from error
        if free < NEEDED_BYTES:
            self.discard_if_empty()
            raise OutputError(
                f"{path}: {free >> 20} MiB free, a run needs {NEEDED_BYTES >> 20} MiB",
                "free some space, or choose another --out",
            )

    def _make(self, path: Path) -> None:
        for folder in reversed([path, *path.parents]):
            if not folder.exists():
                folder.mkdir()
                self._made.append(folder)

    def discard_if_empty(self) -> None:
        """Remove what was made when nothing was written into it."""
        for folder in reversed(self._made):
            with contextlib.suppress(OSError):
                folder.rmdir()

    def write(self, name: str, content: str) -> Path:
        """Write a whole file, or leave the old state."""
        return write_atomically(self.path / name, content)


def write_atomically(path: Path, content: str) -> Path:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise OutputError(
            f"cannot write {path}: {error.strerror}", "free some space, or choose another --out"
        ) from error
    return path
