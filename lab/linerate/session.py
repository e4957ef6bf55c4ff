# SPDX-License-Identifier: BSD-3-Clause
"""One run from the command line to its files: owns the directories, the signals and the pinning."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from linerate import report
from linerate.console import print_summary
from linerate.errors import Interrupted, LabError
from linerate.output import REPORT, OutputDirectory
from linerate.overload import Options, Overload
from linerate.process import RunDirectory, interruptible
from linerate.records import RECORDS, RecordWriter
from linerate.summary import SUMMARY, Summary, dump


@contextmanager
def pinned(cpu: int) -> Iterator[None]:
    """Keep the lab itself off the forwarder's core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def run_overload(options: Options, out: Path, console: Console) -> Summary:
    """Run, write records, summary and report, print the answer.

    Raises `Interrupted` after writing what there is, `LabError` for what the user can mend.
    """
    with interruptible():
        output = OutputDirectory(out)
        try:
            return _run(options, output, console)
        except BaseException:
            records = out / RECORDS
            if records.exists() and records.stat().st_size == 0:
                records.unlink()
            output.discard_if_empty()
            raise


def _run(options: Options, output: OutputDirectory, console: Console) -> Summary:
    interrupted: Interrupted | None = None
    failed: LabError | None = None
    with RunDirectory() as run:
        writer = RecordWriter(output.path / RECORDS)
        try:
            experiment = Overload(options, run, writer, console)
            with pinned(experiment.cores.control):
                experiment.prepare()
                try:
                    experiment.measure()
                except Interrupted as stop:
                    interrupted = stop
                except LabError as error:
                    failed = error
        finally:
            writer.close()
    if not experiment.trials:
        raise interrupted or failed or LabError("no trial was run")
    summary = experiment.summary(interrupted=interrupted is not None or failed is not None)
    try:
        output.write(SUMMARY, dump(summary))
        page = output.write(REPORT, report.render(summary, experiment.trials))
    except LabError:
        if failed:
            raise failed from None
        raise
    print_summary(console, summary)
    console.print(f"report: {page}", markup=False, highlight=False, soft_wrap=True)
    if interrupted or failed:
        raise interrupted or failed  # type: ignore[misc]
    return summary
