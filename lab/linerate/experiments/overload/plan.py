# SPDX-License-Identifier: BSD-3-Clause
"""Experiment `overload`: which forwarder does more when it is flooded?

Per cell (link, frame size): randomised complete blocks of all arms, the baseline twice, and of two
reference peers, which show the ceiling; in some blocks, each program once more with the probe in
it, for its poll figures. Then, on links that carry frames, trials at a fixed low load, to show
their loss. If generator or link turn out to be the limit, there are more loads, and cycles per
packet are compared instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from linerate.experiments.overload.options import (
    DEFAULT_FORWARDERS,
    DEFAULT_LINKS,
    DEFAULT_SIZES,
    Options,
)
from linerate.experiments.overload.summarise import OverloadDesign, summarise_cell
from linerate.forwarders import forwarder
from linerate.records.cells import AA_SUFFIX, Arm, Cell
from linerate.records.trial import Method, Role
from linerate.records.types import LOW_LOAD
from linerate.runs.options import check_sizes
from linerate.runs.plans.block_plan import BlockPlan, Windows, preset_note
from linerate.runs.plans.blocks import (
    PEERS,
    arms,
    blocks_for,
    check_blocks,
    check_fit,
    schedule,
    turns_or_fresh,
)
from linerate.runs.plans.pacing import kept_rate
from linerate.runs.plans.steps import More, Steps
from linerate.trial.search.setup_device import Terms
from linerate.trial.starts.ways import method_of

NAME = "overload"
# Loads below the ceiling: always, and in addition where an arm is limited.
LOW_LOADS = (LOW_LOAD,)
LIMITED_LOADS = (0.5,)
# Windows as short as the quiet times of a shared machine; a disturbed one is void and repeated.
LOWER_LOADS = Windows(0.1, Terms(windows=8, patience_s=0.05))


def cells(options: Options) -> list[Cell]:
    """Return the cells to run, in order."""
    check_sizes(options.sizes)
    check_blocks(options.blocks)
    check_fit(options.forwarders, [options.link(name) for name in options.links])
    if options.own_cells:
        return [replace(cell, blocks=options.blocks or cell.blocks) for cell in options.own_cells]
    result = []
    for name in dict.fromkeys(options.links or DEFAULT_LINKS):
        sizes = list(dict.fromkeys(options.sizes or DEFAULT_SIZES))
        for size in sizes if options.link(name).size_matters else sizes[:1]:
            result.append(Cell(name, size, options.blocks or options.preset.blocks))
    return result


def question(names: Sequence[str]) -> str:
    """Return the question of a run of these forwarders."""
    if len(names) == 1:
        return f"Offered all the frames it can take, how many does {names[0]} forward?"
    told = f"{', '.join(names[:-1])} or {names[-1]}"
    return (
        f"Offered all the frames it can take, which forwards more: {told}? What does a packet cost?"
    )


def design_of(options: Options) -> OverloadDesign:
    """Return the design of these options, with all defaults filled in."""
    names = options.forwarders or DEFAULT_FORWARDERS
    return OverloadDesign.of(
        options,
        question=question(names),
        preset_note=preset_note(options),
        window_s=options.preset.window_s,
        cells=cells(options),
        arms=arms(names),
    )


class Overload(BlockPlan):
    """The plan of a session."""

    name = NAME
    windows = LOWER_LOADS
    peers = PEERS
    options: Options

    def planned(self) -> int:
        """Return the number of planned trials; a limited arm adds some."""
        return sum(
            sum(len(block) for block in self._schedule(cell))
            + self.link(cell.link).has_generator * self._lower_load_trials(cell, LOW_LOADS)
            for cell in self.cells
        )

    def _schedule(self, cell: Cell) -> list[list[tuple[Role, Arm]]]:
        return schedule(
            self.arms_of(cell),
            cell,
            self.options.seed,
            self.options.preset.self_test,
            probe=self.options.probe,
        )

    def _lower_load_trials(self, cell: Cell, shares: Sequence[float]) -> int:
        return self._lower_load_blocks(cell) * len(self.arms_of(cell)) * len(shares)

    def _lower_load_blocks(self, cell: Cell) -> int:
        """Return the preset's number, or more if a verdict over all sizes and loads of the link
        needs them.
        """
        if not self.options.preset.lower_load:
            return 0
        sizes = sum(each.link == cell.link for each in self.cells)
        needed = blocks_for(sizes * len(LOW_LOADS + LIMITED_LOADS))
        return min(max(self.options.preset.lower_load, needed), cell.blocks)

    def method(self, cell: Cell) -> Method:
        """Return the method: standing on links without a generator, if the driver always has more;
        else in turns. Devices that exist only once, and other programs on a link without a
        generator, run one by one.
        """
        found = self.link(cell.link)
        if turns_or_fresh(self.options.method, found) == "fresh":
            return "fresh"
        named = dict.fromkeys((*(arm.forwarder for arm in self.arms_of(cell)), *PEERS))
        method, _ = method_of(found, [forwarder(name) for name in named])
        return "fresh" if method == "turns" and not found.has_generator else method

    def cell(self, cell: Cell) -> Steps[None]:
        yield from self.floods(cell, self._schedule(cell))
        if not self.link(cell.link).has_generator or not self._lower_load_blocks(cell):
            return
        summary = summarise_cell(cell, self.arms_of(cell), self.trials, self.options.line_rate)
        if summary.ceiling is None:
            # Without a ceiling there are no shares to offer; the summary has a warning.
            yield More(-self._lower_load_trials(cell, LOW_LOADS))
            return
        shares: tuple[float, ...] = LOW_LOADS
        if any(arm.limited_by and not arm.arm.endswith(AA_SUFFIX) for arm in summary.arms):
            yield More(self._lower_load_trials(cell, LIMITED_LOADS))
            shares += LIMITED_LOADS
        full_pps = summary.ceiling.pps
        if not self.options.line_rate:
            peer = Arm(summary.ceiling.peer, summary.ceiling.peer)
            kept = yield from kept_rate(cell, peer, full_pps, max(shares))
            if kept and kept < full_pps:
                self.warn(
                    f"{cell.link} {cell.size} B: the sender is on time at {kept / 1e6:.2f} Mpps, "
                    f"not at the ceiling's {full_pps / 1e6:.2f}: fixed loads are shares of that"
                )
            full_pps = kept or full_pps
        yield from self.fixed_loads(cell, self._lower_load_blocks(cell), full_pps, shares)
