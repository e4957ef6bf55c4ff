# SPDX-License-Identifier: BSD-3-Clause
"""How fast the Rust graphs are compared with the best build of the C nodes, with the goals.

    python -m linerate_bench.graph_goals RECORDS.jsonl

The table is that of `linerate_bench.goals`; builds are chosen and judged as in the run's summary.
"""

from __future__ import annotations

import sys
from pathlib import Path

from linerate.experiments.graph.cells import GraphCell, parse
from linerate.experiments.graph.choice import judged, last_windows
from linerate.experiments.graph.window import OBJECTS
from linerate.host.exit_status import ExitStatus, fail
from linerate.records.cells import AA_SUFFIX
from linerate.records.trial import Trial, read
from linerate_bench.goal_table import Row, gated, lines
from linerate_bench.goals import row

BASELINE = "c-graph"
# The names of mechanisms that pass several objects at a time begin with these.
BULK = ("copy", "assign2", "assign4")


def goal(arm: str, cell: GraphCell) -> float | None:
    """Return the goal for the lower end of the arm's ratio in this cell; None: there is no goal."""
    if arm == "rust-graph":
        return 1.15 if cell.passing.startswith(BULK) else 0.97
    if arm == "fused":
        if cell.passing == "speculate":
            return 1.4
        return 1.25 if cell.work == "hash5" else None
    return None


def table(trials: list[Trial]) -> tuple[list[Row], list[str]]:
    """Compare every arm of every cell with the best C build, and the control; return also why a
    cell has no verdict.
    """
    found = judged(last_windows(trials)).trials
    every: list[Row] = []
    reasons: list[str] = []
    for cell in dict.fromkeys(trial.cell.name for trial in found):
        mine = [trial for trial in found if trial.cell.name == cell]
        arms = sorted({t.arm for t in mine if not t.arm.endswith(AA_SUFFIX)} - {BASELINE})
        parsed = parse(cell)
        rows = [row(cell, mine, arm, BASELINE, goal(arm, parsed), OBJECTS) for arm in arms]
        if not any(rows):
            continue
        control = row(cell, mine, BASELINE + AA_SUFFIX, BASELINE, None, OBJECTS)
        told, why = gated(cell, control, rows)
        every += told
        reasons += why
    return every, reasons


def main() -> None:
    if len(sys.argv) != 2:
        fail("usage: python -m linerate_bench.graph_goals RECORDS.jsonl", ExitStatus.USAGE)
    rows, reasons = table(read(Path(sys.argv[1])))
    print("Graphs against the best C build (chosen in half of the blocks, judged in the other):")
    for line in lines(rows, reasons):
        print(line)


if __name__ == "__main__":
    main()
