# SPDX-License-Identifier: BSD-3-Clause
"""Experiment `graph` as the lab's commands know it: run, report, merge, compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from linerate.experiments.graph.choice import CHOSEN_IN, judged, last_windows
from linerate.experiments.graph.design import NAME, GraphDesign, check, design_of, planned
from linerate.experiments.graph.options import Options
from linerate.experiments.graph.page import page as graph_page
from linerate.experiments.graph.page.table import print_summary
from linerate.experiments.graph.plan import GraphSession, look
from linerate.experiments.graph.summarise import pairs_of_cells, summarise
from linerate.experiments.graph.window import OBJECTS
from linerate.records.cells import AA_SUFFIX
from linerate.records.run_file import Run
from linerate.records.trial import Trial
from linerate.runs.experiment import Comparable, Experiment
from linerate.runs.kept_runs import SummaryFound, control_sample, interrupted_blocks, rate_sample
from linerate.runs.run_summary import setup_of
from linerate.verdict.comparisons import pairs_of


class Found(SummaryFound):
    page = staticmethod(graph_page.render)
    tell = staticmethod(print_summary)


class GraphRuns(Experiment[Options, GraphDesign]):
    name = NAME
    options_type, design_type = Options, GraphDesign
    judged_in = CHOSEN_IN

    def make_options(self, values: Mapping[str, Any], *, resuming: bool) -> Options:
        found = super().make_options(values, resuming=resuming)
        check(found)
        if resuming:
            return found
        offered, left_out = look(found)
        return replace(found, plan=planned(found, offered), left_out=left_out)

    def design_of(self, options: Options) -> GraphDesign:
        return design_of(options)

    def plan(self, options: Options) -> GraphSession:
        return GraphSession(options)

    def findings(self, run: Run, trials: list[Trial]) -> Found:
        design = self.read_design(run.design)
        setup = setup_of(NAME, run, design, trials)
        setup.warnings += interrupted_blocks([t for t in trials if t.role == "measure"])
        summary = summarise(setup, trials, interrupted=not run.complete(len(trials)))
        return Found(summary, trials, design.link)

    def comparable(self, run: Run, trials: list[Trial]) -> Comparable:
        found = self.findings(run, trials)
        labels = [arm.label for arm in self.read_design(run.design).arms]
        mine = judged(last_windows(trials)).trials
        result = Comparable()
        for pairs in pairs_of_cells(found.summary, mine, labels):
            here = [trial for trial in mine if trial.cell.name == pairs.cell.link]
            for label in pairs.pairs:
                both = pairs_of(here, label, pairs.baseline, OBJECTS)
                result.samples.append(rate_sample(pairs, label, *both))
            itself, _ = pairs_of(here, pairs.baseline + AA_SUFFIX, pairs.baseline, OBJECTS)
            result.controls.append(control_sample(pairs, itself))
        return result
