# SPDX-License-Identifier: BSD-3-Clause
"""Experiment `paths`: the rate of each way to access packets, and the cost of a packet there.

Per cell (link, frame size): a flood, in randomised complete blocks of all paths, the reference
twice; then, in blocks again, fixed loads that all of them carry: shares of the slowest path's rate,
or of --line-rate. There loss, CPU time per packet and latency are compared, each at one rate.
"""

from __future__ import annotations

from linerate.experiments.paths.options import DEFAULT_FORWARDERS, DEFAULT_LINKS, Options
from linerate.experiments.paths.summarise import PathsDesign, summarise_cell
from linerate.host.errors import UsageError
from linerate.links import LINKS
from linerate.links.veth import Veth
from linerate.records.cells import Cell
from linerate.records.trial import Method
from linerate.runs.options import check_sizes
from linerate.runs.plans.block_plan import BlockPlan, Windows, preset_note
from linerate.runs.plans.blocks import (
    arms,
    blocks_for,
    check_blocks,
    check_fit,
    order,
    turns_or_fresh,
)
from linerate.runs.plans.pacing import PACED_SHARES, kept_rate
from linerate.runs.plans.steps import More, Steps
from linerate.trial.search.setup_device import Terms

NAME = "paths"
QUESTION = (
    "How many frames does each path to packets carry between two interfaces of the kernel, and "
    "what does a packet cost there?"
)


def forwarders(options: Options) -> list[str]:
    return options.forwarders or DEFAULT_FORWARDERS


def cells(options: Options) -> list[Cell]:
    """Return the cells to run, in order."""
    check_sizes(options.sizes)
    check_blocks(options.blocks)
    for name in options.links:
        if not isinstance(options.link(name), Veth):
            wires = ", ".join(each.name for each in LINKS.values() if isinstance(each, Veth))
            raise UsageError(
                f"--link {name}: not supported; run paths compares ways through the kernel, and "
                "needs a link of the kernel's whose receiving threads the lab can pin",
                f"choose from: {wires}",
            )
    names = list(dict.fromkeys(options.links or DEFAULT_LINKS))
    check_fit(options.forwarders, [options.link(name) for name in names])
    return [
        Cell(name, size, options.blocks or options.preset.blocks)
        for name in names
        for size in dict.fromkeys(options.sizes or options.preset.sizes)
    ]


def design_of(options: Options) -> PathsDesign:
    """Return the design of these options, with all defaults filled in."""
    return PathsDesign.of(
        options,
        question=QUESTION,
        preset_note=preset_note(options),
        window_s=options.preset.window_s,
        loads=list(options.preset.loads),
        cells=cells(options),
        arms=arms(forwarders(options)),
    )


class Paths(BlockPlan):
    """The plan of a session."""

    name = NAME
    # As short as the quiet times of a shared machine.
    windows = Windows(0.1, Terms(windows=8, patience_s=0.05), latency=True)
    options: Options

    def __init__(self, options: Options) -> None:
        self._loads = options.preset.loads
        super().__init__(options, arms(forwarders(options)), cells(options))
        self.warnings += options.left_out

    def method(self, cell: Cell) -> Method:
        return turns_or_fresh(self.options.method, self.link(cell.link))

    def planned(self) -> int:
        return sum(cell.blocks * len(self.arms) + self._fixed_trials(cell) for cell in self.cells)

    def _fixed_trials(self, cell: Cell) -> int:
        return self._fixed_blocks(cell) * len(self.arms) * len(self._loads)

    def _fixed_blocks(self, cell: Cell) -> int:
        """Return the preset's number, or more if a verdict over all sizes and loads of the link
        needs them.
        """
        sizes = sum(each.link == cell.link for each in self.cells)
        needed = blocks_for(sizes * len(self._loads))
        return min(max(self.options.preset.lower_load, needed), cell.blocks)

    def cell(self, cell: Cell) -> Steps[None]:
        blocks = order(self.arms, cell, self.options.seed)
        yield from self.floods(cell, [[("measure", arm) for arm in block] for block in blocks])
        found = summarise_cell(cell, self.arms, self.trials, self.options.line_rate)
        if found.common_pps is None:
            # Without a rate there are no shares to offer; the summary has a warning.
            yield More(-self._fixed_trials(cell))
            return
        common: float | None = found.common_pps
        first = self.arms[0]
        if not self.options.line_rate:
            common = yield from kept_rate(cell, first, found.common_pps, max(self._loads))
        if common is None:
            self.warn(
                f"{cell.link} {cell.size} B: the sender is not on time even at "
                f"{PACED_SHARES[-1]:.0%} of what the slowest path carries, so nothing was measured "
                "at fixed loads"
            )
            yield More(-self._fixed_trials(cell))
            return
        if common < found.common_pps and not self.options.line_rate:
            self.warn(
                f"{cell.link} {cell.size} B: the sender is on time at {common / 1e3:,.1f} kpps, "
                f"not at the {found.common_pps / 1e3:,.1f} that the slowest path carries: fixed "
                "loads are shares of what it keeps"
            )
        yield from self.fixed_loads(cell, self._fixed_blocks(cell), common, self._loads)
