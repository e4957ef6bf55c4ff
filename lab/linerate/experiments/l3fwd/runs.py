# SPDX-License-Identifier: BSD-3-Clause
"""Experiment `l3fwd` as the lab's commands know it: run, report, merge, compare."""

from __future__ import annotations

from linerate.experiments.l3fwd import page as l3fwd_page
from linerate.experiments.l3fwd.design import NAME, L3fwdDesign, design_of
from linerate.experiments.l3fwd.options import Options
from linerate.experiments.l3fwd.plan import L3fwd
from linerate.experiments.l3fwd.table import print_summary
from linerate.experiments.overload.runs import compared
from linerate.experiments.overload.summarise import summarise
from linerate.records.run_file import Run
from linerate.records.trial import Trial
from linerate.runs.experiment import Comparable, Experiment
from linerate.runs.kept_runs import SummaryFound, interrupted_blocks
from linerate.runs.run_summary import setup_of


class Found(SummaryFound):
    page = staticmethod(l3fwd_page.render)
    tell = staticmethod(print_summary)


class L3fwdRuns(Experiment[Options, L3fwdDesign]):
    name = NAME
    options_type, design_type = Options, L3fwdDesign

    def design_of(self, options: Options) -> L3fwdDesign:
        return design_of(options)

    def plan(self, options: Options) -> L3fwd:
        return L3fwd(options)

    def findings(self, run: Run, trials: list[Trial]) -> Found:
        design = self.read_design(run.design)
        setup = setup_of(NAME, run, design, trials)
        setup.warnings += interrupted_blocks(trials)
        interrupted = not run.complete(len(trials))
        arms_of = design.arms_in(trials)
        summary = summarise(setup, trials, interrupted=interrupted, arms_of=arms_of)
        return Found(summary, trials, design.link)

    def comparable(self, run: Run, trials: list[Trial]) -> Comparable:
        design = self.read_design(run.design)
        return compared(self.findings(run, trials).summary, trials, design.arms_in(trials))
