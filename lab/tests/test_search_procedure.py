# SPDX-License-Identifier: BSD-3-Clause
"""What every procedure does with its trials: repeats, counts, and repeats requests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from linerate.experiments.rfc2544.presets import PRESETS
from linerate.host.errors import LinkError, TrialError, UsageError
from linerate.trial.search import throughput
from linerate.trial.search.back_to_back import back_to_back
from linerate.trial.search.device import Changed, Outcome
from linerate.trial.search.frame_loss import frame_loss
from linerate.trial.search.latency import latency
from linerate.trial.search.procedure import Result, Trials
from linerate.trial.search.recovery import recovery
from linerate.trial.search.simulated import Model, SimulatedForwarder

MODEL = Model(2e6, 1e7, random_loss=1e-8, spread=0.01, failing=0.1, tired_s=1, tired=0.2)


class Moody(SimulatedForwarder):
    """Fails the first trials."""

    def __init__(self, failures: int) -> None:
        super().__init__(Model(1e6, 1e7))
        self.failures = failures

    def send(self, pps: float, seconds: float, *, latency: bool = False) -> Outcome:
        if self.failures:
            self.failures -= 1
            raise LinkError("the link did not come up")
        return super().send(pps, seconds, latency=latency)


def test_a_trial_is_repeated_until_it_does_not_fail() -> None:
    trials = Trials(Moody(2), attempts=3)
    assert trials.send(1e5, 4).intended == 400_000
    effort = trials.effort()
    assert (effort.trials, effort.failed, effort.sent_s) == (1, 2, 12)


def test_its_error_leaves_when_every_attempt_failed() -> None:
    device = Moody(3)
    trials = Trials(device, attempts=3)
    with pytest.raises(TrialError, match="100000 packets/s for 4 s: 3 trials failed") as caught:
        trials.send(1e5, 4)
    assert caught.value.code == "link"
    assert device.failures == 0
    assert trials.effort().trials == 0
    # Each trial has its own attempts.
    assert trials.send(1e5, 4).lost == 0


def test_a_burst_of_nothing_is_no_trial() -> None:
    with pytest.raises(TrialError, match="nothing was sent"):
        Trials(SimulatedForwarder(Model(1e6, 1e7))).burst(0)


class Recorded:
    """Replays another device's answers; ends where they end."""

    def __init__(self, device: SimulatedForwarder | None, record: list[tuple[object, ...]]) -> None:
        self.device = device
        self.record = record
        self.left = list(record)

    @property
    def max_pps(self) -> float:
        return MODEL.max_pps

    def _answer(self, asked: tuple[object, ...], live: Callable[[], object]) -> object:
        if self.device is None:
            was_asked, answer = self.left.pop(0)
            assert was_asked == asked
        else:
            try:
                answer = live()
            except TrialError as error:
                answer = error
            self.record.append((asked, answer))
        if isinstance(answer, TrialError):
            raise answer
        return answer

    def send(self, pps: float, seconds: float, *, latency: bool = False) -> Outcome:
        device = self.device
        answer = self._answer(
            ("send", pps, seconds, latency),
            lambda: device and device.send(pps, seconds, latency=latency),
        )
        assert isinstance(answer, Outcome)
        return answer

    def burst(self, frames: int) -> Outcome:
        device = self.device
        answer = self._answer(("burst", frames), lambda: device and device.burst(frames))
        assert isinstance(answer, Outcome)
        return answer

    def change(self, pps: float, seconds: float, then_pps: float, then_seconds: float) -> Changed:
        device = self.device
        answer = self._answer(
            ("change", pps, seconds, then_pps, then_seconds),
            lambda: device and device.change(pps, seconds, then_pps, then_seconds),
        )
        assert isinstance(answer, Changed)
        return answer


PROCEDURES: dict[str, Callable[[Recorded], Result]] = {
    "conforming": lambda it: throughput.search(it, PRESETS["conforming"].goals, limit_s=60),
    "csit": lambda it: throughput.search(it, PRESETS["csit"].goals, limit_s=60),
    "frame loss": frame_loss,
    "back to back": lambda it: back_to_back(it, 2e6),
    "recovery": lambda it: recovery(it, 2e6),
    "latency": lambda it: latency(it, 1.9e6),
}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", PROCEDURES)
def test_the_same_outcomes_lead_to_the_same_trials_and_result(name: str, seed: int) -> None:
    """So that an interrupted search can be resumed from its records."""
    record: list[tuple[object, ...]] = []
    first = PROCEDURES[name](Recorded(SimulatedForwarder(MODEL, seed), record))
    assert record
    again = Recorded(None, record)
    assert PROCEDURES[name](again) == first
    assert again.left == []


def test_numbers_that_are_none_are_refused() -> None:
    with pytest.raises(UsageError, match="seconds"):
        frame_loss(SimulatedForwarder(MODEL), seconds=float("nan"))
