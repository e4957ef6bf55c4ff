# SPDX-License-Identifier: BSD-3-Clause
"""Reports for a pull request: for each one sentence and one small table, and how to repeat it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from linerate.experiments.duel.reports.report import Figures, Report

# Characters with a meaning for GitHub and GitLab: markup, table borders, HTML, user names.
_MARKS = re.compile(r"([\\`*_{}\[\]<>#|~@$!&])")
_MOST = 1000


def markdown(reports: Sequence[Report]) -> str:
    """Return the whole text: the same for each report, and one command line that repeats all."""
    parts = [part for report in reports for part in _about(report)]
    parts += [
        "Repeat it:\n\n" + _fenced(repeat)
        for repeat in dict.fromkeys(report.repeat for report in reports)
    ]
    return "\n\n".join(parts) + "\n"


def _about(report: Report) -> list[str]:
    parts = [_plain(report.sentence)]
    if report.figures:
        parts.append(_table(report.figures, report.took_s))
    return parts + [f"- {_plain(note)}" for note in report.notes]


def _table(figures: Figures, took_s: float) -> str:
    one, other = figures.medians
    low, high = figures.between
    heads = [
        "", *(_plain(name) for name in figures.names), "B / A", figures.how, "rounds", "time",
    ]  # fmt: skip
    row = [
        figures.unit, f"{one:.2f}", f"{other:.2f}", f"{figures.ratio:.3f}",
        f"{low:.3f} to {high:.3f}", str(figures.rounds), f"{took_s:.0f} s",
    ]  # fmt: skip
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, ["---", *["--:"] * 6], row))


def _plain(text: str) -> str:
    """Return text on one line with all markup characters escaped."""
    line = " ".join(text.split())
    return _MARKS.sub(r"\\\1", line if len(line) <= _MOST else f"{line[:_MOST]}...")


def _fenced(command: str) -> str:
    """Return a code block whose fence is longer than any run of backticks in it."""
    longest = max((len(run) for run in re.findall("`+", command)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}sh\n{command}\n{fence}"
