# SPDX-License-Identifier: BSD-3-Clause
"""The common part of all procedures: failed trials are repeated, counted, and never taken for loss.

A procedure calls `Trials` instead of the device. A trial that fails is repeated up to `ATTEMPTS`
times; then its error is raised, and the procedure returns a result with `invalid`.

`bounds`: whether a procedure keeps its results when its windows are disturbed. Runs recorded by
earlier versions do not: their procedures end there, without figures. With it a procedure returns a
lower bound, or the figures that do not need the failed trial, and a trial whose windows were all
disturbed is not repeated: the device has tried it often enough.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from linerate.host.errors import DisturbedError, TrialError, UsageError
from linerate.trial.search.device import Device, Outcome

T = TypeVar("T")

# Attempts at one trial before the procedure ends.
ATTEMPTS = 3


@dataclass(frozen=True)
class Effort:
    """The cost of a procedure: valid trials, failed ones, and seconds of sending."""

    trials: int = 0
    failed: int = 0
    sent_s: float = 0.0


@dataclass(frozen=True)
class Invalid:
    """The reason why there is no result. `code` is one of records.InvalidCode."""

    code: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Result:
    """The part that all results share.

    `deviations` names each requirement of the procedure's RFC that the parameters did not meet.
    """

    effort: Effort = field(default_factory=Effort)
    invalid: Invalid | None = None
    deviations: tuple[str, ...] = ()


class Trials:
    """A device that repeats failed trials, and counts."""

    def __init__(self, device: Device, attempts: int = ATTEMPTS, *, bounds: bool = False) -> None:
        self._device = device
        self._attempts = attempts
        self._bounds = bounds
        self._valid = 0
        self._failed = 0
        self._sent_s = 0.0

    @property
    def max_pps(self) -> float:
        return self._device.max_pps

    def send(self, pps: float, seconds: float, *, latency: bool = False) -> Outcome:
        """Send a trial. Raises `TrialError` if every attempt failed."""

        def once() -> Outcome:
            outcome = sent(self._device.send(pps, seconds, latency=latency))
            if latency and not (outcome.latency and outcome.latency.count):
                raise TrialError("no frame came back with its latency")
            return outcome

        return self.repeat(once, seconds, f"{pps:.0f} packets/s for {seconds:g} s")

    def burst(self, frames: int) -> Outcome:
        """Send a burst. Raises `TrialError` if every attempt failed."""
        return self.repeat(
            lambda: sent(self._device.burst(frames)),
            frames / self.max_pps,
            f"a burst of {frames} frames",
        )

    def effort(self) -> Effort:
        return Effort(self._valid, self._failed, self._sent_s)

    def repeat(self, trial: Callable[[], T], seconds: float, what: str) -> T:
        """Run a trial, which sends for `seconds`, until it succeeds."""
        last: TrialError | None = None
        for _ in range(self._attempts):
            self._sent_s += seconds
            try:
                outcome = trial()
            except TrialError as error:
                self._failed += 1
                if self._bounds and isinstance(error, DisturbedError):
                    raise
                last = error
            else:
                self._valid += 1
                return outcome
        assert last is not None
        failure = TrialError(f"{what}: {self._attempts} trials failed, the last: {last.message}")
        failure.code = last.code
        raise failure from last


def sent(outcome: Outcome) -> Outcome:
    """Check that frames were to be sent: otherwise there is no loss ratio."""
    if outcome.intended <= 0:
        raise TrialError("nothing was sent")
    return outcome


def invalid(error: TrialError) -> Invalid:
    return Invalid(error.code, error.message)


def positive(**values: float) -> None:
    """Raise `UsageError` for the first value that is not above 0."""
    for name, value in values.items():
        if not value > 0:
            raise UsageError(f"{name}: {value} is not above 0", f"give a greater {name}")


def too_short(what: str, value: float, least: float, source: str) -> tuple[str, ...]:
    """Return the deviation, or an empty tuple."""
    return (f"{what} {value:g} instead of {least:g} ({source})",) if value < least else ()
