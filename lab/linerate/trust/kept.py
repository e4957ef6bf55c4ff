# SPDX-License-Identifier: BSD-3-Clause
"""The trials of real comparisons, kept so that hours of them can be made in several goes.

A comparison begins with the trial at position 0, and ended when another one follows. The last one
of a file may have been cut off: it is taken out and made again, whatever it found.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from linerate.records import RecordWriter, Trial, dump, scan
from linerate.trust.comparison import TESTED

# Seed, link, and the forwarder under test.
Key = tuple[int, str, str]


class Kept:
    """One file of records; one writer per file."""

    def __init__(self, path: Path) -> None:
        """Raises `RunError` for a file with something else in it."""
        comparisons = _split(scan(path).trials if path.exists() else [])
        if comparisons:
            comparisons.pop()
            _rewrite(path, comparisons)
        self._found = {key: each for each in comparisons if (key := _key(each))}
        self._writer = RecordWriter(path)

    def found(self, seed: int, link: str, tested: str) -> list[Trial]:
        """The trials of a comparison that was made; empty: it was not."""
        return self._found.get((seed, link, tested), [])

    def append(self, trial: Trial) -> None:
        self._writer.append(trial)

    def close(self) -> None:
        self._writer.close()


def _split(trials: list[Trial]) -> list[list[Trial]]:
    found: list[list[Trial]] = []
    for trial in trials:
        if trial.position == 0 or not found:
            found.append([])
        found[-1].append(trial)
    return found


def _key(trials: list[Trial]) -> Key | None:
    for trial in trials:
        if trial.arm == TESTED:
            return trial.seed, trial.link, trial.forwarder
    return None


def _rewrite(path: Path, comparisons: list[list[Trial]]) -> None:
    lines = "".join(f"{dump(trial)}\n" for each in comparisons for trial in each)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as new:
        new.write(lines)
        new.flush()
        os.fsync(new.fileno())
    Path(new.name).replace(path)
