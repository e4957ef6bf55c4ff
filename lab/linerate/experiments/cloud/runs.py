# SPDX-License-Identifier: BSD-3-Clause
"""Experiment `cloud` as the lab's commands know it: begun, told, merged, compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console

from linerate.experiments.cloud.analysis.summarise import summarise
from linerate.experiments.cloud.design.design import DESIGN, NAME, OPTIONS, design_of
from linerate.experiments.cloud.page import page as cloud_page
from linerate.experiments.cloud.page.table import print_summary
from linerate.experiments.cloud.session.experiment import Cloud
from linerate.host.process import RunDirectory
from linerate.records.journal import Journal
from linerate.records.run_file import Run
from linerate.records.trial import Trial
from linerate.runs.experiment import Comparable, Experiment
from linerate.runs.kept_runs import SummaryFound, as_stored, interrupted_blocks, merge_designs, read
from linerate.runs.run_summary import setup_of


class Found(SummaryFound):
    page = staticmethod(cloud_page.render)
    tell = staticmethod(print_summary)


class CloudRuns(Experiment):
    name = NAME
    # One more for tenants that have a CPU of their own.
    cpus = 3

    def design(self, options: dict[str, Any]) -> dict[str, Any]:
        return as_stored(DESIGN, design_of(read(OPTIONS, options, "options")))

    def given(self, options: dict[str, Any]) -> dict[str, object]:
        asked = read(OPTIONS, options, "options")
        return {
            "--design": asked.preset.name,
            "--link": asked.links[0],
            "--sizes": asked.sizes,
            "--forwarders": asked.forwarders,
            "--blocks": asked.blocks,
            "--minutes": asked.minutes,
            "--seed": asked.seed,
            "--line-rate": asked.line_rate,
            "--hugepages": asked.hugepages,
            "--keep-going": asked.keep_going,
        }

    def kept(self, options: dict[str, Any]) -> dict[str, object]:
        asked = read(OPTIONS, options, "options")
        return {**self.given(options), "--blocks": asked.blocks or asked.preset.blocks}

    def begin(
        self, options: dict[str, Any], run: RunDirectory, journal: Journal, console: Console
    ) -> Cloud:
        asked = read(OPTIONS, options, "options")
        return Cloud(asked, design_of(asked), run, journal, console)

    def findings(self, run: Run, trials: list[Trial]) -> Found:
        design = read(DESIGN, run.design, "design")
        setup = setup_of(NAME, run, design, trials)
        setup.warnings += interrupted_blocks([t for t in trials if t.role == "measure"])
        return Found(
            summarise(setup, design, trials, interrupted=not run.complete(len(trials))), trials
        )

    def merged(self, designs: Sequence[dict[str, Any]]) -> dict[str, Any]:
        every = [read(DESIGN, each, "design") for each in designs]
        free = "seed, number of blocks and --minutes may differ"
        further = [("parts", "parts"), ("tenant", "tenant"), ("control", "control")]
        found = merge_designs(every, further, free=free)
        return as_stored(DESIGN, replace(found, blocks=sum(each.blocks for each in every)))

    def decisive(self, design: dict[str, Any]) -> dict[str, object]:
        asked = read(DESIGN, design, "design")
        return {"window": asked.window_s, "parts": asked.parts, "tenant": asked.tenant}

    def comparable(self, run: Run, trials: list[Trial]) -> Comparable:
        """Nothing: what each cell carries is a share of a rate that each run finds anew."""
        return Comparable()
