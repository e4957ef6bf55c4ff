# SPDX-License-Identifier: BSD-3-Clause
"""One run of experiment rfc2544 from its options to its files. It cannot be resumed yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from linerate.cpus import Cores
from linerate.eal import Memory
from linerate.errors import Interrupted, LabError
from linerate.output import OutputDirectory
from linerate.process import RunDirectory, interruptible
from linerate.records import RECORDS, RecordWriter
from linerate.rfc2544 import experiment as rfc2544
from linerate.rfc2544.beds import RealLab
from linerate.rfc2544.table import print_rfc2544
from linerate.session import pinned
from linerate.summary import SUMMARY, Summary, dump
from linerate.trial import Bench


def run_rfc2544(options: rfc2544.Options, out: Path, console: Console) -> Summary:
    """Run experiment rfc2544, write records and summary, print the answer; raises as above."""

    def begin(run: RunDirectory, writer: RecordWriter) -> tuple[rfc2544.Rfc2544, int]:
        cores = Cores.choose()
        bench = Bench(
            run=run,
            cores=cores,
            memory=Memory.choose(options.hugepages),
            experiment=rfc2544.NAME,
            seed=options.seed,
            window_s=options.preset.flood_s,
            ip=options.ip,
            directions=options.directions or "both",
        )
        lab = RealLab(bench, options.preset.terms)
        return rfc2544.Rfc2544(options, lab, writer, console), cores.control

    with interruptible(), output_directory(out) as output:
        return run_searches(begin, output, console)


def run_searches(
    begin: Callable[[RunDirectory, RecordWriter], tuple[rfc2544.Rfc2544, int]],
    output: OutputDirectory,
    console: Console,
) -> Summary:
    """`begin` makes the experiment, and says on which CPU the lab is to stay."""
    stopped: Interrupted | LabError | None = None
    with RunDirectory() as run:
        writer = RecordWriter(output.path / RECORDS)
        try:
            experiment, cpu = begin(run, writer)
            with pinned(cpu):
                experiment.prepare()
                try:
                    experiment.measure()
                except (Interrupted, LabError) as error:
                    stopped = error
        finally:
            writer.close()
    if not experiment.trials:
        raise stopped or LabError("no trial was run")
    summary = experiment.summary(interrupted=stopped is not None)
    try:
        output.write(SUMMARY, dump(summary))
    except LabError:
        if isinstance(stopped, LabError):
            raise stopped from None
        raise
    print_rfc2544(console, summary)
    if stopped:
        raise stopped
    return summary


@contextmanager
def output_directory(out: Path) -> Iterator[OutputDirectory]:
    """The directory, which vanishes when no record was written into it."""
    with OutputDirectory(out) as output:
        try:
            yield output
        except BaseException:
            records = out / RECORDS
            if records.exists() and records.stat().st_size == 0:
                records.unlink()
            output.discard_if_empty()
            raise
