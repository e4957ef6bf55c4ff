# SPDX-License-Identifier: BSD-3-Clause
"""`linerate report` for a directory that `linerate duel --out` wrote."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError
from rich.console import Console

from linerate.experiments.duel.kept import last_lines, load
from linerate.experiments.duel.reports import page
from linerate.experiments.duel.reports.page import RunBelow, below
from linerate.host import foreign
from linerate.host.errors import RunError, UsageError
from linerate.records.output import DUELS, REPORT, OutputDirectory
from linerate.records.run_file import made_of
from linerate.records.summary import SUMMARY, Summary
from linerate.records.trial import first_complaint
from linerate.runs.progress import say


def has_duels(directories: Sequence[Path]) -> bool:
    """Return True if one of these directories holds duels, not a run."""
    return any((directory / DUELS).exists() for directory in directories)


def report(directories: Sequence[Path], out: Path | None, console: Console) -> None:
    """Make the page again, with the runs below the directory, and print the answers."""
    if len(directories) > 1:
        raise UsageError("duels cannot be merged", "name one directory")
    if out is not None:
        raise UsageError(f"--out {out}: only to merge several runs", "leave it out")
    directory = directories[0]
    with OutputDirectory.existing(directory) as output:
        duels = load(directory)
        with made_of(directory, DUELS):
            output.write(REPORT, page.render(duels, _runs(directory)))
    say(console, f"report: {directory / REPORT}")
    for line in last_lines(duels):
        say(console, line)


def _runs(directory: Path) -> list[RunBelow]:
    found = []
    for path in sorted(directory.glob(f"*/{SUMMARY}")):
        try:
            summary = Summary.model_validate_json(foreign.content(path, foreign.MOST_SUMMARY))
        except OSError as error:
            raise RunError(f"cannot read {path}: {error.strerror}") from error
        except ValidationError as error:
            raise RunError(
                f"{path}: {first_complaint(error)}", f"linerate report {path.parent}"
            ) from error
        found.append(below(path.parent.name, summary))
    return found
