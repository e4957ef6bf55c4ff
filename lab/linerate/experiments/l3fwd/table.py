# SPDX-License-Identifier: BSD-3-Clause
"""Print a run of `l3fwd`: cycles per packet by each factor, then the answers."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from linerate.experiments.l3fwd.design import BASE_ROUTES
from linerate.records.summary import CellSummary, Summary
from linerate.report.console import interval, median, new_table, print_answers, print_cell
from linerate.runs.progress import say
from linerate.verdict.metrics import FORWARDED
from linerate.verdict.ratios import ratio_to_baseline, ratio_words, shown_arms
from linerate.verdict.sentences import verdict_word

TITLES = {
    "routes": "By routes",
    "rules": f"By rules, and {BASE_ROUTES:,} routes",
    "sizes": "By frame size",
}


def factors(cell: CellSummary) -> tuple[str, ...]:
    """Return the factors of which a cell is a level: the base number of routes is also the level of
    0 rules.
    """
    if cell.routes is None:
        return ("sizes",)
    if cell.rules:
        return ("rules",)
    return ("routes", "rules") if cell.routes == BASE_ROUTES else ("routes",)


def by_link(summary: Summary, of: str) -> Iterator[tuple[str, list[CellSummary]]]:
    """Yield the cells of a factor, for each link where it is varied."""
    found: dict[str, list[CellSummary]] = {}
    for cell in summary.cells:
        if of in factors(cell):
            found.setdefault(cell.link.partition(":")[0], []).append(cell)
    for on, cells in found.items():
        if of != "rules" or any(cell.rules for cell in cells):
            yield on, cells


def level(of: str, cell: CellSummary) -> int:
    """Return the number of routes or rules of the cell."""
    return (cell.rules if of == "rules" else cell.routes) or 0


def headline(summary: Summary) -> str | None:
    """Return the answer in one sentence: the cost of a packet with the largest tables without
    rules, and with the most rules; None if no such cell has figures.
    """
    routed = [cell for cell in summary.cells if cell.routes and not cell.rules]
    filtered = [cell for cell in summary.cells if cell.rules]
    told = []
    for cells, of in ((routed, "routes"), (filtered, "rules")):
        largest = max(cells, key=lambda cell: level(of, cell), default=None)
        if largest and (costs := _costs(summary, largest)):
            told.append(f"{_tables(largest)} {costs}")
    return f"Cycles to route a packet: {'; '.join(told)}." if told else None


def _tables(cell: CellSummary) -> str:
    routes = f"with {cell.routes or 0:,} route{'' if cell.routes == 1 else 's'}"
    return f"{routes} and {cell.rules:,} rules" if cell.rules else routes


def _costs(summary: Summary, cell: CellSummary) -> str:
    words = {
        c.arm: verdict_word(c)
        for c in summary.comparisons
        if (c.link, c.size, c.metric) == (cell.link, cell.size, FORWARDED.name)
    }
    return ", ".join(
        f"{median(arm.cycles_per_packet, 1)} in {arm.arm}"
        + (f" ({words[arm.arm]})" if arm.arm in words else "")
        for arm in shown_arms(cell)
        if arm.cycles_per_packet
    )


def level_table(summary: Summary, of: str, on: str, cells: list[CellSummary]) -> Table:
    """Return a row for each level and forwarder."""
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
    """The answer, tables, then one sentence per primary comparison."""
    if told := headline(summary):
        console.print()
        say(console, told, "bold")
    for of in ("routes", "rules"):
        for on, cells in by_link(summary, of):
            console.print()
            console.print(level_table(summary, of, on, cells))
    for _, cells in by_link(summary, "sizes"):
        for cell in cells:
            print_cell(console, cell)
    print_answers(console, summary)
