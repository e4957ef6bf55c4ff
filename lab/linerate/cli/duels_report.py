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

MOST_RUNS = 100
"""Runs below a directory of duels; `linerate duel --out` makes one for each link."""


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
            output.write(REPORT, page.render(duels, runs_below(directory)))
    say(console, f"report: {directory / REPORT}")
    for line in last_lines(duels):
        say(console, line)


def runs_below(directory: Path) -> list[RunBelow]:
    """Return the runs below a directory. Raises `RunError` if the lab cannot have made them."""
    found = []
    paths = sorted(each for each in directory.glob(f"*/{SUMMARY}") if not each.parent.is_symlink())
    size = sum(each.stat().st_size for each in paths[: MOST_RUNS + 1])
    if len(paths) > MOST_RUNS or size > foreign.MOST_SUMMARY:
        raise RunError(
            f"{directory}: at most {MOST_RUNS} runs below it are read, with "
            f"{foreign.MOST_SUMMARY // foreign.MIB} MiB of summaries together",
            "move runs that no duel made to another directory",
        )
    for path in paths:
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
