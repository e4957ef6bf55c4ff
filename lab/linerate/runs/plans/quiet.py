# SPDX-License-Identifier: BSD-3-Clause
"""Repeat steps after rests, because a machine with other work may be quiet then.

The number of repetitions depends on the records alone: a resumed session skips the attempts of
earlier ones, without their rests, and makes the same choices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from linerate.host.errors import BusyError, LabError
from linerate.records.trial import DISTURBED, Trial
from linerate.runs.plans.steps import Rest, SessionPlan, Steps

T = TypeVar("T")
# The rests (s) before each further attempt.
RESTS_S = (5.0, 20.0, 60.0)


def until_quiet(
    plan: SessionPlan,
    why: str,
    attempt: Callable[[], Steps[T | None]],
    needed: Callable[[], bool] = lambda: False,
    rests: Iterator[float] | None = None,
) -> Steps[T | None]:
    """Return the result of the first successful attempt; None if all failed.

    `needed`: called after all attempts, returns True if the run ends without a result. Then
    attempts of earlier sessions do not count: this session tries as often again. `rests`: the
    remaining rests that several such loops share; default: all.
    """
    rests = iter(RESTS_S) if rests is None else rests
    while True:
        before = len(plan.trials)
        found = yield from attempt()
        if found is not None:
            return found
        fresh = any(trial.session == plan.bench.session for trial in plan.trials[before:])
        if (rest_s := next(rests, None)) is not None:
            if fresh:
                yield Rest(rest_s, why)
        elif fresh or not needed():
            return None
        else:
            rests = iter(RESTS_S)


def last_cause(trials: Sequence[Trial]) -> str:
    """Return why the last void one of these trials is void, and who had the lab's CPUs; empty if
    none is void.
    """
    void = [trial for trial in trials if trial.invalid]
    if not void:
        return ""
    who = next((trial.neighbours for trial in reversed(void) if trial.neighbours), "")
    return "; ".join(filter(None, [void[-1].invalid_why, who]))


def not_found(message: str, trials: Sequence[Trial], hint: str) -> LabError:
    """Return the error of a run that ends because these trials had no result."""
    busy = any(trial.invalid_code in DISTURBED for trial in trials[-1:])
    kind = BusyError if busy or all(trial.valid for trial in trials[-1:]) else LabError
    return kind(message, hint)
