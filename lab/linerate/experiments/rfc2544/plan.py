# SPDX-License-Identifier: BSD-3-Clause
"""One run of experiment `rfc2544`: the self-test, then units in randomised blocks, cell by cell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from typing import Annotated, TypeVar

from pydantic import Field

from linerate.experiments.rfc2544.estimate import estimate, told
from linerate.experiments.rfc2544.metrics import compared_loads
from linerate.experiments.rfc2544.options import DEFAULT_FORWARDERS, DEFAULT_LINKS, Options, Traffic
from linerate.experiments.rfc2544.presets import Preset, check_sizes, minimum_size
from linerate.experiments.rfc2544.summarise import tests_of
from linerate.experiments.rfc2544.units import Unit, run_tests
from linerate.forwarders import forwarder
from linerate.host.errors import BusyError, DisturbedError, LabError, TrialError, UsageError
from linerate.host.text import counted
from linerate.records.cells import Arm, Cell
from linerate.records.summary import Ceiling
from linerate.records.trial import Trial
from linerate.runs.options import Agreement, Budget, apart_from_blocks
from linerate.runs.plans.blocks import PEERS, arms, blocks_for, check_blocks, check_fit, order
from linerate.runs.plans.pacing import Late, greatest_kept
from linerate.runs.plans.quiet import last_cause, not_found, until_quiet
from linerate.runs.plans.steps import (
    Announce,
    Failures,
    Needs,
    Once,
    OnSetup,
    Say,
    SessionPlan,
    Start,
    Started,
    Steps,
)
from linerate.runs.run_summary import Design
from linerate.traffic.other_generator import GENERATOR, OtherGenerator
from linerate.trial.link_setup import LinkSetup
from linerate.verdict.ceiling import ceiling_of

T = TypeVar("T")
NAME = "rfc2544"
QUESTION = "How many frames a second can each forwarder carry, and how does it then do?"
# Shares of the flood's ceiling that the sender is tried at, until it is on time. They are finer
# than those of fixed loads, for a search goes up to 100 %, and go further down, for a low 100 %
# still gives a lower bound.
PACED_SHARES = (
    1.0, 0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002,
    0.001,
)  # fmt: skip
PACED_S = 1.0
# A window of which more than this was sent late was not disturbed: the sender fell behind for good.
BEHIND = 0.5


@dataclass(kw_only=True)
class SearchDesign(Budget, Traffic, Design):
    """A `Design` with this experiment's own parameters."""

    # The preset also has the window.
    window_s: Annotated[float, Field(gt=0), Agreement("window")]
    # Goals and durations.
    search: Annotated[
        Preset,
        Agreement("--preset", compare="same", compare_by=apart_from_blocks),
    ]
    shared_by: Annotated[int, Field(ge=1), Agreement("--blocks")]
    # The URL of another generator than the lab's own.
    generator: Annotated[str | None, Agreement(GENERATOR, compare="same")] = None

    @property
    def foreign(self) -> bool:
        return self.generator is not None


def design_of(options: Options) -> SearchDesign:
    """Return the design of these options, with all defaults filled in."""
    preset, planned = options.preset, cells(options)
    return SearchDesign.of(
        options,
        question=QUESTION,
        window_s=preset.goals[0].final_s,
        cells=planned,
        arms=arms(options.forwarders or DEFAULT_FORWARDERS),
        search=preset,
        shared_by=planned[0].blocks,
        generator=options.generator.url if options.generator else None,
    )


def cells(options: Options) -> list[Cell]:
    """Return the cells to run, in order; raises `UsageError` for impossible ones."""
    sizes = list(dict.fromkeys(options.sizes or [minimum_size(options.ip)]))
    check_sizes(sizes, options.ip)
    blocks = options.preset.blocks
    if options.preset.verdicts:
        blocks = max(blocks, blocks_for(len(sizes) * _loads(options)))
    blocks = blocks if options.blocks is None else options.blocks
    check_blocks(blocks)
    if options.generator and not options.line_rate:
        raise UsageError(
            f"{GENERATOR}: its 100 % is not known, because OTG cannot request sending as fast as "
            "possible",
            "--line-rate FRAMES_PER_SECOND",
        )
    for name in options.forwarders:
        if options.ip not in forwarder(name).ips:
            raise UsageError(
                f"--ip {options.ip}: {name} forwards IPv4 only", "leave --ip or the forwarder out"
            )
    names = list(dict.fromkeys(options.links or DEFAULT_LINKS))
    links = [options.link(name) for name in names]
    check_fit(options.forwarders, links)
    for name, found in zip(names, links, strict=True):
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
    """Return the greatest number of loads of one metric: they are corrected together."""
    preset, tests = options.preset, options.tests
    used = len(preset.core_use_loads) if "core-use" in tests else 1
    delayed = len(compared_loads(preset)) if "latency" in tests else 1
    return max(used, delayed)


