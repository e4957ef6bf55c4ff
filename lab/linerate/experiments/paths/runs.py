# SPDX-License-Identifier: BSD-3-Clause
"""Experiment `paths` as the lab's commands know it: begun, told, merged, compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pydantic import TypeAdapter
from rich.console import Console

from linerate.experiments.paths import page as paths_page
from linerate.experiments.paths.experiment import (
    DEFAULT_LINKS,
    NAME,
    Options,
    Paths,
    design_of,
    forwarders,
)
from linerate.experiments.paths.summarise import PathsDesign, loads_of, rate_pairs, summarise
from linerate.experiments.paths.table import print_summary
from linerate.host.process import RunDirectory
from linerate.records.cells import AA_SUFFIX
from linerate.records.journal import Journal
from linerate.records.run_file import Run
from linerate.records.trial import Trial
from linerate.runs.experiment import Comparable, Experiment
from linerate.runs.kept_runs import (
    SummaryFound,
    compared_costs,
    control_sample,
    interrupted_blocks,
    merge_designs,
    rate_sample,
    read,
)
from linerate.runs.run_summary import setup_of
from linerate.verdict.comparisons import pairs_of
from linerate.verdict.metrics import CPU_TIME, RECEIVED

OPTIONS, DESIGN = TypeAdapter(Options), TypeAdapter(PathsDesign)


class Found(SummaryFound):
    page = staticmethod(paths_page.render)
    tell = staticmethod(print_summary)


class PathsRuns(Experiment):
    name = NAME

    def design(self, options: dict[str, Any]) -> dict[str, Any]:
        return asdict(design_of(read(OPTIONS, options, "options")))

    def given(self, options: dict[str, Any]) -> dict[str, object]:
        asked = read(OPTIONS, options, "options")
        return {
            "--preset": asked.preset.name,
            "--link": asked.links,
            "--sizes": asked.sizes,
            "--forwarders": asked.forwarders,
            "--blocks": asked.blocks,
            "--seed": asked.seed,
            "--line-rate": asked.line_rate,
            "--hugepages": asked.hugepages,
            "--keep-going": asked.keep_going,
            "--probe": asked.probe,
        }

    def kept(self, options: dict[str, Any]) -> dict[str, object]:
        asked = read(OPTIONS, options, "options")
        return {
            **self.given(options),
            "--link": asked.links or DEFAULT_LINKS,
            "--sizes": asked.sizes or list(asked.preset.sizes),
            "--forwarders": forwarders(asked),
            "--blocks": asked.blocks or asked.preset.blocks,
        }

    def begin(
        self, options: dict[str, Any], run: RunDirectory, journal: Journal, console: Console
    ) -> Paths:
        return Paths(read(OPTIONS, options, "options"), run, journal, console)

    def findings(self, run: Run, trials: list[Trial]) -> Found:
        design = read(DESIGN, run.design, "design")
        setup = setup_of(NAME, run, design, trials)
        setup.warnings += interrupted_blocks(trials)
        return Found(summarise(setup, trials, interrupted=not run.complete(len(trials))), trials)

    def merged(self, designs: Sequence[dict[str, Any]]) -> dict[str, Any]:
        every = [read(DESIGN, each, "design") for each in designs]
        free = "seed and number of blocks may differ"
        further = [("--probe", "probe"), ("loads", "loads")]
        return asdict(merge_designs(every, further, free=free))

    def decisive(self, design: dict[str, Any]) -> dict[str, object]:
        asked = read(DESIGN, design, "design")
        # The probe is in the windows that tell the cost of a packet, and is a part of it.
        return {"window": asked.window_s, "--probe": asked.probe}

    def comparable(self, run: Run, trials: list[Trial]) -> Comparable:
        found = self.findings(run, trials)
        design = read(DESIGN, run.design, "design")
        labels = [arm.label for arm in design.arms]
        result = Comparable()
        for cell in found.summary.cells:
            mine = [t for t in trials if (t.link, t.size) == (cell.link, cell.size)]
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
