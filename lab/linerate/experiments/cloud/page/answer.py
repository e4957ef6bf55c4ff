# SPDX-License-Identifier: BSD-3-Clause
"""The beginning of page and terminal: the answer in a sentence, and forwarders without figures.

Medians of cells, as in the tables; the takeaways have the tests.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from linerate.experiments.cloud.design.settings import main_setting
from linerate.experiments.cloud.page.sentences import (
    beside_words,
    detectable_words,
    effect_words,
)
from linerate.host.text import counted, listed
from linerate.records.cloud_summary import CloudAnswers, CloudCellFigures, TakeawayEntry
from linerate.report.console import percent

# With more frameworks only the first and last are named; the chart has the rest.
_NAMED = 3
_NUMBER = re.compile(r"\d[\d.,]*")


def answer(answers: CloudAnswers, takeaways: Sequence[TakeawayEntry]) -> str:
    """Return the answer: the share that the worst neighbours leave to each framework, and which
    conclusions hold.
    """
    worst = _worst(answers)
    if not worst:
        return "This run has no answer: no forwarder has a valid window beside tenants."
    first = worst[0]
    on = "on a shared core" if first.cpu == "shared" else f"with CPU {first.cpu}"
    told = [_left(first, "keeps ", " of its throughput"), *map(_left, worst[1:])]
    if len(worst) > _NAMED:
        told = [told[0], f"the other {len(worst) - 2} between", told[-1]]
    return (
        f"{_offered(answers, first.rate)} the worst neighbours {on}, {listed(told)}; "
        f"{_counts(takeaways)}."
    )


def _offered(answers: CloudAnswers, rate: float) -> str:
    """Describe the offered load, if it was one share of each framework's own capacity."""
    known = {
        percent(rate * own.pps / own.ndr_pps)
        for own in answers.own_rates
        if own.pps is not None and own.ndr_pps
    }
    if len(known) != 1:
        return "Beside"
    return f"Offered {known.pop()} of what it carries alone, beside"


def _worst(answers: CloudAnswers) -> list[CloudCellFigures]:
    """Return the cell of each framework with the least share left, the least first."""
    found: dict[str, CloudCellFigures] = {}
    for cell in main_setting(answers.cells):
        there = found.get(cell.framework)
        if cell.tenants and cell.left and (there is None or _share(cell) < _share(there)):
            found[cell.framework] = cell
    return sorted(found.values(), key=_share)


def _share(cell: CloudCellFigures) -> float:
    return cell.left.median if cell.left else 1.0


def _left(cell: CloudCellFigures, verb: str = "", of: str = "") -> str:
    return (
        f"{cell.framework} {verb}{percent(_share(cell))}{of} ({beside_words(cell)}, {cell.size} B)"
    )


def _counts(takeaways: Sequence[TakeawayEntry]) -> str:
    study: Counter[str] = Counter(each.verdict for each in takeaways if each.origin == "study")
    if not study:
        return "no conclusion of the published study was asked"
    told = f"{counted(study.total(), 'conclusion')} of the published study"
    parts = [
        f"{study[verdict]} {words}"
        for verdict, words in (
            ("held", "held"), ("not held", "did not hold"), ("undecided", "could not be decided")
        )
        if study[verdict]
    ]  # fmt: skip
    return f"of {told}, {listed(parts)}"


def lost(answers: CloudAnswers) -> list[str]:
    """Return frameworks without any figure at a size, and why; first the reference, with which all
    are compared. Empty before the first cell: then the run has no results yet.
    """
    found = sorted(
        (own for own in answers.own_rates if own.pps is None and answers.cells),
        key=lambda own: own.framework != answers.reference,
    )
    return [
        f"{'The reference ' if own.framework == answers.reference else ''}{own.framework} has no "
        f"figures at {own.size} B: {own.note or 'its rate alone is unknown'}."
        for own in found
    ]


def _stated(entry: TakeawayEntry) -> str:
    """Describe the question, the observation and what could have been found."""
    least = detectable_words(entry)
    # Some reasons already say it.
    further = least and "four of five" not in entry.reason
    facts = [effect_words(entry), f"would find {least}" if further else None]
    known = "; ".join(filter(None, facts))
    return f"{entry.statement} ({known})" if known else entry.statement


@dataclass(frozen=True)
class Untold:
    """Undecided `statements` with the same reason; `more`: further reasons that differ only in
    figures.
    """

    reason: str
    statements: list[str]
    more: bool

    @property
    def words(self) -> str:
        """One line, without its full stop."""
        like = ", and the like" if self.more else ""
        return f"{self.reason}{like}: {'; '.join(self.statements)}"


def untold(entries: Iterable[TakeawayEntry]) -> list[Untold]:
    """Return the undecided entries, a line for each reason. Reasons that differ only in figures are
    one.
    """
    found: dict[str, list[TakeawayEntry]] = {}
    for each in entries:
        if each.verdict == "undecided":
            found.setdefault(_NUMBER.sub("#", each.reason), []).append(each)
    return [
        Untold(
            mine[0].reason.removesuffix("."),
            [_stated(each) for each in mine],
            len({each.reason for each in mine}) > 1,
        )
        for mine in found.values()
    ]
