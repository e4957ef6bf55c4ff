# SPDX-License-Identifier: BSD-3-Clause
"""Make the setup of a plan's trials: the link of a cell, and its sender."""

from __future__ import annotations

from linerate.links import Wire
from linerate.records.cells import Cell
from linerate.runs.plans.steps import SessionPlan
from linerate.traffic.sender import Sender
from linerate.trial.link_setup import LinkSetup


def setup_of(
    plan: SessionPlan, cell: Cell, *, flood: bool, sender: bool = True, number: int = 0
) -> LinkSetup:
    """Return the setup. `flood`: the sender sends floods only. `sender`: False if another program
    sends. `number`: distinguishes setups that are open at once.
    """
    bench = plan.bench

    def ours(wire: Wire) -> Sender:
        return bench.generator(wire, flood=flood, late_after_us=plan.late_after_us)

    found, other = plan.link(cell.link), plan.needs.sender
    context = bench.context(cell.size, number, receive_first=plan.receive_first)
    start = other.start if other else ours
    return LinkSetup(found, context, start if sender and found.has_generator else None)
