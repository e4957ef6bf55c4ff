# SPDX-License-Identifier: BSD-3-Clause
"""The common part of the summaries of all experiments. Pure: the records decide everything."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Self

from pydantic import Field

from linerate.host import machine
from linerate.host.errors import RunError
from linerate.host.machine import Machine
from linerate.records.cells import AA_SUFFIX, Arm, Cell, cell_words
from linerate.records.run_file import RUN, Run
from linerate.records.summary import CellSummary, Comparison, Limit, Summary
from linerate.records.trial import NAMED_SHARE, Trial
from linerate.runs.options import Agreement, Common, Options
from linerate.runs.provenance import now, versions
from linerate.traffic import books
from linerate.trial.activity import FORWARDER, waiting_of
from linerate.verdict.arms import MOST_NAMED, invalid_reasons
from linerate.verdict.ceiling import unproven
from linerate.verdict.comparisons import CellPairs, compare, control_of
from linerate.verdict.sentences import sentence

# The share of its time that a forwarder may wait for its CPU without a warning.
CROWDED = 0.03


def _labels(arms: Sequence[Arm]) -> list[str]:
    return [arm.label for arm in arms]


def _names(cells: Sequence[Cell]) -> list[str]:
    return [cell_words(cell.link, cell.size) for cell in cells]


@dataclass(kw_only=True)
class Design(Common):
    """The request, as far as the records do not contain it; stored in run.json.

    Its fields declare in what runs must agree to be merged or compared.
    """

    question: str
    preset: str
    preset_note: str
    window_s: Annotated[float, Field(gt=0), Agreement("window", compare="same")]
    cells: Annotated[list[Cell], Field(min_length=1), Agreement("cells", merge_by=_names)]
    arms: Annotated[list[Arm], Field(min_length=1), Agreement("forwarders", merge_by=_labels)]

    @classmethod
    def of(cls, options: Options, **own: Any) -> Self:
        """Return the design of these options: shared fields are the options', unless in `own`."""
        shared = {each.name for each in fields(cls)} & {each.name for each in fields(options)}
        preset = {"preset": options.preset.name, "preset_note": options.preset.note}
        return cls(**{**{name: getattr(options, name) for name in shared}, **preset, **own})


@dataclass
class Setup:
    """The parts of summary.json that are not in the records.

    A None is looked up on this machine now.
    """

    experiment: str
    question: str
    preset: str
    preset_note: str
    command: str
    seed: int
    window_s: float
    started_at: str
    cells: list[Cell]
    arms: list[Arm]
    line_rate: float | None = None
    tsc_hz: int | None = None
    warnings: list[str] = field(default_factory=list)
    finished_at: str | None = None
    machine: Machine | None = None
    versions: dict[str, str] | None = None


def setup_of(experiment: str, run: Run, design: Design, trials: list[Trial]) -> Setup:
    """Return the summary's facts from the design and the sessions: the same whenever and wherever
    the summary is made.
    """
    if not run.sessions:
        raise RunError(f"{RUN}: the run ended before its first trial", "start a new one")
    first, last = run.sessions[0], run.sessions[-1]
    return Setup(
        experiment=experiment,
        question=design.question,
        preset=design.preset,
        preset_note=design.preset_note,
        command=first.command,
        seed=design.seed,
        window_s=design.window_s,
        started_at=first.started_at,
        cells=design.cells,
        arms=design.arms,
        line_rate=design.line_rate,
        tsc_hz=first.tsc_hz or _median_hz(trials),
        warnings=run.warnings,
        # A session that was killed has no end but its last trial.
        finished_at=last.ended_at or (trials[-1] if trials else last).started_at,
        machine=first.machine,
        versions=first.versions,
    )


def _median_hz(trials: list[Trial]) -> int | None:
    known = [trial.program.tsc_hz for trial in trials if trial.program.tsc_hz]
    return round(statistics.median(known)) if known else None


def books_of(trials: list[Trial]) -> tuple[bool | None, int]:
    """Return whether the books close (None without any), and how many trials have some."""
    checked = sum(books.checkable(trial) for trial in trials)
    return (books.closed(trials) if checked else None), checked


