# SPDX-License-Identifier: BSD-3-Clause
"""One session of any experiment, from the command line to its files: owns the directories, the
signals, the leases of CPUs and the pinning.

A session begins a run (`start`) or continues an interrupted one (`resume`). run.json is written
before the first trial, the records grow by whole lines, summary and report are made at the end; so
a run can be resumed from wherever it stopped.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from rich.console import Console

from linerate.host import foreign, machine
from linerate.host.cores import weight
from linerate.host.cores.leases import leased
from linerate.host.errors import Interrupted, LabError, RunError, UsageError
from linerate.host.leftovers import inventory
from linerate.host.process import RunDirectory, interruptible
from linerate.host.text import counted
from linerate.records import run_file
from linerate.records.cells import Cell
from linerate.records.journal import Journal
from linerate.records.output import OutputDirectory
from linerate.records.run_file import RUN, End, Run, Session, made_of
from linerate.records.trial import DISTURBED, RECORDS, RecordWriter, Trial
from linerate.runs.engine.engine import Engine
from linerate.runs.experiment import Experiment, Findings
from linerate.runs.kept import extension
from linerate.runs.kept.publish import publish, torn_line
from linerate.runs.kept.stored import stored
from linerate.runs.plans.blocks import too_few_blocks
from linerate.runs.progress import say
from linerate.runs.provenance import described, now, recall, refuse_to_resume, telling, versions
from linerate.runs.registry import find, load

# More than one void window of so many causes a warning.
_MANY = 5
# Fields of a design whose wording may have changed since.
_WORDING = {"question": None}


@contextmanager
def pinned(cpu: int) -> Iterator[None]:
    """Keep the lab itself off the forwarder's core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def start(
    name: str, options: dict[str, Any], out: Path, console: Console, command: str
) -> Findings:
    """Run an experiment, write records, summary and report, print the answer.

    Raises `Interrupted` after writing what there is, `LabError` for errors that the user can fix.
    """
    experiment = find(name)
    with interruptible(), OutputDirectory(out) as output:
        try:
            run = Run(experiment=name, options=options, design=experiment.design(options))
            if options.get("blocks") is None and experiment.promises_verdicts(run.design):
                refuse_too_few_blocks(run.design, experiment.judged_in)
            output.write(RUN, run_file.dump(run))
            # Held until the report is written: making it takes CPU time that another lab would
            # miss.
            with leased(experiment.cpus):
                return _session(
                    experiment, run, output, earlier=[], console=console, command=command
                )
        except BaseException:
            _discard(output)
            raise


def refuse_too_few_blocks(design: Mapping[str, Any], judged_in: int) -> None:
    """Raise `UsageError` if the preset's blocks are too few for any verdict in so many cells."""
    if lacking := _too_few_blocks(design, judged_in):
        raise UsageError(
            f"--preset {design['preset']}: {'; '.join(lacking)}", "--blocks, or fewer cells"
        )


def _too_few_blocks(design: Mapping[str, Any], judged_in: int) -> list[str]:
    if not judged_in:
        return []
    cells = [Cell(each["link"], each["size"], each["blocks"]) for each in design["cells"]]
    return too_few_blocks(cells, judged_in)


def _discard(output: OutputDirectory) -> None:
    """Remove the files of a run that has no trial."""
    records = output.path / RECORDS
    if records.exists() and records.stat().st_size > 0:
        return
    for path in (records, output.path / RUN):
        path.unlink(missing_ok=True)
    output.discard_if_empty()