class Rfc2544(SessionPlan):
    """The plan of a session."""

    name = NAME
    unit = "search"
    failures = Failures(
        4,
        "searches in a row found no throughput",
        "a preset with shorter trials (quick) finds quiet moments on a shared machine",
    )

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.options = options
        self.preset = options.preset
        self.arms = arms(options.forwarders or DEFAULT_FORWARDERS)
        self.cells = cells(options)
        self.window_s = options.preset.flood_s
        self.minutes = options.minutes
        self.ip = options.ip
        self.directions = options.directions or "both"
        self.sender = None
        if options.generator:
            self.sender = OtherGenerator(options.generator, latency="latency" in options.tests)
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
        self.total = len(self.cells) * blocks * (len(self.arms) + 1)

    @property
    def needs(self) -> Needs:
        return Needs(
            forwarders=(*(arm.forwarder for arm in self.arms), *PEERS),
            links=tuple(cell.link for cell in self.cells),
            probe="core-use" in self.options.tests,
            sender=self.sender,
        )

    def steps(self) -> Steps[None]:
        yield Say(
            f"{self.preset.name}: {self.preset.note}. About {told(self.estimate.seconds)} "
            f"({self.estimate.trials} trials), more where windows are disturbed and repeated."
        )
        if self.minutes is not None and self.minutes * 60 < self.estimate.seconds:
            yield Say(self._budget(self.minutes))
        if not self.preset.turns:
            for cell in self.cells:
                for block in (yield from self._blocks(cell)):
                    yield block
            return
        sizes: list[list[OnSetup]] = []
        for cell in self.cells:
            sizes.append((yield from self._blocks(cell)))
        for turn in zip_longest(*sizes):
            for block in turn:
                if block:
                    yield block

    def _budget(self, minutes: float) -> str:
        said = f"--minutes {minutes:g}: a part of it will fit; --resume runs more"
        return (
            f"{said}. All sizes take turns, so that each has its part"
            if self.preset.turns
            else said
        )

    def _blocks(self, cell: Cell) -> Steps[list[OnSetup]]:
        """Run the self-test of a cell, then return its blocks; none if the machine is too busy."""
        yield Announce(f"{cell.link} {cell.size} B: self-test")
        try:
            flooded = yield from self._flood(cell)
            max_pps, peer = yield from self._maximum(cell, flooded)
        except BusyError as error:
            if not self.options.keep_going:
                raise
            self.warn(f"{error.message}: this size has no figures")
            return []
        yield Announce(
            f"{cell.link} {cell.size} B: 100 % = {max_pps / 1e6:.3f} Mpps, "
            f"{counted(cell.blocks, 'block')}"
        )
        # The peer shows the capacity of link and sender under the arms' conditions.
        names = {arm.label: arm for arm in [*self.arms, Arm(peer, peer)]}
        return [
            OnSetup(cell, partial(self._searches, cell, block, shuffled, max_pps))
            for block, shuffled in enumerate(order(list(names.values()), cell, self.seed))
        ]

    # -- the self-test -------------------------------------------------------------------------

    def _flood(self, cell: Cell) -> Steps[Ceiling]:
        """Measure the reference peers' rates in a flood (docs/how-it-measures.md#100-percent)."""
        given = self.options.line_rate
        if self.sender and given:
            return Ceiling(pps=given, peer=PEERS[0])
        drawn = replace(cell, blocks=self.preset.self_test)
        peers = [Arm(name, name) for name in PEERS]

        def flood() -> Steps[Ceiling | None]:
            before = len(self.trials)
            for block, shuffled in enumerate(order(peers, drawn, self.seed)):
                yield OnSetup(cell, partial(self._flood_peers, block, shuffled), flood=True)
            found = ceiling_of(self.trials[before:], None)
            # If 100 % is given, nothing depends on it.
            return found or (Ceiling(pps=given, peer=PEERS[0]) if given else None)

        return (
            yield from self._until_quiet(
                f"{cell.link} {cell.size} B: no trial of a reference peer counts", flood
            )
        )

    def _until_quiet(self, why: str, attempt: Callable[[], Steps[T | None]]) -> Steps[T]:
        """Return an attempt's result; repeats attempts after rests, because the machine may be
        quiet then.
        """
        found = yield from until_quiet(self, why, attempt, needed=lambda: True)
        if found is not None:
            return found
        last = self.trials[-1]
        raise not_found(
            f"{why}, the last because: {last_cause([last]) or 'it fell behind for good'}",
            self.trials,
            "name 100 % by --line-rate, or run it when the machine is quieter; linerate doctor "
            "says what is missing",
        )

    @staticmethod
    def _flood_peers(block: int, drawn: list[Arm], setup: LinkSetup) -> Steps[None]:
        for arm in drawn:
            yield Once(
                setup=setup, arm=arm, block=block, role="self-test", counts=False, fails=False
            )

    def _ran_since(self, position: int) -> bool:
        """Return True if this session ran any trial since then: one that failed earlier is tried
        again.
        """
        return any(t.session == self.bench.session for t in self.trials[position:])

    def _maximum(self, cell: Cell, flooded: Ceiling) -> Steps[tuple[float, str]]:
        """Return 100 % and the peer that shows it: the rate that the sender keeps, or the requested
        one.
        """
        if given := self.options.line_rate:
            if self.sender:
                yield from self._must_pace(cell, flooded)
            return given, flooded.peer

        def paced() -> Steps[float | None]:
            attempt = partial(self._late, flooded.peer)
            return (yield from greatest_kept(cell, flooded.pps, attempt, PACED_SHARES))

        pps = yield from self._until_quiet(
            f"{cell.link} {cell.size} B: the sender is not on time even at {PACED_SHARES[-1]:.1%} "
            "of what link and peer carry",
            paced,
        )
        return pps, flooded.peer

    def _must_pace(self, cell: Cell, most: Ceiling) -> Steps[None]:
        """Check that another generator can send 100 % before searches use it."""
        while True:
            before = len(self.trials)
            yield OnSetup(cell, partial(self._late, most.peer, most.pps, 0))
            # A window that was void because the peer starved shows that all was sent.
            if any(trial.invalid_code != "late" for trial in self.trials[before:]):
                return
            if self._ran_since(before):
                raise LabError(
                    f"{cell.link} {cell.size} B: {GENERATOR} does not send 100 % to the "
                    f"reference peer {most.peer}: {self.trials[-1].invalid}",
                    "--line-rate with fewer frames per second",
                )

    def _late(self, peer: str, pps: float, start: int, setup: LinkSetup) -> Steps[Late | None]:
        """Return None if the sender keeps this rate. It must be on time in one of the windows that
        a trial of this preset may have, and must not fall behind permanently in as many others.

        One good window of many is not enough, because a search requests this rate repeatedly. Loss
        does not matter here. Fixed loads need more (`linerate.runs.plans.pacing`), because a search
        whose sender is late continues at lower loads; and runs on record can be resumed only by the
        rule that they began with.
        """
        seconds = min(self.preset.goals[0].final_s, PACED_S)
        late = Late(pps)

        def sent(started: Started) -> Late | None:
            try:
                started.device.send(pps, seconds)
            except DisturbedError:
                return late
            except TrialError as error:
                raise LabError(
                    f"the reference peer {peer} failed: {error.message}", "linerate doctor"
                ) from error
            behind = sum(map(_fell_behind, started.trials))
            return late if 2 * behind >= len(started.trials) else None

        found: Late | None = yield Start(
            setup=setup, arm=Arm(peer, peer), block=start, role="self-test", max_pps=pps,
            terms=self.preset.terms, procedure=sent,
        )  # fmt: skip
        return found

    # -- the searches --------------------------------------------------------------------------

    def _searches(
        self, cell: Cell, block: int, drawn: list[Arm], max_pps: float, setup: LinkSetup
    ) -> Steps[None]:
        for arm in drawn:

            def search(started: Started, arm: Arm = arm) -> Unit:
                unit = Unit()
                tests = tests_of(arm.label, self.arms, self.options.tests)
                run_tests(started.device, self.preset, tests, cell.blocks, unit)
                return unit

            # The probe is in every forwarder that is searched, the reference peer too, so that all
            # are treated alike.
            yield Start(
                setup=setup, arm=arm, block=block, role="search", max_pps=max_pps,
                terms=self.preset.terms, procedure=search, probe=self.needs.probe,
                told=partial(_told, self.preset), failed=partial(_nothing_found, self.preset),
            )  # fmt: skip


def _told(preset: Preset, unit: Unit) -> str:
    carried = unit.carried(preset)
    if carried is None:
        return "no throughput"
    found = unit.lossless
    whole = found and found.state == "found" and found.lower_pps is not None
    return f"{'' if whole else 'at least '}{carried / 1e6:.3f} Mpps"


def _nothing_found(preset: Preset, unit: Unit) -> str | None:
    if unit.lossless or unit.carried(preset):
        return None
    why = unit.throughput.invalid if unit.throughput else None
    return why.reason if why else "it was cut off"


def _fell_behind(trial: Trial) -> bool:
    late, attempted = trial.frames.late, trial.frames.attempted
    return bool(late and attempted and late / attempted > BEHIND)
