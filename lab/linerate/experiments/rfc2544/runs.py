# SPDX-License-Identifier: BSD-3-Clause
"""Experiment `rfc2544` as the lab's commands know it: run, report, merge, compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from linerate.experiments.rfc2544.options import Options
from linerate.experiments.rfc2544.page import page as rfc2544_page
from linerate.experiments.rfc2544.page.method import goal_words
from linerate.experiments.rfc2544.plan import NAME, Rfc2544, SearchDesign, cells, design_of
from linerate.experiments.rfc2544.presets import Preset, named_sizes
from linerate.experiments.rfc2544.summarise import (
    Asked,
    Searches,
    at_fixed_loads,
    rates_of,
    searches_of,
    summarise,
)
from linerate.experiments.rfc2544.table import print_rfc2544
from linerate.links import FindLink
from linerate.records.cells import AA_SUFFIX
from linerate.records.output import REPORT
from linerate.records.run_file import Run
from linerate.records.summary import SUMMARY, Summary, dump
from linerate.records.trial import Trial
from linerate.runs.experiment import Comparable, Experiment, Findings, SearchedRate
from linerate.runs.kept_runs import compared_costs, control_sample, interrupted_blocks, rate_sample
from linerate.runs.progress import say
from linerate.runs.run_summary import setup_of
from linerate.trial.search.latency import CUT_THROUGH, DEFINITION


@dataclass(frozen=True)
class Found:
    """The summary with further data for the report: trials, searches, and the request."""

    summary: Summary
    trials: list[Trial]
    asked: Asked
    searches: Searches
    link: FindLink

    def files(self) -> dict[str, str]:
        page = rfc2544_page.render(self.summary, self.trials, self.asked, self.searches, self.link)
        return {SUMMARY: dump(self.summary), REPORT: page}

    def show(self, console: Console) -> None:
        for goal in self.asked.search.goals:
            told = f"A load reaches {goal.name} when {goal_words(goal)}."
            say(console, told)
        print_rfc2544(console, self.summary, verdicts=self.asked.search.verdicts)


class Rfc2544Runs(Experiment[Options, SearchDesign]):
    name = NAME
    options_type, design_type = Options, SearchDesign

    def make_options(self, values: Mapping[str, Any], *, resuming: bool) -> Options:
        preset: Preset = values["preset"]
        sizes = values["sizes"] or preset.sizes
        if isinstance(sizes, str):
            sizes = named_sizes(sizes, values["ip"])
        own = {"sizes": sizes or [], "tests": values["tests"] or preset.tests}
        return super().make_options({**values, **own}, resuming=resuming)

    def promises_verdicts(self, design: Mapping[str, Any]) -> bool:
        return bool(design["search"].get("verdicts", True))

    def design_of(self, options: Options) -> SearchDesign:
        return design_of(options)

    def defaults(self, options: Options) -> dict[str, Any]:
        planned = cells(options)
        return {
            **super().defaults(options),
            "sizes": [cell.size for cell in planned if cell.link == planned[0].link],
            "blocks": planned[0].blocks,
        }

    def plan(self, options: Options) -> Rfc2544:
        return Rfc2544(options)

    def findings(self, run: Run, trials: list[Trial]) -> Found:
        design = self.read_design(run.design)
        asked = self._asked(design, run, trials)
        searches = searches_of(asked, trials)
        interrupted = not run.complete(len(trials))
        summary = summarise(asked, trials, searches, interrupted=interrupted)
        return Found(summary, trials, asked, searches, design.link)

    def _asked(self, design: SearchDesign, run: Run, trials: list[Trial]) -> Asked:
        setup = setup_of(NAME, run, design, trials)
        # Blocks of the self-test have the same numbers, and are all run before the first search.
        setup.warnings += interrupted_blocks([t for t in trials if t.role == "search"])
        return Asked(
            **vars(setup),
            search=design.search,
            tests=design.tests,
            shared_by=design.shared_by,
            latency_definition=CUT_THROUGH if design.generator else DEFINITION,
            parts={
                session: number
                for number, part in enumerate(run.parts)
                for session in part.sessions
            },
        )

    def searched_rates(self, found: Findings) -> list[SearchedRate]:
        assert isinstance(found, Found)
        return [
            SearchedRate(
                cell=cell,
                arm=each.arm,
                block=each.trials[0].pairing,
                goal=name,
                loss_ratio=rate.goal.loss_ratio,
                reached_pps=rate.lower_pps or 0.0,
                missed_pps=rate.upper_pps,
            )
            for cell, searches in found.searches.items()
            for each in searches
            if each.unit.throughput
            for name, rate in each.unit.throughput.found.items()
            # Its loss above that rate is unknown.
            if rate.state != "disturbed_above"
        ]

    def comparable(self, run: Run, trials: list[Trial]) -> Comparable:
        told = self.findings(run, trials)
        asked, found = told.asked, told.summary
        result = Comparable()
        for cell in found.cells:
            mine = [t for t in trials if t.cell.key == cell.key]
            rates = rates_of(asked, cell, told.searches[cell.link, cell.size])
            pairs = rates.pairs
            for label in pairs.pairs:
                result.samples.append(rate_sample(pairs, label, *rates.both(label)))
            itself, _ = rates.both(pairs.baseline + AA_SUFFIX)
            result.controls.append(control_sample(pairs, itself))
            polled = [t for t in at_fixed_loads(asked.search, mine) if t.frames.polling is not None]
            result.add(compared_costs(cell, polled, [arm.label for arm in asked.arms]))
        return result
