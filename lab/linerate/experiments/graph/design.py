# SPDX-License-Identifier: BSD-3-Clause
"""The request of a run of experiment `graph`, and its plan on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

from linerate.experiments.graph.cells import FAMILIES, chosen, family, ordered_arms, parse
from linerate.experiments.graph.options import Options
from linerate.experiments.graph.running.conversation import CellOffer
from linerate.host.errors import UsageError
from linerate.host.text import counted
from linerate.records.cells import AA_SUFFIX, Arm, Cell
from linerate.runs.options import Agreement
from linerate.runs.plans.blocks import check_blocks
from linerate.runs.run_summary import Design

NAME = "graph"
QUESTION = (
    "What does an object cost in a graph of C nodes, of Rust nodes, of Rust nodes fused into one "
    "program, and without a graph?"
)


def _builds(plan: Sequence[CellOffer]) -> list[str]:
    """Return the builds of all cells."""
    return sorted({arm for offer in plan for arm in offer.arms})


@dataclass(kw_only=True)
class GraphDesign(Design):
    """A `Design` with the arms that each cell has."""

    plan: Annotated[list[CellOffer], Agreement("builds", merge_by=_builds)] = field(
        default_factory=list
    )


def check(options: Options) -> None:
    """Raise `UsageError` for options that no machine can run."""
    check_blocks(options.blocks)
    for name in options.arms:
        if name not in FAMILIES:
            raise UsageError(f"--arms {name}: no such arm", f"choose from: {', '.join(FAMILIES)}")


def planned(options: Options, offers: Sequence[CellOffer]) -> list[CellOffer]:
    """Return the requested part of the programs' cells; an arm may be missing in a cell."""
    there = [offer.cell for offer in offers]
    asked = (
        chosen(options.cells, there)
        if options.cells
        else [name for name in there if options.preset.takes(parse(name))]
    )
    found = []
    for offer in offers:
        arms = [
            arm for arm in ordered_arms(offer.arms) if family(arm) in (options.arms or FAMILIES)
        ]
        if offer.cell in asked and arms:
            found.append(CellOffer(cell=offer.cell, arms=arms, path_nodes=offer.path_nodes))
    if not found:
        raise UsageError(
            f"no cell of preset {options.preset.name} has any of these arms",
            "linerate run graph --preset full, or name cells by --cells",
        )
    return found


def baseline_of(plan: Sequence[CellOffer]) -> str:
    """Return the first family that some cell has: all others are compared with it."""
    there = {family(arm) for offer in plan for arm in offer.arms}
    return next(name for name in FAMILIES if name in there)


def labels_of(plan: Sequence[CellOffer]) -> list[str]:
    """Return the labels of comparisons: the families, the baseline twice."""
    there = {family(arm) for offer in plan for arm in offer.arms}
    first, *others = [name for name in FAMILIES if name in there]
    return [first, first + AA_SUFFIX, *others]


def windows_of(offer: CellOffer, baseline: str) -> list[Arm]:
    """Return the windows of a block of this cell: every build, and those of the baseline again."""
    again = [Arm(arm + AA_SUFFIX, arm) for arm in offer.arms if family(arm) == baseline]
    return [Arm(arm, arm) for arm in offer.arms] + again


def blocks_of(options: Options) -> int:
    return options.blocks or options.preset.blocks


def cells_of(options: Options) -> list[Cell]:
    blocks = blocks_of(options)
    return [Cell(each.cell, parse(each.cell).batch, blocks) for each in options.plan]


def design_of(options: Options) -> GraphDesign:
    """Return the design of these options, with all defaults filled in."""
    check(options)
    blocks = blocks_of(options)
    return GraphDesign.of(
        options,
        question=QUESTION,
        preset_note=f"{counted(blocks, 'block')} (--blocks)"
        if options.blocks
        else options.preset.note,
        window_s=options.preset.window_s,
        cells=cells_of(options),
        arms=[Arm(label, label) for label in labels_of(options.plan)],
    )
