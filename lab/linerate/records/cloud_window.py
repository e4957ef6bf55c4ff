# SPDX-License-Identifier: BSD-3-Clause
"""What a record of experiment `cloud` has beside any trial's: its cell, and what the core did.

All figures are differences over the window in which frames were sent, and of nothing else, unless
they say otherwise. A figure that cannot be had is absent, never 0.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from linerate.records.types import Count, Difference, Rate, Seconds, Strict

# `none`: nobody is beside the forwarder.
LoadName = Literal["none", "idle", "cpu", "io", "network", "mixed"]
KindName = Literal["none", "container", "vm"]
# What the forwarder is given of its core.
CpuName = Annotated[str, Field(pattern=r"^(shared|own|quota-([1-9][0-9]?|100))$")]


class CloudCell(Strict):
    """One combination of levels; with the forwarder it is a cell of the design."""

    kind: KindName = Field(description="what the tenants are")
    load: LoadName
    tenants: Annotated[int, Field(ge=0, le=200)]
    cpu: CpuName
    rate: Annotated[float, Field(gt=0, le=2)] = Field(
        description="offered, as a share of `full_pps`, as a rule the forwarder's own NDR"
    )

    model_config = Strict.model_config | {"frozen": True}


class TenantWindow(Strict):
    """What one tenant got done. Its counters are asked for beside the window, `seconds` apart."""

    name: str
    seconds: Seconds
    bogo_ops: Count | None = Field(default=None, description="of stress-ng")
    io_operations: Count | None = None
    io_bytes: Count | None = None
    network_bytes: Count | None = None
    cpu_s: Seconds | None = Field(
        default=None, description="of its control group, between the readings of the core"
    )
    memory_bytes: Count | None = Field(default=None, description="at the window's end")


class CoreWindow(Strict):
    """What the core did that forwarder and tenants share."""

    cpu: Annotated[int, Field(ge=0)]
    seconds: Seconds = Field(description="between the readings")
    busy_s: Seconds = Field(description="to 1/100 s, softirqs included")
    softirq_s: Seconds
    steal_s: Seconds
    softirqs: dict[str, Count] = Field(
        default_factory=dict, description="by kind: /proc/softirqs of this core"
    )
    switches: Count | None = Field(default=None, description="context switches on this core")
    cache_references: Count | None = Field(
        default=None, description="of the last-level cache, where the core has such a counter"
    )
    cache_misses: Count | None = Field(
        default=None, description="of the last-level cache: each moves a line of 64 bytes"
    )
    memory_bytes: Count | None = Field(
        default=None,
        description="moved to and from memory by all cores of the machine, where resctrl tells",
    )


class CloudWindow(Strict):
    """Of a trial of experiment cloud."""

    cell: CloudCell
    full_pps: Rate | None = Field(
        default=None, description="of which `rate` is a share; absent: no forwarder took part"
    )
    ndr_pps: Rate | None = Field(
        default=None,
        description="what the forwarder carries alone without loss, where that was looked for; "
        "`full_pps` is less where the generator keeps no more beside tenants",
    )
    forwarder_cpu_s: Seconds | None = Field(
        default=None,
        description="of the forwarder's control group, between the readings of the core: its "
        "process, and the kernel's threads that receive for it where they could be put there",
    )
    forwarder_throttled_s: Seconds | None = Field(
        default=None, description="in which its quota was used up"
    )
    tenants: list[TenantWindow] = Field(default_factory=list)
    core: CoreWindow | None = None
    bridge_bytes: Difference | None = Field(
        default=None,
        description="to and from the host's end of the tenants' bridge, by its own counters, read "
        "beside the window as the tenants' are",
    )
    accelerator: Literal["kvm", "tcg"] | None = Field(default=None, description="of vm tenants")
    tenant_packages: dict[str, str] = Field(
        default_factory=dict, description="versions of what vm tenants are made of, by package"
    )
