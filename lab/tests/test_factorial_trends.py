# SPDX-License-Identifier: BSD-3-Clause
"""Page and Jonckheere-Terpstra against published examples, tables, scipy, and all orders."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from factorial_data import COTTON, FACTORS, drawn, observations
from scipy import stats as scipy_stats

from linerate.experiments.cloud.factorial.trends import jonckheere, page, trend
from linerate.host.errors import DesignError

# Hollander, Wolfe and Chicken, example 6.2 (Hundal 1969): pieces made by workers who knew nothing,
# roughly, or accurately how much they had made.
KNOWLEDGE = [[40, 35, 38, 43, 44, 41], [38, 40, 47, 44, 40, 42], [48, 40, 45, 43, 46, 44]]

# Page 1963, table 2: least L that is significant at .05, .01 and .001, by levels and blocks.
CRITICAL = {
    (3, 2): (28, None, None), (3, 3): (41, 42, None), (3, 4): (54, 55, 56), (3, 5): (66, 68, 70),
    (4, 2): (58, 60, None), (4, 3): (84, 87, 89), (4, 4): (111, 114, 117), (4, 5): (137, 141, 145),
    (5, 2): (103, 106, 109), (5, 3): (150, 155, 160), (5, 4): (197, 204, 210),
    (5, 5): (244, 251, 259),
}  # fmt: skip


def test_the_cotton_data() -> None:
    """The book: L = 158, beyond 155, the critical value at .01."""
    found = page(COTTON)
    assert found.statistic == 158
    assert found.mean == 135
    assert 0.001 < found.rising_p < 0.01
    expected = scipy_stats.page_trend_test(COTTON, method="exact")
    assert found.rising_p == pytest.approx(expected.pvalue)
    assert found.agreement == pytest.approx(12 * 158 / (3 * 5 * 24) - 3 * 6 / 4)


def with_statistic(levels: int, blocks: int, wanted: int) -> float:
    """One-sided p of values whose L is that."""
    weights = np.arange(1, levels + 1)
    orders = itertools.permutations(range(1, levels + 1))
    every = {int(np.dot(order, weights)): order for order in orders}
    sums: dict[int, tuple[tuple[int, ...], ...]] = {0: ()}
    for _ in range(blocks):
        sums = {
            total + each: (*rows, order)
            for total, rows in sums.items()
            for each, order in every.items()
        }
    found = page(np.asarray(sums[wanted], dtype=float))
    assert found.statistic == wanted
    return found.rising_p


@pytest.mark.parametrize(("levels", "blocks"), list(CRITICAL))
def test_pages_table(levels: int, blocks: int) -> None:
    for critical, alpha in zip(CRITICAL[levels, blocks], (0.05, 0.01, 0.001), strict=True):
        if critical is not None:
            assert with_statistic(levels, blocks, critical) <= alpha
            assert with_statistic(levels, blocks, critical - 1) > alpha


@pytest.mark.parametrize(("blocks", "levels"), [(2, 3), (4, 4), (7, 5), (12, 3), (3, 6)])
def test_page_is_scipys_exact_test(blocks: int, levels: int) -> None:
    values = drawn(blocks, blocks, levels)
    found = page(values)
    rising = scipy_stats.page_trend_test(values, method="exact")
    falling = scipy_stats.page_trend_test(values[:, ::-1], method="exact")
    assert found.statistic == rising.statistic
    assert found.rising_p == pytest.approx(rising.pvalue)
    assert found.p == pytest.approx(min(1, 2 * min(rising.pvalue, falling.pvalue)))


def test_page_with_ties_counts_all_orders_of_the_midranks() -> None:
    values = np.asarray([[1.0, 1, 3], [2, 1, 2], [0, 0, 0], [1, 2, 3]])
    ranks = scipy_stats.rankdata(values, axis=1)
    observed = (ranks @ [1, 2, 3]).sum()
    rows = [[np.dot(order, [1, 2, 3]) for order in itertools.permutations(row)] for row in ranks]
    sums = np.asarray([sum(chosen) for chosen in itertools.product(*rows)])
    assert page(values).rising_p == pytest.approx(np.mean(sums >= observed - 1e-9))


def test_page_of_many_levels_is_scipys_approximation_but_for_continuity() -> None:
    values = drawn(3, 20, 9)
    expected = scipy_stats.page_trend_test(values, method="asymptotic")
    found = page(values)
    assert not found.exact
    assert found.rising_p == pytest.approx(expected.pvalue, abs=0.005)
    assert found.rising_p > expected.pvalue


def test_knowledge_of_performance() -> None:
    """The book: U 22, 30.5 and 26.5, J = 79; with ties variance 150.29, J* = 2.04 and P .0207."""
    found = jonckheere(KNOWLEDGE)
    assert (found.statistic, found.mean, found.exact) == (79, 54, False)
    sigma = 150.29**0.5
    expected = scipy_stats.norm.sf((79 - 54 - 0.5) / sigma)
    assert found.rising_p == pytest.approx(expected, abs=1e-5)
    assert scipy_stats.norm.sf((79 - 54) / sigma) == pytest.approx(0.0207, abs=2e-4)


def test_the_exact_distribution_of_three_groups_of_six() -> None:
    """The book's table: P(J >= 79) = .0231 without ties."""
    values = np.arange(18, dtype=float)
    # Exchange neighbours of different groups until 79 of 108 pairs rise.
    groups = [list(values[:6]), list(values[6:12]), list(values[12:])]
    source = np.random.default_rng(1)
    while jonckheere(groups).statistic != 79:
        groups = source.permutation(values).reshape(3, 6).tolist()
    found = jonckheere(groups)
    assert found.exact
    assert found.rising_p == pytest.approx(0.0231, abs=5e-5)


