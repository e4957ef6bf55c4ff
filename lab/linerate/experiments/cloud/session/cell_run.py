# SPDX-License-Identifier: BSD-3-Clause
"""Run a cell once: start tenants, start a forwarder beside them, and measure windows of traffic.

A window in which the sender was late is void and repeated, with the same forwarder and tenants.
Waiting of the forwarder for its core is the effect to measure and never makes a window void. Any
other failure ends this attempt, with the reason in its record.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from linerate.experiments.cloud.design.levels import NOBODY, Place
from linerate.experiments.cloud.design.parts import TenantShape
from linerate.experiments.cloud.design.plan import Room
from linerate.experiments.cloud.session.counters import CoreCounters, between
from linerate.experiments.cloud.session.meter import CoreMeter
from linerate.experiments.cloud.session.neighbours import (
    Asked,
    Neighbours,
    forwarder_limits,
    windows,
)
from linerate.experiments.cloud.tenants.cgroups.cgroups import Group, Groups
from linerate.experiments.cloud.tenants.vm.vm import VirtualMachine
from linerate.experiments.cloud.tenants.vm.vm_network import Bridge
from linerate.experiments.cloud.window import CloudTrialCell, CloudWindow, TenantsAlone
from linerate.forwarders import forwarder
from linerate.host.errors import GeneratorError, LabError, TrialError
from linerate.host.process import pause
from linerate.links import KernelThread, Wire
from linerate.records.cells import AA_SUFFIX, Arm
from linerate.records.trial import Role, Trial
from linerate.traffic.otg import Traffic
from linerate.traffic.sender import Sender
from linerate.trial.activity import Watch
from linerate.trial.link_setup import LinkSetup
from linerate.trial.running import Running, launch
from linerate.trial.search.setup_device import WARM_UP_PPS
from linerate.trial.trial import Bench, Plan, ProgramStart, new_record, watched
from linerate.trial.window import Exchange, Polls

# A quota is kept over this time, and so is felt no sooner (tenants.cgroups).
_SETTLE_S = 0.2


@dataclass(frozen=True)
class Site:
    """The shared context of all cells of a run. `warn`: receives remarks on all of them. By
    framework and frame size, as far as they were searched: `ndrs`, and the rates of the searches
    that confirm them, `again`.
    """

    bench: Bench
    groups: Groups
    bridge: Bridge
    room: Room
    shape: TenantShape
    warn: Callable[[str], None]
    ndrs: Mapping[tuple[str, int], float]
    again: Mapping[tuple[str, int], float]


def arm_of(place: Place) -> Arm:
    return Arm(place.framework, place.framework.removesuffix(AA_SUFFIX))


def due(setup: LinkSetup, place: Place, block: int, role: Role, attempt: int) -> dict[str, object]:
    """Return the fields that identify the record of a window."""
    return {
        "link": setup.link.name,
        "role": role,
        "arm": arm_of(place).label,
        "size": place.size,
        "block": block,
        "cell": cell_of(setup, place),
        "attempt": attempt,
    }


def cell_of(setup: LinkSetup, place: Place) -> CloudTrialCell:
    """Return the cell: the place's levels on this link."""
    return CloudTrialCell(link=setup.link.name, size=place.size, levels=place.cell)


def record_of(  # noqa: PLR0917 - what a window is known by
    site: Site,
    setup: LinkSetup,
    place: Place,
    block: int,
    attempt: int,
    full_pps: float | None,
    role: Role = "measure",
) -> Trial:
    """Return the record of a window before it begins."""
    setup.resize(place.size)
    nobody = place.framework == NOBODY
    plan = Plan(
        arm_of(place),
        "self-driven" if nobody else "paced",
        block,
        0,
        "alone" if nobody else role,
        load_share=None if nobody else place.cell.rate,
    )
    trial = new_record(site.bench, plan, setup)
    trial.cell = cell_of(setup, place)
    request = trial.request
    request.attempt = attempt
    searched = (plan.arm.forwarder, place.size)
    request.alone_pps = site.ndrs.get(searched)
    request.alone_again_pps = site.again.get(searched)
    if full_pps is not None:
        request.maximum_pps = full_pps
        request.pps = full_pps * place.cell.rate
        request.seconds = site.bench.window_s
    return trial


