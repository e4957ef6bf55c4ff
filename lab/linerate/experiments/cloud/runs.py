# SPDX-License-Identifier: BSD-3-Clause
"""Experiment `cloud` as the lab's commands know it: run, report, merge, compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console

from linerate.experiments.cloud.analysis.summarise import summarise
from linerate.experiments.cloud.design import plan_table
from linerate.experiments.cloud.design.command_line import options_of
from linerate.experiments.cloud.design.design import NAME, CloudDesign, design_of
from linerate.experiments.cloud.options import Options
from linerate.experiments.cloud.page import page as cloud_page
from linerate.experiments.cloud.page.table import print_summary
from linerate.experiments.cloud.session.plan import Cloud
from linerate.host.text import printable
from linerate.records.run_file import Run
from linerate.records.trial import Trial
from linerate.runs.experiment import Comparable, Experiment
from linerate.runs.kept_runs import SummaryFound, interrupted_blocks
from linerate.runs.run_summary import setup_of


class Found(SummaryFound):
    page = staticmethod(cloud_page.render)
    tell = staticmethod(print_summary)


class CloudRuns(Experiment[Options, CloudDesign]):
    name = NAME
    judged_in = 0
    options_type, design_type = Options, CloudDesign
    # One CPU more for tenants on a core of their own.
    cpus = 3

    def make_options(self, values: Mapping[str, Any], *, resuming: bool) -> Options:
        asked = {**values}
        design, links = asked.pop("preset"), asked.pop("links")
        return options_of(design, on=links[0] if links else None, **asked)

    def run_extra(self, option: str, values: Mapping[str, Any], console: Console) -> None:
        if option == "--plan":
            plan_table.show(console, self.make_options(values, resuming=False))
        else:
            print(printable(values["preset"].text, keep="\n\t"), end="")

    def design_of(self, options: Options) -> CloudDesign:
        return design_of(options)

    def plan(self, options: Options) -> Cloud:
        return Cloud(options, design_of(options))

    def findings(self, run: Run, trials: list[Trial]) -> Found:
        design = self.read_design(run.design)
        setup = setup_of(NAME, run, design, trials)
        setup.warnings += interrupted_blocks([t for t in trials if t.role == "measure"])
        summary = summarise(setup, design, trials, interrupted=not run.complete(len(trials)))
        return Found(summary, trials, design.link)

    def merge(self, designs: Sequence[CloudDesign]) -> CloudDesign:
        found = super().merge(designs)
        return replace(found, blocks=sum(each.blocks for each in designs))

    def comparable(self, run: Run, trials: list[Trial]) -> Comparable:
        """Return nothing: a cell's throughput is a share of a rate that each run finds anew."""
        return Comparable()
