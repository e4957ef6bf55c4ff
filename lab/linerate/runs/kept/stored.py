# SPDX-License-Identifier: BSD-3-Clause
"""Runs in their directories, and the merged trials of several runs.

Merging. Pairs are made only within a block, so blocks of several runs can stand side by side in one
comparison: each keeps its own trials, under a number of its own. That is valid if each ratio is of
the same two programs, on the same kind of machine, with the same request. Runs with other programs,
processors, DPDKs, memory or options are refused, because a median of their ratios has no meaning;
so are runs that share trials (a run twice, or with its copy), which would count one measurement as
two. Other seeds, dates and kernels are named in the report's notes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from linerate.host.errors import RunError
from linerate.host.text import counted
from linerate.records.run_file import RUN, Part, Run
from linerate.records.trial import RECORDS, Trial, scan
from linerate.runs.kept import extension
from linerate.runs.provenance import apart, changed_definitions, changed_programs, telling
from linerate.runs.registry import find, load
from linerate.verdict.stats import ALPHA, level_after


@dataclass(frozen=True)
class Stored:
    """A run in its directory."""

    directory: Path
    run: Run
    trials: list[Trial]
    torn: int = 0


def stored(directory: Path) -> Stored:
    """Read a run with all its blocks so far; raises `RunError` naming what is missing or not
    readable.
    """
    first = _stored(directory)
    added = [_stored(each) for each in extension.measured(directory)]
    if not added:
        return first
    both = joined([first, *added])
    run = both.run
    run.looks = (first.run.looks or 1) + len(added)
    then = ", then ".join(str(extension.blocks_of(each.run)) for each in added)
    run.design["preset"] = first.run.design["preset"]
    run.design["preset_note"] = (
        f"{counted(extension.blocks_of(first.run), 'block')} of each cell, then {then} more"
    )
    run.sessions[0].warnings.append(
        f"blocks were added {counted(len(added), 'time')} after the run had been looked at, so its "
        f"tests are at a level of {level_after(run.looks):.3g} instead of {ALPHA:g}, and intervals "
        f"at {1 - level_after(run.looks):.5g}"
    )
    return replace(both, torn=sum(each.torn for each in (first, *added)))


def _stored(directory: Path) -> Stored:
    run = load(directory)
    path = directory / RECORDS
    if not path.exists():
        raise RunError(f"{directory} has no {RECORDS}: no trial was finished")
    found = scan(path)
    if not found.trials:
        raise RunError(f"{path} has no trial: none was finished")
    known = {each.session for each in run.sessions}
    for line, trial in enumerate(found.trials, start=1):
        if trial.experiment != run.experiment or trial.session not in known:
            raise RunError(
                f"{path}, line {line}: a trial of the experiment {trial.experiment}, session "
                f"{trial.session}, which is not in {RUN}",
                "the two files are not of one run",
            )
    return Stored(directory, run, found.trials, found.torn)


def joined(parts: Sequence[Stored]) -> Stored:
    """Merge the trials of runs that measured the same into one run; raises `RunError`."""
    for place, other in enumerate(parts):
        for each in parts[:place]:
            _refuse(each, other)
    experiment = find(parts[0].run.experiment)
    run = Run(
        experiment=experiment.name,
        options={},
        design=experiment.merged([part.run.design for part in parts]),
        looks=max((part.run.looks or 1 for part in parts), default=1),
    )
    trials: list[Trial] = []
    notes = _notes(parts)
    for part in parts:
        _append(run, trials, part)
    run.sessions[0].warnings = [*notes, *run.sessions[0].warnings]
    return Stored(parts[0].directory, run, trials)


def _append(run: Run, trials: list[Trial], part: Stored) -> None:
    """Give the part's sessions, blocks and positions new numbers."""
    sessions, positions = len(run.sessions), len(trials)
    blocks = 1 + max((trial.block for trial in trials), default=-1)
    number = {old.session: sessions + n for n, old in enumerate(part.run.sessions, start=1)}
    for session in part.run.sessions:
        run.sessions.append(
            session.model_copy(update={"session": number[session.session]}, deep=True)
        )
    for trial in part.trials:
        trials.append(
            trial.with_identity(
                run=trial.identity.run or part.run.id,
                session=number[trial.session],
                block=trial.block + blocks,
                position=trial.position + positions,
            )
        )
    own = Part(
        id=part.run.id,
        directory=str(part.directory),
        seed=part.trials[0].seed,
        sessions=[each.session for each in part.run.sessions],
    )
    for each in part.run.parts or [own]:
        renumbered = [number[session] for session in each.sessions]
        run.parts.append(each.model_copy(update={"sessions": renumbered}))


def _refuse(one: Stored, other: Stored) -> None:
    """Raise `RunError` if merging the two would mislead."""
    names = f"{one.directory} and {other.directory}"
    if one.run.experiment != other.run.experiment:
        raise RunError(
            f"{names} are of different experiments: {one.run.experiment} and "
            f"{other.run.experiment}",
            "merge runs of one experiment",
        )
    if one.run.ids & other.run.ids:
        raise RunError(
            f"{names} hold the same run: its trials would count twice", "name each run once"
        )
    mine, theirs = one.run.sessions[0], other.run.sessions[0]
    hint = "linerate compare tells the two apart"
    if rebuilt := changed_programs(mine, theirs):
        raise RunError(f"{names} ran different builds of {', '.join(rebuilt)}", hint)
    if redefined := changed_definitions(mine, theirs):
        raise RunError(f"{names} have different definitions of {', '.join(redefined)}", hint)
    if ran := apart(mine, theirs):
        raise RunError(f"{names} {ran}", hint)


def _notes(parts: Sequence[Stored]) -> list[str]:
    """Return the permitted differences between the parts, in words."""
    first = parts[0]
    notes = []
    seeds = [str(part.trials[0].seed) for part in parts]
    if len(set(seeds)) < len(seeds):
        notes.append(
            f"merged runs have seeds {', '.join(seeds)}: those with the same seed had the arms in "
            "the same order"
        )
    else:
        notes.append(f"merged runs have seeds {', '.join(seeds)}")
    for part in parts[1:]:
        if differing := telling(first.run.sessions[0], part.run.sessions[0]):
            notes.append(f"{first.directory} and {part.directory} differ: {'; '.join(differing)}")
    return notes
