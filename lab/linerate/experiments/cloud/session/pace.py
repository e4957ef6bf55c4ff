# SPDX-License-Identifier: BSD-3-Clause
"""Find the share of a framework's NDR that the sender can keep while tenants work on the other
core.

Frames come back in bursts when tenants keep the forwarder from its core, and receiving them takes
time on the sender's core; and if the two cores are hyperthreads of one, a sender beside a busy one
is slower. A rate that it does not keep would void every window of such cells. So the rate is tried
beside the most tenants of the design, for each framework and frame size; and all of these get the
share that is kept for each: with different shares, differences between senders would look like
differences between frameworks and frame sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from linerate.experiments.cloud.design.levels import Place, cpu_order
from linerate.experiments.cloud.session.cell_run import CellRun, Site, due
from linerate.records.trial import Trial
from linerate.runs.plans.steps import Attempts, Most, Record, Steps
from linerate.trial.link_setup import LinkSetup

SHARES = (1.0, 0.7, 0.5, 0.35, 0.25, 0.18, 0.12, 0.08)
# The share of the sender's CPU with which other processes, and not the tenants, make it late.
_DISTURBS = 0.05
MOST = Most(windows=3, starts=2, disturbed=("late",))
# The loads that keep the forwarder waiting for longest come first.
_LOADS = ("cpu", "mixed", "network", "io", "idle")
_KINDS = ("container", "vm")


def hardest(places: Sequence[Place], framework: str, size: int) -> Place | None:
    """Return the cell that is hardest for a sender; None if there are no tenants."""
    mine = [
        place
        for place in places
        if (place.framework, place.size) == (framework, size) and place.cell.tenants
    ]

    def order(place: Place) -> tuple[object, ...]:
        cell = place.cell
        return (
            -cell.tenants, _LOADS.index(cell.load), _KINDS.index(cell.kind), cpu_order(cell.cpu),
            -cell.rate,
        )  # fmt: skip

    return min(mine, key=order, default=None)


def kept(
    site: Site, setup: LinkSetup, place: Place, ndr_pps: float, most: float
) -> Steps[float | None]:
    """Return the greatest share of the NDR, `most` at most, that can be 100 % then; None if the
    sender kept no rate. All trials are on record.
    """
    greatest = place.cell.rate
    for share in (each for each in SHARES if each <= most):
        # The greatest load of the design, of so much.
        cell = place.cell.model_copy(update={"rate": share * greatest})
        tried = replace(place, cell=cell)
        run = CellRun(site, setup, tried, 0, ndr_pps, role="self-test")

        def attempt(number: int, record: Record, run: CellRun = run) -> Trial:
            return run.go(number, MOST.windows, record)

        last: Trial = yield Attempts(
            due=partial(due, setup, tried, 0, "self-test"),
            run=attempt,
            most=MOST,
            counts=False,
            fails=False,
        )
        if last.valid:
            return share
    return None


def strangers(trials: Sequence[Trial], sender: int) -> str:
    """Return the processes that used the sender's CPU in a void window, in words; empty if none is
    known.

    These are never tenants, so a repetition may find the CPU free.
    """
    for trial in reversed(trials):
        shares = (trial.others or {}).get(str(sender), {})
        named = [f"{who} {share:.0%}" for who, share in shares.items() if share >= _DISTURBS]
        if named and not trial.valid:
            return ", ".join(named)
    return ""
