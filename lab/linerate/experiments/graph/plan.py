# SPDX-License-Identifier: BSD-3-Clause
"""The plan of a session of experiment `graph`: blocks, each a start of the programs.

First a slice of each cell measures how many walks fill one, and the digest of their work. Then, in
each block, every build runs a number of slices in every cell, the baseline's twice as many. All
slices of a block are run in rounds, each in another order drawn from the seed. A window, the slices
of one build in one cell and block, is void and repeated if others had the CPU for most of the
slices.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import cast

from linerate.experiments.graph.cells import described, parse
from linerate.experiments.graph.design import NAME, baseline_of, blocks_of, windows_of
from linerate.experiments.graph.options import Options
from linerate.experiments.graph.running import programs
from linerate.experiments.graph.running.block import Block, Item, Measured, talk_with
from linerate.experiments.graph.running.conversation import CellOffer
from linerate.experiments.graph.running.programs import Programs
from linerate.experiments.graph.running.slices import LEAST_LEFT, too_disturbed, window_of_slices
from linerate.experiments.graph.window import GraphTrialCell, GraphWindow
from linerate.host.cores import cpus
from linerate.host.cores.leases import leased
from linerate.host.errors import MissingError, RunError, TrialError
from linerate.host.process import RunDirectory
from linerate.host.text import counted
from linerate.links.eal import Memory
from linerate.records.cells import Arm
from linerate.records.trial import Identity, InvalidCode, Process, ProgramRun, Request, Role, Trial
from linerate.runs.plans.steps import (
    Announce,
    Attempts,
    BlockOver,
    Failures,
    Most,
    Needs,
    Record,
    SessionPlan,
    Steps,
)
from linerate.runs.progress import remaining
from linerate.runs.provenance import digests
from linerate.trial.trial import Bench

# The slice of one arm in one cell: long compared with the warming of its caches, short compared
# with disturbances.
SLICE_S = 0.0005
# The most windows that are tried for a quiet one.
MOST = Most(windows=4, disturbed=("starved",))
# Overheads in seconds: of a slice, of a window, of a start of the programs.
_BESIDE_S, _RECORD_S, _START_S = 0.00006, 0.002, 0.8


class GraphSession(SessionPlan):
    """The plan of a session."""

    name = NAME
    unit = "window"
    failures = Failures(16, "windows in a row were invalid")

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.options = options
        self.offers = options.plan
        self.baseline = baseline_of(options.plan)
        self.warnings += options.left_out
        self.window_s = options.preset.window_s
        self.rounds = max(round(self.window_s / SLICE_S), 1)
        self.found: Programs | None = None
        # For each cell a slice of its first arm: its number of walks, and the digest of their work.
        self.calibrated: dict[str, GraphWindow] = {}
        windows = sum(len(windows_of(offer, self.baseline)) for offer in self.offers)
        self.total = len(self.offers) + windows * blocks_of(options)

    @property
    def needs(self) -> Needs:
        return Needs(clock=False)

    def prepare(self) -> None:
        self.found = programs.find()
        offered = {each.cell: each.arms for each in offers(self.found, self.bench)}
        for offer in self.offers:
            if lacking := [arm for arm in offer.arms if arm not in offered.get(offer.cell, [])]:
                raise MissingError(
                    f"{offer.cell}: the programs here no longer have {', '.join(lacking)}",
                    "make build; for what is native: make native-graph",
                )

    def programs(self) -> dict[str, str]:
        assert self.found
        return digests(self.found.files())

    def steps(self) -> Steps[None]:
        blocks = blocks_of(self.options)
        window_s = self.rounds * (SLICE_S + _BESIDE_S) + _RECORD_S
        yield Announce(
            f"{counted(len(self.offers), 'cell')}, {counted(self.total, 'window')} of "
            f"{self.window_s * 1e3:g} ms in {counted(blocks, 'block')}: about "
            f"{remaining(self.total * window_s + blocks * _START_S).removesuffix(' left')}"
        )
        with Block(self) as block:
            for offer in self.offers:
                yield from self._calibrate(block, offer)
        items = [
            Item(offer.cell, arm)
            for offer in self.offers
            for arm in windows_of(offer, self.baseline)
        ]
        paths = {offer.cell: offer for offer in self.offers}
        for place in range(blocks):
            with Block(self, place, items) as block:
                for item in items:
                    yield self._window(block, paths[item.cell], item.arm, place)
            yield BlockOver()

    def _calibrate(self, block: Block, offer: CellOffer) -> Steps[None]:
        """Measure how many walks fill a slice, and the digest of their work, with the cell's first
        arm.

        A run that was starved to the last attempt is used as well: it has fewer walks, and the same
        work.
        """
        arm = Arm(offer.arms[0], offer.arms[0])
        trial: Trial = yield self._window(block, offer, arm, 0, role="self-test")
        ran = trial.outcome
        if isinstance(ran, GraphWindow) and ran.slice_count is None:
            raise RunError(
                "this run was begun by a version of linerate that measured no slices",
                "use the version that began it, or start a new run",
            )
        if isinstance(ran, GraphWindow) and trial.invalid_code in {None, "starved"}:
            self.calibrated[offer.cell] = ran

    def _window(
        self, block: Block, offer: CellOffer, arm: Arm, place: int, role: Role = "measure"
    ) -> Attempts:
        """Return the attempts at a window: the valid one, or the last invalid one."""
        due = {"link": offer.cell, "role": role, "arm": arm.label, "block": place}

        def run(attempt: int, record: Record) -> Trial:
            trial = self._attempt(block, offer, arm, place, role, attempt)
            record(trial)
            return trial

        return Attempts(due=lambda attempt: due | {"attempt": attempt}, run=run, most=MOST)

    def _attempt(  # noqa: PLR0917 - as a record has them
        self, block: Block, offer: CellOffer, arm: Arm, place: int, role: Role, attempt: int
    ) -> Trial:
        trial = Trial(
            identity=Identity(
                experiment=NAME, seed=self.seed, session=self.bench.session, block=place,
                position=0, role=role, arm=arm.label,
            ),
            cell=GraphTrialCell(graph=offer.cell, batch=parse(offer.cell).batch),
            program=ProgramRun(
                forwarder=arm.forwarder, described=described(arm.forwarder),
                memory="hugepages" if self.bench.memory.hugepages else "no-huge",
            ),
            request=Request(load="self-driven", attempt=attempt),
            started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        )  # fmt: skip
        calibrated = self.calibrated.get(offer.cell)
        try:
            if role == "self-test":
                found = block.alone_for(offer.cell, arm, SLICE_S)
            elif calibrated is None:
                raise TrialError("the number of walks in a slice of this cell is not known")
            else:
                found = block.measured(Item(offer.cell, arm), repeated=attempt > 1)
            ran = window_of_slices(found.slices, offer.path_nodes)
            self._enter(trial, found, ran)
            # Checked first: a starved run did its work as well.
            _check(trial, ran, calibrated, offer.arms[0])
            _reject_starved(trial, ran)
            if found.stolen > LEAST_LEFT:
                trial.reject(
                    "starved", f"the hypervisor gave {found.stolen:.0%} of the CPU to others"
                )
        except TrialError as error:
            trial.rejected = None
            trial.reject(cast(InvalidCode, error.code), str(error.message))
            block.drop_dead()
        return trial

    def _enter(self, trial: Trial, found: Measured, ran: GraphWindow) -> None:
        trial.outcome = ran
        trial.identity.start = found.start
        trial.program.tsc_hz = ran.tsc_hz
        trial.steal_ticks = {str(self.bench.cores.forwarder): found.steal_ticks}
        if ran.disturbed_slices:
            trial.others = found.others
        process = Process(
            role=found.command.role, argv=list(found.command.argv), cpus=list(found.command.cpus)
        )
        waited = [each.waited_ns for each in found.slices if each.waited_ns is not None]
        process.waited_s = sum(waited) / 1e9 if waited else None
        trial.program.processes = [process]


def _reject_starved(trial: Trial, ran: GraphWindow) -> None:
    if too_disturbed(ran):
        trial.reject(
            "starved", f"others had the CPU in {ran.disturbed_slices} of {ran.slice_count} slices"
        )


def _check(trial: Trial, ran: GraphWindow, calibrated: GraphWindow | None, reference: str) -> None:
    """Check that every object arrived, and that the work is the same as the cell's first arm's."""
    if ran.objects != ran.sunk:
        trial.reject(
            "books", f"the sources made {ran.objects} objects and the sinks got {ran.sunk}"
        )
    elif not ran.objects or not ran.tsc_cycles:
        trial.reject("idle", "no object went through the graph")
    elif trial.role == "measure" and calibrated and ran.work != calibrated.work:
        trial.reject(
            "work",
            f"{trial.forwarder} did other work than {reference}: digest {ran.work}, not "
            f"{calibrated.work}, after {calibrated.walks} walks of {trial.cell.name}",
        )


def offers(found: Programs, bench: Bench) -> list[CellOffer]:
    """Return the cells of the plain program, with the arms of the native one beside its own."""
    with talk_with(found, bench, native=False) as talk:
        plain = talk.cells()
    native: dict[str, list[str]] = {}
    if found.rust_native:
        with talk_with(found, bench, native=True) as talk:
            native = {each.cell: each.arms for each in talk.cells()}
    for offer in plain:
        offer.arms += native.get(offer.cell, [])
    return plain


def look(options: Options) -> tuple[list[CellOffer], list[str]]:
    """Return the cells of this machine's programs; and what is left out, and why."""
    found = programs.find()
    with leased(), RunDirectory() as run:
        bench = Bench(
            run=run,
            cores=cpus.Cores.choose(),
            memory=Memory.choose(options.hugepages),
            experiment=NAME,
            seed=options.seed,
            window_s=options.preset.window_s,
        )
        return offers(found, bench), found.left_out
