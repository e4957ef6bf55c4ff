# SPDX-License-Identifier: BSD-3-Clause
"""Print a run of `cloud`: own rates, the throughput left beside tenants, then the takeaways."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from linerate.experiments.cloud.design.levels import LOAD, TENANTS, in_order, rate_words
from linerate.experiments.cloud.design.settings import drawn, in_design_order, main_setting
from linerate.experiments.cloud.page.answer import answer, lost, untold
from linerate.experiments.cloud.page.sentences import control_sentence, own_rate_words, sentence
from linerate.host.text import counted
from linerate.records.cloud_summary import (
    CloudCellFigures,
    KindName,
    LoadName,
    NotRun,
    TakeawayEntry,
)
from linerate.records.summary import Summary
from linerate.report.console import median, new_table, percent, print_notes, share
from linerate.runs.progress import say

TITLES = {
    "study": "Conclusions of the published study, held against this run:",
    "tested": "Also tested here, corrected together:",
}
# Statements of each metric beside the study's, those of the largest effects.
MOST = 5
FIGURES = "left / lost / p99 us"

# The most missing cells that are named.
_SHOWN = 3


def framework_table(framework: str, cells: Sequence[CloudCellFigures]) -> Table:
    """Return load by number of tenants, at one rate and CPU: throughput left, loss, and latency."""
    numbers = in_order(TENANTS, [str(cell.tenants) for cell in cells])
    first = cells[0]
    title = f"{framework} at {rate_words(first.rate)} of its 100 %, CPU {first.cpu}: {FIGURES}"
    table = new_table(
        title, ["beside", *(f"{n} tenants" if n != "1" else "1 tenant" for n in numbers)]
    )
    rows: dict[tuple[int, int, KindName, LoadName], dict[str, str]] = {}
    loads = in_order(LOAD, [cell.load for cell in cells])
    for cell in cells:
        row = (cell.size, loads.index(cell.load), cell.kind, cell.load)
        rows.setdefault(row, {})[str(cell.tenants)] = figures(cell)
    for row in sorted(rows):
        size, _, kind, load = row
        beside = "nobody" if load == "none" else f"{load}, {kind}"
        table.add_row(f"{size} B, {beside}", *(rows[row].get(number, "") for number in numbers))
    return table


def figures(cell: CloudCellFigures) -> str:
    """Format the figures of a cell; unknown ones are dashes."""
    return " / ".join(
        (
            percent(cell.left.median if cell.left else None),
            share(cell.loss.median if cell.loss else None),
            median(cell.latency_us.get("0.99"), 0),
        )
    )


def tables(cells: Sequence[CloudCellFigures]) -> list[Table]:
    """Return one table for each framework, of the crossed setting; all cells are in the report."""
    main = main_setting(cells)
    return [
        framework_table(framework, [cell for cell in main if cell.framework == framework])
        for framework in dict.fromkeys(cell.framework for cell in main)
    ]


def answers(takeaways: Sequence[TakeawayEntry]) -> dict[str, list[TakeawayEntry]]:
    """Return all of the study's, then those that held of each metric, as many as suit a
    terminal.
    """
    found = {title: [e for e in takeaways if e.origin == o] for o, title in TITLES.items()}
    held: dict[str, list[TakeawayEntry]] = {}
    for entry in found[TITLES["tested"]]:
        if entry.verdict == "held":
            held.setdefault(entry.metric, []).append(entry)
    found[TITLES["tested"]] = [entry for each in held.values() for entry in each[:MOST]]
    return {title: entries for title, entries in found.items() if entries}


def others_line(takeaways: Sequence[TakeawayEntry], told: int) -> str | None:
    """Return how many takeaways are only in the report."""
    left = len(takeaways) - told
    if not left:
        return None
    counts = Counter(each.verdict for each in takeaways)
    every = ", ".join(f"{counts[v]} {v}" for v in ("held", "not held", "undecided") if counts[v])
    return f"{counted(left, 'further statement')} in the report; all {len(takeaways)}: {every}"


def not_run_line(each: NotRun) -> str:
    """Return a line with the first of the cells; the report has all."""
    shown = "; ".join(each.places[:_SHOWN])
    more = len(each.places) - _SHOWN
    of = f" ({shown}{f'; and {more} more' if more > 0 else ''})" if shown else ""
    trials = f", {counted(each.trials, 'window')}" if each.trials else ""
    return f"not run: {each.what}{trials}: {each.reason}{of}"


def print_summary(console: Console, summary: Summary) -> None:
    """Print the answer, own rates and tables, a sentence for each takeaway, missing cells,
    notes.
    """

    cloud = summary.cloud
    cells = in_design_order(cloud) if cloud else []
    console.print()
    if cloud:
        for line in (*lost(cloud), answer(cloud, summary.takeaways)):
            say(console, line)
        console.print()
    for own in cloud.own_rates if cloud else ():
        say(console, own_rate_words(own))
    for table in tables(cells):
        console.print(table)
    if others := len(drawn(cells)) - len(main_setting(cells)):
        say(console, f"{counted(others, 'cell')} at other rates or CPU shares: see the report")
    told = answers(summary.takeaways)
    for title, entries in told.items():
        console.print()
        say(console, title)
        for entry in entries:
            if entry.verdict != "undecided":
                say(console, sentence(entry))
        for each in untold(entries):
            say(console, f"undecided: {each.words}.")
    if more := others_line(summary.takeaways, sum(map(len, told.values()))):
        say(console, more)
    console.print()
    for entry in cloud.control if cloud else ():
        if entry.verdict != "undecided":
            say(console, control_sentence(entry))
    for each in untold(cloud.control if cloud else ()):
        say(console, f"A/A control undecided: {each.words}.")
    if cloud and any(cell.kind == "vm" for cell in cloud.cells):
        say(console, f"virtual machines: {cloud.accelerator or 'it is not known what ran them'}")
    for missing in cloud.not_run if cloud else ():
        say(console, not_run_line(missing))
    print_notes(console, summary)
