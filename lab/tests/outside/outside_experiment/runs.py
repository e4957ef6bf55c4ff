# SPDX-License-Identifier: BSD-3-Clause
"""Experiment `floods`: what is measured, and what its records say."""

from __future__ import annotations

from linerate.experiments.overload import page
from linerate.experiments.overload.runs import compared
from linerate.experiments.overload.summarise import OverloadDesign, summarise
from linerate.records.cells import Cell
from linerate.records.run_file import Run
from linerate.records.trial import Trial
from linerate.report.console import print_summary
from linerate.runs.experiment import Comparable, Experiment
from linerate.runs.kept_runs import SummaryFound
from linerate.runs.plans.block_plan import BlockPlan, Windows
from linerate.runs.plans.blocks import arms, order
from linerate.runs.plans.steps import Steps
from linerate.runs.run_summary import setup_of
from linerate.trial.search.setup_device import Terms
from outside_experiment.options import Options

NAME = "floods"


def cells(options: Options) -> list[Cell]:
    return [
        Cell(link, size, options.blocks or options.preset.blocks)
        for link in options.links or ["null"]
        for size in options.sizes or [64]
    ]


class Floods(BlockPlan):
    """The plan of a session."""

    name = NAME
    windows = Windows(0.1, Terms(windows=8))

    def planned(self) -> int:
        return sum(cell.blocks * len(self.arms) for cell in self.cells)

    def cell(self, cell: Cell) -> Steps[None]:
        blocks = order(self.arms, cell, self.options.seed)
        yield from self.floods(cell, [[("measure", arm) for arm in block] for block in blocks])


class Found(SummaryFound):
    page = staticmethod(page.render)
    tell = staticmethod(print_summary)


class FloodsRuns(Experiment[Options, OverloadDesign]):
    name = NAME
    options_type, design_type = Options, OverloadDesign

    def design_of(self, options: Options) -> OverloadDesign:
        return OverloadDesign.of(
            options,
            question="Flooded with frames of several sizes, which forwarder carries more?",
            window_s=options.preset.window_s,
            cells=cells(options),
            arms=arms(options.forwarders or ["c-l2fwd", "rust-l2fwd"]),
        )

    def plan(self, options: Options) -> Floods:
        design = self.design_of(options)
        return Floods(options, design.arms, design.cells)

    def findings(self, run: Run, trials: list[Trial]) -> Found:
        design = self.read_design(run.design)
        setup = setup_of(NAME, run, design, trials)
        summary = summarise(setup, trials, interrupted=not run.complete(len(trials)))
        return Found(summary, trials, design.link)

    def comparable(self, run: Run, trials: list[Trial]) -> Comparable:
        every = self.read_design(run.design).arms
        return compared(self.findings(run, trials).summary, trials, lambda _: every)
