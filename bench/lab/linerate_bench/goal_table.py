# SPDX-License-Identifier: BSD-3-Clause
"""Compares ratios with goals, and reports them everywhere in one table with the same words.

    reached      the lower end of the ratio's interval is not below the goal
    not reached  the whole interval is below it
    not shown    neither: the goal lies inside, or there are too few blocks for an interval
    no verdict   the control forbids verdicts in this cell, as everywhere

Goals are printed, never asserted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from linerate.verdict.judgement import unsound
from linerate.verdict.stats import Paired

COLUMNS = ("cell", "forwarder", "against", "blocks", "ratio", "95 % interval", "goal")
# The first columns have words, the others figures.
_WORDS = 3


@dataclass(frozen=True)
class Row:
    """One ratio, and the goal for the lower end of its interval if there is one."""

    cell: str
    arm: str
    baseline: str
    found: Paired
    goal: float | None
    forbidden: bool = False

    @property
    def state(self) -> str:
        if self.goal is None:
            return ""
        return "no verdict" if self.forbidden else state(self.found, self.goal)


def state(found: Paired, goal: float) -> str:
    """Return whether the goal is reached, by the interval alone."""
    if found.ci_low is not None and found.ci_low >= goal:
        return "reached"
    if found.ci_high is not None and found.ci_high < goal:
        return "not reached"
    return "not shown"


def interval(found: Paired) -> str:
    """Return the interval of a ratio as text; a dash if there is none."""
    if found.ci_low is None or found.ci_high is None:
        return "-"
    return f"{found.ci_low:.3f} to {found.ci_high:.3f}"


def gated(
    cell: str, control: Row | None, rows: Sequence[Row | None]
) -> tuple[list[Row], list[str]]:
    """Return the rows of a cell, the control first, and the reason if it has no verdict.

    `control`: the baseline against itself.
    """
    found = [each for each in (control, *rows) if each]
    forbidden = unsound(control.found if control else None)
    if forbidden is None:
        return found, []
    return (
        [replace(each, forbidden=True) for each in found],
        [f"{cell}: no verdict, for {forbidden.reason}"],
    )


def lines(rows: Sequence[Row], reasons: Sequence[str]) -> list[str]:
    """Return the lines of the table, then the reasons why cells have no verdict."""
    cells = [(*COLUMNS, ""), *map(_words, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        *("  ".join(map(_padded, each, widths, range(len(each)))).rstrip() for each in cells),
        *reasons,
    ]


def _words(row: Row) -> tuple[str, ...]:
    goal = "-" if row.goal is None else f"{row.goal:.2f}"
    figures = (str(row.found.n), f"{row.found.ratio:.3f}", interval(row.found), goal)
    return (row.cell, row.arm, row.baseline, *figures, row.state)


def _padded(text: str, width: int, column: int) -> str:
    left = column < _WORDS or column == len(COLUMNS)
    return text.ljust(width) if left else text.rjust(width)
