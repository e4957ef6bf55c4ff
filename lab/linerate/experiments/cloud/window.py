# SPDX-License-Identifier: BSD-3-Clause
"""The records of experiment `cloud`: cells, and the figures of forwarder, tenants and core.

All figures are differences over the window in which frames were sent, and of nothing else, unless
they say otherwise. An unknown figure is absent, never 0.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from linerate.host.text import counted
from linerate.records.cells import CellKey, TrialCell
from linerate.records.cloud_summary import CpuName, KindName, LoadName
from linerate.records.outcome import Frames, Outcome
from linerate.records.trial import Trial
from linerate.records.types import Count, Difference, Seconds, Strict


class CloudCell(Strict):
    """One combination of levels; with the forwarder it is a cell of the design."""

    kind: KindName = Field(description="the kind of the tenants")
    load: LoadName
    tenants: Annotated[int, Field(ge=0, le=200)]
    cpu: CpuName
    rate: Annotated[float, Field(gt=0, le=2)] = Field(
        description="the offered load as a share of the request's `maximum_pps`, usually the "
        "forwarder's own NDR"
    )

    model_config = Strict.model_config | {"frozen": True}


class TenantWindow(Strict):
    """The work of one tenant. Its counters are read beside the window, `seconds` apart."""

    name: str
    seconds: Seconds
    bogo_ops: Count | None = Field(default=None, description="stress-ng's bogo operations")
    io_operations: Count | None = None
    io_bytes: Count | None = None
    network_bytes: Count | None = None
    cpu_s: Seconds | None = Field(
        default=None, description="CPU time of its control group, between the readings of the core"
    )
    memory_bytes: Count | None = Field(default=None, description="memory at the window's end")


class CoreWindow(Strict):
    """The use of the core that forwarder and tenants share."""

    cpu: Annotated[int, Field(ge=0)]
    seconds: Seconds = Field(description="time between the readings")
    busy_s: Seconds = Field(description="to 1/100 s, softirqs included")
    softirq_s: Seconds
    steal_s: Seconds
    softirqs: dict[str, Count] = Field(
        default_factory=dict, description="number by kind: /proc/softirqs of this core"
    )
    switches: Count | None = Field(default=None, description="context switches on this core")
    cache_references: Count | None = Field(
        default=None,
        description="references to the last-level cache, if the core has such a counter",
    )
    cache_misses: Count | None = Field(
        default=None, description="misses of the last-level cache: each moves a line of 64 bytes"
    )
    memory_bytes: Count | None = Field(
        default=None,
        description="bytes moved to and from memory by all cores of the machine, if resctrl "
        "counts them",
    )


class CloudTrialCell(TrialCell):
    """A combination of levels on a link, with a frame size in bytes (the 4-byte FCS included)."""

    kind: str = "cloud"
    link: str
    size: int
    levels: CloudCell

    @property
    def key(self) -> CellKey:
        return self.link, self.size

    @property
    def beside(self) -> str:
        levels = self.levels
        if not levels.tenants:
            return f"CPU {levels.cpu}" if levels.cpu.startswith("quota") else ""
        return (
            f"beside {counted(levels.tenants, levels.kind)} (load {levels.load}), CPU {levels.cpu}"
        )


class _Beside(Strict):
    """The tenants and the core of a window."""

    tenants: list[TenantWindow] = Field(default_factory=list)
    core: CoreWindow | None = None
    bridge_bytes: Difference | None = Field(
        default=None,
        description="bytes to and from the host's end of the tenants' bridge, by its own "
        "counters, read beside the window like the tenants'",
    )
    accelerator: Literal["kvm", "tcg"] | None = Field(
        default=None, description="the accelerator of vm tenants"
    )
    tenant_packages: dict[str, str] = Field(
        default_factory=dict, description="versions of the packages in vm tenants, by package"
    )


class CloudWindow(_Beside, Frames):
    """A window of frames through a forwarder beside tenants."""

    kind: str = "cloud"
    forwarder_cpu_s: Seconds | None = Field(
        default=None,
        description="CPU time of the forwarder's control group, between the readings of the "
        "core: its process, and the kernel threads that receive for it if they "
        "could be put there",
    )
    forwarder_throttled_s: Seconds | None = Field(
        default=None, description="time in which its quota was used up"
    )

    @classmethod
    def of(cls, frames: Frames) -> CloudWindow:
        """Return a window with the counts of these frames."""
        return cls(
            **{name: getattr(frames, name) for name in Frames.model_fields if name != "kind"}
        )


class TenantsAlone(_Beside, Outcome):
    """The work of tenants without any forwarder."""

    kind: str = "tenants"
    duration_s: Seconds | None = Field(default=None, description="duration of the window")


def levels_of(trial: Trial) -> CloudCell | None:
    """Return the combination of levels of the trial; None for others, such as those of searches."""
    return trial.cell.levels if isinstance(trial.cell, CloudTrialCell) else None


def beside_of(trial: Trial) -> CloudWindow | TenantsAlone | None:
    """Return the outcome with tenants and core; None if it has none, or failed before there was
    any.
    """
    found = trial.outcome
    return found if isinstance(found, CloudWindow | TenantsAlone) else None
