# SPDX-License-Identifier: BSD-3-Clause
"""Summarise the records of an overload run. Pure: the records decide everything."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from linerate.links import link
from linerate.records.cells import AA_SUFFIX, Arm, Cell, cell_words
from linerate.records.summary import CellSummary, Summary
from linerate.records.trial import Trial
from linerate.runs.options import Pairing, Probing
from linerate.runs.run_summary import Design, Setup, books_of, summary_of
from linerate.verdict.agreement import Agreement
from linerate.verdict.arms import median_of, summarise_arm, summarise_lower_load
from linerate.verdict.ceiling import ceiling_of, cost_leads, place
from linerate.verdict.comparisons import CellPairs, blocks_of, led, pair_cell, pair_costs

# Returns the arms of a cell.
ArmsOf = Callable[[Cell], list[Arm]]


@dataclass(kw_only=True)
class OverloadDesign(Pairing, Probing, Design):
    """A `Design` with the probe, and the pairing of forwarders."""


def summarise_cell(
    cell: Cell, arms: list[Arm], trials: list[Trial], line_rate: float | None
) -> CellSummary:
    """Return arms, references, ceiling and books of one link and size."""
    mine = [t for t in trials if t.cell.key == cell.key]
    # The sender is tried at paced rates, too.
    tests = [t for t in mine if t.role == "self-test" and t.request.load != "paced"]
    ceiling = ceiling_of(tests, line_rate) if link(cell.link).has_generator else None

    def probed(label: str) -> list[Trial]:
        return [t for t in mine if (t.role, t.arm) == ("probed", label.removesuffix(AA_SUFFIX))]

    found = []
    for arm in arms:
        own = [t for t in mine if t.role == "measure" and t.arm == arm.label]
        if own:
            entry = summarise_arm(arm.label, own, probed(arm.label))
            busy = median_of(t.frames.busy_share for t in probed(arm.label) if t.valid)
            place(entry, own, tests, ceiling, busy)
            found.append(entry)
    references = [
        summarise_arm(name, [t for t in tests if t.arm == name], probed(name))
        for name in sorted({t.arm for t in tests})
    ]
    tables = link(cell.link).tables
    return CellSummary(
        link=cell.link,
        size=cell.size,
        blocks=cell.blocks,
        routes=tables.routes if tables else None,
        rules=tables.rules if tables else None,
        ceiling=ceiling,
        arms=found,
        references=references,
        lower_load=summarise_lower_load([t for t in mine if t.role == "lower-load"]),
        books_closed=books_of(mine)[0],
    )


def _pairs(found: list[CellSummary], trials: list[Trial], arms_of: ArmsOf) -> list[CellPairs]:
    result = []
    for cell in found:
        labels = [arm.label for arm in arms_of(Cell(cell.link, cell.size, cell.blocks))]
        mine = [t for t in trials if t.cell.key == cell.key]
        low = [t for t in mine if t.role == "lower-load"]
        rates = pair_cell(cell, [t for t in mine if t.role == "measure"], labels)
        costs = pair_costs(cell, low, labels, blocks_of(low))
        result += led(rates, costs, costs_lead=cost_leads(cell))
    return result


def disagreements(trials: Sequence[Trial], labels: Sequence[str]) -> list[str]:
    """Return warnings about forwarders whose comparison with the first one differs between sharing
    a core and running alone. `trials`: of one cell.
    """
    ways: dict[tuple[int, int], dict[str, tuple[float, float]]] = {}
    for trial in trials:
        beside, alone = trial.frames.forwarder_rx_pps, trial.frames.alone_pps
        if trial.valid and trial.method == "standing" and beside and alone:
            ways.setdefault(trial.pairing, {})[trial.arm] = math.log(beside), math.log(alone)
    found = []
    for label in labels[1:]:
        baseline = labels[0]
        agreement, ratios = Agreement(), []
        for here in ways.values():
            if baseline in here and label in here:
                pairs = zip(here[label], here[baseline], strict=True)
                ratios.append([mine - theirs for mine, theirs in pairs])
                agreement.add(*ratios[-1])
        if agreement.broken:
            beside, alone = (
                math.exp(statistics.median(each)) for each in zip(*ratios, strict=True)
            )
            cell = trials[0].cell
            found.append(
                f"{cell_words(cell.name, cell.key[1])}: {label} does {beside:.3f} times what "
                f"{baseline} does where they share a core, and {alone:.3f} times where each runs "
                "alone: compare them by --method fresh"
            )
    return found


def summarise(
    setup: Setup, trials: list[Trial], *, interrupted: bool, arms_of: ArmsOf | None = None
) -> Summary:
    """Return the summary. `arms_of`: default: every cell has all arms."""
    arms = arms_of or (lambda _: setup.arms)
    done = {t.cell.key for t in trials}
    found = [
        summarise_cell(cell, arms(cell), trials, setup.line_rate)
        for cell in setup.cells
        if cell.key in done
    ]
    summary = summary_of(setup, trials, found, _pairs(found, trials, arms), interrupted=interrupted)
    for cell in setup.cells:
        labels = [arm.label for arm in arms(cell)]
        mine = [t for t in trials if (t.cell.key, t.role) == (cell.key, "measure")]
        summary.warnings.extend(disagreements(mine, labels))
    return summary
