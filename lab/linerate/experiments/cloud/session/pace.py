# SPDX-License-Identifier: BSD-3-Clause
"""Which share of a framework's NDR the sender can keep while tenants work on the other core.

Frames come back in bursts when tenants keep the forwarder from its core, and who receives them has
the sender's core meanwhile; and where the two cores are hyperthreads of one, a sender beside a busy
one is slower. A rate that it does not keep would void every window of such cells. So all cells of a
framework and frame size get their rates from what is kept beside the most tenants of the design.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from linerate.experiments.cloud.design.levels import Place, cpu_order
from linerate.experiments.cloud.session.attempts import Most, repeated
from linerate.experiments.cloud.session.cell_run import CellRun, Site, record_of
from linerate.records.journal import Journal
from linerate.records.trial import Trial

SHARES = (1.0, 0.7, 0.5, 0.35, 0.25, 0.18, 0.12, 0.08)
MOST = Most(windows=3, starts=2)
# Those that keep the forwarder waiting for longest come first.
_LOADS = ("cpu", "mixed", "network", "io", "idle")
_KINDS = ("container", "vm")


def hardest(places: Sequence[Place], framework: str, size: int) -> Place | None:
    """The cell in which a sender has it hardest; None: there are no tenants."""
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
    site: Site, journal: Journal, place: Place, ndr_pps: float, record: Callable[[Trial], None]
) -> float | None:
    """What is 100 % then, in frames per second; None: the sender kept nothing. All is on record."""
    greatest = place.cell.rate
    for share in SHARES:
        # The greatest load of the design, of so much.
        cell = place.cell.model_copy(update={"rate": share * greatest})
        last = _tried(site, journal, replace(place, cell=cell), ndr_pps, record)
        if last and last.valid:
            return share * ndr_pps
    return None


def _tried(
    site: Site, journal: Journal, place: Place, ndr_pps: float, record: Callable[[Trial], None]
) -> Trial | None:
    run = CellRun(site, place, 0, ndr_pps, record, role="self-test")
    return repeated(
        journal,
        lambda attempt: record_of(site, place, 0, attempt, ndr_pps, "self-test"),
        lambda attempt: run.go(attempt, MOST.windows),
        MOST,
    ).last
