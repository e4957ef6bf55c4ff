# SPDX-License-Identifier: BSD-3-Clause
"""What a run of experiment `cloud` is asked: a design of parts, each fully crossed.

A full factorial of all factors is thousands of cells. A design is therefore a union of parts: each
crosses the levels that it names, and all cells of all parts are measured in the same randomised
complete blocks. One part is the full factorial; several are a fraction of it in which every
interaction that a part has can be told from everything else, which regular fractions, that alias
them, do not allow. A cell of several parts is measured once.

Without tenants a cell has no load and no kind: whatever these lists say, it is one cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Annotated

from pydantic import ConfigDict, Field, TypeAdapter

from linerate.experiments.cloud.design.levels import Place
from linerate.records.cells import AA_SUFFIX, Cell
from linerate.records.cloud_summary import NotRun
from linerate.records.cloud_window import CloudCell, CpuName, KindName, LoadName
from linerate.runs.blocks import Preset, arms, check_blocks, check_fit
from linerate.runs.options import Options as CommonOptions
from linerate.runs.run_summary import Design

NAME = "cloud"
QUESTION = (
    "What becomes of each path to packets, and of its neighbours, when tenants load the core that "
    "they share?"
)
# Neighbours keep a forwarder from its core for milliseconds, and frames that come back in bursts
# then keep the sender, which is on one core with those who receive for it: what it sends within
# this time after a slot is not late (its own limit is 100 us). The share of late frames that voids
# a window is that of all experiments.
LATE_AFTER_US = 5000


@dataclass(frozen=True)
class Part:
    """Levels that are crossed. `rates`: shares of each framework's own NDR."""

    __pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)

    name: str
    frameworks: tuple[str, ...]
    kinds: tuple[KindName, ...]
    loads: tuple[LoadName, ...]
    tenants: tuple[int, ...]
    cpus: tuple[CpuName, ...]
    sizes: tuple[int, ...]
    rates: tuple[float, ...]

    @property
    def places(self) -> list[Place]:
        """All cells, those without tenants once each."""
        crossed = product(
            self.frameworks, self.sizes, self.kinds, self.loads, self.tenants, self.cpus, self.rates
        )
        found: dict[Place, None] = {}
        for framework, size, kind, load, tenants, cpu, rate in crossed:
            cell = CloudCell(
                kind=kind if tenants else "none",
                load=load if tenants else "none",
                tenants=tenants,
                cpu=cpu,
                rate=rate,
            )
            found[Place(framework, size, cell)] = None
        return list(found)


@dataclass(frozen=True)
class TenantShape:
    """What each tenant may use. `cpu_quota`: of the shared core; None: what its weight gives it.

    `memory_mib`: of a container; a virtual machine takes what its load needs.
    """

    __pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)

    memory_mib: Annotated[int, Field(ge=32, le=65_536)] = 256
    disk_mib: Annotated[int, Field(ge=4, le=65_536)] = 32
    # A byte per second is the least, and the kernel's least quota 1 ms of a period (`cgroups`).
    io_mib_per_s: Annotated[float, Field(ge=2**-20, le=2**20)] | None = None
    cpu_quota: Annotated[float, Field(ge=0.01, le=1)] | None = None
    pids: Annotated[int, Field(ge=32, le=32_768)] = 256


@dataclass(kw_only=True)
class Options(CommonOptions):
    """What the command line and the design's file asked for.

    `not_held`: levels that this machine cannot hold. `minutes`: budget of a session; None: none.
    """

    preset: Preset
    parts: list[Part] = field(default_factory=list)
    tenant: TenantShape = field(default_factory=TenantShape)
    control: bool = True
    left_out: list[str] = field(default_factory=list)
    not_held: list[NotRun] = field(default_factory=list)
    minutes: Annotated[float, Field(gt=0)] | None = None


@dataclass(kw_only=True)
class CloudDesign(Design):
    """`arms`: the frameworks, the first of them, the reference, once more as the A/A control."""

    parts: list[Part] = field(default_factory=list)
    tenant: TenantShape = field(default_factory=TenantShape)
    blocks: int = 1
    control: bool = True
    not_held: list[NotRun] = field(default_factory=list)
    minutes: float | None = None

    @property
    def reference(self) -> str:
        return self.arms[0].label

    @property
    def places(self) -> list[Place]:
        """Every cell of a block, in the order of the design, that this machine can hold."""
        return places_of(self.parts, self.reference if self.control else None)


def design_of(options: Options) -> CloudDesign:
    """What these options come to, with every default put in."""
    preset = options.preset
    blocks = preset.blocks if options.blocks is None else options.blocks
    check_blocks(blocks)
    frameworks = list(dict.fromkeys(name for part in options.parts for name in part.frameworks))
    sizes = list(dict.fromkeys(size for part in options.parts for size in part.sizes))
    check_fit(frameworks, options.links)
    taking_part = arms(frameworks)
    return CloudDesign(
        question=QUESTION,
        preset=preset.name,
        preset_note=preset.note,
        seed=options.seed,
        window_s=preset.window_s,
        cells=[Cell(name, size, blocks) for name in options.links for size in sizes],
        arms=[arm for arm in taking_part if options.control or arm.label == arm.forwarder],
        line_rate=options.line_rate,
        parts=options.parts,
        tenant=options.tenant,
        blocks=blocks,
        control=options.control,
        not_held=options.not_held,
        minutes=options.minutes,
    )


OPTIONS, DESIGN = TypeAdapter(Options), TypeAdapter(CloudDesign)


def places_of(parts: Sequence[Part], control: str | None) -> list[Place]:
    """`control`: the framework whose cells are there a second time; None: none is."""
    found: dict[Place, None] = {}
    for part in parts:
        for place in part.places:
            found[place] = None
            if place.framework == control:
                found[Place(control + AA_SUFFIX, place.size, place.cell)] = None
    return list(found)
