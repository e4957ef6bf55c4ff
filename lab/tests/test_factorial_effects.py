# SPDX-License-Identifier: BSD-3-Clause
"""Main effects and interactions against statsmodels, published figures, and first principles."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest
from factorial_data import COTTON, FACTORS, LOAD, TENANTS, drawn, observations
from numpy.typing import NDArray
from scipy import stats as scipy_stats
from statsmodels.api import OLS

from linerate.experiments.cloud.factorial import sizes
from linerate.experiments.cloud.factorial.design import Factor, Observations
from linerate.experiments.cloud.factorial.effects import Analysis, analyse
from linerate.experiments.cloud.factorial.permute import orders, p_value
from linerate.experiments.cloud.factorial.ranks import aligned
from linerate.experiments.cloud.factorial.space import Space, terms
from linerate.experiments.cloud.factorial.whole import any_effect
from linerate.host.errors import DesignError
from linerate.verdict.stats import Floats


class Oracle:
    """The full model by statsmodels with effects coded to sum to 0: each level less the last."""

    def __init__(self, found: Observations) -> None:
        space = Space(found)
        levels = dict(zip(FACTORS, np.unravel_index(space.cell, found.shape), strict=True))
        coded = {factor.name: self._coded(levels[factor], len(factor.levels)) for factor in FACTORS}
        self.y = space.values
        self.blocks = self._coded(space.block, len(found.blocks))
        self.columns: dict[frozenset[str], Floats] = {}
        for term in terms(found, 3):
            columns = np.ones((self.y.size, 1))
            for name in term:
                products = columns[:, :, None] * coded[name][:, None, :]
                columns = products.reshape(self.y.size, -1)
            self.columns[frozenset(term)] = columns

    @staticmethod
    def _coded(levels: NDArray[np.intp], count: int) -> Floats:
        indicators = np.asarray(levels[:, None] == np.arange(count), dtype=np.float64)
        return indicators[:, :-1] - indicators[:, -1:]

    def design(self, without: Iterable[frozenset[str]] = ()) -> Floats:
        left_out = set(without)
        kept = [each for term, each in self.columns.items() if term not in left_out]
        return np.column_stack([np.ones(self.y.size), self.blocks, *kept])

    def f(self, *without: Iterable[str], y: Floats | None = None) -> float:
        """Return F of these terms given all others."""
        values = self.y if y is None else y
        reduced = OLS(values, self.design(frozenset(term) for term in without)).fit()
        return float(OLS(values, self.design()).fit().compare_f_test(reduced)[0])


def spoiled(seed: int, *, missing: int) -> Observations:
    values = drawn(seed, 4, 2, 2, 3)
    source = np.random.default_rng(seed)
    values.flat[source.choice(values.size, missing, replace=False)] = np.nan
    return observations(values, FACTORS)


@pytest.mark.parametrize("missing", [0, 1, 5])
def test_f_is_that_of_statsmodels(missing: int) -> None:
    found = spoiled(missing, missing=missing)
    oracle = Oracle(found)
    analysis = analyse(found, permutations=9)
    assert len(analysis.effects) == 7
    for effect in analysis.effects:
        assert effect.f == pytest.approx(oracle.f(effect.term), rel=1e-6)
        assert effect.df_error == 48 - missing - (4 + 12 - 1)
        assert effect.n == 48 - missing
    assert len(analysis.missing) == missing


def test_the_cotton_data() -> None:
    """Cochran and Cox: treatments .7324 with 4, error .3495 with 8 degrees of freedom; F 4.19."""
    potash = Factor("potash", ("144", "108", "72", "54", "36"))
    found = analyse(observations(COTTON, [potash], "linear"), permutations=4999)
    effect = found.effect("potash")
    assert (effect.df, effect.df_error) == (4, 8)
    assert effect.f == pytest.approx(4.19, abs=0.005)
    assert effect.partial_eta2 == pytest.approx(0.7324 / (0.7324 + 0.3495), abs=1e-4)
    mean_error = 0.3495 / 8
    omega = (0.7324 - 4 * mean_error) / (0.7324 + (15 - 4) * mean_error)
    assert effect.partial_omega2 == pytest.approx(omega, abs=1e-3)
    # One factor: permutation within blocks after removing block effects, which is nearly the F
    # test.
    assert effect.p == pytest.approx(scipy_stats.f.sf(effect.f, 4, 8), abs=0.015)


@pytest.mark.parametrize("missing", [0, 4])
def test_permutations_are_those_of_freedman_and_lane(missing: int) -> None:
    """Fitted values and permuted residuals are added and fitted again, one by one."""
    found = spoiled(21, missing=missing)
    term, count = ("load", "tenants"), 19
    oracle = Oracle(found)
    fit = OLS(oracle.y, oracle.design([frozenset(term)])).fit()
    observed = oracle.f(term)
    as_large = 0
    for order in next(orders(Space(found).block, count, 1)):
        as_large += oracle.f(term, y=fit.fittedvalues + fit.resid[order]) >= observed
    effect = analyse(found, permutations=count, seed=1).effect("load", "tenants")
    assert effect.p == pytest.approx(p_value(as_large, count))


def test_orders_stay_within_groups_and_are_as_likely() -> None:
    groups = np.asarray([1, 0, 1, 1, 0], dtype=np.intp)
    found = np.concatenate(list(orders(groups, 6000, 1)))
    assert (groups[found] == groups).all()
    assert (np.sort(found, axis=1) == np.arange(5)).all()
    _, counts = np.unique(found, axis=0, return_counts=True)
    assert len(counts) == 12
    assert scipy_stats.chisquare(counts).pvalue > 0.001


def test_p_is_never_0_and_its_least_is_stated() -> None:
    values = drawn(1, 6, 2, 2, 3)
    values[:, 1] *= 3
    found = analyse(observations(values, FACTORS), permutations=99)
    assert found.effect("framework").p == found.least_p == 0.01
    assert (found.permutations, found.blocks, found.cells) == (99, 6, 12)
    assert [effect.term for effect in found.effects if effect.p_holm < 0.08] == [("framework",)]


def test_p_is_near_that_of_f_for_normal_noise() -> None:
    analysis = analyse(spoiled(3, missing=0), permutations=1999)
    for effect in analysis.effects:
        expected = scipy_stats.f.sf(effect.f, effect.df, effect.df_error)
        assert effect.p == pytest.approx(expected, abs=0.05)


# -- aligned ranks ---------------------------------------------------------------------------------


def naive_ranked(found: Observations, term: tuple[str, ...]) -> float:
    """Compute it step by step: residuals, the effect from means, ranks, and statsmodels."""
    logs = found.scaled
    cells = logs.mean(axis=0)
    residuals = logs - cells - (logs - cells).mean(axis=(1, 2, 3), keepdims=True)
    kept = [found.axis(name) - 1 for name in term]
    effect = np.zeros_like(cells)
    for size in range(len(kept) + 1):
        for axes in itertools.combinations(kept, size):
            rest = tuple(axis for axis in range(3) if axis not in axes)
            effect += (-1) ** (len(kept) - size) * cells.mean(axis=rest, keepdims=True)
    ranks = scipy_stats.rankdata(np.round(residuals + effect, 12))
    by_cell = ranks.reshape(logs.shape[0], -1).T.ravel()
    return Oracle(found).f(term, y=by_cell)


def test_aligned_ranks_step_by_step() -> None:
    found = spoiled(5, missing=0)
    analysis = analyse(found, permutations=9)
    for effect in analysis.effects:
        assert effect.ranked is not None
        assert effect.ranked.f == pytest.approx(naive_ranked(found, effect.term), rel=1e-6)
        expected = scipy_stats.f.sf(effect.ranked.f, effect.df, effect.df_error)
        assert effect.ranked.p == pytest.approx(expected)


def test_alignment_takes_all_other_effects_off() -> None:
    """The authors of the transform recommend this check: F of all others near 0, sums of 0."""
    values = drawn(6, 6, 2, 2, 3)
    values[:, 1, 1] *= 2
    found = observations(values, FACTORS)
    for effect in analyse(found, permutations=9).effects:
        assert effect.ranked is not None
        assert effect.ranked.others == pytest.approx(0, abs=1e-9)
        assert effect.ranked.aligned
    space = Space(found)
    for term in terms(found, 3):
        assert aligned(space, space.term(term)).sum() == pytest.approx(0, abs=1e-9)


def test_aligned_ranks_stand_what_an_extreme_value_hides() -> None:
    values = drawn(7, 8, 2, 2, 3)
    values[:, 1] *= 1.1
    values[0, 0, 0, 0] *= 10
    found = analyse(observations(values, FACTORS), permutations=199).effect("framework")
    assert found.p > 0.05
    assert found.ranked is not None
    assert found.ranked.p < 0.01


def test_values_with_many_zeros_are_not_ranked() -> None:
    found = analyse(observations(drawn(1, 4, 2, 3), [LOAD, TENANTS], "linear"), permutations=9)
    assert all(effect.ranked is None for effect in found.effects)


# -- sizes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("f", "df", "df_error"), [(4.19, 4, 8), (0.4, 2, 30), (60.0, 1, 100)])
def test_the_interval_of_a_share_leaves_f_in_neither_tail(f: float, df: int, df_error: int) -> None:
    found = sizes.share_interval(f, df, df_error)
    assert found is not None
    n = df + df_error + 1
    for share, tail in ((found.low, 0.975), (found.high, 0.025)):
        if share:
            below = scipy_stats.ncf.cdf(f, df, df_error, n * share / (1 - share))
            assert below == pytest.approx(tail, abs=1e-6)
    assert found.low <= sizes.partial_eta2(f, df, df_error) <= found.high or found.low == 0


def test_the_detectable_share_is_found_with_its_power() -> None:
    share = sizes.detectable_share(2, 60)
    assert share is not None
    source = scipy_stats.ncf(2, 60, 63 * share / (1 - share))
    assert source.sf(scipy_stats.f.isf(0.05, 2, 60)) == pytest.approx(0.8, abs=1e-6)


# -- properties ------------------------------------------------------------------------------------


def same(first: Analysis, second: Analysis, tolerance: float) -> None:
    for effect in first.effects:
        other = second.effect(*effect.term)
        assert other.f == pytest.approx(effect.f, rel=1e-6)
        assert other.p == pytest.approx(effect.p, abs=tolerance)
        assert effect.ranked is not None
        assert other.ranked is not None
        assert other.ranked.f == pytest.approx(effect.ranked.f, rel=1e-6)


@pytest.mark.parametrize("missing", [0, 3])
def test_units_and_names_change_nothing(missing: int) -> None:
    found = spoiled(8, missing=missing)
    before = analyse(found, permutations=499)
    same(before, analyse(replace(found, values=7.3 * found.values), permutations=499), 0)
    turned = replace(found, values=found.values[::-1], blocks=found.blocks[::-1])
    same(before, analyse(turned, permutations=499), 0.08)
    load = found.keeping("load", ["network", "cpu"]).keeping("tenants", ["8", "0", "2"])
    same(before, analyse(load, permutations=499), 0.08)
    moved = Observations(
        found.metric, (TENANTS, *FACTORS[:2]), found.blocks, np.moveaxis(found.values, 3, 1)
    )
    same(before, analyse(moved, permutations=499), 0.08)


def test_the_same_seed_gives_the_same_p() -> None:
    found = spoiled(9, missing=2)
    assert analyse(found, permutations=99) == analyse(found, permutations=99)


def test_constant_values_have_no_effect() -> None:
    found = analyse(observations(np.zeros((4, 2, 3)), [LOAD, TENANTS], "linear"), permutations=19)
    assert all((effect.f, effect.p) == (0.0, 1.0) for effect in found.effects)
    assert any_effect(observations(np.zeros((4, 2, 3)), [LOAD, TENANTS], "linear"), "load").p == 1


def test_what_cannot_be_analysed_is_told() -> None:
    with pytest.raises(DesignError, match="error from"):
        analyse(observations(drawn(1, 1, 2, 3), [LOAD, TENANTS]))
    with pytest.raises(DesignError, match="two levels"):
        analyse(observations(drawn(1, 4, 1), [Factor("load", ("cpu",))]))
    with pytest.raises(DesignError, match="no effect of load x size"):
        analyse(observations(drawn(1, 4, 2), [LOAD]), permutations=9).effect("load", "size")


# -- a factor as a whole ---------------------------------------------------------------------------


def test_the_whole_of_a_factor_is_the_model_without_it() -> None:
    found = spoiled(10, missing=3)
    whole = any_effect(found, "load", permutations=99)
    oracle = Oracle(found)
    with_load = [term for term in oracle.columns if "load" in term]
    assert whole.f == pytest.approx(oracle.f(*with_load), rel=1e-6)
    assert whole.df == sum(oracle.columns[term].shape[1] for term in with_load)


def test_the_whole_of_a_factor_alone_is_its_sign_flips() -> None:
    """One factor of two levels: every block keeps or changes its sign, of which there are 2^6."""
    values = drawn(11, 6, 2)
    values[:, 1] *= 1.05
    differences = np.log(values[:, 1] / values[:, 0])
    expected = np.mean(
        [
            abs(np.dot(signs, differences)) >= abs(differences.sum()) - 1e-12
            for signs in itertools.product((-1, 1), repeat=6)
        ]
    )
    found = any_effect(observations(values, [LOAD]), "load", permutations=9999)
    assert found.p == pytest.approx(expected, abs=0.012)


def test_the_whole_of_a_factor_sees_an_interaction_alone() -> None:
    values = drawn(12, 8, 2, 2, 3)
    values[:, 0, 0] *= 1.1
    values[:, 1, 1] *= 1.1
    found = observations(values, FACTORS)
    assert any_effect(found, "load", permutations=199).p == 0.005
    assert any_effect(found, "tenants", permutations=199).p > 0.05


def test_units_and_names_do_not_change_whether_a_factor_matters() -> None:
    found = spoiled(13, missing=3)
    before = any_effect(found, "load", permutations=499)
    scaled = any_effect(replace(found, values=2.5 * found.values), "load", permutations=499)
    assert scaled.f == pytest.approx(before.f)
    assert scaled.p == before.p
    turned = replace(found, values=found.values[::-1], blocks=found.blocks[::-1])
    renamed = turned.keeping("load", ["network", "cpu"]).keeping("tenants", ["8", "0", "2"])
    after = any_effect(renamed, "load", permutations=499)
    assert after.f == pytest.approx(before.f)
    assert after.p == pytest.approx(before.p, abs=0.08)
