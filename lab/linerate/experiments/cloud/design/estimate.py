# SPDX-License-Identifier: BSD-3-Clause
"""Estimate the duration of a run, before it starts, from the times of starts and windows on two
slow cores.

Once blocks are over the monitor's estimate is better, and is printed during the run.
"""

from __future__ import annotations

from dataclasses import dataclass

from linerate.experiments.cloud.design.design import CloudDesign
from linerate.experiments.cloud.design.enough import fewest_blocks
from linerate.experiments.cloud.design.levels import NOBODY, Place
from linerate.experiments.cloud.design.plan import alone, own_rates
from linerate.host.text import counted

# The time to find one NDR twice (by a flood, then some dozens of short windows), and the share
# that the sender keeps.
SEARCH_S = 18.0
# A forwarder's start, its warm-up, settling and reading.
START_S = 1.0
# The time until a tenant works, in addition to its window.
_READY_S = {"none": 0.0, "container": 0.2, "vm": 4.5}


@dataclass(frozen=True)
class Estimate:
    """An estimate. `search_s`: before the first block."""

    search_s: float
    block_s: float
    blocks: int

    @property
    def seconds(self) -> float:
        return self.search_s + self.blocks * self.block_s

    def blocks_within(self, minutes: float) -> int:
        """Return the number of whole blocks that fit."""
        return max(min(int((minutes * 60 - self.search_s) / self.block_s), self.blocks), 0)


def estimate(design: CloudDesign) -> Estimate:
    places = design.places
    steps = [*places, *alone(places)]
    return Estimate(
        search_s=0.0 if design.line_rate else SEARCH_S * len(own_rates(design)),
        block_s=sum(seconds_of(step, design.window_s) for step in steps),
        blocks=design.blocks,
    )


def seconds_of(place: Place, window_s: float) -> float:
    """Return the seconds of one attempt."""
    start_s = 0.1 if place.framework == NOBODY else START_S
    return window_s + start_s + place.cell.tenants * _READY_S[place.cell.kind]


def told(found: Estimate, design: CloudDesign, minutes: float | None) -> list[str]:
    """Return the lines to print before a run starts."""
    cells = len(design.places)
    searching = f"({duration(found.search_s)} of it to find what each framework carries alone)"
    lines = [
        f"{counted(cells, 'cell')} x {counted(found.blocks, 'block')}: about "
        f"{duration(found.seconds)} {searching if found.search_s else ''}".rstrip()
    ]
    fit = found.blocks if minutes is None else found.blocks_within(minutes)
    if fit < found.blocks:
        lines.append(
            f"--minutes {minutes:g}: about {fit} of {counted(found.blocks, 'block')} will fit; "
            "the results list the rest, and --resume goes on with it"
        )
    fewest = fewest_blocks(design.parts)
    if fit < fewest:
        more = "--blocks" if found.blocks < fewest else "minutes, or fewer levels"
        lines.append(
            f"with fewer than {fewest} blocks some questions of this design cannot be answered, "
            f"whatever is measured: take more {more}"
        )
    return lines


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
