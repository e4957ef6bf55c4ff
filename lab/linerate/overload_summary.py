# SPDX-License-Identifier: BSD-3-Clause
"""From the records of an overload run to its summary. Pure: the records decide everything."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field

from pydantic import ConfigDict

from linerate import books, machine
from linerate.arms import invalid_reasons, summarise_arm, summarise_lower_load
from linerate.ceiling import ceiling_of, place, unproven
from linerate.comparisons import CellPairs, compare, control_of, pair_cell, ungated
from linerate.design import AA_SUFFIX, Arm, Cell
from linerate.forwarders import forwarder
from linerate.links import link
from linerate.machine import Machine
from linerate.provenance import now, versions
from linerate.records import Trial
from linerate.sentences import sentence
from linerate.summary import CellSummary, Comparison, Limit, Summary

# Share of its time that a forwarder may wait for its CPU without a warning.
CROWDED = 0.03


@dataclass
class Design:
    """What was asked, as far as the records do not tell it; kept in run.json."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    question: str
    preset: str
    preset_note: str
    seed: int
    window_s: float
    cells: list[Cell]
    arms: list[Arm]
    line_rate: float | None = None
    probe: bool = True
    generator_ports: list[str] = field(default_factory=list)
    forwarder_ports: list[str] = field(default_factory=list)


@dataclass
class Setup:
    """What summary.json says that is not in the records.

    What is None is looked up on this machine and now.
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


def summarise_cell(
    cell: Cell, arms: list[Arm], trials: list[Trial], line_rate: float | None
) -> CellSummary:
    """Arms, references, ceiling and books of one link and size."""
    mine = [t for t in trials if (t.link, t.size) == (cell.link, cell.size)]
    tests = [t for t in mine if t.role == "self-test"]
    ceiling = ceiling_of(tests, line_rate) if link(cell.link).has_generator else None

    def probed(label: str) -> list[Trial]:
        return [t for t in mine if (t.role, t.arm) == ("probed", label.removesuffix(AA_SUFFIX))]

    found = []
    for arm in arms:
        own = [t for t in mine if t.role == "measure" and t.arm == arm.label]
        if own:
            language = forwarder(arm.forwarder).language
            entry = summarise_arm(arm.label, language, own, probed(arm.label))
            place(entry, own, tests, ceiling)
            found.append(entry)
    references = [
        summarise_arm(
            name, forwarder(name).language, [t for t in tests if t.arm == name], probed(name)
        )
        for name in sorted({t.arm for t in tests})
    ]
    return CellSummary(
        link=cell.link,
        size=cell.size,
        blocks=cell.blocks,
        ceiling=ceiling,
        arms=found,
        references=references,
        lower_load=summarise_lower_load([t for t in mine if t.role == "lower-load"]),
        books_closed=books_of(mine)[0],
    )


def _pairs(setup: Setup, found: list[CellSummary], trials: list[Trial]) -> list[CellPairs]:
    labels = [arm.label for arm in setup.arms]
    return [
        each
        for cell in found
        for each in pair_cell(
            cell,
            [t for t in trials if (t.link, t.size, t.role) == (cell.link, cell.size, "measure")],
            labels,
        )
    ]


def books_of(trials: list[Trial]) -> tuple[bool | None, int]:
    """Whether the books close, None without any; and how many trials have some."""
    checked = sum(books.checkable(trial) for trial in trials)
    return (books.closed(trials) if checked else None), checked


def smallest_detectable(comparisons: list[Comparison]) -> float | None:
    """The largest over the primary comparisons; one that could find nothing has no bound."""
    found = [
        math.inf if each.smallest_detectable is None else each.smallest_detectable
        for each in comparisons
        if each.primary
    ]
    largest = max(found, default=math.inf)
    return largest if math.isfinite(largest) else None


def summarise(setup: Setup, trials: list[Trial], *, interrupted: bool) -> Summary:
    """Everything that summary.json says."""
    done = {(t.link, t.size) for t in trials}
    found = [
        summarise_cell(cell, setup.arms, trials, setup.line_rate)
        for cell in setup.cells
        if (cell.link, cell.size) in done
    ]
    return summary_of(setup, trials, found, _pairs(setup, found, trials), interrupted=interrupted)


def summary_of(
    setup: Setup,
    trials: list[Trial],
    found: list[CellSummary],
    pairs: list[CellPairs],
    *,
    interrupted: bool,
) -> Summary:
    """What any experiment says of its cells, with the verdicts that follow from the pairs."""
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
            *(warning for cell in found for warning in [*unproven(cell), *ungated(cell)]),
            *crowding(trials),
        ],
    )


def crowding(trials: list[Trial]) -> list[str]:
    """A warning when others used the forwarder's CPU during the run."""
    shares = [
        process.waited_s / (process.ran_s + process.waited_s)
        for trial in trials
        if trial.valid
        for process in trial.processes
        if process.role == "forwarder" and process.waited_s and process.ran_s
    ]
    if not shares or statistics.median(shares) < CROWDED:
        return []
    return [
        f"other programs used the forwarder's CPU: it waited {statistics.median(shares):.0%} of "
        "its time (median). Absolute figures are too low, and ratios noisier than need be."
    ]
