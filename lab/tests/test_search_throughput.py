# SPDX-License-Identifier: BSD-3-Clause
"""Searches for the throughput of forwarders whose capacity is known."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from linerate.experiments.rfc2544.presets import PRESETS
from linerate.host.errors import DisturbedError, ProcessError, UsageError
from linerate.trial.search import throughput
from linerate.trial.search.device import Outcome
from linerate.trial.search.goals import Goal
from linerate.trial.search.simulated import Model, SimulatedForwarder
from linerate.trial.search.throughput import Found, Throughput, Tried, held

SEEDS = range(30)


def search(model: Model, preset: str, seed: int = 0) -> Throughput:
    device = SimulatedForwarder(model, seed)
    chosen = PRESETS[preset]
    return throughput.search(device, chosen.goals, limit_s=chosen.limit_s)


def some_model(seed: int) -> Model:
    """A capacity between a hundredth of the line rate and 98 % of it."""
    chance = random.Random(seed)
    return Model(
        capacity_pps=1e7 * 10 ** chance.uniform(-2, -0.01),
        max_pps=1e7,
        queue=chance.choice((2, 64, 512, 4096)),
    )


def holds(found: Found, truth: float, goal: Goal) -> bool:
    """Check that the true value is between the bounds, which are as close as requested."""
    assert found.state == "found"
    assert found.lower_pps is not None
    assert found.upper_pps is not None
    assert found.width is not None
    return found.lower_pps <= truth <= found.upper_pps and found.width <= goal.width


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_capacity_lies_between_the_bounds(preset: str, seed: int) -> None:
    model = some_model(seed)
    result = search(model, preset, seed)
    assert result.invalid is None
    assert set(result.found) == {goal.name for goal in PRESETS[preset].goals}
    for goal in PRESETS[preset].goals:
        found = result.found[goal.name]
        truth = model.lossless_pps(goal.final_s, goal.loss_ratio)
        # Rounding to whole frames may shift the edge by two frames of a trial.
        edge = 2 / goal.final_s
        assert holds(found, truth + edge, goal) or holds(found, truth - edge, goal)
        assert found.conditional_pps is not None
        if goal.loss_ratio == 0:
            assert found.conditional_pps == found.lower_pps
        else:
            # The rate received at the bound: less than was sent, and no more than can pass.
            assert found.lower_pps is not None
            share = found.conditional_pps / found.lower_pps
            assert 1 - goal.loss_ratio <= share <= 1
            assert found.conditional_pps <= model.lossless_pps(goal.final_s) + edge


@pytest.mark.parametrize("seed", SEEDS)
def test_the_csit_goals_bear_rare_loss_and_the_rfc_does_not_exceed(seed: int) -> None:
    """A frame in 10^8 is lost by chance: few of the trials of a second, most of those of 60."""
    model = Model(capacity_pps=2e6, max_pps=1e7, random_loss=1e-8)
    csit = search(model, "csit", seed)
    for goal in PRESETS["csit"].goals:
        truth = model.lossless_pps(goal.final_s, goal.loss_ratio)
        assert holds(csit.found[goal.name], truth, goal)
    # Goals without an exceed ratio take each lossy trial for an upper bound, here correctly.
    strict = search(model, "conforming", seed).found["throughput"]
    assert strict.upper_pps is not None
    assert strict.upper_pps <= model.lossless_pps(60) / (1 - 0.005)
    assert strict.width is None or strict.width <= 0.005


@pytest.mark.parametrize("seed", SEEDS)
def test_a_capacity_that_varies_is_found_within_its_spread(seed: int) -> None:
    """If half of the trials may exceed, the search ends near the median."""
    model = Model(capacity_pps=2e6, max_pps=1e7, spread=0.02)
    found = search(model, "csit", seed).found["NDR"]
    assert found.lower_pps is not None
    # Seven loads near the edge, each by its own 21 trials: the median errs by 0.02 * 1.25 / 4.6.
    assert found.lower_pps == pytest.approx(model.lossless_pps(1), rel=0.03)


def test_the_greatest_load_that_loses_nothing_is_a_lower_bound_only() -> None:
    result = search(Model(capacity_pps=2e7, max_pps=1e7), "csit")
    for found in result.found.values():
        assert (found.state, found.lower_pps, found.upper_pps) == ("at_maximum", 1e7, None)
        assert found.width is None
        assert found.conditional_pps == 1e7


def test_the_least_load_that_loses_is_an_upper_bound_only() -> None:
    result = search(Model(capacity_pps=100, max_pps=1e7, queue=2), "csit")
    assert result.invalid is None
    for found in result.found.values():
        assert (found.state, found.lower_pps, found.upper_pps) == ("below_minimum", None, 1e4)
        assert found.conditional_pps is None


def test_one_goal_that_is_missed_leaves_the_other_found() -> None:
    """Random loss of 0.1 % keeps every load from NDR, and none from PDR."""
    model = Model(capacity_pps=2e6, max_pps=1e7, random_loss=0.001)
    result = search(model, "csit")
    assert result.found["NDR"].state == "below_minimum"
    pdr = result.found["PDR"]
    # The goal allows the random loss.
    truth = model.lossless_pps(1) * (1 - 0.001) / (1 - 0.005)
    assert pdr.lower_pps is not None
    assert pdr.lower_pps == pytest.approx(truth, rel=0.006)


@pytest.mark.parametrize("seed", SEEDS)
def test_failed_trials_are_repeated_and_change_nothing(seed: int) -> None:
    model = some_model(seed)
    clean = search(model, "conforming", seed)
    device = SimulatedForwarder(replace(model, failing=0.2), seed)
    preset = PRESETS["conforming"]
    result = throughput.search(device, preset.goals, limit_s=preset.limit_s, attempts=20)
    assert result.found == clean.found
    assert result.effort.trials == clean.effort.trials
    assert result.effort.trials + result.effort.failed == device.trials
    assert result.effort.sent_s == pytest.approx(device.clock_s)


class Dead(SimulatedForwarder):
    def send(self, pps: float, seconds: float, *, latency: bool = False) -> Outcome:
        self.trials += 1
        raise ProcessError("the forwarder ended with status 1")


def test_trials_that_go_on_failing_make_the_search_invalid() -> None:
    device = Dead(Model(1e6, 1e7))
    result = throughput.search(device, PRESETS["csit"].goals, limit_s=60, attempts=3)
    assert device.trials == 3
    assert result.found == {}
    assert result.invalid is not None
    assert result.invalid.code == "ended"
    assert "3 trials failed" in result.invalid.reason
    assert "ended with status 1" in result.invalid.reason


class Silent(SimulatedForwarder):
    def send(self, pps: float, seconds: float, *, latency: bool = False) -> Outcome:
        return Outcome(0, 0, seconds)


def test_a_sender_that_sends_nothing_makes_the_search_invalid() -> None:
    result = throughput.search(Silent(Model(1e6, 1e7)), PRESETS["csit"].goals, limit_s=60)
    assert result.invalid is not None
    assert "nothing was sent" in result.invalid.reason


def test_a_search_that_takes_too_long_is_invalid() -> None:
    device = SimulatedForwarder(Model(1e6, 1e7))
    result = throughput.search(device, PRESETS["csit"].goals, limit_s=1e-9)
    assert result.invalid is not None
    assert "takes too long" in result.invalid.reason
    assert result.found == {}


def test_only_the_conforming_preset_conforms() -> None:
    assert search(some_model(1), "conforming").deviations == ()
    for preset in ("csit", "quick"):
        result = search(some_model(1), preset)
        assert any("instead of 60" in each for each in result.deviations)
        assert any("may lose more" in each for each in result.deviations)


def test_a_width_below_the_loss_ratio_is_refused() -> None:
    with pytest.raises(UsageError, match=r"goal PDR: the width 0\.001 is below the loss"):
        Goal("PDR", 0.005, 0.5, 0.001, 1, 1, 21)


@pytest.mark.parametrize(
    ("field", "value"),
    [("loss_ratio", -0.1), ("exceed_ratio", 1), ("width", 0), ("initial_s", 2), ("sum_s", 0.5)],
)
def test_goals_that_cannot_be_searched_for_are_refused(field: str, value: Any) -> None:
    goal = Goal("NDR", 0, 0.5, 0.005, 1, 1, 21)
    with pytest.raises(UsageError, match="goal NDR"):
        replace(goal, **{field: value})


@pytest.mark.parametrize(("least", "greatest"), [(0, 1e6), (1e6, 1e6), (2e6, 1e6), (1, 2e7)])
def test_loads_that_cannot_be_searched_are_refused(least: float, greatest: float) -> None:
    device = SimulatedForwarder(Model(1e6, 1e7))
    with pytest.raises(UsageError, match="loads from"):
        throughput.search(
            device, PRESETS["csit"].goals, limit_s=60, min_pps=least, max_pps=greatest
        )
    assert device.trials == 0


def test_goals_of_one_name_are_refused_and_equal_ones_are_not() -> None:
    goal = PRESETS["conforming"].goals[0]
    device = SimulatedForwarder(Model(1e6, 1e7))
    with pytest.raises(UsageError, match="a name of its own"):
        throughput.search(device, (goal, goal), limit_s=60)
    result = throughput.search(device, (goal, replace(goal, name="again")), limit_s=60)
    assert result.found["again"].lower_pps == result.found["throughput"].lower_pps


class Kept(SimulatedForwarder):
    """The sender keeps up to `most` packets/s and not a frame more."""

    def __init__(self, model: Model, most: float) -> None:
        super().__init__(model)
        self._most = most
        self.refused: list[float] = []

    def send(self, pps: float, seconds: float, *, latency: bool = False) -> Outcome:
        if pps > self._most:
            self.refused.append(pps)
            raise DisturbedError("12 windows were all disturbed")
        return super().send(pps, seconds, latency=latency)


QUICK = PRESETS["quick"]


def search_kept(model: Model, most: float) -> tuple[Throughput, Kept]:
    device = Kept(model, most)
    return throughput.search(device, QUICK.goals, limit_s=30, bounds=True), device


@pytest.mark.parametrize("seed", SEEDS)
def test_loads_that_cannot_be_tried_above_the_capacity_change_nothing(seed: int) -> None:
    model = replace(some_model(seed), queue=2)
    result, _ = search_kept(model, (model.capacity_pps * 1.1 + 1e7) / 2)
    for goal in QUICK.goals:
        truth = model.lossless_pps(goal.final_s, goal.loss_ratio)
        edge = 2 / goal.final_s
        found = result.found[goal.name]
        assert holds(found, truth + edge, goal) or holds(found, truth - edge, goal)
    assert (result.invalid, result.held) == (None, {})


@pytest.mark.parametrize("seed", SEEDS)
def test_below_the_capacity_the_greatest_load_that_could_be_tried_is_a_lower_bound(
    seed: int,
) -> None:
    model = some_model(seed)
    most = model.capacity_pps / 2
    result, device = search_kept(model, most)
    assert result.invalid is None
    for found in result.found.values():
        assert found.state == "disturbed_above"
        assert found.upper_pps is None
        assert found.lower_pps is not None
        assert most * (1 - found.goal.width) * 0.99 <= found.lower_pps <= most
        assert result.carried(found.goal.name) == found.lower_pps
    # No load is tried again once a lower one could not be sent.
    assert device.refused == sorted(set(device.refused), reverse=True)


def test_a_search_of_an_earlier_version_ends_where_a_load_could_not_be_tried() -> None:
    result = throughput.search(Kept(Model(5e6, 1e7), 2e6), QUICK.goals, limit_s=30)
    assert result.invalid is not None
    assert (result.found, result.held, result.carried("NDR")) == ({}, {}, None)


def test_a_sender_that_keeps_no_load_at_all_has_no_bound() -> None:
    result, _ = search_kept(Model(5e6, 1e7), 0.0)
    # And no rate of 0, which would look like a result.
    assert result.found == {}
    assert result.invalid is not None
    assert "disturbed" in result.invalid.reason
    assert result.held == {}
    assert result.carried("NDR") is None


class Worn(SimulatedForwarder):
    """The sender is on time in `good` trials, and in none later."""

    def __init__(self, good: int) -> None:
        super().__init__(Model(capacity_pps=5e6, max_pps=1e7))
        self._good = good

    def send(self, pps: float, seconds: float, *, latency: bool = False) -> Outcome:
        self._good -= 1
        if self._good < 0:
            raise ProcessError("the forwarder ended")
        return super().send(pps, seconds, latency=latency)


def test_a_search_that_fails_half_way_has_what_kept_to_the_goal_until_then() -> None:
    result = throughput.search(Worn(9), QUICK.goals, limit_s=30, bounds=True)
    assert result.invalid is not None
    assert result.found == {}
    bound = result.held["NDR"]
    assert 2.5e6 < bound <= Model(5e6, 1e7).lossless_pps(0.1) + 20
    assert result.carried("NDR") == bound


def test_the_least_load_that_loses_leaves_the_one_trial_that_did_not() -> None:
    """Two of three trials lose a frame at any load: none reaches a goal that allows none."""

    class Ill(SimulatedForwarder):
        def send(self, pps: float, seconds: float, *, latency: bool = False) -> Outcome:
            found = super().send(pps, seconds, latency=latency)
            lost = int(self.trials % 3 > 0)
            return replace(found, received=found.received - lost)

    goal = Goal("none", 0, 0, 0.01, 0.1, 0.1, 0.5)
    result = throughput.search(Ill(Model(5e6, 1e7)), [goal], limit_s=30, bounds=True)
    found = result.found["none"]
    assert (found.state, found.lower_pps) == ("below_minimum", None)
    assert result.held["none"] > 0


def test_what_was_held_lies_below_the_least_load_that_lost() -> None:
    """A short trial without loss at a load that later lost for a minute is no bound."""
    strict, lenient = (Goal("none", 0, share, 0.005, 1, 60, 60) for share in (0, 0.5))
    tried = [Tried(252, 1, 0.0), Tried(252, 8, 0.1), Tried(240, 60, 0.01), Tried(237, 8, 0.0)]
    assert held(strict, tried) == 237
    # Half of the time may have loss: at 240 a second trial saves it; at 252, 8 of 9 s had loss.
    tried.append(Tried(240, 60, 0.0))
    assert held(lenient, tried) == 240
    assert held(strict, tried) == 237
    # The least load had loss: then one trial of any load that did not is enough.
    assert held(strict, [Tried(1, 1, 0.5), Tried(9, 1, 0.0)]) == 9
    assert held(strict, [Tried(1, 1, 0.5)]) is None
