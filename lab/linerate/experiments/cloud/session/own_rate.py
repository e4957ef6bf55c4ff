# SPDX-License-Identifier: BSD-3-Clause
"""100 % of a framework at a frame size: its NDR by itself, on the whole core, without tenants.

A flood says where to look, then MLRsearch (RFC 9971) looks for the greatest rate without loss, by
short windows of which up to half may lose: a shared machine is quiet for a part of a second at a
time. Where the sender is not in time at the greatest load, it looks below that.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Protocol

from linerate.host.process import checkpoint
from linerate.records.cells import Arm
from linerate.records.journal import Journal
from linerate.records.trial import Trial
from linerate.trial.bed import Bed
from linerate.trial.search.bed_device import BedDevice, Terms
from linerate.trial.search.goals import Goal
from linerate.trial.search.replay import Resumed
from linerate.trial.search.throughput import Throughput, search
from linerate.trial.trial import Bench, Plan, run_trial

GOAL = Goal("NDR", 0.0, 0.5, 0.02, 0.1, 0.1, 0.3)
LIMIT_S = 60.0
# Of what came back from the flood: an overloaded forwarder may carry less than one that is not.
TOPS = (1.2, 0.9, 0.7, 0.5, 0.3, 0.15)
FLOOD_S = 0.3
_WINDOWS = 8


class Beds(Protocol):
    """Opens a link with a sender."""

    def __call__(self, *, flood: bool, size: int | None = None) -> AbstractContextManager[Bed]: ...


def search_rate(  # noqa: PLR0917 - what it is made of
    bench: Bench,
    journal: Journal,
    framework: str,
    size: int,
    bed: Beds,
    record: Callable[[Trial], None],
) -> float | None:
    """In frames per second over all directions; None: it was not found. All is on record."""
    arm = Arm(framework, framework)
    flooded = _flood(bench, journal, arm, size, bed, record)
    if not flooded:
        return None
    with bed(flood=False, size=size) as opened:
        for top in TOPS:
            checkpoint()
            found = _search(bench, journal, arm, opened, top * flooded, record)
            for goal in found.found.values():
                if goal.lower_pps:
                    return goal.lower_pps
    return None


def _place(arm: Arm, bed: Bed, size: int) -> dict[str, object]:
    return {"link": bed.link.name, "size": size, "arm": arm.label, "block": 0}


def _flood(  # noqa: PLR0917
    bench: Bench,
    journal: Journal,
    arm: Arm,
    size: int,
    beds: Beds,
    record: Callable[[Trial], None],
) -> float | None:
    with beds(flood=True, size=size) as bed:
        place = {**_place(arm, bed, size), "role": "self-test"}
        if (trial := journal.replay(**place)) is None:
            checkpoint()
            shorter = replace(bench, window_s=FLOOD_S)
            trial = run_trial(shorter, Plan(arm, "flood", 0, 0, "self-test"), bed)
            record(trial)
    return trial.received_pps if trial.valid else None


def _search(  # noqa: PLR0917
    bench: Bench,
    journal: Journal,
    arm: Arm,
    bed: Bed,
    top_pps: float,
    record: Callable[[Trial], None],
) -> Throughput:
    # Records do not say that a search had no more time: its end is where another greatest load is.
    place = {**_place(arm, bed, bed.context.size), "role": "search", "maximum_pps": top_pps}
    with BedDevice(
        bench,
        bed,
        arm,
        block=0,
        max_pps=top_pps,
        terms=Terms(windows=_WINDOWS),
        record=record,
    ) as real:
        return search(Resumed(real, journal, place), [GOAL], limit_s=LIMIT_S, attempts=1)
