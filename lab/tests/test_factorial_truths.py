# SPDX-License-Identifier: BSD-3-Clause
"""Planted effects over 200 seeds: how often effects of one spread are found, and false ones.

Exact binomial tests at .05 reject neither that at least 90 % are found, nor that at most 5 % are
false. A family of contrasts is false if any of them is. The seeds are fixed; with others a right
rate would be rejected now and then, because there are many rates. Over 4000 seeds of each scenario
of `test_main_effects_and_interactions` 4.3 to 5.5 % are false by either test, and at least 96.8 %
of the planted effects are found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
import pytest
from factorial_data import FACTORS, false_p, missed_p, seeds
from synthetic_factors import Truth, loss, rates

from linerate.experiments.cloud.factorial.answers.hypotheses import Names, network_worst
from linerate.experiments.cloud.factorial.contrasts import contrasts
from linerate.experiments.cloud.factorial.design import Factor
from linerate.experiments.cloud.factorial.effects import analyse
from linerate.experiments.cloud.factorial.losses import loss_contrasts
from linerate.experiments.cloud.factorial.space import Term
from linerate.experiments.cloud.factorial.trends import trend
from linerate.experiments.cloud.factorial.whole import any_effect
from linerate.verdict.stats import ALPHA

PERMUTATIONS = 99
# One spread each; together they leave the other four without any.
THREE: dict[Term, float] = {
    ("framework",): 1.0,
    ("load", "tenants"): 1.0,
    ("framework", "load", "tenants"): 1.0,
}
FOUR: dict[Term, float] = {
    ("load",): 1.0,
    ("tenants",): 1.0,
    ("framework", "load"): 1.0,
    ("framework", "tenants"): 1.0,
}
NORMAL = Truth(FACTORS, blocks=10)
HEAVY = replace(NORMAL, tails=3)
GAPS = replace(NORMAL, missing=0.05)


def held(found: Mapping[Term, int], put_in: Iterable[Term]) -> None:
    """Return True if the planted effects were found, and nothing else."""
    effects = set(put_in)
    for term, count in found.items():
        p = missed_p(count) if term in effects else false_p(count)
        assert p > ALPHA, (term, found)


@pytest.mark.parametrize(
    ("scenario", "noise", "effects"),
    [
        pytest.param(1, NORMAL, THREE, id="normal, three"),
        pytest.param(2, NORMAL, FOUR, id="normal, four", marks=pytest.mark.second_tier),
        pytest.param(3, HEAVY, THREE, id="heavy tails, three", marks=pytest.mark.second_tier),
        pytest.param(4, HEAVY, FOUR, id="heavy tails, four", marks=pytest.mark.second_tier),
        pytest.param(5, GAPS, THREE, id="missing values, three", marks=pytest.mark.second_tier),
        pytest.param(6, GAPS, FOUR, id="missing values, four"),
    ],
)
def test_main_effects_and_interactions(
    scenario: int, noise: Truth, effects: dict[Term, float]
) -> None:
    by_permutation: Counter[Term] = Counter()
    by_ranks: Counter[Term] = Counter()
    truth = replace(noise, effects=effects)
    for seed in seeds(scenario):
        for effect in analyse(rates(truth, seed), permutations=PERMUTATIONS, seed=seed).effects:
            assert effect.ranked is not None
            by_permutation[effect.term] += effect.p <= ALPHA
            by_ranks[effect.term] += effect.ranked.p <= ALPHA
    assert len(by_permutation) == 7
    held(by_permutation, effects)
    held(by_ranks, effects)


@pytest.mark.second_tier
def test_a_factor_as_a_whole() -> None:
    found: Counter[Term] = Counter()
    truth = replace(HEAVY, effects={("load", "tenants"): 1.0}, blocks=14)
    for seed in seeds(7):
        for factor in FACTORS:
            whole = any_effect(
                rates(truth, seed), factor.name, permutations=PERMUTATIONS, seed=seed
            )
            found[factor.name,] += whole.p <= ALPHA
    held(found, [("load",), ("tenants",)])


def test_contrasts() -> None:
    """The outer two of three levels differ by one spread; those of another factor do not."""
    found: Counter[Term] = Counter()
    truth = replace(HEAVY, effects={("tenants",): 1.0}, blocks=12)
    for seed in seeds(8):
        data = rates(truth, seed)
        _, outer, _ = contrasts(data, "tenants")
        found["outer",] += outer.verdict == "higher"
        none = contrasts(data, "framework", ["tenants"])
        found["none",] += any(each.p_holm < ALPHA for each in none)
    held(found, [("outer",)])


def test_trends() -> None:
    found: Counter[Term] = Counter()
    truth = replace(HEAVY, effects={("tenants",): 1.0})
    for seed in seeds(9):
        for name, each in (("trend", truth), ("none", replace(truth, effects={("load",): 1.0}))):
            blocked = trend(rates(each, seed), "tenants").found
            assert blocked is not None
            found[f"page {name}",] += blocked.p <= ALPHA
    held(found, [("page trend",)])


def test_loss() -> None:
    """Half of the runs are loss-free; without an effect the other factors have strong ones."""
    found: Counter[Term] = Counter()
    truth = Truth(FACTORS, {("framework",): 1.0}, blocks=12, block_spread=0.03)
    strong = replace(truth, effects={("load",): 3.0, ("tenants",): 2.0, ("load", "tenants"): 2.0})
    for seed in seeds(10):
        for name, each in (("one", truth), ("none", strong)):
            data = loss(each, seed)
            whole = any_effect(data, "framework", permutations=PERMUTATIONS, seed=seed)
            found[f"whole {name}",] += whole.p <= ALPHA
            (pair,) = loss_contrasts(data, "framework")
            found[f"pair {name}",] += pair.p_holm <= ALPHA
            effect = analyse(data, order=1, permutations=PERMUTATIONS, seed=seed).effect(
                "framework"
            )
            found[f"permutation {name}",] += effect.p <= ALPHA
    held(found, [("whole one",), ("pair one",), ("permutation one",)])


def test_the_worst() -> None:
    """Two spreads below the next one, and as low as the next one."""
    factors = (
        FACTORS[0],
        Factor("load", ("idle", "cpu", "network")),
        Factor("size", ("64", "1518")),
    )
    names = Names(dpdk=["dpdk"], xdp=["xdp"])
    truth = Truth(factors, blocks=10, tails=3)
    found: Counter[Term] = Counter()
    for name, rival in (("worst", -1.0), ("as bad", -3.0)):
        levels = np.zeros((2, 3, 2))
        levels[:, 2, 0], levels[:, 1, 1] = -3.0, rival
        for seed in seeds(11):
            data = rates(truth, seed)
            moved = replace(data, values=data.values * np.exp(truth.spread * levels))
            found[name,] += network_worst(moved, names).verdict == "held"
    held(found, [("worst",)])
