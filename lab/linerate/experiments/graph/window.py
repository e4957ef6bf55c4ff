# SPDX-License-Identifier: BSD-3-Clause
"""Records of experiment `graph`: cells, outcomes, and the metric of its comparisons."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from linerate.records.cells import CellKey, TrialCell
from linerate.records.outcome import Outcome
from linerate.records.trial import Trial
from linerate.records.types import Count
from linerate.verdict.metrics import TrialMetric, registered


class GraphTrialCell(TrialCell):
    """A graph by its name, such as chain4/swap/hash5/nostats/256."""

    kind: str = "graph"
    graph: str
    batch: int = Field(description="objects in a batch")

    @property
    def key(self) -> CellKey:
        return self.graph, self.batch


class GraphWindow(Outcome):
    """One window: a number of walks of a graph over objects that its sources make, in slices.

    work: a digest of the nodes' results in the objects, to compare windows of equally many walks.
    """

    kind: str = "graph"
    walks: Count
    objects: Count = Field(description="objects that the sources made")
    sunk: Count = Field(description="objects that the sinks got")
    tsc_cycles: Count = Field(
        description="cycles of all walks; for a window in slices, at the pace of the faster "
        "half of its undisturbed slices"
    )
    tsc_hz: Annotated[int, Field(gt=0, lt=2**63)]
    work: str
    path_nodes: Count | None = Field(
        default=None, description="workers that each object passes, without source and sink"
    )
    slice_count: Count | None = Field(
        default=None,
        description="the number of slices of the window, run between those of other arms",
    )
    disturbed_slices: Count | None = Field(
        default=None, description="the number of slices in which others had the CPU"
    )
    elapsed_cycles: Count | None = Field(
        default=None, description="the time of all slices, in cycles"
    )

    @property
    def duration_s(self) -> float:
        cycles = self.tsc_cycles if self.elapsed_cycles is None else self.elapsed_cycles
        return cycles / self.tsc_hz

    @property
    def objects_per_s(self) -> float | None:
        return self.objects * self.tsc_hz / self.tsc_cycles if self.tsc_cycles else None

    @property
    def cycles_per_object(self) -> float | None:
        return self.tsc_cycles / self.objects if self.objects else None


def window_of(trial: Trial) -> GraphWindow | None:
    """Return its outcome; None if it failed before there was any."""
    return trial.outcome if isinstance(trial.outcome, GraphWindow) else None


def _objects_per_s(trial: Trial) -> float | None:
    found = window_of(trial)
    return found.objects_per_s if found else None


OBJECTS = registered(
    TrialMetric(
        name="objects_per_s",
        words="objects per second through the graph",
        value=_objects_per_s,
    )
)
