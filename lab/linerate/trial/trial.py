# SPDX-License-Identifier: BSD-3-Clause
"""One trial: start the forwarder, let it work, read it, stop it.

Lifecycle: the forwarder lives for one trial; the link and the sender at its other end live for a
block (`linerate.trial.link_setup`). A trial that fails becomes a record with `invalid`; only errors
that would spoil every trial (a missing program) leave this module.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from linerate.forwarders import Forwarder, forwarder
from linerate.host.cores import switches
from linerate.host.cores.cpus import CPUS, Cores
from linerate.host.errors import TrialError
from linerate.host.host import LOCAL, Host
from linerate.host.process import RunDirectory
from linerate.links import LinkContext, Wire, base_name, link
from linerate.links.eal import Memory
from linerate.records.cells import Arm, LinkCell, TableCell
from linerate.records.outcome import Frames
from linerate.records.trial import (
    Directions,
    Identity,
    InvalidCode,
    Load,
    ProgramRun,
    Request,
    Role,
    Trial,
)
from linerate.telemetry.client import Reading, Telemetry
from linerate.traffic.generator import Generator
from linerate.traffic.otg import Ip, Traffic
from linerate.trial.activity import Watch
from linerate.trial.cpu_time import CpuMeter
from linerate.trial.link_setup import LinkSetup
from linerate.trial.running import START_TIMEOUT_S, Running, launch
from linerate.trial.window import WARM_UP_S, Exchange, Polls, difference, total

# The least share of a CPU's time with which other processes are named in a record, and their
# number.
LEAST_SHARE = 0.001
MOST_NAMES = 5
# Packets per port that may be under way inside a forwarder when its counters are read.
UNDER_WAY = 256
# The forwarder's counters may be read this much apart before the window's length is in doubt.
UNCERTAINTY_LIMIT = 0.005
# The limit for extending a window, as a multiple.
LONGEST = 8


@dataclass(frozen=True)
class Bench:
    """Everything that all trials of a run share."""

    run: RunDirectory
    cores: Cores
    memory: Memory
    experiment: str
    seed: int
    window_s: float
    tsc_hz: int | None = None
    session: int = 1
    ip: Ip = 4
    # "one": the generator's first port sends, and all receive.
    directions: Directions = "both"
    # Numbers the starts of programs within the session, from 0.
    starts: Iterator[int] = field(default_factory=itertools.count)
    # The host of the forwarders.
    host: Host = LOCAL
    # Capture files whose frames the generator sends: one for each port, or one for all. Without
    # them it sends frames of its own.
    frame_files: tuple[Path, ...] = ()

    def senders(self, ports: int) -> int:
        """Return how many of the generator's ports send."""
        return 1 if self.directions == "one" else ports

    def context(self, size: int, number: int = 0, *, receive_first: bool = False) -> LinkContext:
        """Return the context to open a link for frames of `size` bytes. `number`: distinguishes
        links that are open at once; each has a directory of its own.
        """
        directory = self.run.path / f"link{number}" if number else self.run.path
        directory.mkdir(exist_ok=True)
        return LinkContext(
            directory, size, self.memory.hugepages, self.cores, receive_first, self.host, number
        )

    def generator(self, wire: Wire, *, flood: bool, late_after_us: int | None = None) -> Generator:
        """Start our generator at its end of the wire; the caller closes it."""
        return Generator(
            self.run, self.cores.control, self.memory, wire, flood=flood,
            late_after_us=late_after_us, files=self.frame_files,
        )  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """One planned trial."""

    arm: Arm
    load: Load
    block: int
    position: int
    role: Role = "measure"
    load_share: float | None = None
    pps: float | None = None
    # The probe is in the forwarder.
    probe: bool = False


def new_record(bench: Bench, plan: Plan, setup: LinkSetup) -> Trial:
    """Return the record of a trial before it starts."""
    return Trial(
        identity=Identity(
            experiment=bench.experiment,
            seed=bench.seed,
            session=bench.session,
            block=plan.block,
            position=plan.position,
            role=plan.role,
            arm=plan.arm.label,
        ),
        cell=cell_of(setup),
        program=ProgramRun(
            forwarder=plan.arm.forwarder,
            # Tenants without a forwarder have an arm, too, and no program.
            described=None if plan.role == "alone" else forwarder(plan.arm.forwarder).described(),
            probe=plan.probe,
            tsc_hz=bench.tsc_hz,
            memory="hugepages" if bench.memory.hugepages else "no-huge",
        ),
        request=Request(load=plan.load, load_share=plan.load_share),
        started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
    )