@pytest.mark.parametrize("counts", [(2, 2, 2), (1, 3, 2), (3, 3)])
def test_jonckheere_counts_all_orders(counts: tuple[int, ...]) -> None:
    ends = list(itertools.accumulate(counts))
    values = drawn(sum(counts), sum(counts))

    def rising(order: tuple[float, ...]) -> int:
        groups = [order[end - count : end] for end, count in zip(ends, counts, strict=True)]
        return sum(b > a for x, y in itertools.combinations(groups, 2) for a in x for b in y)

    every = np.asarray([rising(order) for order in itertools.permutations(values.tolist())])
    observed = rising(tuple(values.tolist()))
    split = np.split(values, ends[:-1])
    found = jonckheere([each.tolist() for each in split])
    assert found.rising_p == pytest.approx(np.mean(every >= observed))
    assert found.agreement == pytest.approx(observed / every.max() * 2 - 1)


def test_jonckheere_of_two_groups_is_mann_whitney() -> None:
    first, second = drawn(1, 9).tolist(), drawn(2, 7).tolist()
    expected = scipy_stats.mannwhitneyu(first, second, method="exact").pvalue
    assert jonckheere([first, second]).p == pytest.approx(expected)
    tied, others = [1.0, 1, 2, 3, 3], [2.0, 3, 3, 4, 1]
    expected = scipy_stats.mannwhitneyu(tied, others, method="asymptotic").pvalue
    assert jonckheere([tied, others]).p == pytest.approx(expected)


def test_constant_values_have_no_trend() -> None:
    assert page(np.ones((4, 3))).p == 1.0
    assert page(np.ones((4, 9))).p == 1.0
    assert jonckheere([[1.0, 1.0], [1.0]]).p == 1.0


def test_a_trend_of_observations() -> None:
    values = drawn(4, 8, 2, 2, 3)
    values *= np.asarray([1.0, 0.8, 0.6])
    values[0, :, :, 1] = np.nan
    values[1, 0, 0, 2] = np.nan
    found = trend(observations(values, FACTORS), "tenants")
    assert found.blocks == 7
    assert found.found is not None
    assert found.found.agreement == -1
    assert found.ends is not None
    assert found.ends.ratio == pytest.approx(0.6, rel=0.1)
    within = trend(observations(values, FACTORS), "tenants", {"framework": "dpdk"})
    assert within.within == (("framework", "dpdk"),)
    loss = trend(observations(values, FACTORS, "linear"), "tenants")
    assert loss.shift is not None
    assert loss.shift.shift < 0


def test_bad_trends_are_told() -> None:
    with pytest.raises(DesignError, match="no order"):
        trend(observations(drawn(4, 8, 2, 2, 3), FACTORS), "load")
    with pytest.raises(DesignError, match="Page's test"):
        page(np.ones((3, 2)))
    with pytest.raises(DesignError, match="a trend over 2 levels"):
        jonckheere([[1.0], []])
