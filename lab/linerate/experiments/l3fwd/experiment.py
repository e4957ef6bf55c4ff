# SPDX-License-Identifier: BSD-3-Clause
"""One session of a run of experiment `l3fwd`: measured as `overload` measures, by other tables."""

from __future__ import annotations

from linerate.experiments.l3fwd.design import NAME, all_arms, arms_of, cells, forwarders
from linerate.experiments.l3fwd.options import Options
from linerate.experiments.overload.plan import Overload
from linerate.records.cells import Arm, Cell
from linerate.runs.options import BlockOptions


class L3fwd(Overload):
    """What was measured is in its journal."""

    name = NAME

    @staticmethod
    def plan(options: BlockOptions) -> tuple[list[Arm], list[Cell]]:
        assert isinstance(options, Options)
        chosen = cells(options)
        return all_arms(forwarders(options), chosen), chosen

    def arms_of(self, cell: Cell) -> list[Arm]:
        assert isinstance(self.options, Options)
        return arms_of(forwarders(self.options), cell.link)
