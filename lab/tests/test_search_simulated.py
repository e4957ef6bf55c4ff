# SPDX-License-Identifier: BSD-3-Clause
"""The simulated forwarder against a queue that is simulated frame by frame."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from linerate.host.errors import TrialError, UsageError
from linerate.trial.search.device import ChangingDevice, Device
from linerate.trial.search.simulated import Model, SimulatedForwarder

SEEDS = range(40)


def followed(frames: int, pps: int, capacity_pps: int, queue: int) -> int:
    """How many of evenly spaced frames a single server with this queue accepts."""
    leaving: list[Fraction] = []
    accepted = 0
    for index in range(frames):
        now = Fraction(index, pps)
        leaving = [at for at in leaving if at > now]
        if len(leaving) < queue:
            free = leaving[-1] if leaving else now
            leaving.append(free + Fraction(1, capacity_pps))
            accepted += 1
    return accepted


@pytest.mark.parametrize("queue", [2, 3, 7, 32])
@pytest.mark.parametrize("pps", [500, 999, 1000, 1001, 1100, 1700, 3000, 12345])
def test_accepts_what_a_queue_followed_frame_by_frame_accepts(pps: int, queue: int) -> None:
    model = Model(capacity_pps=1000, max_pps=20000, queue=queue)
    for frames in (1, 2, 3, 10, 33, 34, 100, 301):
        assert model.accepted(frames, pps) == followed(frames, pps, 1000, queue), frames


@pytest.mark.parametrize("capacity", [100, 500, 900, 999])
def test_the_longest_burst_passes_and_one_more_frame_does_not(capacity: int) -> None:
    model = Model(capacity_pps=capacity, max_pps=1000, queue=16)
    longest = model.longest_burst()
    assert longest is not None
    assert followed(longest, 1000, capacity, 16) == longest
    assert followed(longest + 1, 1000, capacity, 16) == longest


def test_every_burst_passes_at_the_rate_of_the_link() -> None:
    assert Model(capacity_pps=1000, max_pps=1000).longest_burst() is None


def test_is_what_procedures_ask_for() -> None:
    device: Device = SimulatedForwarder(Model(1e6, 2e6))
    changing: ChangingDevice = SimulatedForwarder(Model(1e6, 2e6))
    assert device.max_pps == changing.max_pps == 2e6


def test_short_overloads_pass_and_long_ones_do_not() -> None:
    device = SimulatedForwarder(Model(capacity_pps=1e6, max_pps=2e6, queue=1000))
    assert device.send(1.1e6, 0.009).lost == 0
    assert device.send(1.1e6, 0.011).lost > 0
    # In the long run the excess is lost, except what the queue holds.
    assert device.send(2e6, 10).lost == pytest.approx(1e7 - 1000, abs=1)


def test_one_seed_and_the_same_calls_give_the_same_outcomes() -> None:
    def outcomes(seed: int) -> list[object]:
        device = SimulatedForwarder(
            Model(1e6, 2e6, random_loss=1e-5, spread=0.01, failing=0.2), seed
        )
        seen: list[object] = []
        for pps in (5e5, 9e5, 1.2e6, 2e6) * 5:
            try:
                seen.append(device.send(pps, 1, latency=True))
            except TrialError as error:
                seen.append(error.message)
        return seen

    assert outcomes(1) == outcomes(1)
    assert outcomes(1) != outcomes(2)


def test_loses_by_chance_and_fails_as_often_as_it_says() -> None:
    lost = failed = 0
    for seed in SEEDS:
        device = SimulatedForwarder(Model(1e6, 2e6, random_loss=1e-4, failing=0.25), seed)
        for _ in range(10):
            try:
                lost += device.send(5e5, 1).lost
            except TrialError:
                failed += 1
    # Five standard deviations of the binomials.
    trials = 10 * len(SEEDS)
    assert failed == pytest.approx(0.25 * trials, abs=5 * (trials * 0.25 * 0.75) ** 0.5)
    frames = (trials - failed) * 500_000
    assert lost == pytest.approx(frames * 1e-4, abs=5 * (frames * 1e-4) ** 0.5)


def test_latency_rises_with_the_load() -> None:
    device = SimulatedForwarder(Model(1e6, 2e6, queue=512))
    means = []
    for pps in (1e5, 5e5, 9e5, 1.5e6):
        measured = device.send(pps, 1, latency=True).latency
        assert measured is not None
        assert device.model.latency_s <= measured.minimum < measured.mean < measured.maximum
        expected = device.model.mean_latency_s(pps)
        # The added part is exponential, so its standard deviation is its mean.
        error = (expected - device.model.latency_s) / measured.count**0.5
        assert measured.mean == pytest.approx(expected, abs=5 * error)
        means.append(measured.mean)
    assert means == sorted(means)
    assert device.send(1e5, 1).latency is None


@pytest.mark.parametrize(
    "fields", [{"queue": 1}, {"capacity_pps": 0.0}, {"max_pps": -1.0}], ids=str
)
def test_refuses_a_forwarder_that_cannot_be(fields: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="a simulated forwarder"):
        Model(**{"capacity_pps": 1e6, "max_pps": 2e6, **fields})


def test_refuses_what_the_link_does_not_carry() -> None:
    device = SimulatedForwarder(Model(1e6, 2e6))
    with pytest.raises(UsageError, match="carries up to 2000000"):
        device.send(2.1e6, 1)
    with pytest.raises(UsageError, match="carries up to"):
        device.change(1e6, 1, 3e6, 1)


def test_the_queue_holds_a_change_of_rate_as_it_holds_a_trial() -> None:
    """A change to the same rate loses what one trial of the whole length loses."""
    model = Model(1e6, 2e6, queue=1000)
    changed = SimulatedForwarder(model).change(1.5e6, 2, 1.5e6, 3)
    whole = SimulatedForwarder(model).send(1.5e6, 5)
    assert changed.before.lost + changed.after.lost == pytest.approx(whole.lost, abs=2)
    assert changed.last_lost == pytest.approx(3)


def test_nothing_is_lost_after_a_change_to_a_rate_that_fits() -> None:
    changed = SimulatedForwarder(Model(1e6, 2e6)).change(1.5e6, 2, 5e5, 3)
    assert changed.before.lost > 0
    assert changed.after.lost == 0
    assert changed.last_lost is None