def resume(
    name: str, directory: Path, given: Mapping[str, object], console: Console, command: str
) -> Findings:
    """Resume an interrupted run of this experiment with its own options.

    `given`: the options on the command line; one that contradicts the run's is refused.
    """
    _refuse_other_users(directory)
    with interruptible(), OutputDirectory.existing(directory) as output:
        run = load(directory)
        experiment = find(run.experiment)
        if run.experiment != name:
            raise RunError(
                f"{directory} is a run of the experiment {run.experiment}, not of {name}",
                f"linerate run {run.experiment} --resume {directory}",
            )
        if run.parts:
            raise RunError(f"{directory} is a merged run: it has no end to go on from")
        with made_of(directory):
            for began in run.sessions[:1]:
                recall(began)
            kept = experiment.effective_values(run.options)
            blocks = given.get("--blocks")
            more = blocks if isinstance(blocks, int) and blocks != kept.get("--blocks") else None
            others = {name: given[name] for name in given if name != "--blocks" or more is None}
            refuse_contradictions(directory, others, kept)
            design = experiment.design(run.options)
        if design | _WORDING != run.design | _WORDING:
            raise RunError(
                f"{directory}: this version of linerate would go on with another design than the "
                "run began with",
                "use the version that began it, or start a new run",
            )
        earlier = extension.trials_in(directory)
        complete, added = run.complete(len(earlier)), extension.unfinished(directory)
        if more is not None:
            if added or not complete:
                raise UsageError(
                    f"--blocks {more}: the run in {directory} has not ended",
                    f"first linerate run {name} --resume {directory}",
                )
            added = extension.begin(experiment, run, directory, more)
        if added and complete:
            return _extend(experiment, run, output, added, console=console, command=command)
        if complete:
            say(console, f"{directory}: all {len(earlier)} trials are done, nothing is to be run")
            with made_of(directory):
                found = stored(directory)
                return publish(experiment, found.run, output, found.trials, console)
        say(console, f"{directory}: going on after {counted(len(earlier), 'trial')}")
        with leased(experiment.cpus):
            return _session(
                experiment, run, output, earlier=earlier, console=console, command=command
            )


def _refuse_other_users(directory: Path) -> None:
    """Raise `UsageError` if another user could choose the programs that are started."""
    for place in (directory, *extension.places(directory)):
        for path in (place, place / RUN, place / RECORDS):
            if path.exists():
                foreign.refuse_other_users(
                    path,
                    f"commands in {RUN} are run to go on with it",
                    "read them, then go on with a copy of your own (cp -r)",
                )


def _extend(
    experiment: Experiment[Any, Any],
    first: Run,
    output: OutputDirectory,
    place: Path,
    *,
    console: Console,
    command: str,
) -> Findings:
    """Measure the blocks that are added to a run, and report it with them."""

    def told() -> Findings:
        found = stored(output.path)
        return publish(experiment, found.run, output, found.trials, console)

    with OutputDirectory.existing(place) as added:
        run = load(place)
        if run.experiment != experiment.name:
            raise RunError(
                f"{place} is a run of the experiment {run.experiment}, not of {experiment.name}",
                "the file was changed",
            )
        earlier = extension.trials_in(place)
        blocks = extension.blocks_of(run)
        say(console, f"{output.path}: {counted(blocks, 'block')} more of each cell")
        try:
            with leased(experiment.cpus):
                return _session(
                    experiment, run, added, earlier=earlier, console=console, command=command,
                    began=first.sessions[0], directory=output.path, told=told,
                )  # fmt: skip
        except BaseException:
            _discard(added)
            with suppress(OSError):
                place.rmdir()
            raise


def refuse_contradictions(
    directory: Path, given: Mapping[str, object], kept: Mapping[str, object]
) -> None:
    """Raise `UsageError` for an option that differs from the run's."""
    for option, value in given.items():
        if option not in kept:
            raise UsageError(f"{option}: not together with --resume", f"leave {option} out")
        if value != kept[option]:
            raise UsageError(
                f"{_told(option, value)}: the run in {directory} has "
                f"{_told(option, kept[option] or None)}",
                f"leave {option} out: a run goes on with the options that it began with",
            )


def _told(option: str, value: object) -> str:
    """Format the option as on a command line."""
    if isinstance(value, bool):
        return option if value else f"--no-{option.removeprefix('--')}"
    if value is None or value == []:
        return f"no {option}"
    return f"{option} {','.join(map(str, value)) if isinstance(value, list) else value}"


