# SPDX-License-Identifier: BSD-3-Clause
"""Presets: which cells, in how many blocks. Half of the blocks choose the builds."""

from __future__ import annotations

from dataclasses import dataclass

from linerate.experiments.graph.cells import BASE, COPIES, ORDERING, WAYS, GraphCell, groups, parse


@dataclass(frozen=True)
class GraphPreset:
    """A preset. `blocks`: each a process of its own; `window_s`: of each arm in each cell of a
    block.
    """

    name: str
    blocks: int
    window_s: float
    note: str

    def takes(self, cell: GraphCell) -> bool:
        """Return True if a cell is among those of this preset."""
        if self.name == "full":
            return True
        base = parse(BASE)
        if (cell.work, cell.stats) != (base.work, base.stats):
            return False
        if self.name == "quick":
            return bool(groups(cell))
        passing = cell.shape == base.shape and cell.batch == base.batch
        return (passing and cell.passing in (*ORDERING, *COPIES, "assign4", "speculate")) or (
            cell.shape in WAYS.values() and cell.passing == "assign1" and cell.batch == base.batch
        )


PRESETS = {
    preset.name: preset
    for preset in (
        GraphPreset("demo", 28, 0.01, "28 blocks of the cells of the published orderings"),
        GraphPreset("quick", 28, 0.02, "28 blocks of one factor at a time round the base point"),
        GraphPreset("full", 40, 0.02, "40 blocks of every cell"),
    )
}
