# SPDX-License-Identifier: BSD-3-Clause
"""A device that answers a search from records instead of a real forwarder.

A procedure decides by outcomes alone, so that a repetition asks for the same trials: a search's
result is computed from its records (`Replay`), never stored beside them, and an interrupted search
is repeated from its beginning, with the records as far as they go (`Resumed`).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from linerate.host.errors import RunError
from linerate.records.journal import Journal
from linerate.records.trial import DISTURBED, Test, Trial, field
from linerate.trial.search.device import Changed, Outcome, RecordingDevice
from linerate.trial.search.setup_device import Asked, changed_of, error_of, outcome_of

T = TypeVar("T")

# Rates come back from JSON as they were; this is for those that are computed on another machine.
RATE_TOLERANCE = 1e-6


class EndOfRecordsError(Exception):
    """The records are used up. `last`: the void window that this trial ends with, if any."""

    def __init__(self, last: Trial | None = None) -> None:
        super().__init__("no further records")
        self.last = last


class MismatchError(RunError):
    """The records are of another procedure, or of another version of it."""


# Records have no line for the end of a search, only for the next test.
ENDED = "its time was over, or the run's"


class TestOverError(MismatchError, RuntimeError):
    """The search for the throughput ended here: the next record is of a later test."""

    def __init__(self) -> None:
        super().__init__(ENDED)


class Source(Protocol):
    """Records in their order."""

    def peek(self) -> Trial | None:
        """Return the next record without taking it; None at the end."""

    def take(self) -> Trial:
        """Take the next record."""


def answer(source: Source, test: Test, asked: Asked) -> Trial:
    """Return the valid window of one trial, skipping the void ones before it.

    Raises the trial's own error if none is valid.
    """
    last: Trial | None = None
    while there := source.peek():
        if last and (there.request.attempt or 1) == 1:
            raise error_of(last)
        _compare(there, test, asked)
        last = source.take()
        if last.valid:
            return last
        if last.invalid_code not in DISTURBED:
            raise error_of(last)
    raise EndOfRecordsError(last)


def _compare(trial: Trial, test: Test, asked: Asked) -> None:
    if trial.request.test != test:
        # The others have no limit of time.
        if test == "throughput":
            raise TestOverError
        raise MismatchError(
            f"trial {trial.position} is of {trial.request.test}, not of {test}",
            "the records were changed, or another version of linerate made them",
        )
    there = [trial.request.pps, trial.request.seconds, trial.request.then_pps, trial.request.then_s]
    due = [asked.pps, asked.seconds, *(asked.then or (0.0, 0.0))]
    same = all(
        math.isclose(mine or 0.0, theirs, rel_tol=RATE_TOLERANCE)
        for mine, theirs in zip(there, due, strict=True)
    )
    if not same or trial.request.frames != asked.frames:
        raise MismatchError(
            f"trial {trial.position} was of frames/s and seconds {there}, not {due}",
            "the records were changed, or another version of linerate made them",
        )


class _List:
    """A `Source` from a list."""

    def __init__(self, trials: Sequence[Trial]) -> None:
        self.left = deque(trials)

    def peek(self) -> Trial | None:
        return self.left[0] if self.left else None

    def take(self) -> Trial:
        return self.left.popleft()


class Replay:
    """A `linerate.trial.search.device.TestedDevice` made of one search's trials, in their order."""

    def __init__(self, trials: Sequence[Trial], max_pps: float) -> None:
        self.test: Test = "throughput"
        self._source = _List(trials)
        self._max_pps = max_pps

    @property
    def max_pps(self) -> float:
        return self._max_pps

    @property
    def left(self) -> int:
        """Number of records not yet used."""
        return len(self._source.left)

    def send(self, pps: float, seconds: float, *, latency: bool = False) -> Outcome:
        return outcome_of(self._next(Asked(pps, seconds, latency=latency)))

    def burst(self, frames: int) -> Outcome:
        return outcome_of(self._next(Asked.burst(frames, self.max_pps)))

    def change(self, pps: float, seconds: float, then_pps: float, then_seconds: float) -> Changed:
        return changed_of(self._next(Asked(pps, seconds, then=(then_pps, then_seconds))))

    def _next(self, asked: Asked) -> Trial:
        try:
            return answer(self._source, self.test, asked)
        except EndOfRecordsError as end:
            if end.last:
                raise error_of(end.last) from None
            raise


class _Unit:
    """A `Source`: the journal's records of one search, identified by the fields `of`."""

    def __init__(self, journal: Journal, of: dict[str, object]) -> None:
        self._journal = journal
        self._of = of
        self._begun = False

    def peek(self) -> Trial | None:
        return self._journal.peek()

    def take(self) -> Trial:
        found = self._journal.replay(**self._of)
        assert found is not None
        self._begun = True
        return found

    def check(self, test: Test) -> None:
        """Raise if the next record is of another search."""
        found = self._journal.peek()
        if found and any(field(found, name) != due for name, due in self._of.items()):
            # The other tests have no limit of time, that another search could follow amid one.
            if not self._begun or test != "throughput":
                self._journal.replay(**self._of)  # which says what is wrong
            raise TestOverError


class Resumed:
    """A device whose first answers come from records, and further ones from the device itself.

    `of`: the fields that identify the records of this search.
    """

    def __init__(self, device: RecordingDevice, journal: Journal, of: dict[str, object]) -> None:
        self.test: Test = "throughput"
        self._device = device
        self._source = _Unit(journal, of)

    @property
    def max_pps(self) -> float:
        return self._device.max_pps

    def send(self, pps: float, seconds: float, *, latency: bool = False) -> Outcome:
        return self._next(
            Asked(pps, seconds, latency=latency),
            outcome_of,
            lambda: self._device.send(pps, seconds, latency=latency),
        )

    def burst(self, frames: int) -> Outcome:
        return self._next(
            Asked.burst(frames, self.max_pps), outcome_of, lambda: self._device.burst(frames)
        )

    def change(self, pps: float, seconds: float, then_pps: float, then_seconds: float) -> Changed:
        return self._next(
            Asked(pps, seconds, then=(then_pps, then_seconds)),
            changed_of,
            lambda: self._device.change(pps, seconds, then_pps, then_seconds),
        )

    def _next(self, asked: Asked, told: Callable[[Trial], T], live: Callable[[], T]) -> T:
        self._source.check(self.test)
        try:
            return told(answer(self._source, self.test, asked))
        except EndOfRecordsError as end:
            self._device.test = self.test
            self._device.void = (end.last.request.attempt or 1) if end.last else 0
            return live()
