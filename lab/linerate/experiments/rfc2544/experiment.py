# SPDX-License-Identifier: BSD-3-Clause
"""One run of experiment `rfc2544`: the self-test, then units in randomised blocks, cell by cell."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field
from rich.console import Console

from linerate.experiments.rfc2544.beds import Block, Lab
from linerate.experiments.rfc2544.estimate import estimate, told
from linerate.experiments.rfc2544.metrics import compared_loads
from linerate.experiments.rfc2544.monitor import Units
from linerate.experiments.rfc2544.options import DEFAULT_FORWARDERS, DEFAULT_LINKS, Options, Traffic
from linerate.experiments.rfc2544.presets import Preset, check_sizes, minimum_size
from linerate.experiments.rfc2544.summarise import tests_of
from linerate.experiments.rfc2544.units import Unit, run_tests
from linerate.forwarders import forwarder
from linerate.host.cpus import Cores
from linerate.host.errors import DisturbedError, LabError, TrialError, UsageError
from linerate.host.process import checkpoint
from linerate.host.text import counted
from linerate.links import link
from linerate.records.cells import Arm, Cell
from linerate.records.journal import Journal
from linerate.records.summary import Ceiling
from linerate.records.trial import Role, Trial
from linerate.runs.blocks import PEERS, arms, blocks_for, check_blocks, check_fit, order
from linerate.runs.options import Agreement, apart_from_blocks
from linerate.runs.provenance import programs
from linerate.runs.run_summary import Design
from linerate.traffic.other_generator import GENERATOR
from linerate.trial.search.bed_device import DISTURBED
from linerate.trial.search.replay import Resumed
from linerate.trial.trial import Bench
from linerate.verdict.ceiling import ceiling_of

NAME = "rfc2544"
QUESTION = "How many frames a second can each forwarder carry, and how does it then do?"
MAX_SIZE = 1518
# Shares of the flood's ceiling that the sender is tried at, until it is on time.
PACED_SHARES = (1.0, 0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2)
# Starts of the peer in which it has to be: a link between two processes may carry less after one
# start than after another, and each search begins with one.
PACED_STARTS = 3
PACED_S = 1.0
# A window of which more than this was sent late was not disturbed: the sender fell behind for good.
BEHIND = 0.5
# Units in a row without a throughput, after which the run ends unless it is to keep going.
MAX_FAILURES = 4


@dataclass(kw_only=True)
class SearchDesign(Traffic, Design):
    """A `Design` with what this experiment alone can be asked."""

    # It has the window, too.
    window_s: Annotated[float, Field(gt=0), Agreement("window")]
    # Goals and durations.
    search: Annotated[
        Preset,
        Agreement("--preset", compare="same", compare_by=apart_from_blocks),
    ]
    shared_by: Annotated[int, Field(ge=1), Agreement("--blocks")]
    # The URL of another generator than the lab's own.
    generator: Annotated[str | None, Agreement(GENERATOR, compare="same")] = None


def design_of(options: Options) -> SearchDesign:
    """What these options come to, with every default put in."""
    preset, planned = options.preset, cells(options)
    return SearchDesign(
        question=QUESTION,
        preset=preset.name,
        preset_note=preset.note,
        seed=options.seed,
        window_s=preset.goals[0].final_s,
        cells=planned,
        arms=arms(options.forwarders or DEFAULT_FORWARDERS),
        line_rate=options.line_rate,
        generator_ports=options.generator_ports,
        forwarder_ports=options.forwarder_ports,
        search=preset,
        tests=options.tests,
        shared_by=planned[0].blocks,
        ip=options.ip,
        directions=options.directions,
        generator=options.generator.url if options.generator else None,
    )


def cells(options: Options) -> list[Cell]:
    """Which cells to run, in order; raises `UsageError` for what cannot be."""
    sizes = list(dict.fromkeys(options.sizes or [minimum_size(options.ip)]))
    check_sizes(sizes, options.ip, MAX_SIZE)
    blocks = max(options.preset.blocks, blocks_for(len(sizes) * _loads(options)))
    blocks = blocks if options.blocks is None else options.blocks
    check_blocks(blocks)
    if options.generator and not options.line_rate:
        raise UsageError(
            f"{GENERATOR}: its 100 % is not known, for OTG has no word for sending as fast as it "
            "can",
            "--line-rate FRAMES_PER_SECOND",
        )
    for name in options.forwarders:
        if options.ip not in forwarder(name).ips:
            raise UsageError(
                f"--ip {options.ip}: {name} forwards IPv4 only", "leave --ip or the forwarder out"
            )
    names = list(dict.fromkeys(options.links or DEFAULT_LINKS))
    check_fit(options.forwarders, names)
    for name in names:
        found = link(name)
        if not found.has_generator:
            raise UsageError(
                f"--link {name}: has no sender that could be slowed down", "--link memif"
            )
        if options.directions and found.ports < 2:
            raise UsageError(
                f"--directions {options.directions}: link {name} has one port, which sends and "
                "receives",
                "--link memif2",
            )
    return [Cell(name, size, blocks) for name in names for size in sizes]


def _loads(options: Options) -> int:
    """At how many loads, at most, one metric is compared: they are corrected together."""
    preset, tests = options.preset, options.tests
    used = len(preset.core_use_loads) if "core-use" in tests else 1
    delayed = len(compared_loads(preset)) if "latency" in tests else 1
    return max(used, delayed)


class Rfc2544:
    """One session of a run; what was measured is in its journal. `lab` makes the devices."""

    def __init__(self, options: Options, lab: Lab, journal: Journal, console: Console) -> None:
        self.options = options
        self.lab = lab
        self.journal = journal
        self.console = console
        self.arms = arms(options.forwarders or DEFAULT_FORWARDERS)
        self.cells = cells(options)
        self.warnings: list[str] = []
        self.unfinished = False
        self._failures = 0
        blocks = self.cells[0].blocks
        self.estimate = estimate(
            options.preset,
            options.tests,
            cells=len(self.cells),
            blocks=blocks,
            whole=len(self.arms),
            # The reference peer.
            short=1,
        )
        self.monitor = Units(console, len(self.cells) * blocks * (len(self.arms) + 1))

    @property
    def bench(self) -> Bench:
        return self.lab.bench

    @property
    def cores(self) -> Cores:
        return self.bench.cores

    @property
    def trials(self) -> list[Trial]:
        return self.journal.trials

    def prepare(self) -> None:
        names = [arm.forwarder for arm in self.arms]
        links = list(dict.fromkeys(cell.link for cell in self.cells))
        self.warnings += self.lab.prepare([*names, *PEERS], links)

    def measure(self) -> None:
        preset = self.options.preset
        self.console.print(
            f"{preset.name}: {preset.note}. About {told(self.estimate.seconds)} "
            f"({self.estimate.trials} trials), more where windows are disturbed and repeated.",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
        with self.monitor:
            for cell in self.cells:
                self._cell(cell)
        self.journal.finish()

    def programs(self) -> dict[str, str]:
        """Digests of the programs that take part, after `prepare`."""
        names = [*(arm.forwarder for arm in self.arms), *PEERS]
        return programs(
            names,
            generator=not self.options.generator,
            probe="core-use" in self.options.tests,
        )

    # -- one cell ------------------------------------------------------------------------------

    def _cell(self, cell: Cell) -> None:
        self.monitor.announce(f"{cell.link} {cell.size} B: self-test")
        flooded = self._flood(cell)
        max_pps, peer = self._maximum(cell, flooded)
        self.monitor.announce(
            f"{cell.link} {cell.size} B: 100 % = {max_pps / 1e6:.3f} Mpps, "
            f"{counted(cell.blocks, 'block')}"
        )
        # The peer shows what link and sender allow where the arms meet them.
        units = [*self.arms, Arm(peer, peer)]
        names = {arm.label: arm for arm in units}
        for block, shuffled in enumerate(order(list(names.values()), cell, self.options.seed)):
            with self.lab.bed(cell, flood=False) as bed:
                for arm in shuffled:
                    self._unit(bed, cell, arm, block, max_pps)

    def _flood(self, cell: Cell) -> Ceiling:
        """What the reference peers carry of a flood (docs/how-it-measures.md#100-percent)."""
        if self.options.generator and self.options.line_rate:
            return Ceiling(pps=self.options.line_rate, peer=PEERS[0])
        while True:
            before = len(self.trials)
            mine = self._flood_trials(cell)
            found = ceiling_of(mine, None)
            if found is None and self.options.line_rate:
                # Nothing hangs on it: 100 % is known.
                return Ceiling(pps=self.options.line_rate, peer=PEERS[0])
            if found:
                return found
            if self._ran_since(before):
                last = mine[-1].invalid if mine else "no trial was run"
                raise LabError(
                    f"{cell.link} {cell.size} B: no trial of a reference peer counts, the last "
                    f"because: {last}",
                    "run it when the machine is quieter, or name 100 % by --line-rate; what is "
                    "missing here, linerate doctor says",
                )

    def _flood_trials(self, cell: Cell) -> list[Trial]:
        first = len(self.trials)
        peers = [Arm(name, name) for name in PEERS]
        drawn = order(peers, replace(cell, blocks=self.options.preset.self_test), self.options.seed)
        for block, shuffled in enumerate(drawn):
            with self.lab.bed(cell, flood=True) as bed:
                for arm in shuffled:
                    checkpoint()
                    due = _Place(cell, arm, block, "self-test").fields()
                    if not self.journal.replay(**due, load="flood"):
                        bed.flood(arm, block, self._record)
        return self.trials[first:]

    def _ran_since(self, position: int) -> bool:
        """Whether this session ran any trial since then: one that failed earlier is tried again."""
        return any(t.session == self.journal.session for t in self.trials[position:])

    def _maximum(self, cell: Cell, flooded: Ceiling) -> tuple[float, str]:
        """100 % and the peer that shows it: as much as the sender sends in time, or as asked."""
        if self.options.line_rate:
            if self.options.generator:
                self._must_pace(cell, flooded)
            return self.options.line_rate, flooded.peer
        while True:
            before = len(self.trials)
            with self.lab.bed(cell, flood=False) as bed:
                arm = Arm(flooded.peer, flooded.peer)
                for share in PACED_SHARES:
                    pps = share * flooded.pps
                    if all(self._paces(bed, cell, arm, pps, n) for n in range(PACED_STARTS)):
                        return pps, flooded.peer
            if self._ran_since(before):
                raise LabError(
                    f"{cell.link} {cell.size} B: the sender is not on time even at "
                    f"{PACED_SHARES[-1]:.0%} of what link and peer carry, so no window would count",
                    "run on a quieter machine, or name 100 % by --line-rate",
                )

    def _must_pace(self, cell: Cell, most: Ceiling) -> None:
        """Another generator has to send 100 % before anything is searched with it."""
        while True:
            before = len(self.trials)
            with self.lab.bed(cell, flood=False) as bed:
                self._paces(bed, cell, Arm(most.peer, most.peer), most.pps, 0)
            # A window that was void because the peer starved shows that all was sent.
            if any(trial.invalid_code != "late" for trial in self.trials[before:]):
                return
            if self._ran_since(before):
                raise LabError(
                    f"{cell.link} {cell.size} B: {GENERATOR} does not send 100 % to the "
                    f"reference peer {most.peer}: {self.trials[-1].invalid}",
                    "--line-rate with fewer frames per second",
                )

    def _paces(self, bed: Block, cell: Cell, arm: Arm, pps: float, start: int) -> bool:
        """Whether the sender keeps this rate: it is on time in one of the windows that a trial may
        have, and did not fall behind for good in as many others.

        One lucky window of many is not enough: a search asks for this rate time and again. What
        comes back of it does not matter here.
        """
        before = len(self.trials)
        seconds = min(self.options.preset.goals[0].final_s, PACED_S)
        with self._device(bed, _Place(cell, arm, start, "self-test"), pps) as device:
            try:
                device.send(pps, seconds)
            except DisturbedError:
                return False
            except TrialError as error:
                raise LabError(
                    f"the reference peer {arm.forwarder} failed: {error.message}", "linerate doctor"
                ) from error
        tried = self.trials[before:]
        return 2 * sum(map(_fell_behind, tried)) < len(tried)

    @contextmanager
    def _device(self, bed: Block, place: _Place, max_pps: float) -> Iterator[Resumed]:
        """A device of this bed that first answers from what earlier sessions have on record."""
        with bed.device(place.arm, place.block, max_pps, place.role, self._record) as device:
            yield Resumed(device, self.journal, place.fields())

    def _unit(self, bed: Block, cell: Cell, arm: Arm, block: int, max_pps: float) -> None:
        checkpoint()
        self.monitor.searching(cell, arm, block)
        unit, before = Unit(), len(self.trials)
        with self._device(bed, _Place(cell, arm, block, "search"), max_pps) as device:
            tests = tests_of(arm.label, self.arms, self.options.tests)
            run_tests(device, self.options.preset, tests, cell.blocks, unit)
        self.monitor.unit_done(cell, arm, unit)
        # What earlier sessions found stands, and does not end this one.
        failed = not unit.lossless and self._ran_since(before)
        self._failures = self._failures + 1 if failed else 0
        if self._failures >= MAX_FAILURES and not self.options.keep_going:
            why = unit.throughput.invalid if unit.throughput else None
            raise LabError(
                f"{MAX_FAILURES} searches in a row found no throughput, the last because: "
                f"{why.reason if why else 'it was cut off'}",
                "a preset with shorter trials (quick) finds quiet moments on a shared machine; "
                "a new run with --keep-going would not end here",
            )

    def _record(self, trial: Trial) -> None:
        trial.position = len(self.trials)
        self.journal.add(trial)
        if trial.invalid_code in DISTURBED and trial.role == "search":
            self.monitor.void()
        elif trial.invalid:
            self.monitor.complain(trial)


@dataclass(frozen=True)
class _Place:
    """Where in the run a trial belongs, as its record tells."""

    cell: Cell
    arm: Arm
    block: int
    role: Role

    def fields(self) -> dict[str, object]:
        return {
            "link": self.cell.link,
            "size": self.cell.size,
            "arm": self.arm.label,
            "block": self.block,
            "role": self.role,
        }


def _fell_behind(trial: Trial) -> bool:
    return bool(trial.late and trial.attempted and trial.late / trial.attempted > BEHIND)
