# SPDX-License-Identifier: BSD-3-Clause
"""The factors of the experiment, and the names and order of their levels.

CPU is the forwarder's part of the core that it shares with the tenants:

shared    it and each tenant have the same weight: beside n busy tenants it gets one part in n + 1
quota-Q   at most Q per cent of the core, whenever it wants them: its weight is the greatest,
          beside which n busy tenants keep n parts of 100 + n
own       a core that no tenant may use
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from linerate.experiments.cloud.window import CloudCell, CloudTrialCell
from linerate.records.trial import Trial

FRAMEWORK, KIND, LOAD, TENANTS = "framework", "kind", "load", "tenants"
CPU, SIZE, RATE = "cpu", "size", "rate"
# In the order of tables and analyses.
FACTORS = (FRAMEWORK, KIND, LOAD, TENANTS, CPU, SIZE, RATE)
LOADS = ("none", "idle", "cpu", "io", "network", "mixed")
# The counters of a load's work. Idle tenants have none.
WORK_OF = {
    "cpu": ("bogo_ops",),
    "io": ("io_bytes",),
    "network": ("network_bytes",),
    "mixed": ("bogo_ops", "io_bytes", "network_bytes"),
}
KINDS = ("none", "container", "vm")
# The forwarder of trials in which tenants are alone.
NOBODY = "nobody"
SHARED, OWN = "shared", "own"


@dataclass(frozen=True)
class Place:
    """A cell of the design: one level of each factor."""

    framework: str
    size: int
    cell: CloudCell

    def level(self, factor: str) -> str:
        """Return the level of a factor, as analyses and reports write it."""
        return self.levels[factor]

    @cached_property
    def levels(self) -> dict[str, str]:
        """The levels of all factors."""
        cell = self.cell
        return {
            FRAMEWORK: self.framework,
            KIND: cell.kind,
            LOAD: cell.load,
            TENANTS: str(cell.tenants),
            CPU: cell.cpu,
            SIZE: str(self.size),
            RATE: rate_words(cell.rate),
        }

    @property
    def words(self) -> str:
        cell = self.cell
        beside = "alone"
        if cell.tenants:
            beside = f"beside {cell.tenants} {cell.load} {cell.kind}"
        return (
            f"{self.framework}, {self.size} B at {rate_words(cell.rate)}, {beside}, CPU {cell.cpu}"
        )


def rate_words(rate: float) -> str:
    return f"{rate * 100:g} %"


def place_of(trial: Trial) -> Place | None:
    """Return the place of a trial in a cell; None for other trials, such as those of searches."""
    if not isinstance(trial.cell, CloudTrialCell):
        return None
    return Place(trial.arm, trial.cell.size, trial.cell.levels)


def quota_of(cpu: str) -> float | None:
    """Return the share of the core, from 0.01 to 1; None if there is no quota."""
    return int(cpu.removeprefix("quota-")) / 100 if cpu.startswith("quota-") else None


def cpu_order(level: str) -> tuple[int, float]:
    """Return the sort key: shared, then rising quotas, then an own core."""
    if level == SHARED:
        return (0, 0.0)
    return (2, 0.0) if level == OWN else (1, quota_of(level) or 0.0)


def in_order(factor: str, levels: Sequence[str]) -> list[str]:
    """Return each level once, in the order of the factor; frameworks in the given order."""
    found = list(dict.fromkeys(levels))
    if factor == FRAMEWORK:
        return found
    if factor == CPU:
        return sorted(found, key=cpu_order)
    if factor in (KIND, LOAD):
        order = KINDS if factor == KIND else LOADS
        return sorted(found, key=order.index)
    return sorted(found, key=lambda level: float(level.removesuffix(" %")))
