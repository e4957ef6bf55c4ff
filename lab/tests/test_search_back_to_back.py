# SPDX-License-Identifier: BSD-3-Clause
"""The longest burst of forwarders whose queue is known."""

from __future__ import annotations

import random
import statistics
from typing import Any

import pytest

from linerate.host.errors import DisturbedError, UsageError
from linerate.trial.search.back_to_back import back_to_back
from linerate.trial.search.device import Outcome
from linerate.trial.search.simulated import Model, SimulatedForwarder

SEEDS = range(40)


def some_model(seed: int) -> Model:
    chance = random.Random(seed)
    return Model(
        capacity_pps=1e7 * chance.uniform(0.01, 0.95),
        max_pps=1e7,
        queue=chance.choice((2, 32, 100, 1000, 4096)),
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_finds_the_longest_burst_to_the_frame(seed: int) -> None:
    model = some_model(seed)
    device = SimulatedForwarder(model, seed)
    result = back_to_back(device, repetitions=3)
    longest = model.longest_burst()
    assert result.lengths == (longest,) * 3
    assert result.mean == longest
    assert result.effort.trials == device.trials
    assert result.effort.sent_s == pytest.approx(device.clock_s)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_coarser_resolution_is_kept_to(seed: int) -> None:
    model = some_model(seed)
    longest = model.longest_burst()
    assert longest is not None
    (length,) = back_to_back(SimulatedForwarder(model), repetitions=1, resolution=50).lengths
    assert length <= longest < length + 50


@pytest.mark.parametrize("seed", SEEDS)
def test_the_corrected_time_is_that_of_the_queue(seed: int) -> None:
    """RFC 9004 subtracts what was sent while the burst arrived: the rest is the queue."""
    model = some_model(seed)
    result = back_to_back(SimulatedForwarder(model), model.capacity_pps, repetitions=1)
    assert result.implied_s is not None
    assert result.corrected_s is not None
    assert result.implied_s == result.lengths[0] / 1e7
    # A frame or two at the edge of the burst.
    assert result.corrected_s * 1e7 == pytest.approx(model.queue, abs=2)


@pytest.mark.parametrize("seed", SEEDS)
def test_repetitions_of_a_varying_device_spread_about_its_burst(seed: int) -> None:
    model = Model(capacity_pps=5e6, max_pps=1e7, queue=500, spread=0.02)
    result = back_to_back(SimulatedForwarder(model, seed), 5e6)
    assert len(result.lengths) == 50
    assert (result.invalid, result.deviations) == (None, ())
    assert result.mean == pytest.approx(statistics.fmean(result.lengths))
    # 2 % of the capacity is 2 % of the burst here, and repetitions are independent.
    assert result.mean == pytest.approx(1000, rel=0.02)
    assert 0.002 < statistics.stdev(result.lengths) / 1000 < 0.04


def test_a_device_as_fast_as_the_link_has_no_longest_burst() -> None:
    device = SimulatedForwarder(Model(capacity_pps=1e7, max_pps=1e7))
    result = back_to_back(device, 1e7, repetitions=2)
    assert result.lengths == (20_000_000, 20_000_000)
    assert result.limit == 20_000_000
    assert result.at_limit == 2
    assert result.corrected_s is None


def test_without_a_throughput_there_is_no_corrected_time() -> None:
    result = back_to_back(SimulatedForwarder(some_model(1)), repetitions=1)
    assert result.implied_s is not None
    assert result.corrected_s is None


class Deaf(SimulatedForwarder):
    def burst(self, frames: int) -> Outcome:
        return Outcome(frames, 0, frames / self.max_pps)


def test_a_device_that_passes_not_one_frame_is_invalid_and_has_no_length() -> None:
    result = back_to_back(Deaf(Model(1e6, 1e7)))
    assert result.invalid is not None
    assert "a single frame was lost" in result.invalid.reason
    assert result.lengths == ()
    assert result.mean is None
    assert result.implied_s is None


def test_trials_that_go_on_failing_make_it_invalid() -> None:
    result = back_to_back(SimulatedForwarder(Model(1e6, 1e7, failing=0.9)))
    assert result.invalid is not None
    assert result.mean is None


def test_fewer_repetitions_and_shorter_bursts_do_not_conform() -> None:
    result = back_to_back(SimulatedForwarder(some_model(2)), repetitions=5, longest_s=0.5)
    assert len(result.deviations) == 2


@pytest.mark.parametrize("name", ["repetitions", "longest_s", "resolution"])
def test_senseless_parameters_are_refused(name: str) -> None:
    wrong: dict[str, Any] = {name: 0}
    with pytest.raises(UsageError, match=name):
        back_to_back(SimulatedForwarder(some_model(1)), **wrong)


class Gappy(SimulatedForwarder):
    """A sender that cannot send bursts of more than `most` frames without a gap."""

    def __init__(self, model: Model, most: int) -> None:
        super().__init__(model)
        self._most = most

    def burst(self, frames: int) -> Outcome:
        if frames > self._most:
            raise DisturbedError("12 windows were all disturbed")
        return super().burst(frames)


def test_where_longer_bursts_have_gaps_the_longest_that_passed_is_a_lower_bound() -> None:
    model = Model(capacity_pps=5e6, max_pps=1e7, queue=1000)
    result = back_to_back(Gappy(model, 700), 5e6, repetitions=2, bounds=True)
    assert result.invalid is None
    assert (result.lengths, result.disturbed, result.at_limit) == ((512, 512), 2, 0)
    assert result.implied_s is not None
    assert result.corrected_s is None
    # Each length with a gap was tried once, which is the device's limit.
    assert result.effort.failed == 2


def test_gaps_above_the_longest_burst_change_nothing() -> None:
    model = Model(capacity_pps=5e6, max_pps=1e7, queue=100)
    longest = model.longest_burst()
    assert longest is not None
    result = back_to_back(Gappy(model, 300), 5e6, repetitions=2, bounds=True)
    assert (result.lengths, result.disturbed) == ((longest, longest), 0)


@pytest.mark.parametrize("most", [0, 700])
def test_a_run_that_knew_no_bounds_ends_at_the_first_gap(most: int) -> None:
    model = Model(capacity_pps=5e6, max_pps=1e7, queue=1000)
    result = back_to_back(Gappy(model, most), repetitions=1, bounds=most == 0)
    assert result.invalid is not None
    assert result.lengths == ()
