# SPDX-License-Identifier: BSD-3-Clause
"""Recovery from an overload of forwarders whose recovery is known."""

from __future__ import annotations

import random
from typing import Any

import pytest

from linerate.host.errors import UsageError
from linerate.trial.search.device import Changed, Outcome
from linerate.trial.search.recovery import recovery
from linerate.trial.search.simulated import Model, SimulatedForwarder

SEEDS = range(40)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_recovery_time_is_how_long_the_device_stays_tired(seed: int) -> None:
    """At 0.55 of its throughput a device that keeps less than half of itself goes on losing."""
    chance = random.Random(seed)
    tired_s = chance.uniform(0.001, 20)
    model = Model(
        capacity_pps=chance.uniform(1e5, 8e6),
        max_pps=1e7,
        tired_s=tired_s,
        tired=chance.uniform(0, 0.5),
    )
    device = SimulatedForwarder(model, seed)
    result = recovery(device, model.capacity_pps, repetitions=3)
    assert result.invalid is None
    assert result.mean == pytest.approx(tired_s)
    assert [each.seconds for each in result.repetitions] == pytest.approx([tired_s] * 3)
    assert [each.state for each in result.repetitions] == ["recovered"] * 3
    assert result.overload_pps == pytest.approx(1.1 * model.capacity_pps)
    # Half of the overload's rate, as in the RFC, not of the throughput.
    assert result.reduced_pps == pytest.approx(0.55 * model.capacity_pps)
    assert result.effort.sent_s == pytest.approx(device.clock_s) == 3 * 90
    assert (result.invalid, result.deviations) == (None, ())


@pytest.mark.parametrize("seed", SEEDS)
def test_a_device_that_never_tires_recovers_at_once(seed: int) -> None:
    model = Model(capacity_pps=random.Random(seed).uniform(1e5, 8e6), max_pps=1e7)
    result = recovery(SimulatedForwarder(model, seed), model.capacity_pps)
    assert [each.state for each in result.repetitions] == ["recovered"] * 10
    assert result.mean == 0


def test_a_device_that_loses_to_the_end_has_not_recovered() -> None:
    model = Model(1e6, 1e7, tired_s=100, tired=0.2)
    result = recovery(SimulatedForwarder(model), 1e6, watched_s=10, repetitions=2)
    assert [each.state for each in result.repetitions] == ["not_recovered"] * 2
    assert result.mean is None
    assert all(each.seconds is None for each in result.repetitions)


def test_a_device_as_fast_as_the_link_cannot_be_overloaded() -> None:
    result = recovery(SimulatedForwarder(Model(2e7, 1e7)), 1e7)
    assert result.overload_pps == 1e7
    assert {each.state for each in result.repetitions} == {"not_overloaded"}
    assert result.mean is None


def test_one_repetition_without_a_time_leaves_no_mean() -> None:
    """The mean of those that did recover would be too good."""
    # Random loss only: in some repetitions the last loss is near the end.
    model = Model(1e6, 1e7, random_loss=1e-7)
    result = recovery(SimulatedForwarder(model, 1), 1e6, repetitions=30)
    states = {each.state for each in result.repetitions}
    assert states == {"recovered", "not_recovered"}
    assert result.mean is None


class Vague(SimulatedForwarder):
    def change(self, pps: float, seconds: float, then_pps: float, then_seconds: float) -> Changed:
        self.trials += 1
        return Changed(Outcome(100, 90, seconds), Outcome(100, 90, then_seconds), None)


def test_loss_that_nobody_knows_the_time_of_is_invalid() -> None:
    device = Vague(Model(1e6, 1e7))
    result = recovery(device, 1e6)
    assert device.trials == 3
    assert result.invalid is not None
    assert "not known when" in result.invalid.reason
    assert result.mean is None
    assert result.repetitions == ()


def test_a_short_overload_and_a_single_repetition_do_not_conform() -> None:
    result = recovery(SimulatedForwarder(Model(1e6, 1e7)), 1e6, overload_s=1, repetitions=1)
    assert len(result.deviations) == 2


@pytest.mark.parametrize("name", ["overload_s", "watched_s", "repetitions"])
def test_senseless_parameters_are_refused(name: str) -> None:
    wrong: dict[str, Any] = {name: 0}
    with pytest.raises(UsageError, match=name):
        recovery(SimulatedForwarder(Model(1e6, 1e7)), 1e6, **wrong)
    with pytest.raises(UsageError, match="throughput_pps"):
        recovery(SimulatedForwarder(Model(1e6, 1e7)), 0)
