# SPDX-License-Identifier: BSD-3-Clause
"""What a run of `l3fwd` prints: cycles per packet by each factor, then the answers."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from linerate.experiments.l3fwd.design import BASE_ROUTES
from linerate.records.summary import CellSummary, Summary
from linerate.report.console import interval, median, new_table, print_answers, print_cell
from linerate.verdict.ratios import ratio_to_baseline, ratio_words, shown_arms

TITLES = {
    "routes": "By routes",
    "rules": f"By rules, and {BASE_ROUTES:,} routes",
    "sizes": "By frame size",
}


def factors(cell: CellSummary) -> tuple[str, ...]:
    """Which ones a cell is a level of: routes alone, as many as are behind rules, are 0 rules."""
    if cell.routes is None:
        return ("sizes",)
    if cell.rules:
        return ("rules",)
    return ("routes", "rules") if cell.routes == BASE_ROUTES else ("routes",)


def by_link(summary: Summary, of: str) -> Iterator[tuple[str, list[CellSummary]]]:
    """The cells of a factor, for each link where it is varied."""
    found: dict[str, list[CellSummary]] = {}
    for cell in summary.cells:
        if of in factors(cell):
            found.setdefault(cell.link.partition(":")[0], []).append(cell)
    for on, cells in found.items():
        if of != "rules" or any(cell.rules for cell in cells):
            yield on, cells


def level(of: str, cell: CellSummary) -> int:
    """How many routes or rules the cell has."""
    return (cell.rules if of == "rules" else cell.routes) or 0


def level_table(summary: Summary, of: str, on: str, cells: list[CellSummary]) -> Table:
    """A row for each level and forwarder."""
    columns = (
        of, "forwarder", "cycles/packet", "95 % interval", "Mpps", "ratio of packets", "valid",
    )  # fmt: skip
    table = new_table(f"{TITLES[of]}, on {on} (of this machine)", columns, 2)
    for cell in cells:
        for place, arm in enumerate(shown_arms(cell)):
            table.add_row(
                f"{level(of, cell):,}" if place == 0 else "",
                arm.arm,
                median(arm.cycles_per_packet, 1),
                interval(arm.cycles_per_packet, 1),
                median(arm.mpps, 1),
                ratio_words(ratio_to_baseline(summary, cell, arm.arm)),
                f"{arm.trials - arm.invalid}/{arm.trials}",
            )
    return table


def print_summary(console: Console, summary: Summary) -> None:
    """Tables, then one sentence per primary comparison."""
    for of in ("routes", "rules"):
        for on, cells in by_link(summary, of):
            console.print()
            console.print(level_table(summary, of, on, cells))
    for _, cells in by_link(summary, "sizes"):
        for cell in cells:
            print_cell(console, cell)
    print_answers(console, summary)
