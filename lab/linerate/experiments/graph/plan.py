# SPDX-License-Identifier: BSD-3-Clause
"""What a session of experiment `graph` measures: blocks, each a start of the programs.

First a window of each cell tells how many walks fill it, and what work they come to. Then, in each
block, every cell is run in an order drawn from the seed, in it every build, the baseline's twice,
all with as many walks. A window in which others had the CPU is void and repeated.
"""

from __future__ import annotations

import random
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import cast

from linerate.experiments.graph import programs
from linerate.experiments.graph.cells import described, parse
from linerate.experiments.graph.conversation import CellOffer, Conversation
from linerate.experiments.graph.design import NAME, baseline_of, blocks_of, windows_of
from linerate.experiments.graph.options import Options
from linerate.experiments.graph.programs import NATIVE_SUFFIX, Programs
from linerate.experiments.graph.window import GraphTrialCell, GraphWindow, window_of
from linerate.host.cores import cpus
from linerate.host.cores.cpus import CPUS
from linerate.host.cores.leases import leased
from linerate.host.errors import MissingError, TrialError
from linerate.host.process import RunDirectory
from linerate.host.sampler import Activity
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

# A window in which others had the CPU for more of its time than this is void.
STOLEN = 0.01
# So many windows are tried for one that is quiet.
MOST = Most(windows=4, disturbed=("starved",))
# Beside its window, a request costs about so much; a start of the programs so much.
_REQUEST_S, _START_S = 0.002, 0.8


def is_native(arm: str) -> bool:
    """Whether the native program runs it: C nodes are in the plain one, whatever their flags."""
    return arm.endswith(NATIVE_SUFFIX)


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
        self.found: Programs | None = None
        self._walks: dict[str, GraphWindow] = {}
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
        seconds = self.total * (self.window_s + _REQUEST_S) + blocks * _START_S
        yield Announce(
            f"{counted(len(self.offers), 'cell')}, {counted(self.total, 'window')} of "
            f"{self.window_s * 1e3:g} ms in {counted(blocks, 'block')}: about "
            f"{remaining(seconds).removesuffix(' left')}"
        )
        with _Block(self) as block:
            for offer in self.offers:
                yield from self._calibrate(block, offer)
        for place, order in enumerate(self._orders(blocks)):
            with _Block(self) as block:
                for offer, arms in order:
                    for arm in arms:
                        yield self._window(block, offer, arm, place)
            yield BlockOver()

    def _orders(self, blocks: int) -> list[list[tuple[CellOffer, list[Arm]]]]:
        """Cells shuffled in each block, and in each cell its arms, side by side in time."""
        source = random.Random(f"linerate:{self.seed}:{NAME}")
        orders = []
        for _ in range(blocks):
            cells = list(self.offers)
            source.shuffle(cells)
            order = []
            for offer in cells:
                arms = windows_of(offer, self.baseline)
                source.shuffle(arms)
                order.append((offer, arms))
            orders.append(order)
        return orders

    def _calibrate(self, block: _Block, offer: CellOffer) -> Steps[None]:
        """How many walks fill a window, and the work that they come to: by the cell's first arm.

        One that was starved to the last attempt says it, too: of fewer walks, and the same work.
        """
        arm = Arm(offer.arms[0], offer.arms[0])
        trial: Trial = yield self._window(block, offer, arm, 0, role="self-test")
        if (ran := window_of(trial)) and trial.invalid_code in {None, "starved"}:
            self._walks[offer.cell] = ran

    def _window(
        self, block: _Block, offer: CellOffer, arm: Arm, place: int, role: Role = "measure"
    ) -> Attempts:
        """One that counts, or the last of those that do not."""
        due = {"link": offer.cell, "role": role, "arm": arm.label, "block": place}

        def run(attempt: int, record: Record) -> Trial:
            trial = self._attempt(block, offer, arm, place, role, attempt)
            record(trial)
            return trial

        return Attempts(due=lambda attempt: due | {"attempt": attempt}, run=run, most=MOST)

    def _attempt(  # noqa: PLR0917 - as a record has them
        self, block: _Block, offer: CellOffer, arm: Arm, place: int, role: Role, attempt: int
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
        calibrated = self._walks.get(offer.cell)
        try:
            if role == "measure" and calibrated is None:
                raise TrialError("how many walks fill a window of this cell is not known")
            talk, trial.identity.start = block.conversation(native=is_native(arm.forwarder))
            steal, before = self._stolen(), talk.child.activity()
            ran = talk.run(
                offer.cell, arm.forwarder,
                walks=calibrated.walks if calibrated and role == "measure" else None,
                ms=max(round(self.bench.window_s * 1e3), 1),
            )  # fmt: skip
            trial.steal_ticks = {str(self.bench.cores.forwarder): self._stolen() - steal}
            ran.path_nodes = offer.path_nodes
            self._enter(trial, talk, before, ran)
            # First: what was starved did its work all the same.
            _check(trial, ran, calibrated, offer.arms[0])
            _reject_starved(trial, ran.duration_s)
        except TrialError as error:
            trial.rejected = None
            trial.reject(cast(InvalidCode, error.code), str(error.message))
            block.drop_dead()
        return trial

    def _stolen(self) -> int:
        return self.bench.host.sample(CPUS).cpus[self.bench.cores.forwarder].steal

    def _enter(self, trial: Trial, talk: Conversation, before: Activity, ran: GraphWindow) -> None:
        trial.outcome = ran
        trial.program.tsc_hz = ran.tsc_hz
        command = talk.child.command
        process = Process(role=command.role, argv=list(command.argv), cpus=list(command.cpus))
        trial.program.processes = [process]
        after = talk.child.activity()
        if before.told and after.told:
            process.voluntary_switches = after.voluntary - before.voluntary
            process.involuntary_switches = after.involuntary - before.involuntary
            process.ran_s = after.ran_s - before.ran_s
            process.waited_s = after.waited_for_others_s(before)


def _reject_starved(trial: Trial, window_s: float) -> None:
    for process in trial.program.processes:
        if process.waited_s and process.waited_s > STOLEN * window_s:
            trial.reject(
                "starved", f"others had the CPU for {process.waited_s * 1e3:.2f} ms of a window"
            )
    if any(ticks > 0 for ticks in trial.steal_ticks.values()):
        trial.reject("starved", "the hypervisor gave the CPU to others during the window")


def _check(trial: Trial, ran: GraphWindow, calibrated: GraphWindow | None, reference: str) -> None:
    """Every object arrived, and the work is that of the cell's first arm."""
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
            f"{calibrated.work}, after {ran.walks} walks of {trial.cell.name}",
        )


