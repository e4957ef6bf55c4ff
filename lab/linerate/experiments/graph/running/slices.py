# SPDX-License-Identifier: BSD-3-Clause
"""Compute an arm's window from its slices (docs/how-it-measures.md#slices-of-a-graph).

Other work of the machine only slows slices down. Slices in which the kernel saw others on the CPU
are left out; of the rest the faster half counts, because the effects of the hypervisor, interrupts
and shared caches cannot be measured. Slices of all arms are run in turn, so that all have the same
chance of a fast one.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from linerate.experiments.graph.running.conversation import Slice
from linerate.experiments.graph.window import GraphWindow

# A window counts while at least so much of its slices is left.
LEAST_LEFT = 0.5


def window_of_slices(slices: Sequence[Slice], path_nodes: int | None) -> GraphWindow:
    """Return the window of one arm's slices, at least one, with equal numbers of walks."""
    quiet = [each.tsc_cycles for each in slices if not each.waited_ns]
    first = slices[0]
    works = {each.work for each in slices}
    return GraphWindow(
        walks=sum(each.walks for each in slices),
        objects=sum(each.objects for each in slices),
        sunk=sum(each.sunk for each in slices),
        tsc_cycles=round(pace(quiet or [each.tsc_cycles for each in slices]) * len(slices)),
        tsc_hz=first.tsc_hz,
        # Each slice begins with fresh objects, so all have the same work.
        work=" ".join(sorted(works)),
        path_nodes=path_nodes,
        slice_count=len(slices),
        disturbed_slices=len(slices) - len(quiet),
        elapsed_cycles=sum(each.tsc_cycles for each in slices),
    )


def pace(cycles: Sequence[int]) -> float:
    """Return the mean of the faster half, including the middle one."""
    return statistics.fmean(sorted(cycles)[: (len(cycles) + 1) // 2])


def too_disturbed(window: GraphWindow) -> bool:
    return bool(
        window.slice_count
        and window.disturbed_slices is not None
        and window.slice_count - window.disturbed_slices < LEAST_LEFT * window.slice_count
    )
