# SPDX-License-Identifier: BSD-3-Clause
"""The plan of experiment `latency`: each forwarder's capacity, then units in randomised blocks.

Per cell (link, frame size) first the capacity of each forwarder: a flood, and a rate that the
sender keeps. Then, in each block, every arm has two units. A unit is one process of the forwarder
that is offered every kind of frame at every load, in an order drawn from the seed: for the round
trips unchanged, and once more while it (or the probe in it) measures how long frames are inside. If
a packet socket can replace the generator, every arm is then measured with that sender, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from linerate.experiments.latency import loads, packet_sender
from linerate.experiments.latency.design import NAME, arms_on, cells, preset_of
from linerate.experiments.latency.figures import flood_pps
from linerate.experiments.latency.loads import IDLE, IDLE_PPS, INSIDE_LOADS, LOADS, Step
from linerate.experiments.latency.options import DEFAULT_FORWARDERS, Options
from linerate.experiments.latency.packet_sender import PacketSender
from linerate.forwarders import forwarder
from linerate.host.text import counted
from linerate.records.cells import Arm, Cell
from linerate.runs.plans.blocks import arms, order, turned, turns_or_fresh
from linerate.runs.plans.pacing import hundred_percent, kept_rate
from linerate.runs.plans.steps import (
    Announce,
    Attempts,
    BlockOver,
    Failures,
    Most,
    Needs,
    Once,
    OnSetup,
    SessionPlan,
    Start,
    Started,
    Steps,
    Turns,
)
from linerate.trial.link_setup import LinkSetup
from linerate.trial.search.setup_device import Terms

# Every burst is measured: the cost is not part of a round trip.
ONE_IN = 1

Part = Literal["latency", "spans"]
PARTS: tuple[Part, ...] = ("latency", "spans")


class Latency(SessionPlan):
    """The plan of a session."""

    name = NAME
    failures = Failures(4, "starts of forwarders in a row gave no figure")

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.options = options
        self.preset = preset_of(options)
        self.arms = arms(options.forwarders or DEFAULT_FORWARDERS)
        self.cells = cells(options)
        self.window_s = self.preset.flood_s
        self.terms = Terms(windows=self.preset.windows, patience_s=0.05)
        self.total = sum(map(self._planned, self.cells))

    @property
    def _parts(self) -> tuple[Part, ...]:
        return PARTS if self.options.inside else PARTS[:1]

    def _arms(self, cell: Cell) -> list[Arm]:
        return arms_on(self.options, cell.link)

    def _planned(self, cell: Cell) -> int:
        floods = 0 if self.options.line_rate else self.preset.floods
        steps = sum(len(self._steps(part)) for part, _ in self._units(cell))
        steps += len(self._pinged(cell)) * len(self.options.protocols)
        return len(self._arms(cell)) * floods + cell.blocks * steps

    def _units(self, cell: Cell) -> list[tuple[Part, Arm]]:
        """Return the units of a block, without forwarders that cannot measure how long frames are
        inside.
        """
        return [
            (part, arm)
            for part in self._parts
            for arm in self._arms(cell)
            if part == "latency" or forwarder(arm.forwarder).spans
        ]

    def _pinged(self, cell: Cell) -> list[Arm]:
        """Return the arms that a packet socket sends to."""
        return [] if loads.no_packet_sender(self.link(cell.link)) else self._arms(cell)

    def _steps(self, part: Part) -> list[Step]:
        return loads.steps(self.options.protocols, LOADS if part == "latency" else INSIDE_LOADS)

    @property
    def needs(self) -> Needs:
        pinged = any(map(self._pinged, self.cells))
        return Needs(
            forwarders=tuple(arm.forwarder for arm in self.arms),
            links=tuple(cell.link for cell in self.cells),
            probe=self.options.inside,
            others=(packet_sender.PROGRAM,) if pinged else (),
        )

    def steps(self) -> Steps[None]:
        for cell in self.cells:
            capacity = yield from self._capacities(cell)
            yield Announce(f"{cell.link} {cell.size} B: {counted(cell.blocks, 'block')}")
            seed = self.seed
            blocks = zip(
                order(self._units(cell), cell, seed),
                order(self._pinged(cell), cell, seed),
                strict=True,
            )
            for block, (units, pinged) in enumerate(blocks):
                if turns_or_fresh(self.options.method, self.link(cell.link)) == "turns":
                    yield from self._together(cell, block, units, capacity)
                else:
                    yield OnSetup(cell, partial(self._one_by_one, cell, block, units, capacity))
                if pinged:
                    yield OnSetup(cell, partial(self._pings, block, pinged), sender=False)
                yield BlockOver()

    # -- what each forwarder carries -----------------------------------------------------------

    def _capacities(self, cell: Cell) -> Steps[dict[str, float]]:
        """Return 100 % of each forwarder, in frames per second; without those that are unknown."""
        names = list(dict.fromkeys(arm.forwarder for arm in self._arms(cell)))
        if self.options.line_rate:
            return dict.fromkeys(names, self.options.line_rate)
        yield Announce(f"{cell.link} {cell.size} B: what each forwarder carries")
        drawn = replace(cell, blocks=self.preset.floods)
        for block, shuffled in enumerate(order(self._arms(cell), drawn, self.seed)):
            yield OnSetup(cell, partial(self._floods, block, shuffled), flood=True)
        return (yield from self._all_paced(cell, names))

    def _floods(self, block: int, drawn: list[Arm], setup: LinkSetup) -> Steps[None]:
        for arm in drawn:
            yield Once(setup=setup, arm=arm, block=block, role="measure", fails=False)

    def _all_paced(self, cell: Cell, names: list[str]) -> Steps[dict[str, float]]:
        found = {name: flood_pps(self.trials, cell, name) for name in names}
        flooded = {name: pps for name, pps in found.items() if pps}
        kept = {}
        for name, pps in flooded.items():
            paced = yield from kept_rate(cell, Arm(name, name), pps, max(LOADS))
            if paced:
                kept[name] = paced
        for name in names:
            if name not in kept:
                self.warn(
                    f"{cell.link} {cell.size} B: the rate of {name} is unknown, so it has "
                    f"no figures under load{self._why(cell, name)}"
                )
        return hundred_percent(kept, flooded)

    def _why(self, cell: Cell, name: str) -> str:
        """Return the last error in the search for this forwarder's capacity."""
        asked = [
            t
            for t in self.trials
            if (t.cell.key, t.forwarder) == (cell.key, name) and t.role in {"measure", "self-test"}
        ]
        return next((f"; the last because: {t.invalid}" for t in asked[::-1] if t.invalid), "")

    # -- the blocks of a cell ------------------------------------------------------------------

    def _together(
        self, cell: Cell, block: int, units: list[tuple[Part, Arm]], capacity: dict[str, float]
    ) -> Steps[None]:
        """Run all forwarders of a part at once; they take turns at each load."""
        for part in self._parts:
            drawn = [arm for own, arm in units if own == part]
            yield Turns(
                cell=cell, items=[("search", arm) for arm in drawn], block=block,
                max_pps={arm.label: capacity.get(arm.forwarder) or IDLE_PPS for arm in drawn},
                terms=self.terms, test=part, spans=ONE_IN if part == "spans" else 0,
                each_fails=False,
                procedure=partial(self._by_turns, cell, block, part, capacity),
            )  # fmt: skip

    def _one_by_one(
        self,
        cell: Cell,
        block: int,
        units: list[tuple[Part, Arm]],
        capacity: dict[str, float],
        setup: LinkSetup,
    ) -> Steps[None]:
        for part, arm in units:

            def alone(started: Started, part: Part = part) -> bool:
                steps = turned(self._steps(part), self.seed, started.arm.label, block, part)
                for step in steps:
                    self._measure(cell, part, step, capacity, started)
                return any(trial.valid for trial in started.trials)

            yield Start(
                setup=setup, arm=arm, block=block, role="search",
                max_pps=capacity.get(arm.forwarder) or IDLE_PPS,
                terms=self.terms, test=part, spans=ONE_IN if part == "spans" else 0,
                procedure=alone, failed=self.last_reason,
            )  # fmt: skip

    def _by_turns(
        self,
        cell: Cell,
        block: int,
        part: Part,
        capacity: dict[str, float],
        starts: Sequence[Started],
    ) -> None:
        """Run each kind of frame at each load, for all of them, before the next."""
        place = self.seed, cell.link, cell.size, block, part
        for step in turned(self._steps(part), *place):
            for started in turned(starts, *place, step.protocol, step.load):
                self._measure(cell, part, step, capacity, started)

    def _measure(
        self, cell: Cell, part: Part, step: Step, capacity: dict[str, float], started: Started
    ) -> None:
        known = capacity.get(started.arm.forwarder)
        if known is None and step.load != IDLE:
            started.skip(1)
            return
        pps = step.pps(known or IDLE_PPS)
        seconds = loads.seconds_of(self.preset, step, pps, cell.blocks)
        started.measure(pps, seconds, latency=part == "latency", protocol=step.protocol)

    def _pings(self, block: int, drawn: list[Arm], setup: LinkSetup) -> Steps[None]:
        most = Most(windows=self.preset.windows)
        for arm in drawn:
            steps = turned(
                loads.steps(self.options.protocols, (IDLE,)), self.seed, arm.label, block, "ping"
            )
            with PacketSender(self.bench, setup, arm, block=block) as sender:
                for step in steps:
                    place = {
                        "link": setup.link.name, "size": setup.context.size, "arm": arm.label,
                        "block": block, "role": "search", "test": "ping",
                        "protocol": step.protocol,
                    }  # fmt: skip
                    yield Attempts(
                        due=partial(_attempt_at, place),
                        run=partial(sender.window, step, self.preset.idle_s),
                        most=most,
                        fails=False,
                    )


def _attempt_at(place: dict[str, object], attempt: int) -> dict[str, object]:
    return place | {"attempt": attempt}
