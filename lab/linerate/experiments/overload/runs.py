# SPDX-License-Identifier: BSD-3-Clause
"""Experiment `overload` as the lab's commands know it: begun, told, merged, compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from pydantic import TypeAdapter
from rich.console import Console

from linerate.experiments.overload import page
from linerate.experiments.overload.plan import (
    DEFAULT_FORWARDERS,
    DEFAULT_LINKS,
    DEFAULT_SIZES,
    NAME,
    Overload,
    cells,
    design_of,
)
from linerate.experiments.overload.summarise import ArmsOf, OverloadDesign, summarise
from linerate.host.process import RunDirectory
from linerate.links import use_ports
from linerate.records.cells import AA_SUFFIX, Cell
from linerate.records.journal import Journal
from linerate.records.run_file import Run
from linerate.records.summary import Summary
from linerate.records.trial import Trial
from linerate.report.console import print_summary
from linerate.runs.block_run import Options
from linerate.runs.experiment import Comparable, Experiment
from linerate.runs.kept_runs import (
    SummaryFound,
    compared_costs,
    control_sample,
    interrupted_blocks,
    merge_designs,
    ports_of,
    rate_sample,
    read,
    read_options,
    remember_devices,
)
from linerate.runs.run_summary import setup_of
from linerate.verdict.comparisons import metrics_of, pair_cell, pairs_of

OPTIONS, DESIGN = TypeAdapter(Options), TypeAdapter(OverloadDesign)


class Found(SummaryFound):
    page = staticmethod(page.render)
    tell = staticmethod(print_summary)


class OverloadRuns(Experiment):
    name = NAME

    def design(self, options: dict[str, Any]) -> dict[str, Any]:
        return asdict(design_of(read_options(OPTIONS, options)))

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
            "--generator-port": asked.generator_ports,
            "--forwarder-port": asked.forwarder_ports,
        }

    def kept(self, options: dict[str, Any]) -> dict[str, object]:
        asked = read_options(OPTIONS, options)
        own_cells = cells(asked) != cells(
            replace(asked, links=asked.links or DEFAULT_LINKS, sizes=asked.sizes or DEFAULT_SIZES)
        )
        return {
            **self.given(options),
            "--link": asked.links or ([] if own_cells else DEFAULT_LINKS),
            "--sizes": asked.sizes or ([] if own_cells else DEFAULT_SIZES),
            "--forwarders": asked.forwarders or DEFAULT_FORWARDERS,
            "--blocks": asked.blocks if asked.blocks or own_cells else asked.preset.blocks,
        }

    def begin(
        self, options: dict[str, Any], run: RunDirectory, journal: Journal, console: Console
    ) -> Overload:
        asked = read(OPTIONS, options, "options")
        use_ports(asked.links, asked.generator_ports, asked.forwarder_ports)
        return Overload(asked, run, journal, console)

    def findings(self, run: Run, trials: list[Trial]) -> Found:
        design = read(DESIGN, run.design, "design")
        remember_devices([cell.link for cell in design.cells], design, "design")
        setup = setup_of(NAME, run, design, trials)
        setup.warnings += interrupted_blocks(trials)
        return Found(summarise(setup, trials, interrupted=not run.complete(len(trials))), trials)

    def merged(self, designs: Sequence[dict[str, Any]]) -> dict[str, Any]:
        every = [read(DESIGN, each, "design") for each in designs]
        free = "seed, preset and number of blocks may differ"
        return asdict(merge_designs(every, [("--probe", "probe")], free=free))

    def decisive(self, design: dict[str, Any]) -> dict[str, object]:
        asked = read(DESIGN, design, "design")
        # The probe is in the windows that tell the cost of a packet, and is a part of it.
        return {"window": asked.window_s, "--probe": asked.probe, **ports_of(asked)}

    def comparable(self, run: Run, trials: list[Trial]) -> Comparable:
        every = read(DESIGN, run.design, "design").arms
        return compared(self.findings(run, trials).summary, trials, lambda _: every)


def compared(summary: Summary, trials: list[Trial], arms_of: ArmsOf) -> Comparable:
    """What another run's floods and fixed loads can be compared with."""
    result = Comparable()
    for cell in summary.cells:
        mine = [t for t in trials if (t.link, t.size) == (cell.link, cell.size)]
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
