# SPDX-License-Identifier: BSD-3-Clause
"""Page's test against published examples, tables, scipy, and all orders."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from factorial_data import COTTON, FACTORS, drawn, observations
from scipy import stats as scipy_stats

from linerate.experiments.cloud.factorial.trends import page, trend
from linerate.host.errors import DesignError

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
    """Return the one-sided p of values whose L is this."""
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


def test_constant_values_have_no_trend() -> None:
    assert page(np.ones((4, 3))).p == 1.0
    assert page(np.ones((4, 9))).p == 1.0


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