class _Block:
    """The programs of one block, each started when it is first needed, and anew when it ended."""

    def __init__(self, session: GraphSession) -> None:
        self._session = session
        self._stack = ExitStack()
        # With the number of the start.
        self._talks: dict[bool, tuple[Conversation, int]] = {}

    def __enter__(self) -> _Block:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def conversation(self, *, native: bool) -> tuple[Conversation, int]:
        """A program that runs, and which start of the session it is."""
        if native not in self._talks:
            found, bench = self._session.found, self._session.bench
            assert found
            talk = self._stack.enter_context(_talk(found, bench, native=native))
            self._talks[native] = talk, next(bench.starts)
        return self._talks[native]

    def drop_dead(self) -> None:
        """After an error: one that ended, or no longer answers in step, is not asked again."""
        for native, (talk, _) in list(self._talks.items()):
            if not (talk.child.running and talk.in_step):
                del self._talks[native]
                talk.child.stop()


def _talk(found: Programs, bench: Bench, *, native: bool) -> Conversation:
    command = found.command(
        native=native,
        cpu=bench.cores.forwarder,
        memory=bench.memory,
        prefix=bench.run.new_prefix("graph"),
    )
    return Conversation(command, bench.run, NATIVE_SUFFIX if native else "", bench.host)


def offers(found: Programs, bench: Bench) -> list[CellOffer]:
    """The cells of the plain program, with the arms of the native one beside its own."""
    with _talk(found, bench, native=False) as talk:
        plain = talk.cells()
    native: dict[str, list[str]] = {}
    if found.rust_native:
        with _talk(found, bench, native=True) as talk:
            native = {each.cell: each.arms for each in talk.cells()}
    for offer in plain:
        offer.arms += native.get(offer.cell, [])
    return plain


def look(options: Options) -> tuple[list[CellOffer], list[str]]:
    """What this machine's programs have; and what is left out, and why."""
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
