# SPDX-License-Identifier: BSD-3-Clause
"""Find runs: those that are named, or all below a directory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from linerate.host.errors import RunError
from linerate.records.run_file import RUN
from linerate.runs.kept.stored import Stored, stored

# The default directory of runs.
DEFAULT = Path("out")
# Levels below a directory at which runs are looked for.
_DEPTH = 3


def runs_at(directories: Sequence[Path]) -> tuple[list[Stored], list[str]]:
    """Return the runs, and notes on what was left out.

    A directory is a run's, or has runs below it. An invalid run that was named is an error; one
    that was found below a directory is left out with a note. Raises `RunError` if no run is left.
    """
    found: list[Stored] = []
    notes: list[str] = []
    for directory in directories or [DEFAULT]:
        named = (directory / RUN).exists()
        places = [directory] if named else _below(directory)
        if not places and directories:
            raise RunError(
                f"{directory} holds no run" if directory.is_dir() else
                f"{directory}: there is no such directory",
                "name what a run's --out named, or a directory with runs below it",
            )  # fmt: skip
        for place in places:
            try:
                run = stored(place)
            except RunError as error:
                if named:
                    raise
                notes.append(f"left out: {error.message}")
                continue
            if twin := next((each for each in found if each.run.ids & run.run.ids), None):
                notes.append(f"left out: {place} holds trials that {twin.directory} has as well")
                continue
            found.append(run)
    if not found:
        raise RunError(
            f"no run found below {' '.join(map(str, directories or [DEFAULT]))}"
            + "".join(f"\n  {note}" for note in notes),
            "measure first, for instance by linerate run rfc2544 or linerate run paths, or name "
            "the directories of runs",
        )
    return found, notes


def _below(directory: Path) -> list[Path]:
    """Return the directories of runs below it, in order; no symbolic links are followed."""
    found = []
    for folder, below, files in os.walk(directory):
        depth = len(Path(folder).relative_to(directory).parts)
        below.sort()
        if RUN in files:
            found.append(Path(folder))
            below.clear()
        elif depth >= _DEPTH:
            below.clear()
    return found
