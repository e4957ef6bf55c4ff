# SPDX-License-Identifier: BSD-3-Clause
"""Experiment `overload` as the lab's commands know it: run, report, merge, compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from linerate.experiments.overload import page
from linerate.experiments.overload.options import DEFAULT_LINKS, FLOODS, LOSSY, Options
from linerate.experiments.overload.plan import NAME, Overload, design_of
from linerate.experiments.overload.summarise import ArmsOf, OverloadDesign, summarise
from linerate.experiments.overload.table import print_summary
from linerate.host.errors import LabError, UsageError
from linerate.links import link
from linerate.records.cells import AA_SUFFIX, Cell
from linerate.records.run_file import Run
from linerate.records.summary import Summary
from linerate.records.trial import Trial
from linerate.runs.experiment import Comparable, Experiment
from linerate.runs.kept_runs import (
    SummaryFound,
    compared_costs,
    control_sample,
    interrupted_blocks,
    rate_sample,
)
from linerate.runs.plans.blocks import takes
from linerate.runs.run_summary import setup_of
from linerate.verdict.comparisons import metrics_of, pair_cell, pairs_of


class Found(SummaryFound):
    page = staticmethod(page.render)
    tell = staticmethod(print_summary)


class OverloadRuns(Experiment[Options, OverloadDesign]):
    name = NAME
    options_type, design_type = Options, OverloadDesign

    def run_extra(self, option: str, values: Mapping[str, Any], console: Console) -> None:
        raise UsageError(
            f"{option}: overload floods the forwarder, and OTG cannot ask a port to send as fast "
            "as it takes frames: only the lab's own generator can",
            f"linerate run rfc2544 {option} URL",
        )

    def make_options(self, values: Mapping[str, Any], *, resuming: bool) -> Options:
        found = super().make_options(values, resuming=resuming)
        if not (resuming or found.links or found.own_cells):
            lossy = [LOSSY] if _can_be_made(LOSSY, found.forwarders) else []
            floods = found.preset.name == FLOODS
            found.links = (lossy or ["memif"]) if floods else [*DEFAULT_LINKS, *lossy]
        return found

    def design_of(self, options: Options) -> OverloadDesign:
        return design_of(options)

    def defaults(self, options: Options) -> dict[str, Any]:
        found = super().defaults(options)
        own = ("links", "sizes", "blocks") if options.own_cells else ()
        return {field: value for field, value in found.items() if field not in own}

    def plan(self, options: Options) -> Overload:
        design = self.design_of(options)
        return Overload(options, design.arms, design.cells)

    def findings(self, run: Run, trials: list[Trial]) -> Found:
        design = self.read_design(run.design)
        setup = setup_of(NAME, run, design, trials)
        setup.warnings += interrupted_blocks(trials)
        summary = summarise(setup, trials, interrupted=not run.complete(len(trials)))
        return Found(summary, trials, design.link)

    def comparable(self, run: Run, trials: list[Trial]) -> Comparable:
        every = self.read_design(run.design).arms
        return compared(self.findings(run, trials).summary, trials, lambda _: every)


def _can_be_made(name: str, forwarders: Sequence[str]) -> bool:
    """Return True if this user can make the link on this machine, and the forwarders work on it."""
    try:
        link(name).prepare()
    except LabError:
        return False
    return all(takes(each, link(name)) for each in forwarders)


def compared(summary: Summary, trials: list[Trial], arms_of: ArmsOf) -> Comparable:
    """Return the figures that can be compared with another run's floods and fixed loads."""
    result = Comparable()
    for cell in summary.cells:
        mine = [t for t in trials if t.cell.key == cell.key]
        measured = [t for t in mine if t.role == "measure"]
        labels = [arm.label for arm in arms_of(Cell(cell.link, cell.size, cell.blocks))]
        # The first metric answers the experiment's question.
        pairs = pair_cell(cell, measured, labels)[0]
        metric, baseline = metrics_of(cell)[0], pairs.baseline
        for label in pairs.pairs:
            found_pairs = pairs_of(measured, label, baseline, metric)
            result.samples.append(rate_sample(pairs, label, *found_pairs))
        itself, _ = pairs_of(measured, baseline + AA_SUFFIX, baseline, metric)
        result.controls.append(control_sample(pairs, itself))
        result.add(compared_costs(cell, [t for t in mine if t.role == "lower-load"], labels))
    return result
