# SPDX-License-Identifier: BSD-3-Clause
"""Summarise the records of a run of `graph`. Pure: the records decide everything."""

from __future__ import annotations

from collections.abc import Sequence

from linerate.experiments.graph.answers import answers
from linerate.experiments.graph.cells import BASE, described
from linerate.experiments.graph.choice import judged, last_windows
from linerate.experiments.graph.window import OBJECTS, GraphWindow, window_of
from linerate.records.cells import AA_SUFFIX
from linerate.records.summary import ArmSummary, CellSummary, Summary
from linerate.records.summary_figures import GraphFigures
from linerate.records.trial import Trial
from linerate.runs.run_summary import Setup, summary_of
from linerate.verdict.arms import mega, quartiles
from linerate.verdict.comparisons import CellPairs, blocks_of, pair_arms


def figures(trials: Sequence[Trial], build: str) -> GraphFigures:
    """Return the figures of an arm's judged windows in one cell."""
    windows = [ran for trial in trials if trial.valid and (ran := window_of(trial))]
    return GraphFigures(
        build=build,
        mobjects_per_s=quartiles(mega(each.objects_per_s) for each in windows),
        cycles_per_object=quartiles(each.cycles_per_object for each in windows),
        path_nodes=next((each.path_nodes for each in windows if each.path_nodes), None),
        cycles_per_object_per_node=quartiles(map(_per_node, windows)),
        disturbed=_disturbed(windows),
    )


def _disturbed(windows: Sequence[GraphWindow]) -> float | None:
    """Return the share of their slices in which others had the CPU."""
    whole = sum(each.slice_count or 0 for each in windows)
    return sum(each.disturbed_slices or 0 for each in windows) / whole if whole else None


def _language(windows: Sequence[Trial]) -> str:
    """Return the language in the records; those of older versions have none, and then this build
    may know it.
    """
    first = windows[0]
    return (first.program.described or described(first.forwarder)).language


def _per_node(window: GraphWindow) -> float | None:
    cost = window.cycles_per_object
    return cost / window.path_nodes if window.path_nodes and cost is not None else None


def summarise(setup: Setup, trials: list[Trial], *, interrupted: bool) -> Summary:
    """Return the summary."""
    last = last_windows(trials)
    found = judged(last)
    labels = [arm.label for arm in setup.arms]
    cells, pairs = [], []
    primary = _primary([cell.link for cell in setup.cells])
    for cell in setup.cells:
        mine = [trial for trial in found.trials if trial.cell.key == cell.key]
        arms = []
        for label in labels:
            own = [trial for trial in mine if trial.arm == label]
            if not own:
                continue
            name = label.removesuffix(AA_SUFFIX)
            build = found.builds[cell.link, name]
            invalid = sum(not trial.valid for trial in own)
            arms.append(
                ArmSummary(
                    arm=label,
                    forwarder=build,
                    language=_language(own),
                    trials=len(own),
                    invalid=invalid,
                    graph=figures(own, build),
                )
            )
        if not arms:
            continue
        summarised = CellSummary(
            link=cell.link,
            size=cell.size,
            blocks=cell.blocks,
            arms=arms,
            references=[],
            lower_load=[],
        )
        cells.append(summarised)
        pairs.append(_pairs(summarised, mine, labels, primary=cell.link == primary))
    summary = summary_of(setup, trials, cells, pairs, interrupted=interrupted)
    summary.warnings += _without_figures(setup, trials, cells)
    shown = [label for label in labels if not label.endswith(AA_SUFFIX)]
    summary.graph = answers(found.trials, shown, pairs)
    return summary


def _without_figures(
    setup: Setup, trials: Sequence[Trial], found: Sequence[CellSummary]
) -> list[str]:
    """Return a warning for each cell that was begun and is in no table."""
    there = {cell.link for cell in found}
    told = []
    for cell in setup.cells:
        tried = [t for t in trials if t.cell.key == cell.key and t.role == "measure"]
        if not tried or cell.link in there:
            continue
        if any(t.valid for t in tried):
            why = (
                "builds are chosen in one half of the blocks and judged in the other, and one of "
                "the halves has no valid window"
            )
        else:
            why = f"no window of it is valid, the last because: {tried[-1].invalid_why}"
        told.append(f"{cell.link} has no figures: {why}")
    return told


def _primary(cells: Sequence[str]) -> str:
    """Return the cell whose comparisons answer the question: the base point, if it was measured."""
    return BASE if BASE in cells else cells[0]


def _pairs(
    cell: CellSummary, trials: list[Trial], labels: Sequence[str], *, primary: bool
) -> CellPairs:
    """Pair every arm of the cell with the baseline: missing arms are not compared."""
    there = {arm.arm for arm in cell.arms}
    compared = [labels[0], *(label for label in labels[1:] if {label, labels[0]} <= there)]
    planned = blocks_of(trials)
    return pair_arms(cell, OBJECTS, trials, compared, planned=planned, primary=primary)


def pairs_of_cells(summary: Summary, trials: list[Trial], labels: Sequence[str]) -> list[CellPairs]:
    """Return the pairs for a comparison with another run; `trials`: judged ones."""
    return [
        _pairs(cell, [t for t in trials if t.cell.key == cell.key], labels, primary=True)
        for cell in summary.cells
    ]
