# SPDX-License-Identifier: BSD-3-Clause
"""The design of a run of experiment `cloud`, as stored in run.json."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from linerate.experiments.cloud.design.levels import Place
from linerate.experiments.cloud.design.parts import MOST_PARTS, Part, TenantShape
from linerate.experiments.cloud.options import Options
from linerate.records.cells import AA_SUFFIX, MAX_BLOCKS, Cell
from linerate.records.cloud_summary import NotRun
from linerate.runs.options import Agreement, Budget
from linerate.runs.plans.blocks import arms, check_blocks, check_fit
from linerate.runs.run_summary import Design

NAME = "cloud"
QUESTION = (
    "How do forwarders on each path to packets, and tenants that share their core, slow each other "
    "down?"
)
# Neighbours keep a forwarder from its core for milliseconds, and frames that then come back in
# bursts delay the sender, which shares a core with the threads that receive for it: a frame sent
# within this time after its slot is not late (the sender's own limit is 100 us). The share of late
# frames that voids a window is that of all experiments.
LATE_AFTER_US = 5000


@dataclass(kw_only=True)
class CloudDesign(Budget, Design):
    """A design. `arms`: the frameworks, the first of them, the reference, again as the A/A
    control.
    """

    parts: Annotated[
        list[Part], Agreement("parts", compare="same"), Field(max_length=MOST_PARTS)
    ] = field(default_factory=list)
    tenant: Annotated[TenantShape, Agreement("tenant", compare="same")] = field(
        default_factory=TenantShape
    )
    blocks: Annotated[int, Field(ge=1, le=MAX_BLOCKS)] = 1
    control: Annotated[bool, Agreement("control")] = True
    not_held: list[NotRun] = field(default_factory=list)

    @property
    def reference(self) -> str:
        return self.arms[0].label

    @property
    def places(self) -> list[Place]:
        """Every cell of a block that this machine supports, in the order of the design."""
        return places_of(self.parts, self.reference if self.control else None)


def design_of(options: Options) -> CloudDesign:
    """Return the design of these options, with all defaults filled in."""
    preset = options.preset
    blocks = preset.blocks if options.blocks is None else options.blocks
    check_blocks(blocks)
    frameworks = list(dict.fromkeys(name for part in options.parts for name in part.frameworks))
    sizes = list(dict.fromkeys(size for part in options.parts for size in part.sizes))
    check_fit(frameworks, [options.link(name) for name in options.links])
    taking_part = arms(frameworks)
    return CloudDesign.of(
        options,
        question=QUESTION,
        window_s=preset.window_s,
        cells=[Cell(name, size, blocks) for name in options.links for size in sizes],
        arms=[arm for arm in taking_part if options.control or arm.label == arm.forwarder],
        blocks=blocks,
    )


def places_of(parts: Sequence[Part], control: str | None) -> list[Place]:
    """Return the cells. `control`: the framework whose cells occur a second time; None: none
    does.
    """
    found: dict[Place, None] = {}
    for part in parts:
        for place in part.places:
            found[place] = None
            if place.framework == control:
                found[Place(control + AA_SUFFIX, place.size, place.cell)] = None
    return list(found)
