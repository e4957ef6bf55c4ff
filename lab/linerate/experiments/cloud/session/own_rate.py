# SPDX-License-Identifier: BSD-3-Clause
"""100 % of a framework at a frame size: its NDR alone, on the whole core, without tenants.

A flood gives the starting point, then MLRsearch (RFC 9971) searches for the greatest rate without
loss, by short windows of which up to half may lose: a shared machine is quiet for a part of a
second at a time. If the sender is late at the greatest load, it searches below that.

One search may find too little, because other programs used the forwarder's CPU, or too much, by
luck in its short windows. So a rate is searched until two searches agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from linerate.records.cells import Arm, Cell
from linerate.records.trial import Trial
from linerate.runs.plans.steps import Once, OnSetup, Start, Started, Steps
from linerate.trial.link_setup import LinkSetup
from linerate.trial.search.goals import Goal
from linerate.trial.search.setup_device import Terms
from linerate.trial.search.throughput import Throughput, search

GOAL = Goal("NDR", 0.0, 0.5, 0.02, 0.1, 0.1, 0.3)
LIMIT_S = 60.0
# Multiples of a flood's received rate: an overloaded forwarder may carry less than its maximum.
TOPS = (1.2, 0.9, 0.7, 0.5, 0.3, 0.15)
FLOOD_S = 0.3
# A rate is searched at most this often. Two searches agree if the lower rate is at least this share
# of the higher: the goal's width is 2 %, and NDRs of two starts differ by some per cent.
SEARCHES = 4
_AGREE = 0.9
_WINDOWS = 8


def settled(rates: Sequence[float]) -> tuple[float, float]:
    """Return the highest rate that another search confirms, and the other's; the two highest if
    none is confirmed. The second is 0 if there is only one rate.
    """
    pairs = list(pairwise([*sorted(rates, reverse=True), 0.0]))
    return next((pair for pair in pairs if agree(*pair)), pairs[0])


def agree(higher: float, lower: float) -> bool:
    """Return True if two searches found one rate, within their precision."""
    return lower >= _AGREE * higher


def agreed(rates: Sequence[float]) -> bool:
    """Return True if no other search of this rate is needed."""
    return bool(rates) and agree(*settled(rates))


def search_rate(framework: str, cell: Cell) -> Steps[float | None]:
    """Return the rate in frames per second over all directions; None if none was found. All trials
    are on record.
    """
    arm = Arm(framework, framework)
    flooded: float | None = yield OnSetup(cell, partial(_flood, arm), flood=True)
    if not flooded:
        return None
    found: float | None = yield OnSetup(cell, partial(_searches, arm, flooded))
    return found


def _flood(arm: Arm, setup: LinkSetup) -> Steps[float | None]:
    trial: Trial = yield Once(
        setup=setup, arm=arm, block=0, role="self-test", window_s=FLOOD_S, counts=False,
        fails=False,
    )  # fmt: skip
    return trial.frames.received_pps if trial.valid else None


def _searches(arm: Arm, flooded: float, setup: LinkSetup) -> Steps[float | None]:
    for top in TOPS:
        top_pps = top * flooded
        # Records do not say that a search had no more time: its end is where another greatest load
        # is.
        found: Throughput = yield Start(
            setup=setup, arm=arm, block=0, role="search", max_pps=top_pps,
            terms=Terms(windows=_WINDOWS), procedure=_search, of={"maximum_pps": top_pps},
        )  # fmt: skip
        for goal in found.found.values():
            if goal.lower_pps:
                return goal.lower_pps
    return None


def _search(started: Started) -> Throughput:
    return search(started.device, [GOAL], limit_s=LIMIT_S, attempts=1)
