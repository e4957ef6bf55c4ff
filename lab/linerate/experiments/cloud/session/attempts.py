# SPDX-License-Identifier: BSD-3-Clause
"""A cell as often as it takes: what earlier sessions have of it is passed, what is missing is run.

Windows that were void, and starts that failed, are on record with the number of their attempt. So
the next session knows how often it was tried, and goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from linerate.host.process import checkpoint
from linerate.records.journal import Journal
from linerate.records.trial import Trial

# By which a record is known to be of a cell's attempt.
_FIELDS = ("role", "arm", "size", "block", "cloud_cell", "attempt")


@dataclass(frozen=True)
class Most:
    """`windows`: attempts of one cell in a block, all told. `starts`: that failed otherwise than by
    a sender that was late.
    """

    windows: int
    starts: int


@dataclass(frozen=True)
class Ended:
    """`last`: the attempt that counts, or the last of those that do not; None: none was made.
    `fresh`: this session made it.
    """

    last: Trial | None
    fresh: bool


def repeated(
    journal: Journal,
    due: Callable[[int], Trial],
    run: Callable[[int], Trial],
    most: Most,
    *,
    may_begin: Callable[[], bool] = lambda: True,
) -> Ended:
    """`due`: the record of an attempt before it begins, by its number from 1. `run`: makes attempts
    from that number on, records all of them and returns the last. `may_begin`: asked before.
    """
    attempts = starts = 0
    last: Trial | None = None

    def over() -> bool:
        return last is not None and (
            last.valid or attempts >= most.windows or starts >= most.starts
        )

    while not over() and (found := _replayed(journal, due(attempts + 1))):
        attempts, last = attempts + 1, found
        starts += _failed(found)
    if over():
        return Ended(last, fresh=False)
    if not may_begin():
        return Ended(None, fresh=False)
    while not over():
        checkpoint()
        before = len(journal.trials)
        last = run(attempts + 1)
        attempts += len(journal.trials) - before
        starts += _failed(last)
    return Ended(last, fresh=True)


def _failed(trial: Trial) -> bool:
    return not trial.valid and trial.invalid_code != "late"


def _replayed(journal: Journal, due: Trial) -> Trial | None:
    """The attempt as it is on record; None: there is no further of this cell."""
    found = journal.peek()
    fields = {name: getattr(due, name) for name in _FIELDS}
    first = (due.attempt or 1) == 1
    if not first and found and any(getattr(found, name) != fields[name] for name in _FIELDS):
        return None
    return journal.replay(**fields)
