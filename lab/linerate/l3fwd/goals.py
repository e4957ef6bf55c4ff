# SPDX-License-Identifier: BSD-3-Clause
"""How fast l3fwd-graph in Rust is against the best build in C, by the same routes.

    python -m linerate.l3fwd.goals RECORDS.jsonl

Chosen, judged and told as `linerate.goals` does. The nodes of the C program are those of the
distribution's librte_node; its builds differ in what walks them.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from linerate.design import AA_SUFFIX
from linerate.goals import HEADING, Row, best_build, row
from linerate.records import Trial, read
from linerate.verdict import unsound

C_BUILDS = ("c-l3fwd-graph", "c-l3fwd-graph-native")
# For the lower end of the interval.
GOALS = {"rust-l3fwd-graph": 1.0, "rust-l3fwd-graph-fused": 1.15}


def table(trials: list[Trial]) -> tuple[list[Row], list[str]]:
    """Each executor against the best C build, and the control; and why a cell has no verdict."""
    every: list[Row] = []
    reasons: list[str] = []
    for link in dict.fromkeys(trial.link for trial in trials):
        mine = [trial for trial in trials if trial.link == link and trial.role == "measure"]
        best = best_build(mine, C_BUILDS)
        if best is None:
            continue
        odd = [trial for trial in mine if trial.block % 2 == 1]
        base = C_BUILDS[0]
        control = row(link, mine, base + AA_SUFFIX, base, None)
        found = [row(link, odd, arm, best, goal) for arm, goal in GOALS.items()]
        rows = [each for each in (control, *found) if each]
        spread = max((each.found.spread for each in rows), default=0.0)
        forbidden = unsound(control.found if control else None, spread, None)
        if forbidden:
            reasons.append(f"{link}: no verdict, for {forbidden.reason}")
        every += [replace(each, forbidden=forbidden is not None) for each in rows]
    return every, reasons


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: python -m linerate.l3fwd.goals RECORDS.jsonl")
    rows, reasons = table(read(Path(sys.argv[1])))
    print("l3fwd-graph (the best C build is chosen in half of the blocks, judged in the other):")
    print(HEADING)
    for line in [*rows, *reasons]:
        print(line)


if __name__ == "__main__":
    main()
