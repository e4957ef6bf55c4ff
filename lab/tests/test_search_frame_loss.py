# SPDX-License-Identifier: BSD-3-Clause
"""Frame loss by load of forwarders whose loss is known."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from linerate.host.errors import DisturbedError, UsageError
from linerate.trial.search.device import Outcome
from linerate.trial.search.frame_loss import frame_loss
from linerate.trial.search.simulated import Model, SimulatedForwarder

SEEDS = range(40)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_loss_at_each_load_is_that_of_the_queue(seed: int) -> None:
    chance = random.Random(seed)
    model = Model(capacity_pps=1e7 * chance.uniform(0.05, 1.2), max_pps=1e7, queue=512)
    result = frame_loss(SimulatedForwarder(model, seed), seconds=10, step=0.05)
    for point in result.points:
        # Frames that neither leave in time nor fit into the queue, to within two.
        lost = max(point.pps * 10 - model.capacity_pps * 10 - model.queue, 0)
        assert point.loss_ratio * point.intended == pytest.approx(lost, abs=2)
        assert point.intended - point.received == pytest.approx(lost, abs=2)
        assert point.pps == pytest.approx(1e7 * point.share)


@pytest.mark.parametrize("seed", SEEDS)
def test_goes_down_in_equal_steps_until_two_trials_in_a_row_lose_nothing(seed: int) -> None:
    chance = random.Random(seed)
    step = chance.choice((0.1, 0.07, 0.05, 0.03))
    model = Model(capacity_pps=1e7 * chance.uniform(0.3, 1.2), max_pps=1e7)
    result = frame_loss(SimulatedForwarder(model, seed), step=step)
    shares = [point.share for point in result.points]
    assert shares[0] == 1
    assert shares == pytest.approx([1 - step * index for index in range(len(shares))])
    clean = [point.loss_ratio == 0 for point in result.points]
    assert result.clean
    assert clean[-2:] == [True, True]
    assert not any(first and second for first, second in pairwise(clean[:-1]))
    assert result.effort.trials == len(shares)
    assert result.effort.sent_s == 60 * len(shares)
    assert (result.invalid, result.deviations) == (None, ())


def test_a_device_that_always_loses_is_followed_to_the_last_step() -> None:
    result = frame_loss(SimulatedForwarder(Model(1e7, 1e7, random_loss=0.01)), step=0.1)
    assert [round(point.share, 6) for point in result.points] == [
        1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1,
    ]  # fmt: skip
    assert not result.clean
    assert all(point.loss_ratio == pytest.approx(0.01, rel=0.05) for point in result.points)


def test_one_clean_trial_between_lossy_ones_does_not_end_it() -> None:
    """Of about a hundred seeds that lose in every second trial, none stops at a clean one."""
    for seed in range(100):
        model = Model(1e7, 1e7, random_loss=1e-7)
        points = frame_loss(SimulatedForwarder(model, seed), seconds=1).points
        clean = [point.loss_ratio == 0 for point in points]
        assert clean[-2:] == [True, True] or len(points) == 10


def test_a_trial_that_goes_on_failing_ends_it_with_the_points_so_far() -> None:
    result = frame_loss(SimulatedForwarder(Model(1e6, 1e7, failing=0.5), 3), attempts=2)
    assert result.invalid is not None
    assert "2 trials failed" in result.invalid.reason
    assert not result.clean
    assert len(result.points) == result.effort.trials


def test_short_trials_do_not_conform() -> None:
    result = frame_loss(SimulatedForwarder(Model(1e6, 1e7)), seconds=1)
    assert result.deviations == ("trials of seconds: 1 instead of 60 (RFC 2544, 24)",)


@pytest.mark.parametrize("step", [0, -0.1, 0.11, float("nan")])
def test_steps_that_the_rfc_forbids_are_refused(step: float) -> None:
    with pytest.raises(UsageError, match="step"):
        frame_loss(SimulatedForwarder(Model(1e6, 1e7)), step=step)


class Hurried(SimulatedForwarder):
    """The sender is late at 80 % of what it can send."""

    def send(self, pps: float, seconds: float, *, latency: bool = False) -> Outcome:
        if round(pps / self.max_pps, 6) == 0.8:
            raise DisturbedError("12 windows were all disturbed")
        return super().send(pps, seconds, latency=latency)


def test_a_load_that_cannot_be_tried_leaves_those_below_it() -> None:
    model = Model(capacity_pps=8.5e6, max_pps=1e7, queue=2)
    result = frame_loss(Hurried(model), seconds=1, bounds=True)
    # Two in a row must be adjacent loads: 90 % loses, 80 % is unknown.
    assert [round(each.share, 6) for each in result.points] == [1, 0.9, 0.7, 0.6]
    assert result.clean
    assert result.invalid is not None
    before = frame_loss(Hurried(model), seconds=1)
    assert [round(each.share, 6) for each in before.points] == [1, 0.9]
