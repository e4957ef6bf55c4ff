# SPDX-License-Identifier: BSD-3-Clause
"""Experiment `cloud`: first each framework's rate alone, then all cells in randomised blocks.

A block is an open link with a running generator. In it every cell is run once, in an order drawn
from the seed: its tenants begin, its forwarder is started beside them, and a window is measured at
the cell's share of that forwarder's own rate. Between these the tenants are measured alone. With a
time budget, which each session has and which includes the search for the own rates, the rest is run
when the run is resumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial

from linerate.experiments.cloud.design import needs
from linerate.experiments.cloud.design.design import LATE_AFTER_US, NAME, CloudDesign
from linerate.experiments.cloud.design.estimate import estimate, told
from linerate.experiments.cloud.design.levels import NOBODY, Place
from linerate.experiments.cloud.design.plan import Room, alone, order, own_rates
from linerate.experiments.cloud.options import Options
from linerate.experiments.cloud.session.cell_run import CellRun, Site, due
from linerate.experiments.cloud.session.exclusive import Exclusive
from linerate.experiments.cloud.session.own_rate import SEARCHES, agreed, search_rate, settled
from linerate.experiments.cloud.session.pace import SHARES, hardest, kept, strangers
from linerate.experiments.cloud.tenants.cgroups.cgroups import EVERYONES, Groups, hierarchy
from linerate.experiments.cloud.tenants.vm.vm_network import bridge
from linerate.host.errors import MachineError
from linerate.host.text import counted, listed
from linerate.records.cells import AA_SUFFIX, Cell
from linerate.records.trial import Trial
from linerate.runs.plans.quiet import RESTS_S, last_cause, not_found, until_quiet
from linerate.runs.plans.steps import (
    Announce,
    Attempts,
    BlockOver,
    Failures,
    More,
    Most,
    Needs,
    OnSetup,
    Record,
    Say,
    SessionPlan,
    Steps,
)
from linerate.trial.link_setup import LinkSetup

MOST = Most(windows=10, starts=3, disturbed=("late",))


class Cloud(SessionPlan):
    """The plan of a session."""

    name = NAME
    unit = "cell"
    failures = Failures(8, "cells in a row gave no figure")
    late_after_us = LATE_AFTER_US
    receive_first = True

    def __init__(self, options: Options, design: CloudDesign) -> None:
        super().__init__(options)
        self.options = options
        self.design = design
        self.warnings += options.left_out
        self.window_s = design.window_s
        self.minutes = options.minutes
        self.total = design.blocks * (len(design.places) + len(alone(design.places)))
        # In frames per second, by framework and frame size: NDRs, the rates of the searches that
        # confirm them, and 100 %.
        self._ndrs: dict[tuple[str, int], float] = {}
        self._again: dict[tuple[str, int], float] = {}
        self.full_rates: dict[tuple[str, int], float] = {}
        # The rests in the search for the rates that the generator keeps, for all frameworks and
        # sizes together.
        self._rests = iter(RESTS_S)

    @property
    def needs(self) -> Needs:
        return Needs(
            forwarders=tuple(arm.forwarder for arm in self.design.arms),
            links=(self.design.cells[0].link,),
        )

    @property
    def room(self) -> Room:
        return Room.of(self.bench.cores, sorted(self.bench.host.cpus()))

    def held(self) -> AbstractContextManager[object]:
        """Return the lock on the machine: tenants of one run would disturb the other."""
        return Exclusive(f"of {len(self.design.places)} cells")

    def prepare(self) -> None:
        room = self.room
        if lost := [place for place in self.design.places if not room.holds(place.cell)]:
            # The run began with more CPUs: tenants on the forwarder's would be another level.
            raise MachineError(
                f"{counted(len(lost), 'cell')} of this run have a core of the forwarder's own "
                "beside tenants, and this session has no other core for them",
                "let the lab have the CPUs that it had when the run began",
            )
        needs.check(self.design.places)

    def steps(self) -> Steps[None]:
        for line in told(estimate(self.design), self.design, self.minutes):
            yield Say(line)
        with Groups(weight=self._weight()) as groups, bridge() as tenants_bridge:
            site = Site(
                self.bench, groups, tenants_bridge, self.room, self.design.tenant, self.warn,
                self._ndrs, self._again,
            )  # fmt: skip
            yield from self._own_rates(site)
            for block, places in enumerate(order(self.design)):
                yield Announce(f"block {block + 1} of {self.design.blocks}")
                yield OnSetup(self._cell(), partial(self._block, site, block, places))
                yield BlockOver()

    def _weight(self) -> int:
        """That of the tenants' group. In version 2 it is beside the lab's group and weighs as much.
        In version 1 it is below, where a greater weight would take the generator's share: the
        kernel divides a group's weight among CPUs by what weighs on them.
        """
        found = hierarchy()
        return EVERYONES * (self.options.cpu_weight if found and found.version == 2 else 1)

    def _cell(self, size: int | None = None) -> Cell:
        cell = self.design.cells[0]
        return replace(cell, size=size or cell.size)

    def _block(self, site: Site, block: int, places: list[Place], setup: LinkSetup) -> Steps[None]:
        for place in places:
            full = None
            if place.framework != NOBODY:
                full = self.full_rates.get((place.framework.removesuffix(AA_SUFFIX), place.size))
                if full is None:
                    yield More(-1)
                    continue
            yield Attempts(
                due=partial(due, setup, place, block, "alone" if full is None else "measure"),
                run=partial(self._attempt, CellRun(site, setup, place, block, full)),
                most=MOST,
            )

    @staticmethod
    def _attempt(cell: CellRun, attempt: int, record: Record) -> Trial:
        return cell.go(attempt, MOST.windows, record)

    # -- what each framework carries alone ---------------------------------------------------------

    def _own_rates(self, site: Site) -> Steps[None]:
        if self.options.line_rate:
            self.full_rates = dict.fromkeys(own_rates(self.design), self.options.line_rate)
            return
        yield Announce("searching the rate of each framework alone")
        found: dict[tuple[str, int], list[float]] = {each: [] for each in own_rates(self.design)}
        # All in turn, so that no disturbance meets both searches of one.
        for _ in range(SEARCHES):
            for (framework, size), rates in list(found.items()):
                if agreed(rates):
                    continue
                # A rate that is known is not waited for.
                rate = yield from until_quiet(
                    self,
                    f"{framework}, {size} B: its rate alone was not found",
                    partial(search_rate, framework, self._cell(size)),
                    partial(self._is_missed, framework, rates),
                    iter(() if rates else RESTS_S),
                )
                if rate is not None:
                    rates.append(rate)
                elif not rates:
                    del found[framework, size]
                    self._lost(framework, size, "its rate alone was not found")
        for (framework, size), rates in found.items():
            self._ndrs[framework, size], self._again[framework, size] = settled(rates)
            if not agreed(rates):
                self.warn(
                    f"{framework}, {size} B: what it carries alone is not known, for searches "
                    f"found {listed(f'{rate / 1e3:,.1f}' for rate in rates)} kpps; the highest "
                    "counts as 100 %, and nothing is said about frame sizes and frameworks"
                )
        yield Announce("searching the share of it that the generator keeps beside tenants")
        yield OnSetup(self._cell(), partial(self._all_kept, site))

    def _all_kept(self, site: Site, setup: LinkSetup) -> Steps[None]:
        """Choose one share of all NDRs as 100 %: the greatest that the generator keeps for each."""
        share, by = SHARES[0], ""
        for framework, size in list(self._ndrs):
            found = yield from self._kept(site, setup, framework, size, share)
            if found is None:
                del self._ndrs[framework, size]
                self._lost(framework, size, "the generator kept no share of its NDR beside tenants")
            elif found < share:
                share, by = found, f"{framework} at {size} B"
        for (framework, size), ndr_pps in self._ndrs.items():
            self.full_rates[framework, size] = share * ndr_pps
            yield Say(
                f"{framework}, {size} B: {ndr_pps / 1e3:,.1f} kpps alone; "
                f"100 % is {share * ndr_pps / 1e3:,.1f} kpps"
            )
        if by:
            self.warn(
                f"100 % is {share:.0%} of what each framework carries alone at each frame size: "
                f"beside tenants the generator keeps no more of {by}, and shares that differ could "
                "not be compared"
            )

    def _kept(
        self, site: Site, setup: LinkSetup, framework: str, size: int, most: float
    ) -> Steps[float | None]:
        """Return the share of the NDR that is kept, `most` at most; None if none is."""
        place = hardest(self.design.places, framework, size)
        if place is None:
            return most
        best: float | None = None

        def attempt() -> Steps[float | None]:
            """Return the kept share if it is the requested one, or if no other process
            interfered.
            """
            nonlocal best
            before = len(self.trials)
            found = yield from kept(site, setup, place, self._ndrs[framework, size], most)
            best = max(filter(None, (best, found)), default=None)
            hindered = strangers(self.trials[before:], self.bench.cores.control)
            return None if best is None or (best < most and hindered) else best

        yield from until_quiet(
            self,
            f"{framework}, {size} B: the generator was late beside tenants",
            attempt,
            lambda: best is None and self._is_needed(framework),
            self._rests,
        )
        return best

    # -- what cannot be measured -------------------------------------------------------------------

    def _is_missed(self, framework: str, rates: Sequence[float]) -> bool:
        return not rates and self._is_needed(framework)

    def _is_needed(self, framework: str) -> bool:
        """Return True if a study without this framework is useless: all others are compared with
        it.
        """
        return framework == self.design.reference and not self.keep_going

    def _lost(self, framework: str, size: int, what: str) -> None:
        """Record a framework that cannot be measured at a size, or end the run if it is the
        reference.
        """
        mine = [t for t in self.trials if (t.forwarder, t.cell.key[1]) == (framework, size)]
        cause = last_cause(mine)
        who = "the reference " if framework == self.design.reference else ""
        why = (
            f"{who}{framework}, {size} B: {what}, so that none of its cells can be run"
            f"{f'; the last because: {cause}' if cause else ''}"
        )
        if self._is_needed(framework):
            raise not_found(
                why,
                mine,
                "run it when the machine is quieter, or with --keep-going, which goes on without",
            )
        self.warn(why)
