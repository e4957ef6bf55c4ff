# SPDX-License-Identifier: BSD-3-Clause
"""A device that answers from records what was asked of a real one.

A procedure decides by outcomes alone, so that asked anew it asks the same again: what a search
found is computed from its records, never kept beside them.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

from linerate.records import Test, Trial
from linerate.search.bed_device import error_of, outcome_of
from linerate.search.device import Outcome

# Rates come back from JSON as they were; this is for those that are computed on another machine.
RATE_TOLERANCE = 1e-6


class EndOfRecordsError(Exception):
    """The search went on after these records, or was cut off there."""


class MismatchError(Exception):
    """The records are of another procedure, or of another version of it."""


class TestOverError(MismatchError, RuntimeError):
    """The next record is of another test: this one ended here, by its limit of time, if by that."""


class Replay:
    """A `linerate.search.device.Device` made of one search's trials, in their order."""

    def __init__(self, trials: Sequence[Trial], max_pps: float) -> None:
        self.test: Test = "throughput"
        self._left = deque(trials)
        self._max_pps = max_pps

    @property
    def max_pps(self) -> float:
        return self._max_pps

    @property
    def left(self) -> int:
        """Records that nobody has asked for yet."""
        return len(self._left)

    def send(self, pps: float, seconds: float, *, latency: bool = False) -> Outcome:
        return self._next(pps, seconds, None)

    def burst(self, frames: int) -> Outcome:
        return self._next(self.max_pps, frames / self.max_pps, frames)

    def _next(self, pps: float, seconds: float, frames: int | None) -> Outcome:
        """The outcome of one trial: the void windows before the one that counts are passed over."""
        last: Trial | None = None
        while self._left and (last is None or (self._left[0].attempt or 1) > 1):
            self._compare(self._left[0], pps, seconds, frames)
            last = self._left.popleft()
            if last.valid:
                return outcome_of(last)
        if last is None:
            raise EndOfRecordsError
        raise error_of(last)

    def _compare(self, trial: Trial, pps: float, seconds: float, frames: int | None) -> None:
        asked = (trial.asked_pps or 0.0, trial.asked_s or 0.0)
        same = all(
            math.isclose(mine, theirs, rel_tol=RATE_TOLERANCE)
            for mine, theirs in zip(asked, (pps, seconds), strict=True)
        )
        if trial.test != self.test:
            raise TestOverError(f"trial {trial.position} is of {trial.test}, not of {self.test}")
        if not same or trial.asked_frames != frames:
            raise MismatchError(
                f"trial {trial.position} was at {asked[0]:.0f} frames/s for {asked[1]:g} s, not "
                f"at {pps:.0f} for {seconds:g} s"
            )
