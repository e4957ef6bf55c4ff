# SPDX-License-Identifier: BSD-3-Clause
"""Experiment `cloud`: what each framework carries alone, then all cells in randomised blocks.

A block is an open link with a running generator. In it every cell is run once, in an order drawn
from the seed: its tenants begin, its forwarder is started beside them, and a window is measured at
the cell's share of what that forwarder carries alone. Between these the tenants are measured by
themselves. A run has a budget of time for each session, if it is asked to, of which the search for
what frameworks carry is a part: what did not fit is run when the run is resumed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from rich.console import Console

from linerate.experiments.cloud.design import needs
from linerate.experiments.cloud.design.design import LATE_AFTER_US, NAME, CloudDesign
from linerate.experiments.cloud.design.estimate import estimate, told
from linerate.experiments.cloud.design.levels import NOBODY, Place
from linerate.experiments.cloud.design.plan import Room, alone, order, own_rates
from linerate.experiments.cloud.options import Options
from linerate.experiments.cloud.session.attempts import Most, repeated
from linerate.experiments.cloud.session.cell_run import CellRun, Site, record_of, tenants_alone
from linerate.experiments.cloud.session.exclusive import Exclusive
from linerate.experiments.cloud.session.own_rate import search_rate
from linerate.experiments.cloud.session.pace import hardest, kept
from linerate.experiments.cloud.tenants.cgroups.cgroups import Groups
from linerate.experiments.cloud.tenants.vm.vm_network import Bridge, bridge
from linerate.forwarders import forwarder
from linerate.host import cpus
from linerate.host.errors import HopelessError, MachineError
from linerate.host.places import rust_binary
from linerate.host.process import RunDirectory
from linerate.host.text import counted
from linerate.links import LinkContext, Wire, link
from linerate.links.eal import Memory
from linerate.records.cells import AA_SUFFIX
from linerate.records.journal import Journal
from linerate.records.trial import Trial
from linerate.runs.progress import Monitor
from linerate.runs.provenance import programs
from linerate.traffic.generator import Generator
from linerate.trial.bed import Bed
from linerate.trial.clock_check import ClockCheck, check_clock
from linerate.trial.trial import Bench

MOST = Most(windows=10, starts=3)
# A run whose every cell fails ends early, unless it is to keep going.
MAX_FAILURES = 8


class Cloud:
    """One session of a run; what was measured is in its journal."""

    def __init__(
        self,
        options: Options,
        design: CloudDesign,
        run: RunDirectory,
        journal: Journal,
        console: Console,
    ) -> None:
        self.options = options
        self.design = design
        self.run = run
        self.journal = journal
        self.console = console
        self.warnings: list[str] = list(options.left_out)
        self.unfinished = False
        self.cores = cpus.Cores.choose()
        self.room = Room.of(self.cores, sorted(os.sched_getaffinity(0)))
        self.bench = Bench(
            run=run,
            cores=self.cores,
            memory=Memory.choose(options.hugepages),
            experiment=NAME,
            seed=options.seed,
            window_s=design.window_s,
            session=journal.session,
        )
        steps = len(design.places) + len(alone(design.places))
        self.monitor = Monitor(console, design.blocks * steps)
        self.clock: ClockCheck | None = None
        self._held = ExitStack()
        self._failures = 0
        # By framework and frame size: NDRs, and what is 100 %.
        self._ndrs: dict[tuple[str, int], float] = {}
        self._rates: dict[tuple[str, int], float | None] = {}
        self._deadline = float("inf")

    @property
    def trials(self) -> list[Trial]:
        return self.journal.trials

    def prepare(self) -> None:
        """Everything that can be missing is looked for before the first trial."""
        if lost := [place for place in self.design.places if not self.room.holds(place.cell)]:
            # The run began with more CPUs: tenants on the forwarder's would be another level.
            raise MachineError(
                f"{counted(len(lost), 'cell')} of this run have a core of the forwarder's own "
                "beside tenants, and this session has no other core for them",
                "let the lab have the CPUs that it had when the run began",
            )
        self._held.enter_context(Exclusive(f"of {len(self.design.places)} cells"))
        try:
            self._look_for_all()
        except BaseException:
            self._held.close()
            raise

    def _look_for_all(self) -> None:
        needs.check(self.design.places)
        for arm in self.design.arms:
            forwarder(arm.forwarder).prepare()
        link(self.design.cells[0].link).prepare()
        rust_binary("generator")
        self.warnings += cpus.ready(self.cores)
        self.clock = check_clock(self.bench)
        if complaint := self.clock.complaint():
            self.warnings.append(complaint)
        self.bench = replace(self.bench, tsc_hz=self.clock.told_hz)

    def programs(self) -> dict[str, str]:
        """Digests of the programs that take part, after `prepare`."""
        names = [arm.forwarder for arm in self.design.arms]
        return programs(names, generator=True, probe=False)

    def measure(self) -> None:
        minutes = self.options.minutes
        for line in told(estimate(self.design), self.design, minutes):
            self.console.print(line, markup=False, highlight=False, soft_wrap=True)
        if minutes is not None:
            self._deadline = time.monotonic() + minutes * 60
        with self._held, self.monitor, Groups() as groups, bridge() as tenants_bridge:
            self._own_rates(groups, tenants_bridge)
            if self.unfinished:
                return
            for block, steps in enumerate(order(self.design)):
                self.monitor.announce(f"block {block + 1} of {self.design.blocks}")
                with self._bed(flood=False) as bed:
                    site = self._site(bed, groups, tenants_bridge)
                    for place in steps:
                        self._step(site, place, block)
                        if self.unfinished:
                            return
                self.monitor.block_over()
        self.journal.finish()

    def _site(self, bed: Bed, groups: Groups, tenants_bridge: Bridge) -> Site:
        return Site(
            self.bench, bed, groups, tenants_bridge, self.room, self.design.tenant, self._warn,
            self._ndrs,
        )  # fmt: skip

    # -- what each framework carries alone ---------------------------------------------------------

    def _own_rates(self, groups: Groups, tenants_bridge: Bridge) -> None:
        if self.options.line_rate:
            self._rates = dict.fromkeys(own_rates(self.design), self.options.line_rate)
            return
        self.monitor.announce("what each framework carries alone")
        for framework, size in own_rates(self.design):
            if self._is_over():
                return
            rate = search_rate(
                self.bench, self.journal, framework, size, bed=self._bed, record=self._record
            )
            if rate is None:
                self._unknown(framework, size, "what it carries alone was not found")
            else:
                self._ndrs[framework, size] = rate
        self.monitor.announce("what of that the generator keeps beside tenants")
        with self._bed(flood=False) as bed:
            site = self._site(bed, groups, tenants_bridge)
            for (framework, size), rate in self._ndrs.items():
                if self._is_over():
                    return
                self._rates[framework, size] = self._kept(site, framework, size, rate)

    def _is_over(self) -> bool:
        """The budget is used up, and nothing is on record that could be passed without any."""
        if time.monotonic() >= self._deadline and self.journal.peek() is None:
            self.unfinished = True
        return self.unfinished

    def _kept(self, site: Site, framework: str, size: int, ndr_pps: float) -> float | None:
        """Of this NDR, what is 100 % in all cells of the framework and size."""
        told = f"{framework}, {size} B: {ndr_pps / 1e3:,.1f} kpps alone"
        place = hardest(self.design.places, framework, size)
        rate = ndr_pps
        if place is not None:
            found = kept(site, self.journal, place, ndr_pps, self._record)
            if found is None:
                self._unknown(framework, size, "the generator kept no share of it beside tenants")
                return None
            rate = found
        if rate < ndr_pps:
            told += (
                f"; 100 % is {rate / 1e3:,.1f} kpps, for beside tenants the generator keeps no more"
            )
            self._warn(told)
        self.console.print(told, markup=False, highlight=False, soft_wrap=True)
        return rate

    def _unknown(self, framework: str, size: int, what: str) -> None:
        why = self.trials[-1].invalid if self.trials else None
        self._warn(
            f"{framework}, {size} B: {what}, so that none of its cells can be run"
            f"{f'; the last because: {why}' if why else ''}"
        )

    # -- cells -------------------------------------------------------------------------------------

    def _step(self, site: Site, place: Place, block: int) -> None:
        """One cell of a block, as often as it takes; or what an earlier session has of it."""
        full = None
        if place.framework != NOBODY:
            full = self._rates.get((place.framework.removesuffix(AA_SUFFIX), place.size))
            if full is None:
                self.monitor.skip(1)
                return
        ended = repeated(
            self.journal,
            lambda attempt: record_of(site, place, block, attempt, full),
            lambda attempt: self._attempt(site, place, block, attempt, full),
            MOST,
            may_begin=lambda: time.monotonic() < self._deadline,
        )
        if ended.last is None:
            self.unfinished = True
        elif ended.fresh:
            self.monitor.finished(ended.last)
            self._count(ended.last)
        else:
            self.monitor.replayed(ended.last)
            # A run that ended because all failed is resumed to try again.
            self._failures = 0

    def _attempt(
        self, site: Site, place: Place, block: int, attempt: int, full: float | None
    ) -> Trial:
        if full is None:
            trial = tenants_alone(site, place, block, attempt)
            self._record(trial)
            return trial
        return CellRun(site, place, block, full, self._record).go(attempt, MOST.windows)

    def _count(self, trial: Trial) -> None:
        self._failures = 0 if trial.valid else self._failures + 1
        if self._failures >= MAX_FAILURES and not self.options.keep_going:
            raise HopelessError(f"{MAX_FAILURES} cells in a row gave no figure", trial.invalid)

    def _record(self, trial: Trial) -> None:
        trial.position = len(self.trials)
        if self.clock:
            self.clock.enter(trial)
        self.journal.add(trial)

    def _warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)

    @contextmanager
    def _bed(self, *, flood: bool, size: int | None = None) -> Iterator[Bed]:
        def start(wire: Wire) -> Generator:
            return Generator(
                self.run,
                self.cores.control,
                self.bench.memory,
                wire,
                flood=flood,
                late_after_us=LATE_AFTER_US,
            )

        cell = self.design.cells[0]
        context = LinkContext(
            self.run.path,
            size or cell.size,
            self.bench.memory.hugepages,
            self.bench.cores,
            receive_first=True,
        )
        with Bed(link(cell.link), context, start) as bed:
            yield bed