def cell_of(setup: LinkSetup) -> LinkCell | TableCell:
    """Return the cell of this setup: a link with a frame size, and tables if it has some."""
    found, size = setup.link, setup.context.size
    if found.tables is None:
        return LinkCell(link=found.name, size=size)
    return TableCell(
        link=base_name(found.name),
        size=size,
        routes=found.tables.routes,
        rules=found.tables.rules,
    )


@dataclass(frozen=True)
class ProgramStart:
    """One start of a program: its number within the session, and its place within the block."""

    start: int
    slot: int

    @classmethod
    def next(cls, bench: Bench, setup: LinkSetup) -> ProgramStart:
        return cls(next(bench.starts), next(setup.slots))

    def enter(self, trial: Trial) -> None:
        trial.identity.start, trial.identity.slot = self.start, self.slot


@contextmanager
def watched(bench: Bench, trial: Trial, setup: LinkSetup) -> Iterator[None]:
    """Record a failure inside as the trial's, which makes it invalid; record other users of the
    CPUs (`stolen`).
    """
    with stolen(bench, [trial], setup):
        try:
            yield
        except TrialError as error:
            # The cause is more useful than a symptom noticed before.
            trial.rejected = None
            trial.reject(cast(InvalidCode, error.code), str(error.message))


@contextmanager
def stolen(bench: Bench, trials: Sequence[Trial], setup: LinkSetup) -> Iterator[None]:
    """Count the ticks that the hypervisor takes meanwhile, and the other processes on the lab's
    CPUs, for each of the trials that run now. Programs that the lab started, and the kernel threads
    that receive for the link of this setup, are not other processes.
    """

    def is_own(pid: int) -> bool:
        # Asked at the end: the link may be opened meanwhile.
        return pid in setup.kernel_threads or bench.run.owns(pid)

    before = bench.host.sample(CPUS).cpus
    with switches.watched(_polled(bench, trials[0]), is_own) as uses:
        try:
            yield
        finally:
            after = bench.host.sample(CPUS).cpus
            for cpu in sorted({bench.cores.control, bench.cores.forwarder}):
                for trial in trials:
                    trial.steal_ticks[str(cpu)] = after[cpu].steal - before[cpu].steal
    if uses is not None:
        others = {str(cpu): worth_a_line(use.others) for cpu, use in uses.items() if use.complete}
        for trial in trials:
            trial.others = others


def _polled(bench: Bench, trial: Trial) -> set[int]:
    """Return the CPUs whose programs poll, so that watching their context switches costs almost
    nothing.
    """
    if isinstance(trial.cell, LinkCell | TableCell) and link(trial.cell.link).interfaces:
        return {bench.cores.control}
    return {bench.cores.control, bench.cores.forwarder}


def worth_a_line(shares: Mapping[str, float]) -> dict[str, float]:
    """Return the greatest shares of a CPU, for the record."""
    kept = [(name, share) for name, share in shares.items() if share >= LEAST_SHARE]
    return dict(kept[:MOST_NAMES])


def run_trial(bench: Bench, plan: Plan, setup: LinkSetup) -> Trial:
    """Run one trial on this setup and return its record, even if it fails."""
    trial = new_record(bench, plan, setup)
    with watched(bench, trial, setup):
        _Attempt(bench, plan, setup, trial).go()
    return trial


