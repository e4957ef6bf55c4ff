# SPDX-License-Identifier: BSD-3-Clause
"""Print a run of `overload` at its end: all tables, and the published one beside ours."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from linerate.links import link
from linerate.records.cells import AA_SUFFIX
from linerate.records.summary import CellSummary, Summary
from linerate.report import published
from linerate.report.console import (
    median,
    new_table,
    number,
    print_answers,
    print_cell,
    share,
)
from linerate.report.in_short import print_in_short
from linerate.runs.progress import say

COLUMNS = (
    "", "forwarder", "offered", "gen RX", "fwd RX", "fwd TX", "lost\nbefore", "drops",
    "RX burst:\nall polls", "\nnon-empty",
)  # fmt: skip


def drops_before(cell: CellSummary) -> bool:
    """Return True if the link loses frames before a slow forwarder; otherwise the sender waits."""
    return any(arm.lost_before_share for arm in cell.arms)


def like_published(cells: Sequence[CellSummary]) -> CellSummary | None:
    """Return the cell to show beside the published table: a flood of its frame size, on a link that
    drops if there is one.
    """
    floods = [
        cell
        for cell in cells
        if cell.size == published.SIZE and link(cell.link).has_generator and cell.arms
    ]
    return max(floods, key=drops_before, default=None)


def beside_published(cell: CellSummary) -> Table:
    """Return ours beside the published table. Drops are shares of the frames that the forwarder
    received, frames lost before are shares of the offered ones.
    """
    title = f"The published flood, and this run's on {cell.link}, {cell.size} B (Mpps)"
    table = new_table(title, COLUMNS, text_columns=2)
    for row in published.overload():
        counts = (row.generator_tx, row.generator_rx, row.forwarder_rx, row.forwarder_tx)
        table.add_row(
            "published",
            f"l2fwd in {row.language}",
            *(number(row.mpps(count)) for count in counts),
            share(row.lost_before_share),
            share(row.dropped_share),
            number(row.average_rx_burst, 1),
            "-",
        )
    for arm in cell.arms:
        if not arm.arm.endswith(AA_SUFFIX):
            table.add_row(
                "this run",
                arm.arm,
                number(arm.generator_tx_mpps),
                median(arm.received_mpps),
                median(arm.mpps),
                number(arm.forwarder_tx_mpps),
                share(arm.lost_before_share),
                share(arm.dropped_share),
                median(arm.average_rx_burst, 1),
                median(arm.average_nonempty_rx_burst, 1),
            )
    return table


def print_summary(console: Console, summary: Summary) -> None:
    """Print tables, the published one, then the answer in short and a sentence per comparison."""
    for cell in summary.cells:
        print_cell(console, cell)
    if flood := like_published(summary.cells):
        console.print()
        console.print(beside_published(flood))
        say(console, f"  published: {published.SOURCE}", "dim")
    print_in_short(console, summary)
    print_answers(console, summary)
