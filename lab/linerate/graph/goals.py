# SPDX-License-Identifier: BSD-3-Clause
"""How fast the Rust graphs are against the best build of the C nodes, with the goals.

    python -m linerate.graph.goals RECORDS.jsonl

A goal is reached when the lower bound of the ratio's interval is not below it; printed, never
asserted. Where the A/A arm or the spread forbid a verdict in a cell, none is given here either.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from linerate.comparisons import pair
from linerate.design import AA_SUFFIX
from linerate.goals import interval, reached
from linerate.graph.cells import GraphCell, parse
from linerate.graph.choice import judged, last_windows
from linerate.metrics import OBJECTS
from linerate.records import Trial, read
from linerate.stats import Paired
from linerate.verdict import unsound

BASELINE = "c-graph"
# Mechanisms that pass objects several at a time.
BULK = ("copy",)


def goal(arm: str, cell: GraphCell) -> float | None:
    """For the lower bound of the arm's ratio in this cell; None: there is none."""
    if arm == "rust-graph":
        return 1.15 if cell.passing.startswith(BULK) else 0.97
    if arm == "fused":
        if cell.passing == "speculate":
            return 1.4
        return 1.25 if cell.work == "hash5" else None
    return None


@dataclass(frozen=True)
class Row:
    """One ratio and the goal for the lower end of its interval, where there is one."""

    cell: str
    arm: str
    found: Paired
    goal: float | None
    forbidden: bool

    @property
    def state(self) -> str:
        if self.goal is None:
            return ""
        if self.forbidden:
            return "no verdict"
        return "PASS" if reached(self.found, self.goal) else "FAIL"

    def __str__(self) -> str:
        told = "-" if self.goal is None else f"{self.goal:.2f}"
        return (
            f"{self.cell:36} {self.arm:12} {self.found.n:6} {self.found.ratio:6.3f}  "
            f"{interval(self.found):16} {told:>5}  {self.state}"
        ).rstrip()


HEADING = f"{'cell':36} {'arm':12} {'blocks':>6} {'ratio':>6}  {'95 % interval':16} {'goal':>5}"


def table(trials: list[Trial]) -> tuple[list[Row], list[str]]:
    """Every arm of every cell against the best C build; and why a cell has no verdict."""
    found = judged(last_windows(trials)).trials
    rows: list[Row] = []
    reasons: list[str] = []
    for cell in dict.fromkeys(trial.link for trial in found):
        mine = [trial for trial in found if trial.link == cell]
        arms = [arm for arm in dict.fromkeys(t.arm for t in mine) if not arm.endswith(AA_SUFFIX)]
        pairs = {
            arm: paired
            for arm in arms
            if arm != BASELINE and (paired := pair(mine, arm, BASELINE, OBJECTS).paired)
        }
        if not pairs:
            continue
        control = pair(mine, BASELINE + AA_SUFFIX, BASELINE, OBJECTS).paired
        every = [*pairs.values(), *([control] if control else [])]
        forbidden = unsound(control, max(each.spread for each in every), None)
        if forbidden:
            reasons.append(f"{cell}: no verdict, for {forbidden.reason}")
        parsed = parse(cell)
        rows += [
            Row(cell, arm, paired, goal(arm, parsed), forbidden is not None)
            for arm, paired in sorted(pairs.items())
        ]
    return rows, reasons


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: python -m linerate.graph.goals RECORDS.jsonl")
    rows, reasons = table(read(Path(sys.argv[1])))
    print("Graphs against the best C build (chosen in half of the blocks, judged in the other):")
    print(HEADING)
    for line in [*rows, *reasons]:
        print(line)


if __name__ == "__main__":
    main()