class _Attempt:
    """The steps of one trial, filling its record as they go."""

    def __init__(self, bench: Bench, plan: Plan, setup: LinkSetup, trial: Trial) -> None:
        self.bench = bench
        self.plan = plan
        self.setup = setup
        self.wire, self.sender = setup.ready()
        self.ports = setup.link.ports
        self.trial = trial
        self.forwarder: Forwarder = forwarder(plan.arm.forwarder)
        self.probed = plan.probe

    def go(self) -> None:
        sender = self.sender
        if sender:
            sender.check()
            sender.configure(self._traffic())
        bench = self.bench
        ProgramStart.next(bench, self.setup).enter(self.trial)
        with launch(
            self.forwarder, bench.run, bench.cores, bench.memory, self.wire, probed=self.probed
        ) as running:
            self.trial.program.build = self.forwarder.build_facts()
            children = [*running.children, *([sender.child] if sender and sender.child else [])]
            watch = Watch(self.trial, bench.host, children, self.wire.threads)
            polls = Polls(self.forwarder, running.telemetry, probed=self.probed)
            try:
                if sender:
                    exchange = Exchange(
                        running,
                        sender,
                        polls,
                        interfaces=self.wire.interfaces,
                        cpu=CpuMeter(
                            bench.host, running.forwarder, self.wire.threads, bench.cores.forwarder
                        ),
                    )
                    exchange.await_links()
                    exchange.warm_up(bench.senders(self.ports))
                    exchange.run(self.trial, self._traffic().seconds)
                else:
                    self._self_driven(running, polls)
            except TrialError:
                # The cause is better news than the symptom.
                for each in children:
                    each.check()
                raise
            watch.enter()

    def _traffic(self) -> Traffic:
        locations = self.wire.locations
        senders = self.bench.senders(len(locations))
        size, seconds = self.setup.context.size, self.bench.window_s
        return Traffic(locations, size, seconds, None, senders=senders, ip=self.bench.ip)

    # -- a link whose ports make their own frames ------------------------------------------------

    def _self_driven(self, running: Running, polls: Polls) -> None:
        """Measure differences of running counters: nothing is lost here, so nothing must settle."""
        telemetry = running.telemetry
        # On such a link the kernel has no interfaces to forward between.
        assert telemetry is not None
        running.wait_until(
            lambda: total(running.ports.readings(), "ipackets") > 0,
            START_TIMEOUT_S,
            "the forwarder forwards nothing",
        )
        time.sleep(WARM_UP_S)
        polls.await_known(running.check)
        polling = polls.read()

        first, last = read_window(running, telemetry, self.ports, self.bench.window_s)
        duration_s, uncertainty_s = _duration_s(first, last), _uncertainty_s(first, last)
        self.trial.outcome = Frames(
            polling=difference(polling, polls.read()),
            duration_s=duration_s,
            duration_uncertainty_s=uncertainty_s,
            forwarder_rx=total(last, "ipackets") - total(first, "ipackets"),
            forwarder_tx=total(last, "opackets") - total(first, "opackets"),
        )
        kept, allowed = _kept(first, last)
        if kept > allowed:
            # A program that drops what it receives is fast for the wrong reason.
            self.trial.reject(
                "kept", f"{kept} packets were received and not sent on this lossless link"
            )
        if uncertainty_s > UNCERTAINTY_LIMIT * duration_s:
            self.trial.reject(
                "unreadable", f"counters could be read only to {uncertainty_s * 1e3:.1f} ms"
            )


def read_window(
    running: Running, telemetry: Telemetry, ports: int, window_s: float
) -> tuple[list[Reading], list[Reading]]:
    """Return the counters of all ports at the beginning and at the end of a window.

    On a busy machine an answer takes as long as the scheduler's time slices, and the moment of
    counting within that time is unknown. The window is then extended, until this matters less.
    """
    first = [telemetry.port_stats_tight(port) for port in range(ports)]
    for _ in range(LONGEST):
        time.sleep(window_s)
        running.check()
        last = [telemetry.port_stats_tight(port) for port in range(ports)]
        if _uncertainty_s(first, last) <= UNCERTAINTY_LIMIT * _duration_s(first, last):
            break
    return first, last


def _duration_s(first: list[Reading], last: list[Reading]) -> float:
    return (last[0].at_ns - first[0].at_ns) / 1e9


def _uncertainty_s(first: list[Reading], last: list[Reading]) -> float:
    pairs = zip(first, last, strict=True)
    return max(one.uncertainty_ns + other.uncertainty_ns for one, other in pairs) / 1e9


def _kept(first: list[Reading], last: list[Reading]) -> tuple[int, int]:
    """Return the packets received and not sent, and how many of them are allowed.

    Some are on their way. And ports are read one after the other: if a forwarder chooses the port
    by the packet, one port may send more than it receives, and packets that pass while the next one
    is read appear as lost or as additional. If each port sends what it receives, that cannot
    happen.
    """
    moved = [
        (
            total([b], "ipackets") - total([a], "ipackets"),
            total([b], "opackets") - total([a], "opackets"),
        )
        for a, b in zip(first, last, strict=True)
    ]
    received, sent = (sum(figures) for figures in zip(*moved, strict=True))
    allowed = UNDER_WAY * len(moved)
    if len(moved) > 1 and any(abs(rx - tx) > UNDER_WAY for rx, tx in moved):
        reading_ns = sum(reads[-1].after_ns - reads[0].before_ns for reads in (first, last))
        allowed += round(received * reading_ns / (last[0].at_ns - first[0].at_ns))
    return abs(received - sent), allowed
