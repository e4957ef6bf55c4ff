# SPDX-License-Identifier: BSD-3-Clause
"""Experiment `rfc2544` as the lab's commands know it: begun, told, merged, compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import TypeAdapter
from rich.console import Console

from linerate.experiments.rfc2544.beds import RealLab
from linerate.experiments.rfc2544.experiment import (
    DEFAULT_FORWARDERS,
    DEFAULT_LINKS,
    NAME,
    Options,
    Rfc2544,
    SearchDesign,
    cells,
    design_of,
)
from linerate.experiments.rfc2544.page import page as rfc2544_page
from linerate.experiments.rfc2544.page.method import goal_words
from linerate.experiments.rfc2544.summarise import (
    Asked,
    Searches,
    at_fixed_loads,
    rates_of,
    searches_of,
    summarise,
)
from linerate.experiments.rfc2544.table import print_rfc2544
from linerate.host.cpus import Cores
from linerate.host.process import RunDirectory
from linerate.links import use_ports
from linerate.links.eal import Memory
from linerate.records.cells import AA_SUFFIX
from linerate.records.journal import Journal
from linerate.records.output import REPORT
from linerate.records.run_file import Run
from linerate.records.summary import SUMMARY, Summary, dump
from linerate.records.trial import Trial
from linerate.runs.experiment import Comparable, Experiment
from linerate.runs.kept_runs import (
    as_stored,
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
from linerate.traffic.other_generator import OtherGenerator
from linerate.trial.search.latency import CUT_THROUGH, DEFINITION
from linerate.trial.trial import Bench

OPTIONS, DESIGN = TypeAdapter(Options), TypeAdapter(SearchDesign)


@dataclass(frozen=True)
class Found:
    """The summary with what the report shows beside it: trials, searches, and what was asked."""

    summary: Summary
    trials: list[Trial]
    asked: Asked
    searches: Searches

    def files(self) -> dict[str, str]:
        page = rfc2544_page.render(self.summary, self.trials, self.asked, self.searches)
        return {SUMMARY: dump(self.summary), REPORT: page}

    def show(self, console: Console) -> None:
        for goal in self.asked.search.goals:
            told = f"A load reaches {goal.name} when {goal_words(goal)}."
            console.print(told, markup=False, highlight=False, soft_wrap=True)
        print_rfc2544(console, self.summary)


class Rfc2544Runs(Experiment):
    name = NAME

    def design(self, options: dict[str, Any]) -> dict[str, Any]:
        return as_stored(DESIGN, design_of(read_options(OPTIONS, options)))

    def given(self, options: dict[str, Any]) -> dict[str, object]:
        asked = read(OPTIONS, options, "options")
        other = asked.generator
        return {
            "--preset": asked.preset.name,
            "--link": asked.links,
            "--sizes": asked.sizes,
            "--forwarders": asked.forwarders,
            "--tests": list(asked.tests),
            "--ip": asked.ip,
            "--directions": asked.directions,
            "--blocks": asked.blocks,
            "--seed": asked.seed,
            "--line-rate": asked.line_rate,
            "--hugepages": asked.hugepages,
            "--keep-going": asked.keep_going,
            "--generator-port": asked.generator_ports,
            "--forwarder-port": asked.forwarder_ports,
            "--generator": other and other.url,
            "--generator-ca": other and other.ca,
            "--generator-insecure": other and other.insecure,
            "--generator-password-file": other and other.password_file,
        }

    def kept(self, options: dict[str, Any]) -> dict[str, object]:
        asked = read_options(OPTIONS, options)
        planned = cells(asked)
        return {
            **self.given(options),
            "--link": asked.links or DEFAULT_LINKS,
            "--sizes": [cell.size for cell in planned if cell.link == planned[0].link],
            "--forwarders": asked.forwarders or DEFAULT_FORWARDERS,
            "--blocks": planned[0].blocks,
        }

    def begin(
        self, options: dict[str, Any], run: RunDirectory, journal: Journal, console: Console
    ) -> Rfc2544:
        asked = read(OPTIONS, options, "options")
        other = None
        if asked.generator:
            other = OtherGenerator(asked.generator, latency="latency" in asked.tests)
        use_ports(
            asked.links, asked.generator_ports, asked.forwarder_ports, foreign=other is not None
        )
        bench = Bench(
            run=run,
            cores=Cores.choose(),
            memory=Memory.choose(asked.hugepages),
            experiment=NAME,
            seed=asked.seed,
            window_s=asked.preset.flood_s,
            session=journal.session,
            ip=asked.ip,
            directions=asked.directions or "both",
        )
        lab = RealLab(bench, asked.preset.terms, other, probe="core-use" in asked.tests)
        return Rfc2544(asked, lab, journal, console)

    def findings(self, run: Run, trials: list[Trial]) -> Found:
        asked = self._asked(run, trials)
        searches = searches_of(asked, trials)
        interrupted = not run.complete(len(trials))
        summary = summarise(asked, trials, searches, interrupted=interrupted)
        return Found(summary, trials, asked, searches)

    def _asked(self, run: Run, trials: list[Trial]) -> Asked:
        design = read(DESIGN, run.design, "design")
        remember_devices([cell.link for cell in design.cells], design, "design")
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

    def merged(self, designs: Sequence[dict[str, Any]]) -> dict[str, Any]:
        every = [read(DESIGN, each, "design") for each in designs]
        further = [
            ("--preset", "search"),
            ("--tests", "tests"),
            ("--blocks", "shared_by"),
            ("--ip", "ip"),
            ("--directions", "directions"),
            ("--generator", "generator"),
        ]
        # The repetitions of each test are shared out over the blocks of a run.
        free = "their seeds may differ, and nothing else: --blocks must be alike, too"
        return as_stored(DESIGN, merge_designs(every, further, free=free))

    def decisive(self, design: dict[str, Any]) -> dict[str, object]:
        asked = read(DESIGN, design, "design")
        return {
            # Its goals and durations.
            "--preset": replace(asked.search, blocks=0, note=""),
            "--ip": asked.ip,
            "--directions": asked.directions or "both",
            "--generator": asked.generator,
            **ports_of(asked),
        }

    def comparable(self, run: Run, trials: list[Trial]) -> Comparable:
        told = self.findings(run, trials)
        asked, found = told.asked, told.summary
        result = Comparable()
        for cell in found.cells:
            mine = [t for t in trials if (t.link, t.size) == (cell.link, cell.size)]
            rates = rates_of(asked, cell, told.searches[cell.link, cell.size])
            pairs = rates.pairs
            for label in pairs.pairs:
                result.samples.append(rate_sample(pairs, label, *rates.both(label)))
            itself, _ = rates.both(pairs.baseline + AA_SUFFIX)
            result.controls.append(control_sample(pairs, itself))
            polled = [t for t in at_fixed_loads(asked.search, mine) if t.polling is not None]
            result.add(compared_costs(cell, polled, [arm.label for arm in asked.arms]))
        return result