class CellRun:
    """Attempts at a cell. `full_pps`: 100 %; None: the tenants work without a forwarder."""

    def __init__(
        self,
        site: Site,
        setup: LinkSetup,
        place: Place,
        block: int,
        full_pps: float | None,
        *,
        role: Role = "measure",
    ) -> None:
        self._role = role
        self._site = site
        self._setup = setup
        self._place = place
        self._block = block
        self._full_pps = full_pps
        self._started: ProgramStart | None = None

    def go(self, first: int, last: int, record: Callable[[Trial], None]) -> Trial:
        """Run attempts, numbered from `first` to `last` at most. Tenants and forwarder are started
        once, and windows are repeated until one is valid. Each goes to `record`.
        """
        trial = self._new(first)
        if self._full_pps is None:
            self._tenants_alone(trial)
            record(trial)
            return trial
        self._started = ProgramStart.next(self._site.bench, self._setup)
        self._started.enter(trial)
        failed: TrialError | None = None
        try:
            with self._beside() as beside, self._running(beside) as window:
                for attempt in range(first, last + 1):
                    trial = self._new(attempt)
                    with self._watched(trial):
                        window(trial)
                    if trial.valid or trial.invalid_code != "late" or attempt == last:
                        break
                    record(trial)
        except TrialError as error:
            failed = error
        if failed and trial.valid:
            # This failure came before a window, or after the last.
            with self._watched(trial):
                raise failed
        record(trial)
        return trial

    def _new(self, attempt: int) -> Trial:
        trial = record_of(
            self._site, self._setup, self._place, self._block, attempt, self._full_pps, self._role
        )
        if self._started:
            self._started.enter(trial)
        return trial

    @property
    def _pps(self) -> float:
        """The offered load in frames per second over all directions."""
        assert self._full_pps is not None
        return self._full_pps * self._place.cell.rate

    @contextmanager
    def _watched(self, trial: Trial) -> Iterator[None]:
        """Record strangers on the generator's CPU only, where only strangers make it late: the
        users of the forwarder's CPU are the tenants, whose effect is measured.
        """
        with watched(self._site.bench, trial, self._setup):
            yield
        if trial.others is not None:
            own = str(self._site.bench.cores.control)
            trial.others = {cpu: each for cpu, each in trial.others.items() if cpu == own}

    def _beside(self) -> Neighbours:
        return neighbours(self._site, self._place)

    @contextmanager
    def _running(self, beside: Neighbours) -> Iterator[Callable[[Trial], None]]:
        """Run the forwarder in its control group; yields a function that runs a window."""
        site = self._site
        wire, sender = self._setup.ready()
        if sender is None:
            raise GeneratorError(f"link {self._setup.link.name} has no generator")
        sender.check()
        program = forwarder(arm_of(self._place).forwarder)
        limits = forwarder_limits(self._place.cell, site.room.forwarder)
        bench = site.bench
        with (
            site.groups.group("forwarder", limits) as group,
            CoreCounters(site.room.forwarder, site.bench.host) as counters,
        ):
            # Stopped when frames have come through, long before its end.
            warm_up = min(WARM_UP_PPS, self._pps)
            sender.configure(self._traffic(wire, sender, warm_up, 60.0, latency=False))
            with launch(program, bench.run, bench.cores, bench.memory, wire) as running:
                meter = CoreMeter(running.forwarder, wire.threads, counters, group, beside)
                polls = Polls(program, running.telemetry, probed=False)
                exchange = Exchange(running, sender, polls, interfaces=wire.interfaces, cpu=meter)
                try:
                    exchange.await_links()
                    exchange.warm_up(bench.senders(len(wire.locations)))
                except TrialError:
                    # The cause is better news than the symptom.
                    exchange.alive()
                    beside.check()
                    raise
                self._confine(group, running, wire)
                pause(_SETTLE_S)
                yield lambda trial: self._window(trial, exchange, meter, beside, wire)

    def _confine(self, group: Group, running: Running, wire: Wire) -> None:
        """Put everything that works for the forwarder into one group: its processes, and the kernel
        threads that receive for it, which some forwarders consist of.
        """
        for child in running.children:
            if self._site.bench.cores.forwarder in child.command.cpus:
                group.add(child.pid)
        for thread in wire.threads:
            if thread.role == KernelThread.FORWARDER:
                try:
                    group.add(thread.pid)
                except LabError as error:
                    self._site.warn(
                        "the kernel's threads that receive for the forwarder are not limited with "
                        f"it, and their CPU time is not in its own: {error.message}"
                    )

    def _window(
        self,
        trial: Trial,
        exchange: Exchange,
        meter: CoreMeter,
        beside: Neighbours,
        wire: Wire,
    ) -> None:
        bench, sender = self._site.bench, exchange.sender
        children = [*exchange.running.children, *([sender.child] if sender.child else [])]
        traffic = self._traffic(wire, sender, self._pps, bench.window_s, latency=True)
        trial.request.ip = bench.ip
        if len(wire.locations) > 1:
            trial.request.directions = bench.directions
        trial.program.build = forwarder(trial.forwarder).build_facts()
        exchange.alive()
        beside.check()
        sender.configure(traffic)
        before, crossed = _guests(beside), beside.bridge_bytes()
        watch = Watch(trial, bench.host, children, wire.threads)
        try:
            exchange.run(trial, traffic.lead_s + bench.window_s)
            window = CloudWindow.of(trial.frames)
            trial.outcome = window
            window.latency, window.clock = sender.latency(), sender.clock()
        except TrialError:
            exchange.alive()
            beside.check()
            raise
        watch.enter(others_wanted=True)
        after = _guests(beside)
        beside.check()
        meter.enter(window)
        if meter.used_by:
            begin, end = meter.used_by.begin, meter.used_by.end
            if beside.counted_here:
                before, after = begin.asked, end.asked
            used = begin.tenants, end.tenants
            window.tenants = windows(beside.tenants, (before, after), used)
        _enter_neighbours(window, beside, crossed)

    def _traffic(
        self, wire: Wire, sender: Sender, pps: float, seconds: float, *, latency: bool
    ) -> Traffic:
        bench = self._site.bench
        senders = bench.senders(len(wire.locations))
        return Traffic(
            wire.locations,
            self._place.size,
            seconds,
            pps / senders,
            latency=latency,
            senders=senders,
            ip=bench.ip,
            lead_s=sender.lead_s,
        )

    def _tenants_alone(self, trial: Trial) -> None:
        """Measure the tenants' work without any forwarder."""
        site = self._site
        with (
            self._watched(trial),
            self._beside() as beside,
            CoreCounters(site.room.forwarder, site.bench.host) as counters,
        ):
            before, crossed = beside.asked(), beside.bridge_bytes()
            used, core = beside.usages(), counters.read()
            began = time.monotonic()
            pause(site.bench.window_s)
            duration_s = time.monotonic() - began
            core_after, used_after = counters.read(), beside.usages()
            after = beside.asked()
            beside.check()
            window = TenantsAlone(
                duration_s=duration_s,
                core=between(counters.cpu, core, core_after),
                tenants=windows(beside.tenants, (before, after), (used, used_after)),
            )
            _enter_neighbours(window, beside, crossed)
            trial.outcome = window


def neighbours(site: Site, place: Place) -> Neighbours:
    cpu = site.room.tenants_cpu(place.cell.cpu)
    bench = site.bench
    # The longest time of a cell with all of its windows.
    bound_s = max(900, math.ceil(20 * (bench.window_s + 10)))
    return Neighbours(
        place.cell, site.shape, cpu, bench.run, site.groups, site.bridge, bound_s=bound_s
    )


def _guests(beside: Neighbours) -> list[Asked]:
    """Return the work of tenants that must be asked for it."""
    return [] if beside.counted_here else beside.asked()


def _enter_neighbours(
    window: CloudWindow | TenantsAlone, beside: Neighbours, crossed: int | None
) -> None:
    if crossed is not None and (now := beside.bridge_bytes()) is not None:
        window.bridge_bytes = now - crossed
    for tenant in beside.tenants:
        if isinstance(tenant, VirtualMachine) and tenant.facts:
            window.accelerator = "kvm" if tenant.facts.accelerator.name == "kvm" else "tcg"
            window.tenant_packages = dict(tenant.facts.packages)
