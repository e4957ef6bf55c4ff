# SPDX-License-Identifier: BSD-3-Clause
"""Print a run of `graph`: a table of all cells, the published orderings, then the answers."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from linerate.experiments.graph.answers import (
    PUBLISHED_ORDERING,
    PUBLISHED_SPLITTING,
    published_words,
)
from linerate.experiments.graph.cells import parse
from linerate.host.text import listed
from linerate.records.summary import Summary
from linerate.records.summary_figures import CellRatio, GraphFigures, Ordering, Splitting
from linerate.report.console import interval, median, new_table, print_notes
from linerate.runs.progress import say
from linerate.verdict.ratios import ratio_to_baseline, ratio_words, shown_arms
from linerate.verdict.sentences import controls, verdict_word

HOLDS = {"yes": "holds here", "no": "does not hold here", "untold": "cannot be told"}
ALIKE = {"yes": "alike here", "no": "not alike here", "untold": "cannot be told"}


def change_words(found: CellRatio) -> str:
    """Format the change in per cent."""
    if found.ratio is None:
        return "-"
    told = f"{(found.ratio - 1) * 100:+.1f} %"
    if found.ci_low is None or found.ci_high is None:
        return told
    return f"{told} ({(found.ci_low - 1) * 100:+.1f} to {(found.ci_high - 1) * 100:+.1f})"


def cell_table(summary: Summary) -> Table:
    """Return a row for each cell's name, and one for each arm, which begins with its build."""
    baseline = next((each.baseline for each in summary.comparisons), "the baseline")
    columns = (
        "cell, build", "Mobjects/s", "95 % interval", "cycles/object", "per node",
        f"ratio to {baseline}", "valid",
    )  # fmt: skip
    table = new_table("Every cell (of this machine)", columns, 1)
    for cell in summary.cells:
        table.add_row(cell.link, style="bold")
        for arm in shown_arms(cell):
            graph = arm.graph or GraphFigures(build=arm.forwarder)
            table.add_row(
                f"  {graph.build}",
                median(graph.mobjects_per_s, 1),
                interval(graph.mobjects_per_s, 0),
                median(graph.cycles_per_object, 2),
                median(graph.cycles_per_object_per_node, 2),
                ratio_words(ratio_to_baseline(summary, cell, arm.arm)),
                f"{arm.trials - arm.invalid}/{arm.trials}",
            )
    return table


def ordering_line(found: Ordering) -> str:
    """Return one arm's answer, with its ratios."""
    steps = ", ".join(
        f"{parse(s.first).passing} / {parse(s.second).passing} {ratio_words(s)}"
        for s in found.steps
    )
    why = f" ({found.reason})" if found.reason else ""
    return f"{found.arm}, {found.work}, {found.stats}: {HOLDS[found.holds]}{why}: {steps}"


def splitting_line(found: Splitting) -> str:
    changes = ", ".join(
        f"{parse(s.second).shape} to {parse(s.first).shape} {change_words(s)}"
        for s in found.doublings
    )
    why = f" ({found.reason})" if found.reason else ""
    where = f"{found.arm}, {found.passing}, {found.work}, {found.stats}"
    return f"{where}: {ALIKE[found.alike]}{why}: {changes}"


def headline(summary: Summary) -> str | None:
    """Return the answer in one sentence; None if no cell has figures."""
    if not summary.cells:
        return None
    names = [comparison.link for comparison in summary.comparisons if comparison.primary]
    cell = next((c for c in summary.cells if c.link in names), summary.cells[0])
    words = {c.arm: verdict_word(c) for c in summary.comparisons if c.link == cell.link}
    costs = [
        f"{median(arm.graph.cycles_per_object if arm.graph else None, 1)} in {arm.arm}"
        + (f" ({words[arm.arm]})" if arm.arm in words else "")
        for arm in shown_arms(cell)
    ]
    told = f"In {cell.link} an object costs {listed(costs)} cycles"
    published = published_words(summary.graph) if summary.graph else ""
    return f"{told}; {published}." if published else f"{told}."


def disturbed_words(summary: Summary) -> str | None:
    """Describe how much was left out because others had the CPU; None if that was not checked."""
    shares = [
        share
        for cell in summary.cells
        for arm in cell.arms
        if arm.graph and (share := arm.graph.disturbed) is not None
    ]
    if not shares:
        return None
    told = f"{sum(shares) / len(shares):.2%}".replace("%", " %")
    return f"Others had the CPU in {told} of the slices, which are left out."


def print_summary(console: Console, summary: Summary) -> None:
    """Tables, then one sentence per primary comparison, then the published orderings."""
    console.print()
    if summary.cells:
        console.print(cell_table(summary))
    else:
        say(console, "No cell has any figures: there is nothing to compare.")
    if told := headline(summary):
        say(console, told, "bold")
    for comparison in summary.comparisons:
        if comparison.primary:
            say(console, comparison.sentence)
    say(console, f"The baseline against itself: {controls(summary.aa)}.")
    if summary.graph and summary.graph.orderings:
        say(console, f"published: {PUBLISHED_ORDERING}; ours:", "bold")
        for ordering in summary.graph.orderings:
            say(console, f"  {ordering_line(ordering)}")
    if summary.graph and summary.graph.splitting:
        say(console, f"published: {PUBLISHED_SPLITTING}; ours, objects/s per doubling:", "bold")
        for splitting in summary.graph.splitting:
            say(console, f"  {splitting_line(splitting)}")
    if disturbed := disturbed_words(summary):
        say(console, disturbed)
    print_notes(console, summary, "windows")
