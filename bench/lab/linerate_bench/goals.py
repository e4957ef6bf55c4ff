# SPDX-License-Identifier: BSD-3-Clause
"""The table at the end of `make bench`: how fast l2fwd in Rust is compared with the best build in
C.

    python -m linerate_bench.goals RECORDS.jsonl

The best of the unmodified C builds is chosen in every second block and judged in the others: chosen
and judged in the same blocks, it would look better than it is
(docs/how-it-measures.md#claims-and-choices). `goal_table` says when a goal is reached.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from linerate.host.exit_status import ExitStatus, fail
from linerate.records.cells import AA_SUFFIX
from linerate.records.trial import Trial, read
from linerate.verdict.comparisons import pair
from linerate.verdict.metrics import FORWARDED, TrialMetric
from linerate_bench.goal_table import Row, gated, lines

C_BUILDS = ("c-l2fwd", "c-l2fwd-native", "c-l2fwd-clang", "c-l2fwd-clang-native")
ARMS = ("plain-c", "plain-c-burst", "rust-l2fwd", "rust-l2fwd-burst", "raw-rust", "raw-rust-burst")
# The goals for lower ends of intervals, by arm and link.
GOALS = {
    ("rust-l2fwd", "null2"): 1.02,
    ("rust-l2fwd", "nearfree2"): 1.2,
    ("rust-l2fwd-burst", "null2"): 1.15,
    ("rust-l2fwd-burst", "nearfree2"): 1.8,
}
# The safe API against the same loop on raw pointers.
SAFE_AND_RAW = (("rust-l2fwd", "raw-rust"), ("rust-l2fwd-burst", "raw-rust-burst"))
SAFE_GOAL = 0.99

METRIC = FORWARDED


def best_build(trials: list[Trial], builds: Sequence[str] = C_BUILDS) -> str | None:
    """Return the fastest C build by the median over the even blocks."""
    medians = {
        name: statistics.median(rates)
        for name in builds
        if (
            rates := [
                rate
                for trial in trials
                if trial.arm == name and trial.valid and trial.block % 2 == 0
                if (rate := METRIC.value(trial))
            ]
        )
    }
    return max(medians, key=lambda name: medians[name]) if medians else None


def row(  # noqa: PLR0917 - what a row has
    cell: str,
    trials: list[Trial],
    arm: str,
    baseline: str,
    goal: float | None,
    metric: TrialMetric = METRIC,
) -> Row | None:
    """Compare two arms in the blocks in which both are valid."""
    found = pair(trials, arm, baseline, metric).paired
    return Row(cell, arm, baseline, found, goal) if found else None


def table(trials: list[Trial]) -> tuple[list[Row], list[str]]:
    """Compare every arm with the best C build, the safe API with raw pointers, and the control;
    return also why a link has no verdict.
    """
    every: list[Row] = []
    reasons: list[str] = []
    for link in dict.fromkeys(trial.cell.name for trial in trials):
        mine = [trial for trial in trials if trial.cell.name == link and trial.role == "measure"]
        odd = [trial for trial in mine if trial.block % 2 == 1]
        found: list[Row | None] = []
        if best := best_build(mine):
            found += [row(link, odd, arm, best, GOALS.get((arm, link))) for arm in ARMS]
        found += [row(link, mine, safe, raw, SAFE_GOAL) for safe, raw in SAFE_AND_RAW]
        base = C_BUILDS[0]
        rows, why = gated(link, row(link, mine, base + AA_SUFFIX, base, None), found)
        every += rows
        reasons += why
    return every, reasons


def main() -> None:
    if len(sys.argv) != 2:
        fail("usage: python -m linerate_bench.goals RECORDS.jsonl", ExitStatus.USAGE)
    rows, reasons = table(read(Path(sys.argv[1])))
    print("How fast (the best C build is chosen in half of the blocks, judged in the other):")
    for line in lines(rows, reasons):
        print(line)


if __name__ == "__main__":
    main()
