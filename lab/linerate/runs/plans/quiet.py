# SPDX-License-Identifier: BSD-3-Clause
"""Steps that are made again after rests, for a machine with other work may be quiet then.

How often is decided by what is on record alone: a session that goes on with a run passes the
attempts of earlier ones, without their rests, and walks the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from linerate.host.errors import BusyError, LabError
from linerate.records.trial import DISTURBED, Trial
from linerate.runs.plans.steps import Rest, SessionPlan, Steps

T = TypeVar("T")
# How long it waits before each further attempt.
RESTS_S = (5.0, 20.0, 60.0)


def until_quiet(
    plan: SessionPlan,
    why: str,
    attempt: Callable[[], Steps[T | None]],
    needed: Callable[[], bool] = lambda: False,
    rests: Iterator[float] | None = None,
) -> Steps[T | None]:
    """What an attempt finds; None: nothing, in all of them.

    `needed`: asked when all attempts are over, whether the run ends without it. Then attempts of
    earlier sessions do not count: this one tries as often again. `rests`: those that are left of
    several such loops together; None: as many as there are.
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
    """Why the last of these that is void is, and who had the lab's CPUs; empty: none is void."""
    void = [trial for trial in trials if trial.invalid]
    if not void:
        return ""
    who = next((trial.neighbours for trial in reversed(void) if trial.neighbours), "")
    return "; ".join(filter(None, [void[-1].invalid_why, who]))


def not_found(message: str, trials: Sequence[Trial], hint: str) -> LabError:
    """The error of a run that ends without what these trials looked for."""
    busy = any(trial.invalid_code in DISTURBED for trial in trials[-1:])
    kind = BusyError if busy or all(trial.valid for trial in trials[-1:]) else LabError
    return kind(message, hint)
