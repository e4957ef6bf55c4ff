# SPDX-License-Identifier: BSD-3-Clause
"""Whole comparisons of `rfc2544`: the lab's own searches, on simulated forwarders.

In each block every arm is started once, and its throughput is searched with the preset's goals. Its
capacity differs by restart and from window to window, and some searches have no result. The results
are paired, corrected and judged as those of a run. Everything comes from one seed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from linerate.experiments.rfc2544.options import Options
from linerate.experiments.rfc2544.plan import cells
from linerate.experiments.rfc2544.presets import TESTS, Preset, preset
from linerate.records.summary import CellSummary, Comparison
from linerate.trial.search.simulated import Model, SimulatedForwarder
from linerate.trial.search.throughput import search
from linerate.verdict.comparisons import Pairing, compare, pair_searched
from linerate.verdict.metrics import NDR
from linerate_bench.trust.comparison import SIZE, TESTED, arms
from linerate_bench.trust.machine import PROGRAM

LINK = "memif"


@dataclass(frozen=True)
class Searches:
    """A run of this preset at one size, with the preset's default number of blocks.

    `scale` is that of a restart's t (with `freedom`) on the log scale; `spread` is the standard
    deviation from window to window on the same scale.
    """

    preset: Preset
    capacity_pps: float = 4e6
    max_pps: float = 10e6
    scale: float = 0.02
    freedom: float = 4.0
    spread: float = 0.01
    failed_share: float = 0.02

    @property
    def blocks(self) -> int:
        return cells(Options(preset=self.preset, tests=TESTS, sizes=[SIZE]))[0].blocks

    def __str__(self) -> str:
        return f"rfc2544 {self.preset.name}"


QUICK_SEARCHES = Searches(preset("quick"))


def simulate(kind: Searches, slow_down: float, seed: int) -> dict[Pairing, dict[str, float]]:
    """Return the frames per second without loss, by block and label, of one run."""
    source = np.random.default_rng([seed, round(slow_down * 1e4), kind.blocks])
    return {
        (block, 1): {
            arm.label: rate
            for arm in arms(PROGRAM, PROGRAM)
            if (rate := _found(kind, slow_down if arm.label == TESTED else 0.0, source))
        }
        for block in range(kind.blocks)
    }


def _found(kind: Searches, slow_down: float, source: np.random.Generator) -> float | None:
    """Return the result of one search; None: it has none."""
    restart = math.exp(kind.scale * source.standard_t(kind.freedom))
    model = Model(
        capacity_pps=kind.capacity_pps * restart * (1 - slow_down),
        max_pps=kind.max_pps,
        queue=512,
        spread=kind.spread,
    )
    device = SimulatedForwarder(model, seed=int(source.integers(2**32)))
    if source.random() < kind.failed_share:
        return None
    # The first goal answers the question. Others would take time and change nothing.
    (goal, *_) = kind.preset.goals
    found = search(device, [goal], limit_s=kind.preset.limit_s).found.get(goal.name)
    return found.lower_pps if found else None


def judged(kind: Searches, rates: dict[Pairing, dict[str, float]]) -> Comparison:
    """Return the lab's verdict on the arm under test."""
    cell = CellSummary(
        link=LINK,
        size=SIZE,
        blocks=kind.blocks,
        ceiling=None,
        arms=[],
        references=[],
        lower_load=[],
        books_closed=None,
    )
    labels = [arm.label for arm in arms(PROGRAM, PROGRAM)]
    (found,) = compare([pair_searched(cell, NDR, rates, labels, planned=kind.blocks, primary=True)])
    return found
