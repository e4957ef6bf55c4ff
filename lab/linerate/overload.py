# SPDX-License-Identifier: BSD-3-Clause
"""Experiment `overload`: which forwarder does more when it gets all it can take?

Per cell (link, frame size): randomised complete blocks of all arms, the baseline twice, and of two
reference peers, which show the ceiling; in some, each program once more with the probe in
it, for the figures of its polls. Then, where frames are carried, trials at a fixed low load:
they must lose nothing. Where generator or link turn out to be the limit, there are more loads, and
cycles per packet are compared instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.console import Console

from linerate import cpus
from linerate.bed import Bed
from linerate.console import Monitor
from linerate.design import (
    AA_SUFFIX,
    DEMO_CELLS,
    PEERS,
    Arm,
    Cell,
    Preset,
    arms,
    blocks_for,
    check_blocks,
    order,
    schedule,
)
from linerate.eal import Memory
from linerate.errors import LabError, TrialError, UsageError
from linerate.forwarders import FORWARDERS, forwarder
from linerate.generator import Generator
from linerate.journal import Journal
from linerate.links import LinkContext, Wire, link
from linerate.links.ports import Ports
from linerate.options import Options as CommonOptions
from linerate.overload_summary import OverloadDesign, summarise_cell
from linerate.places import rust_binary
from linerate.plugins import probe_plugin
from linerate.process import Child, RunDirectory, checkpoint
from linerate.provenance import programs
from linerate.records import Load, Role, Trial
from linerate.search.bed_device import BedDevice, Terms
from linerate.search.replay import Resumed
from linerate.telemetry import ask_when_known, connect, socket_path
from linerate.trial import Bench, Plan, run_trial
from linerate.verdict import LOW_LOAD
from linerate.window import START_TIMEOUT_S

NAME = "overload"
QUESTION = (
    "Offered all the frames it can take, which l2fwd forwards more, the C one or the Rust one, "
    "and what does a packet cost?"
)
DEFAULT_FORWARDERS = ["c-l2fwd", "rust-l2fwd", "rust-l2fwd-burst"]
DEFAULT_LINKS = ["null", "memif"]
DEFAULT_SIZES = [64]
# Loads below the ceiling: always, and in addition where an arm is limited.
LOW_LOADS = (LOW_LOAD,)
LIMITED_LOADS = (0.5,)
# In windows as short as a shared machine is quiet for; one that was disturbed is void and repeated.
LOWER_LOAD_S = 0.1
LOWER_LOAD_TERMS = Terms(windows=8)
MIN_SIZE, MAX_SIZE = 64, 1518
# A run whose every trial fails ends early, unless it is to keep going.
MAX_FAILURES = 8


@dataclass(kw_only=True)
class Options(CommonOptions):
    """What the command line asked for."""

    preset: Preset
    probe: bool = True


def cells(options: Options) -> list[Cell]:
    """Which cells to run, in order."""
    for size in options.sizes:
        if not MIN_SIZE <= size <= MAX_SIZE:
            raise UsageError(f"--sizes {size}: not within {MIN_SIZE} to {MAX_SIZE} bytes")
    if options.blocks is not None:
        check_blocks(options.blocks)
    if options.preset.name == "demo" and not options.links and not options.sizes:
        return [replace(cell, blocks=options.blocks or cell.blocks) for cell in DEMO_CELLS]
    result = []
    for name in dict.fromkeys(options.links or DEFAULT_LINKS):
        sizes = list(dict.fromkeys(options.sizes or DEFAULT_SIZES))
        for size in sizes if link(name).size_matters else sizes[:1]:
            result.append(Cell(name, size, options.blocks or options.preset.blocks))
    return result


def design_of(options: Options) -> OverloadDesign:
    """What these options come to, with every default put in."""
    return OverloadDesign(
        question=QUESTION,
        preset=options.preset.name,
        preset_note=(
            f"{options.blocks} blocks per cell (--blocks)"
            if options.blocks
            else options.preset.note
        ),
        seed=options.seed,
        window_s=options.preset.window_s,
        line_rate=options.line_rate,
        probe=options.probe,
        cells=cells(options),
        arms=arms(options.forwarders or DEFAULT_FORWARDERS),
        generator_ports=options.generator_ports,
        forwarder_ports=options.forwarder_ports,
    )


class Overload:
    """One session of a run; what was measured is in its journal."""

    def __init__(
        self, options: Options, run: RunDirectory, journal: Journal, console: Console
    ) -> None:
        self.options = options
        self.run = run
        self.journal = journal
        self.arms = arms(options.forwarders or DEFAULT_FORWARDERS)
        self.cells = cells(options)
        self.warnings: list[str] = []
        self.cores = cpus.Cores.choose()
        self.bench = Bench(
            run=run,
            cores=self.cores,
            memory=Memory.choose(options.hugepages),
            experiment=NAME,
            seed=options.seed,
            window_s=options.preset.window_s,
            session=journal.session,
        )
        self.monitor = Monitor(console, self._planned())
        self._failures = 0

    @property
    def trials(self) -> list[Trial]:
        return self.journal.trials

    def _planned(self) -> int:
        """Trials that are known beforehand; a limited arm adds some."""
        return sum(
            sum(len(block) for block in self._schedule(cell))
            + link(cell.link).has_generator * self._lower_load_trials(cell, LOW_LOADS)
            for cell in self.cells
        )

    def _schedule(self, cell: Cell) -> list[list[tuple[Role, Arm]]]:
        return schedule(
            self.arms,
            cell,
            self.options.seed,
            self.options.preset.self_test,
            probe=self.options.probe,
        )

    def _lower_load_trials(self, cell: Cell, shares: Sequence[float]) -> int:
        return self._lower_load_blocks(cell) * len(self.arms) * len(shares)

    def _lower_load_blocks(self, cell: Cell) -> int:
        """As the preset has it, and enough for a verdict over all sizes and loads of the link."""
        sizes = sum(each.link == cell.link for each in self.cells)
        needed = blocks_for(sizes * len(LOW_LOADS + LIMITED_LOADS))
        return min(max(self.options.preset.lower_load, needed), cell.blocks)

    def prepare(self) -> None:
        """Everything that can be missing is looked for before the first trial."""
        names = [arm.forwarder for arm in self.arms]
        for name in dict.fromkeys([*names, *PEERS]):
            forwarder(name).prepare()
        links = [link(name) for name in dict.fromkeys(cell.link for cell in self.cells)]
        for each in links:
            each.prepare()
            if isinstance(each, Ports) and not self.bench.memory.hugepages:
                each.without_hugepages()
        if any(each.has_generator for each in links):
            rust_binary("generator")
        if self.options.probe:
            probe_plugin()
        if self.cores.shared_core:
            self.warnings.append(
                "generator and forwarder run on hyperthread siblings of one core: "
                "this machine allows no others"
            )
        warning = cpus.await_free(self.cores.forwarder)
        if warning:
            self.warnings.append(warning)
        self._read_clock()

    def _read_clock(self) -> None:
        """TSC frequency from one of our programs, for the records of those that do not tell it."""
        reflect = FORWARDERS["reflect"]
        prefix = self.run.new_prefix("clock")
        command = reflect.command(
            self.cores.forwarder, self.bench.memory, prefix, Wire(vdevs=("net_null0",))
        )
        with Child(command, self.run) as child:
            path = socket_path(self.run.path, prefix)
            with connect(path, START_TIMEOUT_S, child.check) as telemetry:
                clock = ask_when_known(telemetry, "/linerate/clock", START_TIMEOUT_S, child.check)
        self.bench = replace(self.bench, tsc_hz=int(clock["tsc_hz"]))

    def measure(self) -> None:
        with self.monitor:
            for cell in self.cells:
                self._cell(cell)
        self.journal.finish()

    # -- one cell ------------------------------------------------------------------------------

    def _cell(self, cell: Cell) -> None:
        carried = link(cell.link).has_generator
        self.monitor.announce(f"{cell.link} {cell.size} B: {cell.blocks} blocks")
        for block, shuffled in enumerate(self._schedule(cell)):
            with self._bed(cell, flood=True) as bed:
                for role, arm in shuffled:
                    self._trial(bed, arm, block, role=role)
        if not carried:
            return
        summary = summarise_cell(cell, self.arms, self.trials, self.options.line_rate)
        if summary.ceiling is None:
            # Without a ceiling no share of it can be offered; the summary warns of it.
            self.monitor.skip(self._lower_load_trials(cell, LOW_LOADS))
            return
        shares: tuple[float, ...] = LOW_LOADS
        if any(arm.limited_by and not arm.arm.endswith(AA_SUFFIX) for arm in summary.arms):
            self.monitor.add(self._lower_load_trials(cell, LIMITED_LOADS))
            shares += LIMITED_LOADS
        self._lower_loads(cell, summary.ceiling.pps, shares)

    def _lower_loads(self, cell: Cell, ceiling_pps: float, shares: Sequence[float]) -> None:
        """Paced, open loop: each arm is started once in a block, and offered each load."""
        self.monitor.announce(f"{cell.link} {cell.size} B: fixed lower loads")
        lowered = replace(cell, blocks=self._lower_load_blocks(cell))
        self._failures = 0
        for block, shuffled in enumerate(order(self.arms, lowered, self.options.seed)):
            with self._bed(cell, flood=False) as bed:
                for arm in shuffled:
                    self._lower_loads_of(bed, arm, block, ceiling_pps, shares)
        if self._hopeless:
            self._failures = 0
            self.warnings.append(
                f"{cell.link} {cell.size} B: the lower loads were given up, the last because: "
                f"{self.trials[-1].invalid}"
            )

    def _lower_loads_of(
        self, bed: Bed, arm: Arm, block: int, ceiling_pps: float, shares: Sequence[float]
    ) -> None:
        """At a fixed load the sender sets the pace, and the cost of a packet is what is asked."""
        place: dict[str, object] = {
            "link": bed.link.name,
            "size": bed.context.size,
            "role": "lower-load",
            "arm": arm.label,
            "block": block,
        }
        with BedDevice(
            self.bench,
            bed,
            arm,
            block=block,
            max_pps=ceiling_pps,
            terms=LOWER_LOAD_TERMS,
            record=self._record,
            role="lower-load",
            probe=self.options.probe,
        ) as real:
            device = Resumed(real, self.journal, place)
            device.test = "core-use"
            for share in shares:
                if self._hopeless:
                    self.monitor.skip(1)
                    continue
                checkpoint()
                try:
                    device.send(share * ceiling_pps, LOWER_LOAD_S)
                    self._failures = 0
                except TrialError:
                    # Its windows are on record. That loads were given up is, too, by what followed.
                    self._failures += 1
                self.monitor.finished(self.trials[-1])

    def _record(self, trial: Trial) -> None:
        trial.position = len(self.trials)
        self.journal.add(trial)

    def _bed(self, cell: Cell, *, flood: bool) -> Bed:
        def start(wire: Wire) -> Generator:
            return Generator(self.run, self.cores.control, self.bench.memory, wire, flood=flood)

        found = link(cell.link)
        context = LinkContext(
            self.run.path, cell.size, self.bench.memory.hugepages, self.bench.cores
        )
        return Bed(found, context, start if found.has_generator else None)

    def _trial(self, bed: Bed, arm: Arm, block: int, *, role: Role) -> None:
        trial = self.journal.replay(
            link=bed.link.name, size=bed.context.size, role=role, arm=arm.label, block=block
        )
        if trial:
            self.monitor.replayed(trial)
            # A run that ended because all failed is resumed to try again.
            self._failures = 0
            return
        checkpoint()
        load: Load = "flood" if bed.link.has_generator else "self-driven"
        plan = Plan(arm, load, block, len(self.trials), role, probe=role == "probed")
        trial = run_trial(self.bench, plan, bed)
        self.journal.add(trial)
        self.monitor.finished(trial)
        self._failures = self._failures + 1 if trial.invalid else 0
        if self._hopeless:
            raise LabError(
                f"{MAX_FAILURES} trials in a row were invalid, the last because: {trial.invalid}",
                "linerate doctor; --keep-going goes on all the same",
            )

    @property
    def _hopeless(self) -> bool:
        return self._failures >= MAX_FAILURES and not self.options.keep_going

    # -- what others must know of it --------------------------------------------------------------

    def programs(self) -> dict[str, str]:
        """Digests of the programs that take part, after `prepare`."""
        return programs(
            [*(arm.forwarder for arm in self.arms), *PEERS],
            generator=any(link(cell.link).has_generator for cell in self.cells),
            probe=self.options.probe,
        )
