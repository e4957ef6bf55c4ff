# SPDX-License-Identifier: BSD-3-Clause
"""Experiment `latency` as the lab's commands know it: run, report, merge, compare."""

from __future__ import annotations

from typing import Any

from linerate.experiments.latency import page as latency_page
from linerate.experiments.latency.design import NAME, LatencyDesign, cells, design_of
from linerate.experiments.latency.loads import IDLE, IDLE_PPS, Step
from linerate.experiments.latency.options import Options
from linerate.experiments.latency.plan import Latency
from linerate.experiments.latency.summarise import (
    Asked,
    asked_of,
    of_cell,
    pairs_at,
    summarise,
    trials_at_step,
)
from linerate.experiments.latency.table import print_latency
from linerate.records.cells import AA_SUFFIX
from linerate.records.run_file import Run
from linerate.records.summary import CellSummary
from linerate.records.trial import Trial
from linerate.runs.experiment import Comparable, Experiment
from linerate.runs.kept_runs import SummaryFound, control_sample, cost_samples, interrupted_blocks
from linerate.runs.run_summary import setup_of
from linerate.verdict.comparisons import pairs_of
from linerate.verdict.metrics import ROUND_TRIP, TrialMetric


class Found(SummaryFound):
    page = staticmethod(latency_page.render)
    tell = staticmethod(print_latency)


class LatencyRuns(Experiment[Options, LatencyDesign]):
    name = NAME
    options_type, design_type = Options, LatencyDesign

    def design_of(self, options: Options) -> LatencyDesign:
        return design_of(options)

    def defaults(self, options: Options) -> dict[str, Any]:
        return {**super().defaults(options), "blocks": cells(options)[0].blocks}

    def plan(self, options: Options) -> Latency:
        return Latency(options)

    def findings(self, run: Run, trials: list[Trial]) -> Found:
        design = self.read_design(run.design)
        asked = self._asked(design, run, trials)
        summary = summarise(asked, trials, interrupted=not run.complete(len(trials)))
        return Found(summary, trials, design.link)

    def _asked(self, design: LatencyDesign, run: Run, trials: list[Trial]) -> Asked:
        setup = setup_of(NAME, run, design, trials)
        # Blocks of the floods have the same numbers, and are all run before.
        setup.warnings += interrupted_blocks([t for t in trials if t.role == "search"])
        return asked_of(setup, design)

    def comparable(self, run: Run, trials: list[Trial]) -> Comparable:
        """Return the round trips at idle: under load each run has rates of its own."""
        asked = self._asked(self.read_design(run.design), run, trials)
        summary = summarise(asked, trials, interrupted=not run.complete(len(trials)))
        result = Comparable()
        for cell in summary.cells:
            for protocol in asked.protocols:
                mine = trials_at_step(of_cell(cell, trials), "latency", Step(protocol, IDLE))
                result.add(_comparable_at_idle(cell, ROUND_TRIP[protocol], mine))
        return result


def _comparable_at_idle(cell: CellSummary, metric: TrialMetric, trials: list[Trial]) -> Comparable:
    labels = [arm.arm for arm in cell.arms]
    if len(labels) < 2:
        return Comparable()
    pairs = pairs_at(cell, metric, trials, labels, IDLE)
    baseline = pairs.baseline
    itself, _ = pairs_of(trials, baseline + AA_SUFFIX, baseline, metric)
    return Comparable(
        samples=cost_samples(pairs, trials, metric, IDLE_PPS),
        controls=[control_sample(pairs, itself)],
    )
