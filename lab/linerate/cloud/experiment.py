# SPDX-License-Identifier: BSD-3-Clause
"""Experiment `cloud`: what each framework carries alone, then all cells in randomised blocks.

A block is an open link with a running generator. In it every cell is run once, in an order drawn
from the seed: its tenants begin, its forwarder is started beside them, and a window is measured at
the cell's share of what that forwarder carries alone. Between these the tenants are measured by
themselves. A run has a budget of time for each session, if it is asked to: what did not fit is
run when the run is resumed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from rich.console import Console

from linerate import cpus
from linerate.bed import Bed
from linerate.clock_check import ClockCheck, check_clock
from linerate.cloud import needs
from linerate.cloud.cell_run import CellRun, Site, record_of, tenants_alone
from linerate.cloud.design import NAME, CloudDesign, Options
from linerate.cloud.estimate import estimate, told
from linerate.cloud.exclusive import Exclusive
from linerate.cloud.levels import NOBODY, Place
from linerate.cloud.own_rate import search_rate
from linerate.cloud.plan import Room, alone, order, own_rates
from linerate.console import Monitor
from linerate.design import AA_SUFFIX
from linerate.eal import Memory
from linerate.errors import LabError
from linerate.forwarders import forwarder
from linerate.generator import Generator
from linerate.journal import Journal
from linerate.links import LinkContext, Wire, link
from linerate.places import rust_binary
from linerate.process import RunDirectory, checkpoint
from linerate.provenance import programs
from linerate.records import Trial
from linerate.tenants.cgroups import Groups
from linerate.tenants.vm_network import bridge
from linerate.trial import Bench

# Windows of one cell in a block, void and failed ones included; and starts that may fail.
WINDOWS, STARTS = 8, 3
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
        self._rates: dict[tuple[str, int], float | None] = {}
        self._deadline = float("inf")

    @property
    def trials(self) -> list[Trial]:
        return self.journal.trials

    def prepare(self) -> None:
        """Everything that can be missing is looked for before the first trial."""
        self._held.enter_context(Exclusive(f"of {len(self.design.places)} cells"))
        needs.check(self.design.places)
        for arm in self.design.arms:
            forwarder(arm.forwarder).prepare()
        link(self.design.cells[0].link).prepare()
        rust_binary("generator")
        if self.cores.shared_core:
            self.warnings.append(
                "generator and forwarder run on hyperthread siblings of one core: "
                "this machine allows no others"
            )
        if warning := cpus.await_free(self.cores.forwarder):
            self.warnings.append(warning)
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
            self._own_rates()
            for block, steps in enumerate(order(self.design)):
                self.monitor.announce(f"block {block + 1} of {self.design.blocks}")
                with self._bed(flood=False) as bed:
                    site = Site(
                        self.bench, bed, groups, tenants_bridge, self.room, self.design.tenant,
                        self._warn,
                    )  # fmt: skip
                    for place in steps:
                        self._step(site, place, block)
                        if self.unfinished:
                            return
                self.monitor.block_over()
        self.journal.finish()

    # -- what each framework carries alone ---------------------------------------------------------

    def _own_rates(self) -> None:
        if self.options.line_rate:
            wanted = own_rates(self.design)
            self._rates = dict.fromkeys(wanted, self.options.line_rate)
            return
        self.monitor.announce("what each framework carries alone")
        for framework, size in own_rates(self.design):
            rate = search_rate(
                self.bench, self.journal, framework, size, bed=self._bed, record=self._record
            )
            self._rates[framework, size] = rate
            if rate is None:
                why = self.trials[-1].invalid if self.trials else None
                self._warn(
                    f"{framework}, {size} B: what it carries alone was not found, so that none of "
                    f"its cells can be run{f'; the last because: {why}' if why else ''}"
                )
            else:
                self.console.print(
                    f"{framework}, {size} B: {rate / 1e3:,.1f} kpps alone",
                    markup=False, highlight=False, soft_wrap=True,
                )  # fmt: skip

    # -- cells -------------------------------------------------------------------------------------

    def _step(self, site: Site, place: Place, block: int) -> None:
        """One cell of a block, as often as it takes; or what an earlier session has of it."""
        ndr = None
        if place.framework != NOBODY:
            ndr = self._rates.get((place.framework.removesuffix(AA_SUFFIX), place.size))
            if ndr is None:
                self.monitor.skip(1)
                return
        attempts = starts = 0
        last: Trial | None = None
        while trial := self._replayed(site, place, block, attempts + 1):
            attempts, last = attempts + 1, trial
            starts += not trial.valid and trial.invalid_code != "late"
        if last and (last.valid or attempts >= WINDOWS or starts >= STARTS):
            self.monitor.replayed(last)
            self._failures = 0
            return
        if time.monotonic() >= self._deadline:
            self.unfinished = True
            return
        while True:
            checkpoint()
            before = len(self.trials)
            trial = self._attempt(site, place, block, attempts + 1, ndr)
            attempts += len(self.trials) - before
            starts += not trial.valid and trial.invalid_code != "late"
            if trial.valid or attempts >= WINDOWS or starts >= STARTS:
                break
        self.monitor.finished(trial)
        self._count(trial)

    def _attempt(
        self, site: Site, place: Place, block: int, attempt: int, ndr: float | None
    ) -> Trial:
        if ndr is None:
            trial = tenants_alone(site, place, block, attempt)
            self._record(trial)
            return trial
        return CellRun(site, place, block, ndr, self._record).go(attempt, WINDOWS)

    def _replayed(self, site: Site, place: Place, block: int, attempt: int) -> Trial | None:
        found = self.journal.peek()
        due = record_of(site, place, block, attempt, None)
        names = ("role", "arm", "size", "block", "cloud_cell", "attempt")
        same = {name: getattr(due, name) for name in names}
        if attempt > 1 and found and any(getattr(found, n) != same[n] for n in names):
            return None
        return self.journal.replay(**same)

    def _count(self, trial: Trial) -> None:
        self._failures = 0 if trial.valid else self._failures + 1
        if self._failures >= MAX_FAILURES and not self.options.keep_going:
            raise LabError(
                f"{MAX_FAILURES} cells in a row gave no figure, the last because: {trial.invalid}",
                "linerate doctor; --keep-going goes on all the same",
            )

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
            return Generator(self.run, self.cores.control, self.bench.memory, wire, flood=flood)

        cell = self.design.cells[0]
        context = LinkContext(
            self.run.path, size or cell.size, self.bench.memory.hugepages, self.bench.cores
        )
        with Bed(link(cell.link), context, start) as bed:
            yield bed
