# SPDX-License-Identifier: BSD-3-Clause
"""The command `linerate compare`: reads its arguments, prints the answer, returns the exit
status.
"""

from __future__ import annotations

import re
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from linerate.host.errors import UsageError
from linerate.host.exit_status import ExitStatus
from linerate.records.cells import is_graph
from linerate.runs.compare import Change, Regression, compare
from linerate.runs.kept.publish import torn_line
from linerate.runs.kept.stored import stored
from linerate.runs.progress import say

MAX_MARGIN = 0.5


def parse_margin(text: str) -> float:
    """Parse a margin such as `2%`, `2 %` or `0.02` as a share; raises `UsageError`."""
    found = re.fullmatch(r"([0-9]{1,3}(?:\.[0-9]{1,6})?|\.[0-9]{1,6})\s*(%?)", text.strip())
    if not found:
        raise UsageError(f"--margin {text}: not a share", "for instance --margin 2% or 0.02")
    share = float(found[1]) / (100 if found[2] else 1)
    if not 0 < share <= MAX_MARGIN:
        raise UsageError(
            f"--margin {text}: not above 0 and up to {MAX_MARGIN:.0%}",
            "for instance --margin 2% or 0.02",
        )
    return share


def run(
    before: Path, after: Path, margin: str, *, strict: bool, json_output: bool, console: Console
) -> ExitStatus:
    """Compare, print, and return the exit status."""
    share = parse_margin(margin)
    runs = [stored(each) for each in (before, after)]
    found = compare(runs[0], runs[1], share)
    if json_output:
        print(found.model_dump_json(by_alias=True, exclude_none=True, ensure_ascii=True, indent=2))
    else:
        for each in runs:
            if each.torn:
                say(console, f"{each.directory}: {torn_line(each.torn)}")
        show(found, console)
    if found.slower:
        return ExitStatus.SLOWER
    return ExitStatus.UNDECIDED if strict and found.undecided else ExitStatus.DONE


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _row(change: Change) -> list[str]:
    interval = "-"
    if change.ci_low is not None and change.ci_high is not None:
        interval = f"{change.ci_low:.3f} - {change.ci_high:.3f}"
    figure = "rate" if change.load_share is None else f"cost at {change.load_share * 100:.0f} %"
    return [
        f"{change.link}" if is_graph(change.link) else f"{change.link} {change.size}",
        change.arm,
        figure,
        _figure(change.before),
        _figure(change.after),
        _figure(change.ratio),
        interval,
        f"{change.n_before}/{change.n_after}",
        change.verdict,
    ]


def show(found: Regression, console: Console) -> None:
    """Print a table, and a sentence for each comparison."""
    table = Table(
        title=f"arm over baseline, {found.before.directory} and {found.after.directory}",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for index, name in enumerate(
        ("cell", "arm", "by", "before", "after", "ratio", "95 % interval", "blocks", "verdict")
    ):
        words = index < 3 or index == 8
        table.add_column(name, justify="left" if words else "right", no_wrap=words)
    for change in found.changes:
        table.add_row(*_row(change))
    console.print(table)
    for change in found.changes:
        say(console, change.sentence)
    for note in found.notes:
        say(console, f"note: {note}")