def _session(
    experiment: Experiment[Any, Any],
    run: Run,
    output: OutputDirectory,
    *,
    earlier: list[Trial],
    console: Console,
    command: str,
    began: Session | None = None,
    directory: Path | None = None,
    told: Callable[[], Findings] | None = None,
) -> Findings:
    """Run one session. If blocks are added to another run: `began` is the first session of that
    run, `directory` is the one that the user names to resume, and `told` publishes both.
    """
    stopped: Interrupted | LabError | None = None
    options = run.options
    if run.sessions:
        began = run.sessions[0]
    if began:
        options = experiment.with_memory(options, began.memory)
    if undone := inventory.remove():
        say(console, inventory.sentence(undone))
    with RunDirectory() as place:
        writer = RecordWriter(output.path / RECORDS)
        try:
            if writer.torn:
                say(console, torn_line(writer.torn) + ", and its trial is run again")
            journal = Journal(writer, earlier, len(run.sessions) + 1, run.id)
            read = experiment.read_options(options)
            plan = experiment.plan(read)
            few = [] if told else _too_few_blocks(run.design, experiment.judged_in)
            # A poller would keep the kernel's softirqs from the CPU.
            softirq = any(read.link(name).receives_by_softirq for name in plan.needs.links)
            times = 1 if softirq else read.cpu_weight
            with (
                weight.raised(times) as weighs,
                Engine(plan, place, journal, console, few, outweighs=weighs.times > 1) as running,
                pinned(running.cores.control),
            ):
                session = _open_session(run, running, journal, command, began)
                session.cpu_weight = weighs.times
                output.write(RUN, run_file.dump(run))
                try:
                    running.measure()
                except (Interrupted, LabError) as error:
                    stopped = error
                    _name_the_way_on(error, experiment.name, directory or output.path)
        finally:
            writer.close()
    if not journal.trials:
        raise stopped or LabError("no trial was run")
    if times > 1 and weighs.group is None and _is_disturbed(journal.trials):
        running.warnings.append(
            f"other work voided many windows, and the lab had its CPUs at everyone's weight: "
            f"{weighs.why}; with {times} times that weight a generator beside a compiler has 19 of "
            "20 frames undisturbed"
        )
    # If a run could not even replay the trials on record, all of them are kept.
    trials = journal.trials if len(journal.trials) >= len(earlier) else earlier
    _close_session(session, running, len(trials), stopped)
    try:
        output.write(RUN, run_file.dump(run))
        # Records of this session alone cannot have been changed by others.
        with made_of(output.path) if earlier else nullcontext():
            findings = told() if told else publish(experiment, run, output, trials, console)
    except LabError:
        if isinstance(stopped, LabError):
            raise stopped from None
        raise
    if stopped:
        raise stopped
    return findings


def _is_disturbed(trials: list[Trial]) -> bool:
    """Return True if more than one in `_MANY` trials or windows is void because others had the
    CPUs.
    """
    return sum(trial.invalid_code in DISTURBED for trial in trials) * _MANY > len(trials)


def _name_the_way_on(error: Interrupted | LabError, name: str, directory: Path) -> None:
    """Add the command that resumes the run to the hint, if it can help.

    Not for a `UsageError`, which is about records of another run: it says what to do instead.
    """
    if not isinstance(error, UsageError):
        way_on = shlex.join(["linerate", "run", name, "--resume", str(directory)])
        error.hint = "\n  ".join(filter(None, [error.hint, f"to go on with this run: {way_on}"]))


def _open_session(
    run: Run, running: Engine, journal: Journal, command: str, first: Session | None
) -> Session:
    """Open a session. `first`: the first session of the run; None if it begins."""
    started_at = now()
    running.prepare()
    bench = running.bench
    programs = running.programs()
    session = Session(
        session=journal.session,
        command=command,
        started_at=started_at,
        machine=machine.facts(),
        versions=versions(),
        programs=programs,
        forwarders=described([*_arms(run), *programs]),
        memory="hugepages" if bench.memory.hugepages else "no-huge",
        cpus={"control": running.cores.control, "forwarder": running.cores.forwarder},
        tsc_hz=bench.tsc_hz,
        warnings=list(running.warnings),
    )
    if first:
        refuse_to_resume(first, session)
        if differing := telling(first, session):
            running.warnings.append(
                f"session {session.session} was not quite like the first: {'; '.join(differing)}"
            )
            session.warnings = list(running.warnings)
    run.sessions.append(session)
    return session


def _arms(run: Run) -> list[str]:
    """Return the forwarders that the run compares."""
    return [arm["forwarder"] for arm in run.design.get("arms", [])]


def _close_session(
    session: Session, running: Engine, trials: int, stopped: Interrupted | LabError | None
) -> None:
    end: End = "complete"
    if stopped:
        end = "interrupted" if isinstance(stopped, Interrupted) else "failed"
    elif running.unfinished:
        end = "interrupted"
    session.trials, session.ended_at, session.end = trials, now(), end
    session.warnings = list(running.warnings)
