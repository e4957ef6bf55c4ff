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
from linerate.search.bed_device import changed_of, error_of, outcome_of
from linerate.search.device import Changed, Outcome

# Rates come back from JSON as they were; this is for those that are computed on another machine.
RATE_TOLERANCE = 1e-6


class EndOfRecordsError(Exception):
    """The search went on after these records, or was cut off there."""


class MismatchError(Exception):
    """The records are of another procedure, or of another version of it."""


class TestOverError(MismatchError, RuntimeError):
    """The next record is of another test: this one ended here, by its limit of time, if by that."""


class Replay:
    """A `linerate.search.device.ChangingDevice` made of one search's trials, in their order."""

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
        return outcome_of(self._next(pps, seconds))

    def burst(self, frames: int) -> Outcome:
        return outcome_of(self._next(self.max_pps, frames / self.max_pps, frames=frames))

    def change(self, pps: float, seconds: float, then_pps: float, then_seconds: float) -> Changed:
        return changed_of(self._next(pps, seconds, then=(then_pps, then_seconds)))

    def _next(
        self,
        pps: float,
        seconds: float,
        *,
        frames: int | None = None,
        then: tuple[float, float] = (0.0, 0.0),
    ) -> Trial:
        """The window that counts of one trial: the void ones before it are passed over."""
        last: Trial | None = None
        while self._left and (last is None or (self._left[0].attempt or 1) > 1):
            self._compare(self._left[0], (pps, seconds, *then), frames)
            last = self._left.popleft()
            if last.valid:
                return last
        if last is None:
            raise EndOfRecordsError
        raise error_of(last)

    def _compare(self, trial: Trial, due: tuple[float, ...], frames: int | None) -> None:
        if trial.test != self.test:
            raise TestOverError(f"trial {trial.position} is of {trial.test}, not of {self.test}")
        there = [trial.asked_pps, trial.asked_s, trial.then_pps, trial.then_s]
        same = all(
            math.isclose(mine or 0.0, theirs, rel_tol=RATE_TOLERANCE)
            for mine, theirs in zip(there, due, strict=True)
        )
        if not same or trial.asked_frames != frames:
            raise MismatchError(
                f"trial {trial.position} was of frames/s and seconds {there}, not {list(due)}"
            )
