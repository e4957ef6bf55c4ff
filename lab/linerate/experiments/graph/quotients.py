# SPDX-License-Identifier: BSD-3-Clause
"""Cells of one arm, judged against each other within blocks by the rules of all comparisons.

A quotient is a product of cells' rates over another. Its control is the baseline's quotient over
that of its A/A arm: one program twice, so it is 1. Nothing else forbids its verdict: the controls
of the cells are only about the cells. Holm's correction is over the quotients of one question.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from linerate.experiments.graph.window import OBJECTS
from linerate.records.cells import AA_SUFFIX
from linerate.records.trial import Trial
from linerate.verdict import stats
from linerate.verdict.comparisons import CellPairs, Pairing
from linerate.verdict.judgement import Judgement, judge
from linerate.verdict.stats import Paired

FAMILY = "the pairs of this question"


@dataclass(frozen=True)
class Quotient:
    """The cells in numerator and denominator."""

    over: tuple[str, ...]
    under: tuple[str, ...]

    @property
    def cells(self) -> list[str]:
        """The cells, each once."""
        return list(dict.fromkeys((*self.over, *self.under)))


@dataclass(frozen=True)
class Judged:
    """A judged quotient. `paired` is None if no block has all its cells."""

    paired: Paired | None
    p_holm: float | None
    judgement: Judgement


class Rates:
    """The arms' rates in each cell: from judged trials, with the pairs of these cells."""

    def __init__(self, trials: Sequence[Trial], pairs: Sequence[CellPairs]) -> None:
        self._pairs = {each.cell.link: each for each in pairs}
        self._found: dict[tuple[str, str], dict[Pairing, float]] = {}
        for trial in trials:
            if trial.valid and (rate := OBJECTS.value(trial)):
                self._found.setdefault((trial.arm, trial.cell.name), {})[trial.pairing] = rate

    @property
    def cells(self) -> list[str]:
        return list(self._pairs)

    def there(self, arm: str, cell: str) -> bool:
        return (arm, cell) in self._found

    def paired(self, arm: str, quotient: Quotient) -> Paired | None:
        """The quotient in the blocks that have all of its cells."""
        found = self._products(arm, quotient)
        if not found:
            return None
        over, under = zip(*(found[pairing] for pairing in sorted(found)), strict=True)
        return stats.compare(over, under)

    def judged(self, arm: str, quotients: Sequence[Quotient]) -> list[Judged]:
        """Judge all quotients of one question together."""
        paired = [self.paired(arm, each) for each in quotients]
        corrected = iter(stats.holm([each.p for each in paired if each]))
        return [
            self._judged(quotient, found, next(corrected) if found else None)
            for quotient, found in zip(quotients, paired, strict=True)
        ]

    def _judged(self, quotient: Quotient, found: Paired | None, p_holm: float | None) -> Judged:
        judgement = judge(
            found,
            p_holm,
            planned=max(self._pairs[cell].planned for cell in quotient.cells),
            aa=self._control(quotient),
            family=FAMILY,
        )
        return Judged(found, p_holm, judgement)

    def _control(self, quotient: Quotient) -> Paired | None:
        baseline = self._pairs[quotient.cells[0]].baseline
        one = self._products(baseline, quotient)
        other = self._products(baseline + AA_SUFFIX, quotient)
        pairings = sorted(one.keys() & other.keys())
        if not pairings:
            return None
        return stats.compare(
            [_value(one[pairing]) for pairing in pairings],
            [_value(other[pairing]) for pairing in pairings],
        )

    def _products(self, arm: str, quotient: Quotient) -> Mapping[Pairing, tuple[float, float]]:
        rates = {cell: self._found.get((arm, cell), {}) for cell in quotient.cells}
        pairings = set.intersection(*(set(each) for each in rates.values()))
        return {
            pairing: (
                math.prod(rates[cell][pairing] for cell in quotient.over),
                math.prod(rates[cell][pairing] for cell in quotient.under),
            )
            for pairing in pairings
        }


def _value(product: tuple[float, float]) -> float:
    over, under = product
    return over / under
