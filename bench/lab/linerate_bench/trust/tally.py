# SPDX-License-Identifier: BSD-3-Clause
"""Counts verdicts, and compares the counts with the goals by exact binomial tests.

A goal for a rate is missed if the one-sided exact test rejects it at ALPHA; the interval beside it
is that of Clopper and Pearson (Biometrika 26(4), 1934). "All" and "none" have no tolerance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, get_args

from scipy import stats as scipy_stats

from linerate.records.types import Verdict
from linerate.verdict.judgement import MARGIN
from linerate.verdict.stats import ALPHA
from linerate_bench.trust.comparison import SCREEN, Extent
from linerate_bench.trust.searches import Searches

# The width of the first column.
WIDTH = 58
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
# A program against itself may be called different so often, and a slow-down by SURE must be found
# so often; one by CERTAIN always. Both in comparisons of the extent that promises it.
FALSE_RATE = 0.05
FOUND_RATE = 0.95
SURE, CERTAIN = 0.05, 0.10
# With wide noise the A/A arm alone forbids the verdict of one comparison in twenty.
WIDE_FOUND_RATE = 0.9


@dataclass
class Tally:
    """The verdicts of many comparisons of one kind.

    `slow_down` is that of the arm under test; `held_back`: the measurement itself slows the
    baseline's first label down by this share; `wide`: the noise is wide.
    """

    machine: str
    link: str
    extent: Extent | Searches
    slow_down: float
    held_back: float = 0.0
    wide: bool = False
    blocks: list[int] = field(default_factory=list)
    verdicts: Counter[Verdict] = field(default_factory=Counter)

    @property
    def n(self) -> int:
        return self.verdicts.total()

    @property
    def name(self) -> str:
        kind = f"{self.slow_down:.0%} slower" if self.slow_down else "A/A"
        if self.held_back:
            kind += f", biased by {self.held_back:.0%}"
        return f"{self.machine}, {self.link}, {self.extent}: {kind}"

    def add(self, verdict: Verdict, blocks: int) -> None:
        self.verdicts[verdict] += 1
        self.blocks.append(blocks)

    def __str__(self) -> str:
        blocks = sorted({min(self.blocks), max(self.blocks)}) if self.blocks else []
        span = " to ".join(str(count) for count in blocks)
        counts = " ".join(f"{self.verdicts[verdict]:>9}" for verdict in VERDICTS)
        return f"{self.name:{WIDTH}} {self.n:>8} {span:>8} {counts}"

    def facts(self) -> dict[str, Any]:
        """Return the figures for --json."""
        return {
            "name": self.name,
            "machine": self.machine,
            "link": self.link,
            "extent": str(self.extent),
            "slow_down": self.slow_down,
            "held_back": self.held_back,
            "n": self.n,
            "blocks": self.blocks,
            "verdicts": {verdict: self.verdicts[verdict] for verdict in VERDICTS},
        }


HEADING = f"{'comparisons':{WIDTH}} {'how many':>8} {'blocks':>8} " + " ".join(
    f"{verdict:>9}" for verdict in VERDICTS
)


@dataclass(frozen=True)
class Line:
    """How many of n there were, and whether the goal allows that.

    `p` is None if no test is made; `passed` is None if there is no goal.
    """

    name: str
    question: str
    count: int
    n: int
    goal: str
    low: float
    high: float
    p: float | None
    passed: bool | None

    def __str__(self) -> str:
        p = "" if self.p is None else f"{self.p:.3f}"
        interval = f"{self.low:.1%} to {self.high:.1%}"
        result = {True: "PASS", False: "FAIL", None: ""}[self.passed]
        return (
            f"{self.name:{WIDTH}} {self.question:23} {self.count:>4} of {self.n:<4} "
            f"{self.count / self.n:>6.1%}  {interval:17} {self.goal:12} {p:>5}  "
            f"{result}"
        ).rstrip()


LINE_HEADING = (
    f"{'':{WIDTH}} {'how often':23} {'count':>12} {'rate':>6}  {'95 % interval':17} "
    f"{'goal':12} {'p':>5}"
)


def _line(
    tally: Tally,
    question: str,
    count: int,
    goal: str,
    *,
    passed: bool | None,
    p: float | None = None,
) -> Line:
    interval = scipy_stats.binomtest(count, tally.n).proportion_ci(1 - ALPHA, "exact")
    low, high = float(interval.low), float(interval.high)
    return Line(tally.name, question, count, tally.n, goal, low, high, p, passed)


def _rate(tally: Tally, question: str, count: int, goal: float, *, at_most: bool) -> Line:
    alternative = "greater" if at_most else "less"
    p = float(scipy_stats.binomtest(count, tally.n, goal, alternative).pvalue)
    words = f"at {'most' if at_most else 'least'} {goal * 100:g}%"
    return _line(tally, question, count, words, passed=p >= ALPHA, p=p)


def lines(tally: Tally) -> Iterator[Line]:
    """Return the goals of one kind of comparison with their counts; empty without comparisons."""
    if tally.n == 0:
        return
    seen = tally.verdicts
    if not tally.slow_down:
        false = seen["faster"] + seen["slower"]
        yield _rate(tally, "called different", false, FALSE_RATE, at_most=True)
        return
    question, found, promised = "called slower", seen["slower"], tally.extent == SCREEN
    if tally.wide:
        yield _rate(tally, question, found, WIDE_FOUND_RATE, at_most=False)
    elif promised and tally.slow_down >= CERTAIN:
        yield _line(tally, question, found, "all", passed=found == tally.n)
    elif promised and tally.slow_down >= SURE:
        yield _rate(tally, question, found, FOUND_RATE, at_most=False)
    else:
        yield _line(tally, question, found, "", passed=None)
    # A slow-down within the margin may be called equal.
    beyond = tally.slow_down > MARGIN
    wrong = seen["faster"] + (seen["equal"] if beyond else 0)
    question = "called faster or equal" if beyond else "called faster"
    if isinstance(tally.extent, Searches) and not beyond:
        # Few searches and a small effect: by chance the direction may be wrong as often as without
        # an effect.
        yield _rate(tally, question, wrong, FALSE_RATE / 2, at_most=True)
        return
    yield _line(tally, question, wrong, "none", passed=wrong == 0)


def all_lines(tallies: Iterable[Tally]) -> list[Line]:
    return [line for tally in tallies for line in lines(tally)]
