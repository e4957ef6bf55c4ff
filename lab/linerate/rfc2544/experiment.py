# SPDX-License-Identifier: BSD-3-Clause
"""One run of experiment `rfc2544`: the self-test, then units in randomised blocks, cell by cell."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Protocol

from rich.console import Console

from linerate.ceiling import ceiling_of
from linerate.design import PEERS, Arm, Cell, arms, order, shown
from linerate.errors import DisturbedError, LabError, TrialError, UsageError
from linerate.links import link
from linerate.otg import Ip
from linerate.process import checkpoint
from linerate.records import Directions, Test, Trial
from linerate.rfc2544.beds import Block, Lab
from linerate.rfc2544.estimate import estimate, told
from linerate.rfc2544.monitor import Units
from linerate.rfc2544.presets import Preset, check_sizes, minimum_size
from linerate.rfc2544.summarise import Asked, summarise
from linerate.rfc2544.units import Unit, run_tests
from linerate.search.bed_device import DISTURBED
from linerate.summary import Ceiling, Summary

NAME = "rfc2544"
QUESTION = (
    "How many frames a second can each forwarder carry without loss, and how does it then do?"
)
DEFAULT_FORWARDERS = ["c-l2fwd", "rust-l2fwd"]
DEFAULT_LINKS = ["memif"]
MAX_SIZE = 1518
# Shares of the flood's ceiling that the sender is tried at, until it is on time.
PACED_SHARES = (1.0, 0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5)
PACED_S = 1.0
# Units in a row without a throughput, after which the run ends unless it is to keep going.
MAX_FAILURES = 4


@dataclass
class Options:
    """What the command line asked for; empty or None: the preset's or the experiment's own."""

    preset: Preset
    tests: tuple[Test, ...]
    links: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    forwarders: list[str] = field(default_factory=list)
    blocks: int | None = None
    seed: int = 1
    line_rate: float | None = None
    hugepages: str = "auto"
    ip: Ip = 4
    directions: Directions | None = None
    keep_going: bool = False
    command: str = ""


def cells(options: Options) -> list[Cell]:
    """Which cells to run, in order; raises `UsageError` for what cannot be."""
    sizes = list(dict.fromkeys(options.sizes or [minimum_size(options.ip)]))
    check_sizes(sizes, options.ip, MAX_SIZE)
    blocks = options.preset.blocks if options.blocks is None else options.blocks
    if blocks < 1:
        raise UsageError(f"--blocks {blocks}: at least 1")
    names = list(dict.fromkeys(options.links or DEFAULT_LINKS))
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


class Rfc2544:
    """Holds everything measured so far; `lab` makes the devices."""

    def __init__(self, options: Options, lab: Lab, writer: Writer, console: Console) -> None:
        self.options = options
        self.lab = lab
        self.writer = writer
        self.console = console
        self.arms = arms(options.forwarders or DEFAULT_FORWARDERS)
        self.cells = cells(options)
        self.trials: list[Trial] = []
        self.warnings: list[str] = []
        self.started = datetime.now(UTC)
        self._failures = 0
        blocks = self.cells[0].blocks
        self.estimate = estimate(
            options.preset,
            options.tests,
            cells=len(self.cells),
            blocks=blocks,
            whole=len(shown(self.arms)),
            # The control and the reference peer.
            short=2,
        )
        self.monitor = Units(console, len(self.cells) * blocks * (len(self.arms) + 1))

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

    # -- one cell ------------------------------------------------------------------------------

    def _cell(self, cell: Cell) -> None:
        self.monitor.announce(f"{cell.link} {cell.size} B: self-test")
        flooded = self._flood(cell)
        max_pps, peer = self._maximum(cell, flooded)
        self.monitor.announce(
            f"{cell.link} {cell.size} B: 100 % = {max_pps / 1e6:.3f} Mpps, {cell.blocks} blocks"
        )
        # The peer shows what link and sender allow where the arms meet them.
        units = [*self.arms, Arm(peer, peer)]
        names = {arm.label: arm for arm in units}
        for block, shuffled in enumerate(order(list(names.values()), cell, self.options.seed)):
            with self.lab.bed(cell, flood=False) as bed:
                for arm in shuffled:
                    self._unit(bed, cell, arm, block, max_pps)

    def _flood(self, cell: Cell) -> Ceiling:
        """What the reference peers carry of all that they can get (measuring.md 5)."""
        first = len(self.trials)
        peers = [Arm(name, name) for name in PEERS]
        drawn = order(peers, replace(cell, blocks=self.options.preset.self_test), self.options.seed)
        for block, shuffled in enumerate(drawn):
            with self.lab.bed(cell, flood=True) as bed:
                for arm in shuffled:
                    checkpoint()
                    bed.flood(arm, block, self._record)
        mine = self.trials[first:]
        found = ceiling_of(mine, None)
        if found is None and self.options.line_rate:
            # Nothing hangs on it: 100 % is known.
            return Ceiling(pps=self.options.line_rate, peer=PEERS[0])
        if found is None:
            last = mine[-1].invalid if mine else "no trial was run"
            raise LabError(
                f"{cell.link} {cell.size} B: no reference peer carried frames, the last because: "
                f"{last}",
                "linerate doctor",
            )
        return found

    def _maximum(self, cell: Cell, flooded: Ceiling) -> tuple[float, str]:
        """100 % and the peer that shows it: as much as the sender sends in time, or as asked."""
        if self.options.line_rate:
            return self.options.line_rate, flooded.peer
        with self.lab.bed(cell, flood=False) as bed:
            for share in PACED_SHARES:
                if self._paces(bed, Arm(flooded.peer, flooded.peer), share * flooded.pps):
                    return share * flooded.pps, flooded.peer
        raise LabError(
            f"{cell.link} {cell.size} B: the sender is not on time even at "
            f"{PACED_SHARES[-1]:.0%} of what link and peer carry, so no window would count",
            "run on a quieter machine, or name 100 % by --line-rate",
        )

    def _paces(self, bed: Block, arm: Arm, pps: float) -> bool:
        """Whether the sender is on time at this rate, in one of the windows that a trial may have.

        What comes back of it does not matter here.
        """
        seconds = min(self.options.preset.goals[0].final_s, PACED_S)
        with bed.device(arm, 0, pps, "self-test", self._record) as device:
            try:
                device.send(pps, seconds)
            except DisturbedError:
                return False
            except TrialError as error:
                raise LabError(
                    f"the reference peer {arm.forwarder} failed: {error.message}", "linerate doctor"
                ) from error
        return True

    def _unit(self, bed: Block, cell: Cell, arm: Arm, block: int, max_pps: float) -> None:
        checkpoint()
        self.monitor.searching(cell, arm, block)
        unit = Unit()
        with bed.device(arm, block, max_pps, "search", self._record) as device:
            tests = self.asked().tests_of(arm.label)
            run_tests(device, self.options.preset, tests, cell.blocks, unit)
        self.monitor.unit_done(cell, arm, unit)
        self._failures = 0 if unit.lossless else self._failures + 1
        if self._failures >= MAX_FAILURES and not self.options.keep_going:
            why = unit.throughput.invalid if unit.throughput else None
            raise LabError(
                f"{MAX_FAILURES} searches in a row found no throughput, the last because: "
                f"{why.reason if why else 'it was cut off'}",
                "a preset with shorter trials (quick) finds quiet moments on a shared machine; "
                "--keep-going goes on all the same",
            )

    def _record(self, trial: Trial) -> None:
        trial.position = len(self.trials)
        self.writer.append(trial)
        self.trials.append(trial)
        if trial.invalid_code in DISTURBED and trial.role == "search":
            self.monitor.void()
        elif trial.invalid:
            self.monitor.complain(trial)

    # -- what was found ------------------------------------------------------------------------

    def asked(self) -> Asked:
        options = self.options
        return Asked(
            experiment=NAME,
            question=QUESTION,
            preset=options.preset.name,
            preset_note=options.preset.note,
            command=options.command,
            seed=options.seed,
            window_s=options.preset.goals[0].final_s,
            line_rate=options.line_rate,
            tsc_hz=_median_hz(self.trials),
            started_at=self.started.isoformat(timespec="seconds"),
            cells=self.cells,
            arms=self.arms,
            warnings=self.warnings,
            search=options.preset,
            tests=options.tests,
        )

    def summary(self, *, interrupted: bool) -> Summary:
        return summarise(self.asked(), self.trials, interrupted=interrupted)


class Writer(Protocol):
    """Keeps records."""

    def append(self, trial: Trial) -> None: ...


def _median_hz(trials: list[Trial]) -> int | None:
    known = [trial.tsc_hz for trial in trials if trial.tsc_hz]
    return round(statistics.median(known)) if known else None