def smallest_detectable(comparisons: list[Comparison]) -> float | None:
    """Return the largest over the primary comparisons; None if one could find nothing."""
    found = [
        math.inf if each.smallest_detectable is None else each.smallest_detectable
        for each in comparisons
        if each.primary
    ]
    largest = max(found, default=math.inf)
    return largest if math.isfinite(largest) else None


def summary_of(
    setup: Setup,
    trials: list[Trial],
    found: list[CellSummary],
    pairs: list[CellPairs],
    *,
    interrupted: bool,
    undisturbed: list[Trial] | None = None,
) -> Summary:
    """Return the summary of the cells of any experiment, with the verdicts of the pairs.

    `undisturbed`: trials in which the forwarder was to have its CPU alone; None: all were.
    """
    comparisons = compare(pairs)
    for comparison in comparisons:
        comparison.sentence = sentence(comparison)
    closed, checked = books_of(trials)
    return Summary(
        experiment=setup.experiment,
        question=setup.question,
        preset=setup.preset,
        preset_note=setup.preset_note,
        command=setup.command,
        seed=setup.seed,
        window_s=setup.window_s,
        started_at=setup.started_at,
        finished_at=setup.finished_at or now(),
        interrupted=interrupted,
        trials=len(trials),
        invalid_trials=sum(not t.valid for t in trials),
        invalid_reasons=invalid_reasons(trials),
        comparisons=comparisons,
        aa=[control for each in pairs if (control := control_of(each))],
        books_closed=closed,
        books_checked=checked,
        limited_by=[
            Limit(link=cell.link, size=cell.size, arm=arm.arm, by=arm.limited_by)
            for cell in found
            for arm in cell.arms
            if arm.limited_by and not arm.arm.endswith(AA_SUFFIX)
        ],
        smallest_detectable=smallest_detectable(comparisons),
        cells=found,
        tsc_hz=setup.tsc_hz,
        machine=setup.machine or machine.facts(),
        versions=setup.versions or versions(),
        warnings=[
            *setup.warnings,
            *unproven(found),
            *crowding(trials if undisturbed is None else undisturbed),
        ],
    )


def crowding(trials: list[Trial]) -> list[str]:
    """Return warnings if the forwarder had to wait for its CPU: for kernel threads, for others."""
    found = [
        waiting
        for trial in trials
        # Standing programs wait for each other, and only their CPU time counts.
        if trial.valid and trial.method != "standing"
        for process in trial.program.processes
        if process.role == FORWARDER and (waiting := waiting_of(trial, process))
    ]
    told = []
    # Links of shared memory have no such threads, and say nothing of those that have.
    shared = [each for each in found if each.threads]
    kernel = [each.kernel_s / each.whole_s for each in shared]
    if kernel and statistics.median(kernel) >= CROWDED:
        names = ", ".join(sorted({name for each in shared for name in each.threads}))
        told.append(
            f"the kernel's packet thread of the forwarder's interface ({names}), which the lab "
            f"pins to the forwarder's CPU, used it while the forwarder waited: up to "
            f"{statistics.median(kernel):.0%} of its time (median). It receives for the forwarder: "
            "figures are of the core that both share."
        )
    others = [each.others_s / each.whole_s for each in found]
    if others and statistics.median(others) >= CROWDED:
        told.append(
            f"other programs used the forwarder's CPU{_who(trials)}: it waited for them "
            f"{statistics.median(others):.0%} of its time (median). Absolute figures are too low, "
            "and ratios noisier than need be."
        )
    return told


def _who(trials: list[Trial]) -> str:
    """Return the processes that had the forwarder's CPU for most of these trials, if known."""
    shares: Counter[str] = Counter()
    known = 0
    for trial in trials:
        cpus = [c for each in trial.program.processes if each.role == FORWARDER for c in each.cpus]
        # With more than one lcore the waits cannot be assigned.
        if trial.valid and trial.others and len(cpus) == 1 and str(cpus[0]) in trial.others:
            shares.update(trial.others[str(cpus[0])])
            known += 1
    named = [
        f"{name} {total / known:.0%}"
        for name, total in shares.most_common(MOST_NAMED)
        if total / known >= NAMED_SHARE
    ]
    return f" ({', '.join(named)})" if named else ""
