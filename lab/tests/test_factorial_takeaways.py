# SPDX-License-Identifier: BSD-3-Clause
"""Statements and their verdicts: held, not held, and why the rest is undecided."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import synthetic_factors as synthetic
from factorial_data import FACTORS, drawn, observations

from linerate.experiments.cloud.factorial.answers.generated import effects_found, trends_found
from linerate.experiments.cloud.factorial.answers.hypotheses import (
    Names,
    differ,
    network_worst,
    study,
)
from linerate.experiments.cloud.factorial.answers.takeaways import Takeaway, matters
from linerate.experiments.cloud.factorial.design import Factor, Observations
from linerate.experiments.cloud.factorial.effects import analyse
from linerate.experiments.cloud.factorial.trends import trend
from linerate.verdict.stats import Floats

FRAMEWORK = Factor("framework", ("rust-l2fwd", "xdp-fwd"))
LOAD = Factor("load", ("idle", "cpu", "network"))
SIZE = Factor("size", ("64", "512", "1518"), ordered=True)
NAMES = Names(dpdk=["rust-l2fwd"], xdp=["xdp-fwd"])
CELLS = (FRAMEWORK, LOAD, SIZE)


def cloud(shares: Floats, spread: float = 0.02, blocks: int = 10) -> Observations:
    """Return throughputs that are these shares, (framework, load, size), of a rate that falls with
    size.
    """
    source = np.random.default_rng(1)
    logs = source.normal(0, spread, (blocks, 2, 3, 3)) + source.normal(0, 0.2, (blocks, 1, 1, 1))
    return observations(np.exp(logs) * shares * np.asarray([10.0, 2.0, 0.8]), CELLS)


def lost(shares: Floats, blocks: int = 10) -> Observations:
    """Return losses with these mean shares, 0 in a third of the runs."""
    source = np.random.default_rng(2)
    values = shares * source.uniform(0.5, 1.5, (blocks, 2, 3, 3))
    values[source.random(values.shape) < 1 / 3] = 0
    return observations(values, CELLS, "linear", "loss")


def shares(worst: float, other: float = 0.9) -> Floats:
    """Under network load small packets keep the first share, the others the second."""
    found = np.ones((2, 3, 3))
    found[:, 1] = 0.95
    found[:, 2] = other
    found[:, 2, 0] = worst
    return found


def test_the_studys_conclusions_hold_where_they_are_true() -> None:
    truth = shares(0.6)
    truth[1, 1:] *= 0.7
    found = study(cloud(truth), NAMES, permutations=199)
    assert [each.verdict for each in found] == ["held"] * 4
    assert [each.statement for each in found] == [
        "packet size matters for throughput, as a share of that under idle load",
        "the kind of load matters for throughput, as a share of that under idle load",
        "network load with small packets is worst in throughput, "
        "as a share of that under idle load",
        "DPDK and XDP differ in throughput, as a share of that under idle load",
    ]
    for each in found:
        assert each.p is not None
        assert each.p < 0.05
        assert each.effect is not None
        assert each.low is not None
        assert each.high is not None
        assert each.low <= each.effect <= each.high
        assert each.test
        assert each.compared


def test_the_studys_conclusions_do_not_hold_where_they_are_false() -> None:
    values = cloud(np.ones((2, 3, 3)), spread=0.008, blocks=14).values
    same_sizes = observations(values / np.asarray([10.0, 2.0, 0.8]), CELLS)
    found = study(same_sizes, NAMES, permutations=199)
    assert [each.verdict for each in found] == ["not held"] * 4
    assert "+-2 %" in found[0].reason


def test_the_studys_conclusions_are_undecided_where_noise_hides_them() -> None:
    values = cloud(np.ones((2, 3, 3)), spread=0.2, blocks=7).values
    same_sizes = observations(values / np.asarray([10.0, 2.0, 0.8]), CELLS)
    found = study(same_sizes, NAMES, permutations=199)
    assert [each.verdict for each in found] == ["undecided"] * 4
    for each in found:
        assert "in four of five runs" in each.reason
        assert each.detectable is not None
        assert each.detectable > 0.02


def test_few_blocks_are_the_reason() -> None:
    found = study(cloud(shares(0.6), blocks=3), NAMES, permutations=199)
    assert [each.verdict for each in found] == ["held", "held", "undecided", "undecided"]
    assert "6 or more are needed" in found[2].reason
    (one, *_) = study(cloud(shares(0.6), blocks=1), NAMES, permutations=199)
    assert one.verdict == "undecided"
    assert "one block" in one.reason


def test_another_that_is_worse_refutes_the_worst() -> None:
    truth = shares(0.9)
    truth[:, 1, 1] = 0.5
    found = network_worst(cloud(truth), NAMES)
    assert found.verdict == "not held"
    assert found.reason == "load cpu, size 512 is worse"
    assert found.low is not None
    assert found.low > 1


def test_what_falls_nowhere_is_not_the_worst() -> None:
    found = network_worst(cloud(np.ones((2, 3, 3)), spread=0.005, blocks=12), NAMES)
    assert found.verdict == "not held"


def test_the_worst_in_loss() -> None:
    truth = np.full((2, 3, 3), 0.01)
    truth[:, 2, 0] = 0.2
    found = study(lost(truth), NAMES, permutations=199)
    assert [each.verdict for each in found] == ["held", "held", "held", "undecided"]
    assert found[2].measure == "difference"
    assert found[2].effect == pytest.approx(0.12, abs=0.06)
    assert "loss-free" in found[0].reason
    none = study(lost(np.zeros((2, 3, 3))), NAMES, permutations=199)
    assert [each.verdict for each in none] == ["not held"] * 4
    assert none[0].reason == "no run lost anything"
    truth[:, 2, 0], truth[:, 1, 1] = 0.01, 0.3
    assert network_worst(lost(truth, blocks=14), NAMES).verdict == "not held"


def test_without_idle_load_rates_are_compared_as_they_are() -> None:
    found = network_worst(cloud(shares(0.6)).keeping("load", ["cpu", "network"]), NAMES)
    assert found.statement == "network load with small packets is worst in throughput"
    assert found.verdict == "not held"


def test_what_the_design_lacks_is_undecided() -> None:
    whole = cloud(shares(0.6))
    assert "no network load" in network_worst(whole.keeping("load", ["idle", "cpu"]), NAMES).reason
    assert "no second level" in network_worst(whole.at({"size": "64"}), NAMES).reason
    assert (
        "no load beside" in network_worst(whole.keeping("load", ["idle", "network"]), NAMES).reason
    )
    assert "one level of size" in matters(whole.at({"size": "64"}), "size").reason
    assert "no factor rate" in matters(whole, "rate").reason
    alone = whole.keeping("framework", ["rust-l2fwd"])
    assert "with XDP" in differ(alone, NAMES).reason
    assert "of either" in differ(whole, Names(dpdk=["a"], xdp=["b"])).reason
    every: list[Takeaway] = [
        *study(whole.at({"size": "64", "load": "cpu"}), NAMES, permutations=19),
    ]
    assert [each.verdict for each in every[:3]] == ["undecided"] * 3


def test_a_kind_that_lacks_cells_is_compared_where_it_has_some() -> None:
    framework = Factor("framework", ("rust-l2fwd", "xdp-fwd", "af-xdp"))
    values = drawn(4, 8, 3, 3, 3)
    values[:, 1:] *= 0.5
    values[:, 2, :, 1:] = np.nan
    names = replace(NAMES, xdp=["xdp-fwd", "af-xdp"])
    found = differ(observations(values, (framework, LOAD, SIZE)), names, permutations=199)
    assert found.verdict == "held"
    assert found.effect == pytest.approx(0.5, rel=0.1)


def test_what_an_answer_does_not_cover_is_told() -> None:
    values = cloud(shares(0.6)).values
    values[:, 1, 1, 1:] = np.nan
    values[0, 0, 0, 0] = 0
    found = matters(observations(values, CELLS), "size", permutations=19)
    assert found.reason.endswith("; without load cpu; 1 value of 0 left out, having no logarithm")


def test_every_effect_has_its_statement() -> None:
    values = drawn(5, 10, 2, 2, 3)
    values[:, 0] *= 1.3
    values[:, 0, 0] *= 1.2
    found = observations(values, FACTORS)
    analysis = analyse(found, permutations=499)
    told = {each.about: each for each in effects_found(analysis, found)}
    assert len(told) == 7
    assert told["framework",].verdict == "held"
    assert told["framework",].statement == (
        "throughput depends on framework, on average over the other factors"
    )
    both = told["framework", "load"]
    assert both.verdict == "held"
    assert both.statement == "the effect of framework on throughput depends on load"
    assert both.effect is not None
    assert both.low is not None
    assert both.high is not None
    assert both.low < both.effect < both.high
    assert told["load", "tenants"].verdict == "undecided"
    assert "in four of five runs" in told["load", "tenants"].reason


def test_permutations_that_are_too_few_for_the_family_are_told() -> None:
    found = observations(drawn(5, 6, 2, 2, 3), FACTORS)
    (first, *_) = effects_found(analyse(found, permutations=99), found)
    assert "99 permutations cannot reach 0.05" in first.reason


def test_a_main_effect_inside_the_margin_is_not_held() -> None:
    source = np.random.default_rng(6)
    values = np.exp(source.normal(0, 0.2, (12, 1, 1, 1)) + source.normal(0, 0.01, (12, 2, 2, 3)))
    found = observations(values, FACTORS)
    told = effects_found(analyse(found, permutations=199), found)
    assert [each.verdict for each in told[:3]] == ["not held"] * 3
    assert {each.verdict for each in told[3:]} == {"undecided"}


def test_trends_have_their_direction() -> None:
    values = drawn(7, 8, 2, 2, 3)
    values[:, :, 1] *= np.asarray([1.0, 0.8, 0.7])
    found = observations(values, FACTORS)
    trends = [trend(found, "tenants", {"load": level}) for level in ("cpu", "network")]
    flat, falling = trends_found(trends, "throughput")
    assert falling.verdict == "held"
    assert falling.statement == "throughput falls with tenants with load network"
    assert falling.effect == pytest.approx(0.7, rel=0.1)
    assert falling.compared == "tenants 8 against 0 with load network"
    assert flat.verdict != "held"
    few = trends_found([trend(found.keeping("tenants", ["0", "8"]), "tenants")], "throughput")
    assert (few[0].verdict, few[0].reason) == ("undecided", "a trend takes three levels")
    steady = observations(np.exp(np.random.default_rng(1).normal(0, 0.004, (9, 2, 2, 3))), FACTORS)
    (same,) = trends_found([trend(steady, "tenants")], "throughput")
    assert same.verdict == "not held"
    bent = steady.values * np.asarray([1.0, 0.7, 1.0])
    (between,) = trends_found([trend(observations(bent, FACTORS), "tenants")], "throughput")
    assert between.verdict == "undecided"
    assert "inside +-2 % of the first, and one between is not" in between.reason
    lossy = observations(np.maximum(values - 0.8, 0), FACTORS, "linear", "loss")
    (loss,) = trends_found([trend(lossy, "tenants")], "loss")
    assert (loss.verdict, loss.measure) == ("held", "difference")
    noisy = observations(np.exp(np.random.default_rng(1).normal(0, 0.2, (9, 2, 2, 3))), FACTORS)
    (unknown,) = trends_found([trend(noisy, "tenants")], "throughput")
    assert "between the ends is found in four of five runs" in unknown.reason
    (few_blocks,) = trends_found([trend(observations(noisy.values[:3], FACTORS), "tenants")], "x")
    assert "of which 6 or more are needed" in few_blocks.reason


def test_the_generator_makes_what_it_is_told() -> None:
    effects = {("framework",): 2.0, ("load", "tenants"): 3.0}
    truth = synthetic.Truth(FACTORS, effects, blocks=4000, spread=0.05, missing=0.1)
    logs = synthetic.rates(truth, 1).scaled
    assert np.isnan(logs).mean() == pytest.approx(0.1, abs=0.01)
    means = np.nanmean(logs, axis=0)
    assert means[1].mean() - means[0].mean() == pytest.approx(0.1, abs=0.01)
    product = means.mean(axis=0)
    product -= product.mean(axis=0) + product.mean(axis=1, keepdims=True) - product.mean()
    assert product.max() - product.min() == pytest.approx(0.15, abs=0.01)
    within = logs - np.nanmean(logs, axis=(1, 2, 3), keepdims=True) - means + means.mean()
    assert np.nanstd(within) == pytest.approx(0.05, rel=0.06)
    tails = replace(truth, tails=3, effects={}, missing=0.0)
    spread = synthetic.rates(tails, 1).scaled
    assert np.std(spread - spread.mean(axis=(1, 2, 3), keepdims=True)) == pytest.approx(
        0.05, rel=0.15
    )
    calm = replace(truth, effects={}, missing=0.0)
    loss = synthetic.loss(calm, 1, free=0.7)
    assert np.mean(loss.values == 0) == pytest.approx(0.7, abs=0.02)
    assert loss.values.max() <= 1
    assert np.array_equal(synthetic.loss(calm, 3).values, synthetic.loss(calm, 3).values)
