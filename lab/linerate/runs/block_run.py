# SPDX-License-Identifier: BSD-3-Clause
"""A session of a run whose cells are measured in blocks: floods, and equal loads for all.

Lifecycle: made once for a session; what was measured is in its journal. An experiment says which
arms are in which blocks, and which loads follow from what the floods showed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.console import Console

from linerate.forwarders import FORWARDERS, forwarder
from linerate.host import cpus
from linerate.host.builds.plugins import probe_plugin
from linerate.host.errors import HopelessError, TrialError
from linerate.host.places import rust_binary
from linerate.host.process import Child, RunDirectory, checkpoint
from linerate.host.text import counted
from linerate.links import LinkContext, Wire, link
from linerate.links.eal import Memory
from linerate.links.ports import Ports
from linerate.records.cells import Arm, Cell
from linerate.records.journal import Journal
from linerate.records.trial import Load, Role, Trial
from linerate.runs.blocks import order, too_few_blocks
from linerate.runs.options import BlockOptions
from linerate.runs.progress import Monitor
from linerate.runs.provenance import programs
from linerate.telemetry.client import ask_when_known, connect, socket_path
from linerate.traffic.generator import Generator
from linerate.trial.bed import Bed
from linerate.trial.running import START_TIMEOUT_S
from linerate.trial.search.bed_device import BedDevice, Terms
from linerate.trial.search.replay import Resumed
from linerate.trial.trial import Bench, Plan, run_trial

# A run whose every trial fails ends early, unless it is to keep going.
MAX_FAILURES = 8


@dataclass(frozen=True)
class Windows:
    """How a fixed load is sent: in windows of `seconds`; one that was disturbed is repeated."""

    seconds: float
    terms: Terms
    latency: bool = False


class BlockRun(ABC):
    """What experiments in blocks do alike. `peers`: forwarders that take part beside the arms."""

    name: str
    windows: Windows
    peers: tuple[str, ...] = ()

    def __init__(  # noqa: PLR0917 - what a session is made of
        self,
        options: BlockOptions,
        arms: list[Arm],
        cells: list[Cell],
        run: RunDirectory,
        journal: Journal,
        console: Console,
    ) -> None:
        self.options = options
        self.run = run
        self.journal = journal
        self.arms = arms
        self.cells = cells
        self.warnings = too_few_blocks(cells)
        self.unfinished = False
        self.cores = cpus.Cores.choose()
        self.bench = Bench(
            run=run,
            cores=self.cores,
            memory=Memory.choose(options.hugepages),
            experiment=self.name,
            seed=options.seed,
            window_s=options.preset.window_s,
            session=journal.session,
        )
        self.monitor = Monitor(console, self.planned())
        self._failures = 0

    @abstractmethod
    def planned(self) -> int:
        """Trials that are known beforehand."""

    @abstractmethod
    def cell(self, cell: Cell) -> None:
        """Measure one cell."""

    def arms_of(self, cell: Cell) -> list[Arm]:
        """Those that take part in this cell."""
        return self.arms

    @property
    def trials(self) -> list[Trial]:
        return self.journal.trials

    @property
    def _forwarders(self) -> list[str]:
        return list(dict.fromkeys([*(arm.forwarder for arm in self.arms), *self.peers]))

    def prepare(self) -> None:
        """Everything that can be missing is looked for before the first trial."""
        for name in self._forwarders:
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
        self.warnings += cpus.ready(self.cores)
        self._read_clock()

    def _read_clock(self) -> None:
        """TSC frequency from one of our programs, for the records of those that do not tell it."""
        reflect = FORWARDERS["reflect"]
        prefix = self.run.new_prefix("clock")
        command = reflect.command(
            self.cores.forwarder, self.bench.memory, prefix, Wire(vdevs=("net_null0",))
        )
        assert command is not None
        with Child(command, self.run) as child:
            path = socket_path(self.run.path, prefix)
            with connect(path, START_TIMEOUT_S, child.check) as telemetry:
                clock = ask_when_known(telemetry, "/linerate/clock", START_TIMEOUT_S, child.check)
        self.bench = replace(self.bench, tsc_hz=int(clock["tsc_hz"]))

    def measure(self) -> None:
        with self.monitor:
            for warning in too_few_blocks(self.cells):
                self.monitor.announce(warning)
            for cell in self.cells:
                self.cell(cell)
        self.journal.finish()

    # -- the blocks of a cell ------------------------------------------------------------------

    def floods(self, cell: Cell, blocks: Sequence[Sequence[tuple[Role, Arm]]]) -> None:
        """Every arm of every block is started once and gets all that it can take."""
        self.monitor.announce(f"{cell.link} {cell.size} B: {counted(cell.blocks, 'block')}")
        for block, shuffled in enumerate(blocks):
            with self._bed(cell, flood=True) as bed:
                for role, arm in shuffled:
                    self._trial(bed, arm, block, role=role)
            self.monitor.block_over()

    def fixed_loads(
        self, cell: Cell, blocks: int, full_pps: float, shares: Sequence[float]
    ) -> None:
        """Paced, open loop: each arm is started once in a block, and offered each share."""
        self.monitor.announce(f"{cell.link} {cell.size} B: fixed lower loads")
        lowered = replace(cell, blocks=blocks)
        self._failures = 0
        for block, shuffled in enumerate(order(self.arms_of(cell), lowered, self.options.seed)):
            with self._bed(cell, flood=False) as bed:
                for arm in shuffled:
                    self._fixed_loads_of(bed, arm, block, full_pps, shares)
            self.monitor.block_over()
        if self._hopeless:
            self._failures = 0
            self.warnings.append(
                f"{cell.link} {cell.size} B: the lower loads were given up, the last because: "
                f"{self.trials[-1].invalid}"
            )

    def _fixed_loads_of(
        self, bed: Bed, arm: Arm, block: int, full_pps: float, shares: Sequence[float]
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
            max_pps=full_pps,
            terms=self.windows.terms,
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
                    device.send(
                        share * full_pps, self.windows.seconds, latency=self.windows.latency
                    )
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
            raise HopelessError(f"{MAX_FAILURES} trials in a row were invalid", trial.invalid)

    @property
    def _hopeless(self) -> bool:
        return self._failures >= MAX_FAILURES and not self.options.keep_going

    # -- what others must know of it --------------------------------------------------------------

    def programs(self) -> dict[str, str]:
        """Digests of the programs that take part, after `prepare`."""
        return programs(
            self._forwarders,
            generator=any(link(cell.link).has_generator for cell in self.cells),
            probe=self.options.probe,
        )
