# SPDX-License-Identifier: BSD-3-Clause
"""Statistics against published worked examples and scipy."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from linerate import stats

# Hollander, Wolfe and Chicken, table 3.1: Hamilton depression scale factor IV before and after.
BEFORE = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
AFTER = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]
CHANGE = [after - before for before, after in zip(BEFORE, AFTER, strict=True)]


def test_depression_data_estimate_and_interval() -> None:
    """The book: estimate -.46; interval (-.786, -.010) with confidence 1 - 2(.0195) = .961."""
    assert stats.hodges_lehmann(CHANGE) == pytest.approx(-0.46, abs=0.0005)
    interval = stats.shift_interval(CHANGE)
    assert interval is not None
    assert interval.low == pytest.approx(-0.786, abs=0.0005)
    assert interval.high == pytest.approx(-0.010, abs=0.0005)
    assert interval.level == pytest.approx(0.961, abs=0.0005)


def test_depression_data_p() -> None:
    """The book: T+ = 5, one-sided P = .020."""
    assert stats.signed_rank_p(CHANGE) == pytest.approx(2 * 0.0195, abs=0.0005)


@pytest.mark.parametrize("count", [3, 6, 7, 12, 20, 50])
def test_signed_rank_p_is_scipys_exact_one(count: int) -> None:
    values = np.random.default_rng(count).normal(0.3, 1, count).tolist()
    expected = scipy_stats.wilcoxon(values, method="exact").pvalue
    assert stats.signed_rank_p(values) == pytest.approx(expected, rel=1e-12)


def test_signed_rank_p_with_ties_is_the_sign_flip_distribution() -> None:
    values = [1.0, 1.0, -1.0, 2.0, 2.0, 3.0, -2.0]
    ranks = scipy_stats.rankdata(np.abs(values))
    observed = sum(rank for rank, value in zip(ranks, values, strict=True) if value > 0)
    sums = [
        sum(rank for rank, up in zip(ranks, signs, strict=True) if up)
        for signs in itertools.product((False, True), repeat=len(values))
    ]
    upper = sum(total >= observed for total in sums) / len(sums)
    lower = sum(total <= observed for total in sums) / len(sums)
    assert stats.signed_rank_p(values) == pytest.approx(2 * min(upper, lower))


def test_signed_rank_p_near_the_normal_approximation_at_150() -> None:
    values = np.random.default_rng(5).normal(0.1, 1, 150).tolist()
    expected = scipy_stats.wilcoxon(values, method="approx").pvalue
    assert stats.signed_rank_p(values) == pytest.approx(expected, abs=0.003)


def test_zero_differences_are_left_out() -> None:
    assert stats.signed_rank_p([0.0, 0.0]) == 1.0
    assert stats.signed_rank_p([0.0, *CHANGE]) == stats.signed_rank_p(CHANGE)


@pytest.mark.parametrize("count", range(6, 30))
def test_interval_is_what_the_test_does_not_reject(count: int) -> None:
    """Inverting the test by hand: just inside the interval it accepts, just outside it rejects."""
    values = np.random.default_rng(count).normal(0, 1, count)
    interval = stats.shift_interval(values.tolist())
    assert interval is not None
    tiny = 1e-9
    for edge, inward in ((interval.low, tiny), (interval.high, -tiny)):
        assert stats.signed_rank_p((values - edge - inward).tolist()) > 0.05
        assert stats.signed_rank_p((values - edge + inward).tolist()) <= 0.05


@pytest.mark.parametrize("count", range(6))
def test_no_interval_below_six(count: int) -> None:
    assert stats.shift_interval([float(n) for n in range(count)]) is None


def test_interval_covers() -> None:
    source = np.random.default_rng(7)
    held = 0
    for _ in range(400):
        interval = stats.shift_interval(source.normal(0, 1, 20).tolist())
        assert interval is not None
        held += interval.low <= 0 <= interval.high
    assert scipy_stats.binomtest(held, 400, 0.95).pvalue > 0.001


def test_a12_is_the_mann_whitney_statistic() -> None:
    first, second = [1.0, 3.0, 5.0, 5.0], [2.0, 3.0, 4.0]
    statistic = scipy_stats.mannwhitneyu(first, second).statistic
    assert stats.a12(first, second) == pytest.approx(statistic / 12)
    assert stats.a12([2, 3], [0, 1]) == 1.0
    assert stats.a12([1, 1], [1, 1]) == 0.5


def test_holm_worked_example() -> None:
    """Four tests: .01 * 4, .02 * 3, .03 * 2, then the running maximum."""
    assert stats.holm([0.01, 0.04, 0.03, 0.02]) == pytest.approx([0.04, 0.06, 0.06, 0.06])
    assert stats.holm([]) == []
    assert stats.holm([0.6, 0.7]) == [1.0, 1.0]


def test_smallest_detectable_is_found_with_the_promised_power() -> None:
    source = np.random.default_rng(11)
    sigma, count = 0.04, 20
    promised = np.median(
        [stats.smallest_detectable(source.normal(0, sigma, count).tolist()) for _ in range(200)]
    )
    found = sum(
        stats.signed_rank_p(source.normal(promised, sigma, count).tolist()) < 0.05
        for _ in range(400)
    )
    assert 0.74 < found / 400 < 0.92


def test_smallest_detectable_needs_six() -> None:
    assert math.isinf(stats.smallest_detectable([0.1] * 5))


def test_compare_recovers_a_known_ratio() -> None:
    source = np.random.default_rng(3)
    baseline = np.exp(source.normal(3, 0.3, 40))
    arm = baseline * np.exp(source.normal(math.log(1.1), 0.02, 40))
    found = stats.compare(arm.tolist(), baseline.tolist())
    assert found.n == 40
    assert found.ratio == pytest.approx(1.1, rel=0.01)
    assert found.ci_low is not None
    assert found.ci_high is not None
    assert found.ci_low < found.ratio < found.ci_high
    assert found.p < 1e-6
