# SPDX-License-Identifier: BSD-3-Clause
"""The CPU time of the shared core in a window: of the forwarder, of tenants, and of all.

It replaces the meter that every window has (`linerate.trial.cpu_time`), so that everything is read
at the same two moments: just before the first frame is sent, and just after the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linerate.experiments.cloud.session.counters import CoreCounters, Reading, between
from linerate.experiments.cloud.session.neighbours import Asked, Neighbours, since
from linerate.experiments.cloud.tenants.cgroups.cgroups import Group, Usage
from linerate.experiments.cloud.window import CloudWindow
from linerate.host.process import Child
from linerate.links import KernelThread
from linerate.records.outcome import CpuTime
from linerate.trial.cpu_time import CpuMeter, Look


@dataclass(frozen=True)
class CoreLook(Look):
    """A reading. `forwarder`: of its control group. `asked`: the tenants' work that the host
    counts; empty for guests, which take time to answer.
    """

    core: Reading
    forwarder: Usage
    tenants: list[Usage]
    asked: list[Asked]


@dataclass(frozen=True)
class Used:
    """The CPU use between the two readings of a window."""

    begin: CoreLook
    end: CoreLook


class CoreMeter(CpuMeter):
    """Measures the forwarder's core, its control group and those of the tenants."""

    def __init__(
        self,
        child: Child | None,
        threads: Sequence[KernelThread],
        counters: CoreCounters,
        group: Group,
        neighbours: Neighbours,
    ) -> None:
        super().__init__(counters.host, child, threads, counters.cpu)
        self._counters = counters
        self._group = group
        self._neighbours = neighbours
        self.used_by: Used | None = None

    def look(self) -> CoreLook:
        found = super().look()
        return CoreLook(
            **vars(found),
            core=self._counters.read(),
            forwarder=self._group.usage(),
            tenants=self._neighbours.usages(),
            asked=self._neighbours.asked() if self._neighbours.counted_here else [],
        )

    def used(self, idle: Look, begin: Look, end: Look, window_s: float) -> list[CpuTime]:
        assert isinstance(begin, CoreLook)
        assert isinstance(end, CoreLook)
        self.used_by = Used(begin, end)
        return super().used(idle, begin, end, window_s)

    def enter(self, window: CloudWindow) -> None:
        """Enter the use of the core and of the forwarder's group, and the tenants' windows."""
        if self.used_by is None:
            return
        begin, end = self.used_by.begin, self.used_by.end
        window.core = between(self._counters.cpu, begin.core, end.core)
        first, last = begin.forwarder, end.forwarder
        window.forwarder_cpu_s = since(first.cpu_s, last.cpu_s)
        window.forwarder_throttled_s = since(first.throttled_s, last.throttled_s)
