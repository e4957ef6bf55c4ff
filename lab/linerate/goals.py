# SPDX-License-Identifier: BSD-3-Clause
"""What `make bench` prints at its end: how fast l2fwd in Rust is against the best build in C.

    python -m linerate.goals RECORDS.jsonl

The best of the unmodified C builds is chosen in every second block and judged in the others: chosen
and judged in the same ones, it would look better than it is (measuring.md 12). A goal is reached
when the lower bound of the ratio's interval is not below it; printed, never asserted. Where the
lab's gates (the A/A arm, the spread) forbid a verdict on a link, none is given here either.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from linerate.comparisons import pair
from linerate.design import AA_SUFFIX
from linerate.metrics import FORWARDED
from linerate.records import Trial, read
from linerate.stats import Paired
from linerate.verdict import unsound

C_BUILDS = ("c-l2fwd", "c-l2fwd-native", "c-l2fwd-clang", "c-l2fwd-clang-native")
ARMS = ("plain-c", "plain-c-burst", "rust-l2fwd", "rust-l2fwd-burst", "raw-rust", "raw-rust-burst")
# Lower bounds by arm and link.
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


def interval(found: Paired) -> str:
    """The interval of a ratio; a dash where there is none."""
    if found.ci_low is None or found.ci_high is None:
        return "-"
    return f"{found.ci_low:.3f} to {found.ci_high:.3f}"


def reached(found: Paired, goal: float) -> bool:
    """Whether the lower end of the interval is not below the goal."""
    return found.ci_low is not None and found.ci_low >= goal


@dataclass(frozen=True)
class Row:
    """One ratio and the goal for the lower end of its interval, where there is one."""

    link: str
    arm: str
    baseline: str
    found: Paired
    goal: float | None
    forbidden: bool = False

    @property
    def state(self) -> str:
        if self.goal is None:
            return ""
        if self.forbidden:
            return "no verdict"
        return "reached" if reached(self.found, self.goal) else "not reached"

    def __str__(self) -> str:
        goal = "-" if self.goal is None else f"{self.goal:.2f}"
        return (
            f"{self.link:26} {self.arm:23} {self.baseline:20} {self.found.n:6} "
            f"{self.found.ratio:6.3f}  {interval(self.found):16} {goal:>5}  {self.state}"
        ).rstrip()


HEADING = (
    f"{'link':26} {'forwarder':23} {'against':20} {'blocks':>6} {'ratio':>6}  "
    f"{'95 % interval':16} {'goal':>5}"
)


def best_build(trials: list[Trial], builds: Sequence[str] = C_BUILDS) -> str | None:
    """The fastest C build by the median over the even blocks."""
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


def row(link: str, trials: list[Trial], arm: str, baseline: str, goal: float | None) -> Row | None:
    """Compared in the blocks in which both are valid."""
    found = pair(trials, arm, baseline, METRIC).paired
    return Row(link, arm, baseline, found, goal) if found else None


def table(trials: list[Trial]) -> tuple[list[Row], list[str]]:
    """Every arm against the best C build, the safe API against raw pointers, and the control; and
    why there is no verdict on a link.
    """
    every: list[Row] = []
    reasons: list[str] = []
    for link in dict.fromkeys(trial.link for trial in trials):
        mine = [trial for trial in trials if trial.link == link and trial.role == "measure"]
        odd = [trial for trial in mine if trial.block % 2 == 1]
        found: list[Row | None] = []
        if best := best_build(mine):
            found += [row(link, odd, arm, best, GOALS.get((arm, link))) for arm in ARMS]
        found += [row(link, mine, safe, raw, SAFE_GOAL) for safe, raw in SAFE_AND_RAW]
        base = C_BUILDS[0]
        control = row(link, mine, base + AA_SUFFIX, base, None)
        rows = [each for each in (control, *found) if each]
        spread = max((each.found.spread for each in rows), default=0.0)
        forbidden = unsound(control.found if control else None, spread, None)
        if forbidden:
            reasons.append(f"{link}: no verdict, for {forbidden.reason}")
        every += [replace(each, forbidden=forbidden is not None) for each in rows]
    return every, reasons


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: python -m linerate.goals RECORDS.jsonl")
    rows, reasons = table(read(Path(sys.argv[1])))
    print("How fast (the best C build is chosen in half of the blocks, judged in the other):")
    print(HEADING)
    for line in [*rows, *reasons]:
        print(line)


if __name__ == "__main__":
    main()
