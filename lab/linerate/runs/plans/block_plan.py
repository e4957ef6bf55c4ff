# SPDX-License-Identifier: BSD-3-Clause
"""Plans whose cells are measured in blocks: floods, and equal loads for all.

An experiment chooses the arms of each block, and the loads that follow from the results of the
floods.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from linerate.host.text import counted
from linerate.records.cells import Arm, Cell
from linerate.records.trial import Load, Method, Role
from linerate.runs.options import BlockOptions
from linerate.runs.plans.blocks import order, turned
from linerate.runs.plans.steps import (
    Announce,
    BlockOver,
    Failures,
    GiveUp,
    Needs,
    Once,
    OnSetup,
    SessionPlan,
    Standing,
    Start,
    Started,
    Steps,
    Turns,
)
from linerate.trial.link_setup import LinkSetup
from linerate.trial.search.setup_device import Terms

MAX_FAILURES = 8


def preset_note(options: BlockOptions) -> str:
    """Describe the amount to measure, for a design."""
    if options.blocks:
        return f"{counted(options.blocks, 'block')} per cell (--blocks)"
    return options.preset.note


@dataclass(frozen=True)
class Windows:
    """How to send a fixed load: in windows of `seconds`; a disturbed one is repeated."""

    seconds: float
    terms: Terms
    latency: bool = False


class BlockPlan(SessionPlan):
    """The common part of experiments in blocks. `peers`: forwarders that take part beside the
    arms.
    """

    windows: Windows
    peers: tuple[str, ...] = ()
    failures = Failures(MAX_FAILURES, "trials in a row were invalid")

    def __init__(self, options: BlockOptions, arms: list[Arm], cells: list[Cell]) -> None:
        super().__init__(options)
        self.options = options
        self.arms = arms
        self.cells = cells
        self.window_s = options.preset.window_s
        self.total = self.planned()

    @abstractmethod
    def planned(self) -> int:
        """Return the number of trials that are known beforehand."""

    @abstractmethod
    def cell(self, cell: Cell) -> Steps[None]:
        """Measure one cell."""

    def arms_of(self, cell: Cell) -> list[Arm]:
        """Return the arms that take part in this cell."""
        return self.arms

    @property
    def needs(self) -> Needs:
        return Needs(
            forwarders=(*(arm.forwarder for arm in self.arms), *self.peers),
            links=tuple(cell.link for cell in self.cells),
            probe=self.options.probe,
        )

    def steps(self) -> Steps[None]:
        for cell in self.cells:
            yield from self.cell(cell)

    # -- the blocks of a cell ------------------------------------------------------------------

    def method(self, cell: Cell) -> Method:
        """Return how the forwarders of this cell share core and time."""
        return "fresh"

    def floods(self, cell: Cell, blocks: Sequence[Sequence[tuple[Role, Arm]]]) -> Steps[None]:
        """Start every arm of every block once, and flood it."""
        yield Announce(f"{cell.link} {cell.size} B: {counted(cell.blocks, 'block')}")
        load: Load = "flood" if self.link(cell.link).has_generator else "self-driven"
        method = self.method(cell)

        def each(block: int, drawn: Sequence[tuple[Role, Arm]], setup: LinkSetup) -> Steps[None]:
            for role, arm in drawn:
                yield Once(setup=setup, arm=arm, block=block, role=role, load=load)

        def flooded(starts: Sequence[Started]) -> None:
            for each in starts:
                each.flood()

        def standing(
            block: int, drawn: Sequence[tuple[Role, Arm]], setup: LinkSetup
        ) -> Steps[None]:
            yield Standing(setup=setup, items=drawn, block=block, method=method)

        for block, drawn in enumerate(blocks):
            # The probe costs something: trials with it are not compared.
            apart = [item for item in drawn if method == "fresh" or item[0] == "probed"]
            together = [item for item in drawn if item not in apart]
            if together and load == "self-driven":
                yield OnSetup(cell, partial(standing, block, together))
            elif together:
                yield Turns(cell=cell, items=together, block=block, procedure=flooded, flood=True)
            if apart:
                yield OnSetup(cell, partial(each, block, apart), flood=True)
            yield BlockOver()

    def fixed_loads(
        self, cell: Cell, blocks: int, full_pps: float, shares: Sequence[float]
    ) -> Steps[None]:
        """Start each arm once in a block and offer each share of `full_pps` (frames per second over
        all directions), paced, open loop.
        """
        yield Announce(f"{cell.link} {cell.size} B: fixed lower loads")
        lowered = replace(cell, blocks=blocks)

        def offered(block: int, starts: Sequence[Started]) -> None:
            windows = self.windows
            for share in shares:
                for each in turned(starts, self.seed, cell.link, cell.size, block, share):
                    each.measure(share * full_pps, windows.seconds, latency=windows.latency)

        def of(block: int, drawn: Sequence[Arm], setup: LinkSetup) -> Steps[None]:
            def alone(started: Started) -> None:
                offered(block, [started])

            for arm in drawn:
                yield Start(
                    setup=setup, arm=arm, block=block, role="lower-load", max_pps=full_pps,
                    terms=self.windows.terms, procedure=alone, test="core-use",
                    probe=self.options.probe, each_fails=True,
                )  # fmt: skip

        def every() -> Steps[None]:
            for block, drawn in enumerate(order(self.arms_of(cell), lowered, self.seed)):
                if self.method(cell) == "turns":
                    yield Turns(
                        cell=cell, items=[("lower-load", arm) for arm in drawn], block=block,
                        max_pps={arm.label: full_pps for arm in drawn},
                        terms=self.windows.terms, procedure=partial(offered, block),
                        test="core-use", probe=self.options.probe,
                    )  # fmt: skip
                else:
                    yield OnSetup(cell, partial(of, block, drawn))
                yield BlockOver()

        planned = blocks * len(self.arms_of(cell)) * len(shares)
        what = f"{cell.link} {cell.size} B: the lower loads were given up"
        yield GiveUp(what, planned, every)
