# SPDX-License-Identifier: BSD-3-Clause
"""The plan of a session of experiment `l3fwd`: it measures like `overload`, with other tables."""

from __future__ import annotations

from linerate.experiments.l3fwd.design import NAME, all_arms, arms_of, cells, forwarders
from linerate.experiments.l3fwd.options import Options
from linerate.experiments.overload.plan import Overload
from linerate.records.cells import Arm, Cell
from linerate.records.trial import Method


class L3fwd(Overload):
    """The plan of a session."""

    name = NAME

    def __init__(self, options: Options) -> None:
        self._forwarders = forwarders(options)
        chosen = cells(options)
        super().__init__(options, all_arms(self._forwarders, chosen), chosen)

    def method(self, cell: Cell) -> Method:
        """Return how forwarders share the core. They do not run side by side: the cost of a lookup
        depends on the caches, so each program must have them to itself.
        """
        method = super().method(cell)
        return "turns" if method == "standing" else method

    def arms_of(self, cell: Cell) -> list[Arm]:
        return arms_of(self._forwarders, cell.link)
