# SPDX-License-Identifier: BSD-3-Clause
"""Experiment `l3fwd` as the lab's commands know it: begun, told, merged, compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pydantic import TypeAdapter
from rich.console import Console

from linerate.experiments.l3fwd import page as l3fwd_page
from linerate.experiments.l3fwd.design import (
    DEFAULT_LINKS,
    NAME,
    L3fwdDesign,
    Options,
    design_of,
    forwarders,
)
from linerate.experiments.l3fwd.experiment import L3fwd
from linerate.experiments.l3fwd.table import print_summary
from linerate.experiments.overload.runs import compared
from linerate.experiments.overload.summarise import summarise
from linerate.host.process import RunDirectory
from linerate.records.journal import Journal
from linerate.records.run_file import Run
from linerate.records.trial import Trial
from linerate.runs.experiment import Comparable, Experiment
from linerate.runs.kept_runs import SummaryFound, as_stored, interrupted_blocks, merge_designs, read
from linerate.runs.run_summary import setup_of

OPTIONS, DESIGN = TypeAdapter(Options), TypeAdapter(L3fwdDesign)


class Found(SummaryFound):
    page = staticmethod(l3fwd_page.render)
    tell = staticmethod(print_summary)


class L3fwdRuns(Experiment):
    name = NAME

    def design(self, options: dict[str, Any]) -> dict[str, Any]:
        return as_stored(DESIGN, design_of(read(OPTIONS, options, "options")))

    def given(self, options: dict[str, Any]) -> dict[str, object]:
        asked = read(OPTIONS, options, "options")
        return {
            "--preset": asked.preset.name,
            "--link": asked.links,
            "--routes": asked.routes,
            "--rules": asked.rules,
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
            "--routes": list(asked.preset.routes) if asked.routes is None else asked.routes,
            "--rules": list(asked.preset.rules) if asked.rules is None else asked.rules,
            "--sizes": asked.sizes or list(asked.preset.sizes),
            "--forwarders": forwarders(asked),
            "--blocks": asked.blocks or asked.preset.blocks,
        }

    def begin(
        self, options: dict[str, Any], run: RunDirectory, journal: Journal, console: Console
    ) -> L3fwd:
        return L3fwd(read(OPTIONS, options, "options"), run, journal, console)

    def findings(self, run: Run, trials: list[Trial]) -> Found:
        design = read(DESIGN, run.design, "design")
        setup = setup_of(NAME, run, design, trials)
        setup.warnings += interrupted_blocks(trials)
        whole = run.complete(len(trials))
        return Found(
            summarise(setup, trials, interrupted=not whole, arms_of=design.arms_in(trials)), trials
        )

    def merged(self, designs: Sequence[dict[str, Any]]) -> dict[str, Any]:
        every = [read(DESIGN, each, "design") for each in designs]
        free = "seed, preset and number of blocks may differ"
        further = [("--probe", "probe"), ("--forwarders", "forwarders")]
        return asdict(merge_designs(every, further, free=free))

    def decisive(self, design: dict[str, Any]) -> dict[str, object]:
        asked = read(DESIGN, design, "design")
        return {"window": asked.window_s, "--probe": asked.probe}

    def comparable(self, run: Run, trials: list[Trial]) -> Comparable:
        design = read(DESIGN, run.design, "design")
        return compared(self.findings(run, trials).summary, trials, design.arms_in(trials))
