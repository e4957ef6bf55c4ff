# SPDX-License-Identifier: BSD-3-Clause
"""`linerate report`: make summary and report of a run again, or of several runs merged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from linerate.host.errors import UsageError
from linerate.records import run_file
from linerate.records.output import FILES, OutputDirectory
from linerate.records.run_file import RUN, made_of
from linerate.records.trial import RECORDS, dump
from linerate.runs.experiment import Findings
from linerate.runs.kept.publish import publish, torn_line
from linerate.runs.kept.stored import Stored, joined, stored
from linerate.runs.progress import say
from linerate.runs.registry import find


def report(directories: Sequence[Path], out: Path | None, console: Console) -> Findings:
    """Report one directory again, or merge several runs into a new directory, `out`."""
    if len(directories) > 1:
        if out is None:
            raise UsageError(
                "several runs are merged into a new directory, and none is named", "--out DIR"
            )
        return merge([stored(each) for each in directories], out, console)
    if out is not None:
        raise UsageError(
            f"--out {out}: only to merge several runs", "leave it out: the run's own files are made"
        )
    with OutputDirectory.existing(directories[0]) as output:
        found = stored(directories[0])
        if found.torn:
            say(console, torn_line(found.torn))
        with made_of(directories[0]):
            return publish(find(found.run.experiment), found.run, output, found.trials, console)


def merge(parts: Sequence[Stored], out: Path, console: Console) -> Findings:
    """Merge runs that measured the same."""
    with made_of(" and ".join(str(each.directory) for each in parts)):
        return _merge(parts, out, console)


def _merge(parts: Sequence[Stored], out: Path, console: Console) -> Findings:
    for each in parts:
        if each.torn:
            say(console, f"{each.directory}: {torn_line(each.torn)}")
    both = joined(parts)
    run, trials, experiment = both.run, both.trials, find(both.run.experiment)
    with OutputDirectory(out) as output:
        try:
            output.write(RECORDS, "".join(f"{dump(trial)}\n" for trial in trials))
            output.write(RUN, run_file.dump(run))
            return publish(experiment, run, output, trials, console)
        except BaseException:
            for name in FILES:
                (output.path / name).unlink(missing_ok=True)
            output.discard_if_empty()
            raise
