# SPDX-License-Identifier: BSD-3-Clause
"""The trials of a session so far, and the decision to continue.

Lifecycle: one for a session. Resume, progress, failures in a row, the time budget and the points
where a signal is noticed are here, and nowhere else.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from linerate.host.errors import HopelessError, TooBusyError
from linerate.host.process import checkpoint
from linerate.records.cells import Arm
from linerate.records.journal import Journal
from linerate.records.trial import DISTURBED, Role, Trial, field
from linerate.runs.plans.steps import GiveUp, SessionPlan
from linerate.runs.progress import Monitor
from linerate.trial.clock_check import ClockCheck
from linerate.trial.link_setup import LinkSetup


class TimeIsUpError(Exception):
    """The session's time budget is used up before a trial that is not on record."""


class _GivenUpError(Exception):
    """Too many starts failed in a row within a `GiveUp`."""


class Ledger:
    """The ledger of a session. `clock`: its check is entered into each trial; None: it was not
    checked.
    """

    def __init__(self, plan: SessionPlan, journal: Journal, monitor: Monitor) -> None:
        self.journal = journal
        self.monitor = monitor
        self.clock: ClockCheck | None = None
        self._plan = plan
        self._failures = 0
        self._giving_up = False
        self._deadline = float("inf")

    @property
    def trials(self) -> list[Trial]:
        return self.journal.trials

    # -- before a trial ------------------------------------------------------------------------

    def begin(self) -> None:
        """Start the time budget now."""
        if self._plan.minutes is not None:
            self._deadline = time.monotonic() + self._plan.minutes * 60

    def may_begin(self, *, begun: bool = False) -> None:
        """Check the budget before a new trial. `begun`: it is a part of work that was begun in
        time.
        """
        checkpoint()
        if not begun and time.monotonic() >= self._deadline:
            raise TimeIsUpError

    @property
    def replaying(self) -> bool:
        """True if the next trial may be on record."""
        return self.journal.peek() is not None

    def replayed(self, due: Any, *, first: bool) -> Trial | None:
        """Return an attempt from the records; None if there is no further one of this trial."""
        found = self.journal.peek()
        if not first and found and any(field(found, name) != due[name] for name in due):
            return None
        return self.journal.replay(**due)

    # -- after it ------------------------------------------------------------------------------

    def record(self, trial: Trial) -> None:
        trial.identity.position = len(self.trials)
        if self.clock:
            self.clock.enter(trial)
        self.journal.add(trial)
        if trial.invalid_code in DISTURBED:
            self.monitor.void()

    def ran(self, trial: Trial, *, counts: bool) -> None:
        if counts:
            self.monitor.finished(trial)
        elif trial.invalid:
            self.monitor.complain(trial)

    def passed(self, trial: Trial, *, counts: bool) -> None:
        if counts:
            self.monitor.replayed(trial)
            # A run that ended because all failed is resumed to try again.
            self._failures = 0

    # -- what fails ----------------------------------------------------------------------------

    def count(self, why: str | None, trial: Trial) -> None:
        """Count failures in a row. `why`: the reason; None if it succeeded."""
        self._failures = self._failures + 1 if why is not None else 0
        limit = self._plan.failures
        if self._failures < limit.most or self._plan.keep_going:
            return
        if self._giving_up:
            raise _GivenUpError
        if trial.invalid_code in DISTURBED:
            said = "; ".join(filter(None, [why, trial.neighbours]))
            raise TooBusyError(f"{limit.most} {limit.what}", said, limit.hint)
        raise HopelessError(f"{limit.most} {limit.what}", why, limit.hint)

    @contextmanager
    def giving_up(self, step: GiveUp) -> Iterator[None]:
        """End the steps inside after too many failures in a row; the run continues."""
        done, self._failures, self._giving_up = self.monitor.done, 0, True
        try:
            yield
        except _GivenUpError:
            self.monitor.skip(step.trials - (self.monitor.done - done))
            self._plan.warn(
                f"{step.what} after {self._plan.failures.most} failures in a row; the last one: "
                f"{self.trials[-1].invalid}"
            )
        finally:
            self._failures, self._giving_up = 0, False


def place_of(setup: LinkSetup, arm: Arm, block: int, role: Role) -> dict[str, object]:
    """Return the fields that identify the records of a start."""
    return {
        "link": setup.link.name,
        "size": setup.context.size,
        "arm": arm.label,
        "block": block,
        "role": role,
    }
