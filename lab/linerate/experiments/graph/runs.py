# SPDX-License-Identifier: BSD-3-Clause
"""Experiment `graph` as the lab's commands know it: begun, told, merged, compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console

from linerate.experiments.graph.choice import CHOSEN_IN, judged, last_windows
from linerate.experiments.graph.design import DESIGN, NAME, OPTIONS, blocks_of, design_of
from linerate.experiments.graph.experiment import GraphSession
from linerate.experiments.graph.page import page as graph_page
from linerate.experiments.graph.summarise import pairs_of_cells, summarise
from linerate.experiments.graph.table import print_summary
from linerate.host.process import RunDirectory
from linerate.records.cells import AA_SUFFIX
from linerate.records.journal import Journal
from linerate.records.run_file import Run
from linerate.records.trial import Trial
from linerate.runs.experiment import Comparable, Experiment
from linerate.runs.kept_runs import (
    SummaryFound,
    as_stored,
    control_sample,
    interrupted_blocks,
    merge_designs,
    rate_sample,
    read,
)
from linerate.runs.run_summary import setup_of
from linerate.verdict.comparisons import pairs_of
from linerate.verdict.metrics import OBJECTS


class Found(SummaryFound):
    page = staticmethod(graph_page.render)
    tell = staticmethod(print_summary)


class GraphRuns(Experiment):
    name = NAME
    judged_in = CHOSEN_IN

    def design(self, options: dict[str, Any]) -> dict[str, Any]:
        return as_stored(DESIGN, design_of(read(OPTIONS, options, "options")))

    def given(self, options: dict[str, Any]) -> dict[str, object]:
        asked = read(OPTIONS, options, "options")
        return {
            "--preset": asked.preset.name,
            "--cells": asked.cells,
            "--arms": asked.arms,
            "--blocks": asked.blocks,
            "--seed": asked.seed,
            "--hugepages": asked.hugepages,
            "--keep-going": asked.keep_going,
        }

    def kept(self, options: dict[str, Any]) -> dict[str, object]:
        asked = read(OPTIONS, options, "options")
        return {**self.given(options), "--blocks": blocks_of(asked)}

    def begin(
        self, options: dict[str, Any], run: RunDirectory, journal: Journal, console: Console
    ) -> GraphSession:
        return GraphSession(read(OPTIONS, options, "options"), run, journal, console)

    def findings(self, run: Run, trials: list[Trial]) -> Found:
        design = read(DESIGN, run.design, "design")
        setup = setup_of(NAME, run, design, trials)
        setup.warnings += interrupted_blocks([t for t in trials if t.role == "measure"])
        return Found(summarise(setup, trials, interrupted=not run.complete(len(trials))), trials)

    def merged(self, designs: Sequence[dict[str, Any]]) -> dict[str, Any]:
        every = [read(DESIGN, each, "design") for each in designs]
        free = "seed and number of blocks may differ"
        further = [("builds", "builds")]
        return as_stored(DESIGN, merge_designs(every, further, free=free))

    def decisive(self, design: dict[str, Any]) -> dict[str, object]:
        return {"window": read(DESIGN, design, "design").window_s}

    def comparable(self, run: Run, trials: list[Trial]) -> Comparable:
        found = self.findings(run, trials)
        labels = [arm.label for arm in read(DESIGN, run.design, "design").arms]
        mine = judged(last_windows(trials)).trials
        result = Comparable()
        for pairs in pairs_of_cells(found.summary, mine, labels):
            here = [trial for trial in mine if trial.link == pairs.cell.link]
            for label in pairs.pairs:
                both = pairs_of(here, label, pairs.baseline, OBJECTS)
                result.samples.append(rate_sample(pairs, label, *both))
            itself, _ = pairs_of(here, pairs.baseline + AA_SUFFIX, pairs.baseline, OBJECTS)
            result.controls.append(control_sample(pairs, itself))
        return result
