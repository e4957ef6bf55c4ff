# SPDX-License-Identifier: BSD-3-Clause
"""How fast l3fwd-graph in Rust is compared with the best build in C, with the same routes.

    python -m linerate_bench.l3fwd_goals RECORDS.jsonl

Builds are chosen, judged and reported as by `linerate_bench.goals`. The nodes of the C program are
those of the distribution's librte_node; its builds differ in what walks them. Links with a
generator are left out, because there the forwarder alone does not decide how many packets come.
"""

from __future__ import annotations

import sys
from pathlib import Path

from linerate.host.exit_status import ExitStatus, fail
from linerate.links import link
from linerate.records.cells import AA_SUFFIX
from linerate.records.trial import Trial, read
from linerate_bench.goal_table import Row, gated, lines
from linerate_bench.goals import best_build, row

C_BUILDS = (
    "c-l3fwd-graph", "c-l3fwd-graph-native", "c-l3fwd-graph-clang", "c-l3fwd-graph-clang-native",
)  # fmt: skip
# The goals for the lower end of the interval.
GOALS = {"rust-l3fwd-graph": 1.0, "rust-l3fwd-graph-fused": 1.15}


def table(trials: list[Trial]) -> tuple[list[Row], list[str]]:
    """Compare each executor with the best C build, and the control; return also why a cell has no
    verdict.
    """
    every: list[Row] = []
    reasons: list[str] = []
    for cell in dict.fromkeys(trial.cell.name for trial in trials):
        if link(cell).has_generator:
            continue
        mine = [trial for trial in trials if trial.cell.name == cell and trial.role == "measure"]
        best = best_build(mine, C_BUILDS)
        if best is None:
            continue
        odd = [trial for trial in mine if trial.block % 2 == 1]
        base = C_BUILDS[0]
        control = row(cell, mine, base + AA_SUFFIX, base, None)
        rows, why = gated(cell, control, [row(cell, odd, arm, best, g) for arm, g in GOALS.items()])
        every += rows
        reasons += why
    return every, reasons


def main() -> None:
    if len(sys.argv) != 2:
        fail("usage: python -m linerate_bench.l3fwd_goals RECORDS.jsonl", ExitStatus.USAGE)
    rows, reasons = table(read(Path(sys.argv[1])))
    print("l3fwd-graph (the best C build is chosen in half of the blocks, judged in the other):")
    for line in lines(rows, reasons):
        print(line)


if __name__ == "__main__":
    main()
