# SPDX-License-Identifier: BSD-3-Clause
"""Parts of a design, each fully crossed, and the limits of tenants.

A full factorial of all factors is thousands of cells. A design is therefore a union of parts: each
crosses the levels that it names, and all cells of all parts are measured in the same randomised
complete blocks. One part is the full factorial; several are a fraction of it in which every
interaction within a part can be estimated separately, which is impossible in regular fractions,
because they alias interactions. A cell of several parts is measured once.

Without tenants a cell has no load and no kind: it is one cell, whatever these lists contain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import Annotated

from pydantic import ConfigDict, Field

from linerate.experiments.cloud.design.levels import Place
from linerate.experiments.cloud.window import CloudCell
from linerate.host.errors import DesignError
from linerate.records.cloud_summary import CpuName, KindName, LoadName

# The limit of a part. At a second and a start each, one block of so many takes half a day.
MOST_CELLS = 10_000
MOST_PARTS = 50


@dataclass(frozen=True)
class Part:
    """Crossed levels. `rates`: shares of each framework's own NDR."""

    __pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)

    name: str
    frameworks: tuple[str, ...]
    kinds: tuple[KindName, ...]
    loads: tuple[LoadName, ...]
    tenants: tuple[int, ...]
    cpus: tuple[CpuName, ...]
    sizes: tuple[int, ...]
    rates: tuple[float, ...]

    def __post_init__(self) -> None:
        """Raise `DesignError` for more cells than a part may have."""
        levels = (
            self.frameworks, self.kinds, self.loads, self.tenants, self.cpus, self.sizes, self.rates
        )  # fmt: skip
        cells = math.prod(map(len, levels))
        if cells > MOST_CELLS:
            raise DesignError(
                f"part {self.name}: {cells} cells, more than {MOST_CELLS}",
                "name fewer levels, or cross them in several parts",
            )

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
    """The limits of each tenant. `cpu_quota`: of the shared core; None: only its weight limits it.

    `memory_mib`: of a container; a virtual machine takes what its load needs.
    """

    __pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)

    memory_mib: Annotated[int, Field(ge=32, le=65_536)] = 256
    disk_mib: Annotated[int, Field(ge=4, le=65_536)] = 32
    # A byte per second is the least, and the kernel's least quota 1 ms of a period (`cgroups`).
    io_mib_per_s: Annotated[float, Field(ge=2**-20, le=2**20)] | None = None
    cpu_quota: Annotated[float, Field(ge=0.01, le=1)] | None = None
    pids: Annotated[int, Field(ge=32, le=32_768)] = 256
