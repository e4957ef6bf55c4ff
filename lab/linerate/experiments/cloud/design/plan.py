# SPDX-License-Identifier: BSD-3-Clause
"""Cells and blocks: those that this machine supports, and their order. Pure."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from linerate.experiments.cloud.design.design import CloudDesign
from linerate.experiments.cloud.design.levels import NOBODY, OWN, SHARED, Place
from linerate.experiments.cloud.design.parts import Part
from linerate.experiments.cloud.window import CloudCell
from linerate.host.cores.cpus import Cores
from linerate.records.cloud_summary import NotRun


@dataclass(frozen=True)
class Room:
    """The CPUs that a machine has for tenants. `spare`: a CPU beside the generator's and the
    forwarder's.
    """

    forwarder: int
    spare: int | None

    @classmethod
    def of(cls, cores: Cores, allowed: Sequence[int]) -> Room:
        others = [cpu for cpu in allowed if cpu not in (cores.control, cores.forwarder)]
        return cls(cores.forwarder, others[0] if others else None)

    def tenants_cpu(self, cpu: str) -> int:
        """Return the CPU of tenants, given the forwarder's: never the generator's core."""
        if cpu == OWN and self.spare is not None:
            return self.spare
        return self.forwarder

    def holds(self, cell: CloudCell) -> bool:
        return cell.cpu != OWN or not cell.tenants or self.spare is not None


def held(parts: Sequence[Part], room: Room) -> tuple[list[Part], list[NotRun]]:
    """Return the parts without the levels that the machine does not support, and those levels.

    A level is removed from a part as a whole, because the rest must stay crossed: a core of its own
    beside tenants needs a third CPU.
    """
    kept, lost = [], []
    for part in parts:
        dropped = [place for place in part.places if not room.holds(place.cell)]
        if not dropped:
            kept.append(part)
            continue
        lost.append(
            NotRun(
                what=f"part {part.name}: a core of the forwarder's own beside tenants",
                reason=(
                    "this machine has two CPUs for the lab, one of them the generator's: there is "
                    "no other core for the tenants"
                ),
                cells=len(dropped),
                trials=0,
            )
        )
        rest = replace(part, cpus=tuple(cpu for cpu in part.cpus if cpu != OWN))
        if rest.cpus:
            kept.append(rest)
        if 0 in part.tenants:
            kept.append(replace(part, name=f"{part.name}-own", cpus=(OWN,), tenants=(0,)))
    return kept, lost


def alone(places: Sequence[Place]) -> list[Place]:
    """Return the tenants of these cells alone, each combination once: idle ones do no work."""
    found: dict[Place, None] = {}
    for place in places:
        cell = place.cell
        if cell.tenants and cell.load != "idle":
            own = CloudCell(
                kind=cell.kind, load=cell.load, tenants=cell.tenants, cpu=SHARED, rate=1.0
            )
            found[Place(NOBODY, places[0].size, own)] = None
    return list(found)


def order(design: CloudDesign) -> Iterator[list[Place]]:
    """Yield each block: every cell and the tenants alone, in an order drawn from the seed."""
    places = design.places
    for block in range(design.blocks):
        drawn = [*places, *alone(places)]
        random.Random(f"linerate:{design.seed}:cloud:{block}").shuffle(drawn)
        yield drawn


def own_rates(design: CloudDesign) -> list[tuple[str, int]]:
    """Return the frameworks and sizes whose NDR must be known, in the order of the searches."""
    frameworks = [arm.forwarder for arm in design.arms]
    wanted = dict.fromkeys((place.framework, place.size) for place in design.places)
    known = [each for each in wanted if each[0] in frameworks]
    random.Random(f"linerate:{design.seed}:cloud:ndr").shuffle(known)
    return sorted(known, key=lambda each: each[1])
