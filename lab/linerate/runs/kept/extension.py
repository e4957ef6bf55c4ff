# SPDX-License-Identifier: BSD-3-Clause
"""`--resume DIR --blocks N`: add blocks to a run that has ended, and report all of them.

The added blocks are a run of its own below the first one's directory, `more-1` and so on, with
another seed: it finds its own 100 %, and can be interrupted and resumed. Readers of the first run
(`linerate.runs.kept.stored`) get all blocks side by side, like those of merged runs.

Each look at the results is another test. The n-th look tests at ALPHA / 2^(n - 1), so that all of
them together call two equal programs different with a probability below 2 ALPHA, however often
blocks are added.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from linerate.host import foreign
from linerate.host.errors import RunError, UsageError
from linerate.records import run_file
from linerate.records.output import OutputDirectory
from linerate.records.run_file import RUN, Run
from linerate.records.trial import RECORDS, Trial, scan
from linerate.runs.experiment import Experiment
from linerate.runs.registry import load

_NAME = "more-{}"
MOST = 30
"""Additions to a run. The last look at so many tests at less than 1 in 10^10."""


def places(directory: Path) -> list[Path]:
    """Return the directories of the blocks that were added to this run, in their order.

    Raises `RunError` if they cannot be those that the lab made: a link, too many, or records that
    are too large together. They would be read one after the other.
    """
    found: list[Path] = []
    size = 0
    while (path := directory / _NAME.format(len(found) + 1)).joinpath(RUN).exists():
        if path.is_symlink():
            raise RunError(
                f"{path}: a link, not a directory of added blocks",
                f"remove it; linerate report {directory} DIR --out NEW merges runs",
            )
        if len(found) == MOST:
            raise RunError(
                f"{directory}: blocks were added more than {MOST} times",
                "run it anew, with more --blocks",
            )
        with suppress(OSError):
            size += (path / RECORDS).stat().st_size
        if size > foreign.MOST_RECORDS:
            raise RunError(
                f"{path}: added blocks have more than {foreign.MOST_RECORDS // foreign.MIB} MiB of "
                "records together",
                "run it anew, with more --blocks",
            )
        found.append(path)
    return found


def measured(directory: Path) -> list[Path]:
    """The places that have trials."""
    return [each for each in places(directory) if (each / RECORDS).exists()]


def trials_in(directory: Path) -> list[Trial]:
    """Return the trials on record; empty if none was begun."""
    records = directory / RECORDS
    return scan(records).trials if records.exists() else []


def unfinished(directory: Path) -> Path | None:
    """Return the directory whose added blocks are not all measured; None if all are."""
    for place in places(directory)[-1:]:
        if not load(place).complete(len(trials_in(place))):
            return place
    return None


def begin(experiment: Experiment[Any, Any], run: Run, directory: Path, blocks: int) -> Path:
    """Plan additional blocks so that the largest cell has `blocks` of them, and return their
    directory; measures nothing yet. Raises `UsageError`.
    """
    there = sum(blocks_of(load(each)) for each in places(directory)) + blocks_of(run)
    if not experiment.judged_in:
        raise UsageError(
            f"--blocks {blocks}: a run of {experiment.name} gets no more blocks",
            "run it again with another --seed, and merge: linerate report DIR DIR --out NEW",
        )
    if blocks <= there:
        raise UsageError(
            f"--blocks {blocks}: the run in {directory} has {there} already",
            f"--blocks above {there}",
        )
    number = len(places(directory)) + 1
    if number > MOST:
        raise UsageError(
            f"--blocks {blocks}: blocks were added {MOST} times already",
            "run it anew, with more --blocks",
        )
    options = {**run.options, "blocks": blocks - there, "seed": run.options.get("seed", 1) + number}
    added = Run(experiment=run.experiment, options=options, design=experiment.design(options))
    # Refuse blocks that could not be merged with the existing ones before measuring them.
    experiment.merged([run.design, added.design])
    place = directory / _NAME.format(number)
    with OutputDirectory(place) as output:
        output.write(RUN, run_file.dump(added))
    return place


def blocks_of(run: Run) -> int:
    """Return the number of blocks of the largest cell, of a run as `load` returns it."""
    blocks: list[int] = [cell["blocks"] for cell in run.design["cells"]]
    if not blocks:
        raise RunError(f"{RUN}: the design has no cell", "the file was changed")
    return max(blocks)
