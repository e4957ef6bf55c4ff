# SPDX-License-Identifier: BSD-3-Clause
"""One run of experiment `latency`: what each forwarder carries, then units in randomised blocks.

Per cell (link, frame size) first the capacity of each forwarder: a flood, and a rate that the
sender keeps. Then, in each block, every arm has two units. A unit is one process of the forwarder
that is offered every kind of frame at every load, in an order drawn from the seed: for the round
trips as it is, and once more while it (or the probe in it) measures how long frames are inside.
Where a packet socket can take the generator's place, every arm is then met by that sender, too.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Literal

from rich.console import Console

from linerate.experiments.latency import packet_sender, plan
from linerate.experiments.latency.design import NAME, cells, preset_of
from linerate.experiments.latency.figures import flood_pps
from linerate.experiments.latency.options import DEFAULT_FORWARDERS, Options
from linerate.experiments.latency.packet_sender import PacketSender
from linerate.experiments.latency.plan import IDLE, IDLE_PPS, INSIDE_LOADS, LOADS, Step
from linerate.forwarders import forwarder
from linerate.host import cpus
from linerate.host.builds.plugins import probe_plugin
from linerate.host.errors import HopelessError, TrialError
from linerate.host.places import rust_binary
from linerate.host.process import RunDirectory, checkpoint
from linerate.host.text import counted
from linerate.links import LinkContext, Wire, link
from linerate.links.eal import Memory
from linerate.links.ports import Ports
from linerate.records.cells import Arm, Cell
from linerate.records.journal import Journal
from linerate.records.trial import Role, Test, Trial
from linerate.runs.blocks import arms, order, takes
from linerate.runs.progress import Monitor
from linerate.runs.provenance import programs
from linerate.traffic.generator import Generator
from linerate.trial.bed import Bed
from linerate.trial.clock_check import ClockCheck, check_clock
from linerate.trial.search.bed_device import DISTURBED, BedDevice, Terms
from linerate.trial.search.replay import Resumed
from linerate.trial.trial import Bench, Plan, run_trial

# Shares of what came back of a flood that are tried as 100 %, until the sender is on time at the
# greatest load.
PACED_SHARES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)
PACED_S = 0.1
# Every burst is looked at: what that costs is no part of a round trip.
ONE_IN = 1
# Units in a row without any figure, after which the run ends unless it is to keep going.
MAX_FAILURES = 4

Part = Literal["latency", "spans"]
PARTS: tuple[Part, ...] = ("latency", "spans")


class Latency:
    """One session of a run; what was measured is in its journal."""

    def __init__(
        self, options: Options, run: RunDirectory, journal: Journal, console: Console
    ) -> None:
        self.options = options
        self.run = run
        self.journal = journal
        self.preset = preset_of(options)
        self.arms = arms(options.forwarders or DEFAULT_FORWARDERS)
        self.cells = cells(options)
        self.warnings: list[str] = []
        self.unfinished = False
        self.cores = cpus.Cores.choose()
        self.bench = Bench(
            run=run,
            cores=self.cores,
            memory=Memory.choose(options.hugepages),
            experiment=NAME,
            seed=options.seed,
            window_s=self.preset.flood_s,
            session=journal.session,
        )
        self.clock: ClockCheck | None = None
        self.monitor = Monitor(console, sum(map(self._planned, self.cells)))
        self._failures = 0

    @property
    def trials(self) -> list[Trial]:
        return self.journal.trials

    @property
    def _parts(self) -> tuple[Part, ...]:
        return PARTS if self.options.inside else PARTS[:1]

    def _arms(self, cell: Cell) -> list[Arm]:
        return [arm for arm in self.arms if takes(arm.forwarder, cell.link)]

    def _planned(self, cell: Cell) -> int:
        floods = 0 if self.options.line_rate else self.preset.floods
        steps = sum(len(self._steps(part)) for part, _ in self._units(cell))
        steps += len(self._pinged(cell)) * len(self.options.protocols)
        return len(self._arms(cell)) * floods + cell.blocks * steps

    def _units(self, cell: Cell) -> list[tuple[Part, Arm]]:
        """Of a block; what cannot tell how long frames are inside is not asked."""
        return [
            (part, arm)
            for part in self._parts
            for arm in self._arms(cell)
            if part == "latency" or forwarder(arm.forwarder).spans
        ]

    def _pinged(self, cell: Cell) -> list[Arm]:
        """Those that a packet socket sends to."""
        return [] if plan.no_packet_sender(link(cell.link)) else self._arms(cell)

    def _steps(self, part: Part) -> list[Step]:
        return plan.steps(self.options.protocols, LOADS if part == "latency" else INSIDE_LOADS)

    def prepare(self) -> None:
        """Everything that can be missing is looked for before the first trial."""
        for name in dict.fromkeys(["reflect", *(arm.forwarder for arm in self.arms)]):
            forwarder(name).prepare()
        for name in dict.fromkeys(cell.link for cell in self.cells):
            found = link(name)
            found.prepare()
            if isinstance(found, Ports) and not self.bench.memory.hugepages:
                found.without_hugepages()
        rust_binary("generator")
        if any(map(self._pinged, self.cells)):
            rust_binary(packet_sender.PROGRAM)
        if self.options.inside:
            probe_plugin()
        self.warnings += cpus.ready(self.cores)
        self.clock = check_clock(self.bench)
        if complaint := self.clock.complaint():
            self.warnings.append(complaint)
        self.bench = replace(self.bench, tsc_hz=self.clock.told_hz)

    def measure(self) -> None:
        with self.monitor:
            for cell in self.cells:
                self._cell(cell)
        self.journal.finish()

    def programs(self) -> dict[str, str]:
        """Digests of the programs that take part, after `prepare`."""
        names = [arm.forwarder for arm in self.arms]
        pinged = any(map(self._pinged, self.cells))
        others = [packet_sender.PROGRAM] if pinged else []
        return programs(names, generator=True, probe=self.options.inside, others=others)

    # -- one cell ------------------------------------------------------------------------------

    def _cell(self, cell: Cell) -> None:
        capacity = self._capacities(cell)
        self.monitor.announce(f"{cell.link} {cell.size} B: {counted(cell.blocks, 'block')}")
        seed = self.options.seed
        blocks = zip(
            order(self._units(cell), cell, seed), order(self._pinged(cell), cell, seed), strict=True
        )
        for block, (shuffled, pinged) in enumerate(blocks):
            with self._bed(cell, flood=False) as bed:
                for part, arm in shuffled:
                    self._unit(bed, arm, block, part, capacity.get(arm.forwarder))
            if pinged:
                with Bed(link(cell.link), self._context(cell)) as bed:
                    for arm in pinged:
                        self._ping(bed, arm, block)
            self.monitor.block_over()

    def _capacities(self, cell: Cell) -> dict[str, float]:
        """100 % of each forwarder, in frames per second; without those that are not known."""
        names = list(dict.fromkeys(arm.forwarder for arm in self._arms(cell)))
        if self.options.line_rate:
            return dict.fromkeys(names, self.options.line_rate)
        self.monitor.announce(f"{cell.link} {cell.size} B: what each forwarder carries")
        drawn = replace(cell, blocks=self.preset.floods)
        for block, shuffled in enumerate(order(self._arms(cell), drawn, self.options.seed)):
            with self._bed(cell, flood=True) as bed:
                for arm in shuffled:
                    self._flood(bed, arm, block)
        found = {}
        with self._bed(cell, flood=False) as bed:
            for name in names:
                flooded = flood_pps(self.trials, cell, name)
                paced = flooded and self._paced(bed, Arm(name, name), flooded)
                if paced:
                    found[name] = paced
                else:
                    self.warnings.append(
                        f"{cell.link} {cell.size} B: what {name} carries is not known, so it has "
                        f"no figures under load{self._why(cell, name)}"
                    )
        return found

    def _why(self, cell: Cell, name: str) -> str:
        """What was wrong last when it was asked what this forwarder carries."""
        asked = [
            t
            for t in self.trials
            if (t.link, t.size, t.forwarder) == (cell.link, cell.size, name)
            and t.role in {"measure", "self-test"}
        ]
        return next((f"; the last because: {t.invalid}" for t in asked[::-1] if t.invalid), "")

    def _flood(self, bed: Bed, arm: Arm, block: int) -> None:
        trial = self.journal.replay(**_place(bed, arm, block, "measure"), load="flood")
        if trial:
            self.monitor.replayed(trial)
            return
        checkpoint()
        trial = run_trial(self.bench, Plan(arm, "flood", block, len(self.trials), "measure"), bed)
        self._record(trial)
        self.monitor.finished(trial)

    def _paced(self, bed: Bed, arm: Arm, flooded: float) -> float | None:
        """The greatest share of the flood's rate at whose greatest load the sender is on time."""
        for share in PACED_SHARES:
            with self._device(bed, arm, 0, "self-test", share * flooded) as real:
                device = Resumed(real, self.journal, _place(bed, arm, 0, "self-test"))
                checkpoint()
                try:
                    device.send(share * flooded * max(LOADS), PACED_S)
                except TrialError:
                    continue
                return share * flooded
        return None

    def _unit(self, bed: Bed, arm: Arm, block: int, part: Part, capacity_pps: float | None) -> None:
        drawn = self._steps(part)
        random.Random(f"linerate:{self.options.seed}:{arm.label}:{block}:{part}").shuffle(drawn)
        before, failed = len(self.trials), True
        spans = ONE_IN if part == "spans" else 0
        maximum = capacity_pps or IDLE_PPS
        with self._device(bed, arm, block, "search", maximum, part, spans=spans) as real:
            for step in drawn:
                if capacity_pps is None and step.load != IDLE:
                    self.monitor.skip(1)
                    continue
                checkpoint()
                failed = not self._step(real, bed, step, maximum) and failed
        if len(self.trials) == before:
            return
        fresh = self.trials[-1].session == self.journal.session
        self._failures = self._failures + 1 if failed and fresh else 0
        if self._failures >= MAX_FAILURES and not self.options.keep_going:
            raise HopelessError(
                f"{MAX_FAILURES} starts of forwarders in a row gave no figure",
                self.trials[-1].invalid,
            )

    def _ping(self, bed: Bed, arm: Arm, block: int) -> None:
        drawn = plan.steps(self.options.protocols, (IDLE,))
        random.Random(f"linerate:{self.options.seed}:{arm.label}:{block}:ping").shuffle(drawn)
        with PacketSender(
            self.bench,
            bed,
            arm,
            block=block,
            windows=self.preset.windows,
            record=self._record,
        ) as sender:
            for step in drawn:
                trial, done = self._replayed_ping(bed, arm, block, step)
                if trial:
                    self.monitor.replayed(trial)
                    continue
                self.monitor.finished(sender.measure(step, self.preset.idle_s, done))

    def _replayed_ping(
        self, bed: Bed, arm: Arm, block: int, step: Step
    ) -> tuple[Trial | None, int]:
        """The trial as earlier sessions have it, None where they do not; and windows they had."""
        place = {
            **_place(bed, arm, block, "search"),
            "test": "ping",
            "protocol": step.protocol,
        }
        done = 0
        while trial := self.journal.replay(**place):
            done += 1
            if trial.invalid_code not in DISTURBED or done >= self.preset.windows:
                return trial, done
        return None, done

    def _step(self, real: BedDevice, bed: Bed, step: Step, maximum: float) -> bool:
        """Whether it was measured."""
        real.protocol = step.protocol
        place = _place(bed, real.arm, real.block, "search") | {"protocol": step.protocol}
        device = Resumed(real, self.journal, place)
        device.test = real.test
        pps = step.pps(maximum)
        before = len(self.trials)
        try:
            seconds = plan.seconds_of(self.preset, step, pps, self._blocks(bed))
            device.send(pps, seconds, latency=device.test == "latency")
        except TrialError:
            # Its windows are on record.
            measured = False
        else:
            measured = True
        if len(self.trials) > before:
            last = self.trials[-1]
            (
                self.monitor.finished
                if last.session == self.journal.session
                else self.monitor.replayed
            )(last)
        return measured

    def _blocks(self, bed: Bed) -> int:
        return next(
            cell.blocks
            for cell in self.cells
            if (cell.link, cell.size) == (bed.link.name, bed.context.size)
        )

    def _device(  # noqa: PLR0917 - as a record has them
        self,
        bed: Bed,
        arm: Arm,
        block: int,
        role: Role,
        max_pps: float,
        test: Test = "throughput",
        *,
        spans: int = 0,
    ) -> BedDevice:
        device = BedDevice(
            self.bench,
            bed,
            arm,
            block=block,
            max_pps=max_pps,
            terms=Terms(windows=self.preset.windows),
            record=self._record,
            role=role,
            spans=spans,
        )
        device.test = test
        return device

    def _record(self, trial: Trial) -> None:
        trial.position = len(self.trials)
        if self.clock:
            self.clock.enter(trial)
        self.journal.add(trial)

    def _bed(self, cell: Cell, *, flood: bool) -> Bed:
        def start(wire: Wire) -> Generator:
            return Generator(self.run, self.cores.control, self.bench.memory, wire, flood=flood)

        return Bed(link(cell.link), self._context(cell), start)

    def _context(self, cell: Cell) -> LinkContext:
        return LinkContext(
            self.bench.run.path, cell.size, self.bench.memory.hugepages, self.bench.cores
        )


def _place(bed: Bed, arm: Arm, block: int, role: Role) -> dict[str, object]:
    return {
        "link": bed.link.name,
        "size": bed.context.size,
        "arm": arm.label,
        "block": block,
        "role": role,
    }
