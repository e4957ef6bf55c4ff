# SPDX-License-Identifier: BSD-3-Clause
"""Experiment `paths` as the lab's commands know it: run, report, merge, compare."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from linerate.experiments.paths import page as paths_page
from linerate.experiments.paths.available import available
from linerate.experiments.paths.options import DEFAULT_LINKS, Options
from linerate.experiments.paths.plan import NAME, Paths, design_of
from linerate.experiments.paths.summarise import PathsDesign, loads_of, rate_pairs, summarise
from linerate.experiments.paths.table import print_summary
from linerate.records.cells import AA_SUFFIX
from linerate.records.run_file import Run
from linerate.records.trial import Trial
from linerate.runs.experiment import Comparable, Experiment
from linerate.runs.kept_runs import (
    SummaryFound,
    compared_costs,
    control_sample,
    interrupted_blocks,
    rate_sample,
)
from linerate.runs.run_summary import setup_of
from linerate.verdict.comparisons import pairs_of
from linerate.verdict.metrics import CPU_TIME, RECEIVED


class Found(SummaryFound):
    page = staticmethod(paths_page.render)
    tell = staticmethod(print_summary)


class PathsRuns(Experiment[Options, PathsDesign]):
    name = NAME
    options_type, design_type = Options, PathsDesign

    def make_options(self, values: Mapping[str, Any], *, resuming: bool) -> Options:
        found = super().make_options(values, resuming=resuming)
        if not (found.forwarders or resuming):
            found.forwarders, found.left_out = available(found.links or DEFAULT_LINKS)
        return found

    def design_of(self, options: Options) -> PathsDesign:
        return design_of(options)

    def plan(self, options: Options) -> Paths:
        return Paths(options)

    def findings(self, run: Run, trials: list[Trial]) -> Found:
        design = self.read_design(run.design)
        setup = setup_of(NAME, run, design, trials)
        setup.warnings += interrupted_blocks(trials)
        summary = summarise(setup, trials, interrupted=not run.complete(len(trials)))
        return Found(summary, trials, design.link)

    def comparable(self, run: Run, trials: list[Trial]) -> Comparable:
        found = self.findings(run, trials)
        design = self.read_design(run.design)
        labels = [arm.label for arm in design.arms]
        result = Comparable()
        for cell in found.summary.cells:
            mine = [t for t in trials if t.cell.key == cell.key]
            measured = [t for t in mine if t.role == "measure"]
            pairs = rate_pairs(cell, measured, labels)
            for label in pairs.pairs:
                both = pairs_of(measured, label, pairs.baseline, RECEIVED)
                result.samples.append(rate_sample(pairs, label, *both))
            itself, _ = pairs_of(measured, pairs.baseline + AA_SUFFIX, pairs.baseline, RECEIVED)
            result.controls.append(control_sample(pairs, itself))
            low = [t for t in mine if t.role == "lower-load"]
            result.add(compared_costs(cell, low, labels, CPU_TIME, loads_of(cell)))
        return result
