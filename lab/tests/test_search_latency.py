# SPDX-License-Identifier: BSD-3-Clause
"""Latency by load of forwarders whose latency is known."""

from __future__ import annotations

import math
import random
import statistics

import pytest

from linerate.host.errors import DisturbedError, UsageError
from linerate.trial.search.device import Latency, Outcome
from linerate.trial.search.latency import AtLoad, latency, supports
from linerate.trial.search.simulated import TAGS, Model, SimulatedForwarder

SEEDS = range(20)


def quantile_s(model: Model, pps: float, quantile: float) -> float:
    """A quantile of an exponential distribution added to a constant."""
    return model.latency_s - (model.jitter_s + model.wait_s(pps)) * math.log(1 - quantile)


def check(model: Model, at: AtLoad, repetitions: int) -> None:
    added = model.jitter_s + model.wait_s(at.pps)
    assert len(at.runs) == repetitions
    assert at.mean == statistics.fmean(run.mean for run in at.runs)
    # Five standard errors over all runs.
    error = added / (TAGS * repetitions) ** 0.5
    assert at.mean == pytest.approx(model.mean_latency_s(at.pps), abs=5 * error)
    assert at.minimum == min(run.minimum for run in at.runs)
    assert at.maximum == max(run.maximum for run in at.runs)
    assert model.latency_s <= at.minimum <= at.mean <= at.maximum
    for quantile in at.runs[0].quantiles:
        truth = quantile_s(model, at.pps, quantile)
        # A quantile's standard error: sqrt(q (1 - q) / n) over the density there, (1 - q) / added.
        error = added * math.sqrt(quantile / (1 - quantile) / TAGS)
        middle = statistics.median(run.quantiles[quantile] for run in at.runs)
        assert middle == pytest.approx(truth, abs=5 * error)


@pytest.mark.parametrize("seed", SEEDS)
def test_figures_are_those_of_the_model_at_every_load(seed: int) -> None:
    chance = random.Random(seed)
    model = Model(
        capacity_pps=1e7 * chance.uniform(0.1, 0.9),
        max_pps=1e7,
        latency_s=chance.uniform(1e-6, 1e-4),
        jitter_s=chance.uniform(1e-7, 1e-5),
    )
    device = SimulatedForwarder(model, seed)
    result = latency(device, model.capacity_pps * 0.99)
    assert (result.invalid, result.deviations) == (None, ())
    assert [at.share for at in result.loads] == [0.1, 0.5, 0.9, 1.0]
    for at in result.loads:
        assert at.pps == pytest.approx(at.share * 0.99 * model.capacity_pps)
        assert all(set(run.quantiles) == {0.5, 0.9, 0.99, 0.999} for run in at.runs)
        check(model, at, 20)
    means = [at.mean for at in result.loads]
    assert means == sorted(means)
    assert result.effort.trials == device.trials == 80
    assert result.effort.sent_s == pytest.approx(device.clock_s) == 80 * 120


class Journal(SimulatedForwarder):
    """Records the rates in order."""

    def __init__(self) -> None:
        super().__init__(Model(1e6, 1e7))
        self.rates: list[float] = []

    def send(self, pps: float, seconds: float, *, latency: bool = False) -> Outcome:
        self.rates.append(pps)
        return super().send(pps, seconds, latency=latency)


def test_the_loads_take_turns() -> None:
    device = Journal()
    latency(device, 1e6, repetitions=3, loads=(0.5, 1))
    assert device.rates == [5e5, 1e6] * 3


@pytest.mark.parametrize(("quantile", "least"), [(0.5, 5), (0.9, 29), (0.99, 299), (0.999, 2995)])
def test_a_quantile_needs_frames_enough(quantile: float, least: int) -> None:
    assert supports(least, quantile)
    assert not supports(least - 1, quantile)


def test_quantiles_that_a_run_does_not_support_are_absent() -> None:
    result = latency(SimulatedForwarder(Model(1e6, 1e7)), 1e3, seconds=1, repetitions=2, loads=(1,))
    (at,) = result.loads
    assert [run.count for run in at.runs] == [1000, 1000]
    assert [set(run.quantiles) for run in at.runs] == [{0.5, 0.9, 0.99}] * 2


class Uneven(SimulatedForwarder):
    """In every second run there are few frames."""

    def send(self, pps: float, seconds: float, *, latency: bool = False) -> Outcome:
        self.trials += 1
        count = 100 if self.trials % 2 else 4
        return Outcome(100, count, seconds, Latency(count, 1, 2, 3, {0.5: 2, 0.9: 2.5}))


def test_each_run_has_the_quantiles_that_it_supports() -> None:
    (at,) = latency(Uneven(Model(1e6, 1e7)), 1e6, repetitions=4, loads=(1,)).loads
    assert [set(run.quantiles) for run in at.runs] == [{0.5, 0.9}, set()] * 2


class Timeless(SimulatedForwarder):
    def send(self, pps: float, seconds: float, *, latency: bool = False) -> Outcome:
        return super().send(pps, seconds)


def test_a_device_that_measures_no_latency_is_invalid() -> None:
    result = latency(Timeless(Model(1e6, 1e7)), 1e6)
    assert result.invalid is not None
    assert "no frame came back with its latency" in result.invalid.reason
    assert result.loads == ()
    assert result.effort.failed == 3


def test_short_few_and_elsewhere_does_not_conform() -> None:
    result = latency(
        SimulatedForwarder(Model(1e6, 1e7)), 1e6, seconds=1, repetitions=2, loads=(0.5,)
    )
    assert len(result.deviations) == 3


@pytest.mark.parametrize("loads", [(), (0,), (1.1,), (0.5, 0.5)])
def test_senseless_loads_are_refused(loads: tuple[float, ...]) -> None:
    with pytest.raises(UsageError, match="loads"):
        latency(SimulatedForwarder(Model(1e6, 1e7)), 1e6, loads=loads)


class Hurried(SimulatedForwarder):
    """The sender keeps no more than 600,000 packets/s."""

    def send(self, pps: float, seconds: float, *, latency: bool = False) -> Outcome:
        if pps > 600_000:
            raise DisturbedError("12 windows were all disturbed")
        return super().send(pps, seconds, latency=latency)


def test_a_load_that_cannot_be_tried_leaves_the_others() -> None:
    device = Hurried(Model(1e6, 1e7))
    result = latency(device, 1e6, seconds=1, repetitions=2, bounds=True)
    assert [each.share for each in result.loads] == [0.1, 0.5]
    assert [len(each.runs) for each in result.loads] == [2, 2]
    assert result.invalid is not None
    assert latency(device, 1e6, seconds=1, repetitions=2).loads == ()
