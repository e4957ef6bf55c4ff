# SPDX-License-Identifier: BSD-3-Clause
"""Statistics against published worked examples, scipy and statsmodels."""

from __future__ import annotations

import itertools
import math
from statistics import NormalDist

import numpy as np
import pytest
from scipy import stats as scipy_stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower

from linerate.verdict import stats
from linerate.verdict.arms import quartiles
from linerate.verdict.judgement import MARGIN, judge

# Hollander, Wolfe and Chicken, table 3.1: Hamilton depression scale factor IV before and after.
BEFORE = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
AFTER = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]
CHANGE = [after - before for before, after in zip(BEFORE, AFTER, strict=True)]

# Darwin's maize, crossed less self-fertilised, in eighths of an inch: Fisher, The Design of
# Experiments, chapter III; also the example of scipy's wilcoxon, which has its p value.
MAIZE = [49.0, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]
# Benjamini and Hochberg, J. R. Stat. Soc. B 57(1), 1995: thrombolysis, 15 hypotheses.
THROMBOLYSIS = [
    0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719,
    0.6528, 0.7590, 1.0000,
]  # fmt: skip


def test_midranks_are_scipy_s() -> None:
    source = np.random.default_rng(5)
    for count in range(1, 40):
        # Of few values, hence with ties, and of many.
        for values in (source.integers(0, 7, count) / 4, source.normal(size=count)):
            assert stats.midranks(values).tolist() == scipy_stats.rankdata(values).tolist()
    assert stats.midranks([3.0, 1.0, 3.0, -0.0, 0.0]).tolist() == [4.5, 3.0, 4.5, 1.5, 1.5]


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


def test_maize_p() -> None:
    assert stats.signed_rank_p(MAIZE) == pytest.approx(0.041259765625, abs=1e-12)


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


def signed_rank_sum(values: list[float]) -> float:
    """The sum of ranks with a positive sign, by scipy's ranks."""
    data = np.asarray(values)
    return float(np.sum(scipy_stats.rankdata(np.abs(data)) * (data > 0)))


@pytest.mark.parametrize("count", [6, 8, 11])
def test_signed_rank_p_is_scipys_sign_flip_permutation_also_with_ties(count: int) -> None:
    """Twice the smaller tail of all 2^n flips, counted by scipy."""
    values = np.random.default_rng(count).integers(1, 5, count) * np.sign(
        np.random.default_rng(count + 1).normal(0.5, 1, count)
    )
    found = scipy_stats.permutation_test(
        (values.astype(float),),
        signed_rank_sum,
        permutation_type="samples",
        vectorized=False,
        n_resamples=np.inf,
    )
    assert len(found.null_distribution) == 2**count
    assert stats.signed_rank_p(values.tolist()) == pytest.approx(float(found.pvalue))


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


@pytest.mark.parametrize(
    "values", [CHANGE, MAIZE, np.random.default_rng(2).normal(0, 1, 20).tolist()]
)
def test_interval_is_what_scipys_exact_test_does_not_reject(values: list[float]) -> None:
    """Bisecting from the estimate outwards until `scipy.stats.wilcoxon` rejects."""

    def edge(outside: float) -> float:
        inside = stats.hodges_lehmann(values)
        for _ in range(60):
            middle = (inside + outside) / 2
            shifted = np.asarray(values) - middle
            rejected = scipy_stats.wilcoxon(shifted, method="exact").pvalue <= 0.05
            inside, outside = (inside, middle) if rejected else (middle, outside)
        return inside

    interval = stats.shift_interval(values)
    assert interval is not None
    assert interval.low == pytest.approx(edge(min(values) - 1), abs=1e-6)
    assert interval.high == pytest.approx(edge(max(values) + 1), abs=1e-6)


@pytest.mark.parametrize("count", range(6, 40))
def test_coverage_is_that_of_the_exact_distribution(count: int) -> None:
    """scipy knows P(T <= t) for small n by enumeration: the level is 1 less both tails."""
    interval = stats.shift_interval(np.random.default_rng(count).normal(0, 1, count).tolist())
    assert interval is not None
    assert 0.95 <= interval.level < 1
    if count <= 12:
        sums = np.zeros(1)
        for rank in range(1, count + 1):
            sums = np.concatenate([sums, sums + rank])
        tails = [2 * float(np.mean(sums <= total)) for total in range(count * count)]
        assert interval.level == pytest.approx(1 - max(tail for tail in tails if tail <= 0.05))


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


def test_a12_counts_pairs() -> None:
    source = np.random.default_rng(4)
    first, second = source.integers(0, 9, 12).tolist(), source.integers(1, 10, 9).tolist()
    wins = sum((a > b) + (a == b) / 2 for a in first for b in second)
    assert stats.a12(first, second) == pytest.approx(wins / (12 * 9))


@pytest.mark.parametrize("count", [1, 2, 9, 40])
def test_spread_is_scipys_normal_median_absolute_deviation(count: int) -> None:
    values = np.random.default_rng(count).standard_t(3, count).tolist()
    expected = scipy_stats.median_abs_deviation(values, scale="normal")
    assert stats.spread(values) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("count", [6, 7, 11, 20, 41, 150])
def test_the_medians_interval_is_that_of_the_sign_test(count: int) -> None:
    """Order statistics k + 1 from each end, with k the largest for which both tails fit."""
    values = np.random.default_rng(count).normal(0, 1, count)
    found = quartiles(values.tolist())
    expected = scipy_stats.quantile_test(values, p=0.5).confidence_interval(0.95)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_equal_is_two_one_sided_tests() -> None:
    """Both of scipy's one-sided tests reject the margins at half of the level, and only then."""
    low, high = math.log(1 - MARGIN), math.log(1 + MARGIN)
    verdicts = []
    for seed in range(60):
        logs = np.random.default_rng(seed).normal(0.004 * (seed % 5), 0.03, 24)
        rates = np.exp(logs).tolist()
        paired = stats.compare(rates, [1.0] * 24)
        calm = stats.compare([1.0 + 1e-6 * (n % 2) for n in range(24)], [1.0] * 24)
        found = judge(paired, paired.p, planned=24, aa=calm)
        tests = [
            scipy_stats.wilcoxon(logs - edge, alternative=side, method="exact").pvalue
            for edge, side in ((low, "greater"), (high, "less"))
        ]
        assert (found.verdict == "equal") == (max(tests) <= 0.025)
        verdicts.append(found.verdict)
    assert 10 < verdicts.count("equal") < 50


@pytest.mark.parametrize("count", [2, 7, 26])
def test_holm_is_statsmodels(count: int) -> None:
    p_values = (np.random.default_rng(count).random(count) ** 3).tolist()
    expected = multipletests(p_values, method="holm")[1]
    assert stats.holm(p_values) == pytest.approx(expected.tolist())


def test_holm_on_the_thrombolysis_data() -> None:
    """The first three of fifteen, as by Bonferroni; the fourth is 12 times .0095."""
    adjusted = stats.holm(THROMBOLYSIS)
    assert adjusted[:4] == pytest.approx([0.0015, 0.0056, 0.0247, 0.114])
    assert [value < 0.05 for value in adjusted] == [True] * 3 + [False] * 12
    assert adjusted == pytest.approx(multipletests(THROMBOLYSIS, method="holm")[1].tolist())


def test_holm_worked_example() -> None:
    """Four tests: .01 * 4, .02 * 3, .03 * 2, then the running maximum."""
    assert stats.holm([0.01, 0.04, 0.03, 0.02]) == pytest.approx([0.04, 0.06, 0.06, 0.06])
    assert stats.holm([]) == []
    assert stats.holm([0.6, 0.7]) == [1.0, 1.0]


@pytest.mark.parametrize(("count", "family"), [(6, 1), (9, 7), (11, 26), (20, 3), (70, 7)])
def test_smallest_detectable_is_found_with_the_promised_power(count: int, family: int) -> None:
    """By the exact test, when it is the only difference of its family: Holm's first step."""
    source = np.random.default_rng(11)
    sigma, draws = 0.04, 600
    promised = np.median(
        [
            stats.smallest_detectable(
                count, stats.deviation(source.normal(0, sigma, count).tolist()), family
            )
            for _ in range(200)
        ]
    )
    found = sum(
        family * stats.signed_rank_p(source.normal(promised, sigma, count).tolist()) < stats.ALPHA
        for _ in range(draws)
    )
    # The promised power is 0.8; the larger of two estimates of the deviation makes it cautious.
    assert 0.76 < found / draws < 0.93


@pytest.mark.parametrize("count", [12, 20, 40, 60, 61, 150])
def test_smallest_detectable_is_the_t_tests_over_the_efficiency(count: int) -> None:
    """Of many values; statsmodels has the t test's power from the noncentral distribution."""
    effect = TTestPower().solve_power(nobs=count, alpha=0.05, power=0.8)
    expected = effect / math.sqrt(3 / math.pi)
    assert stats.smallest_detectable(count, 1.0) == pytest.approx(expected, rel=0.06)


def test_smallest_detectable_of_six_needs_all_of_them_on_one_side() -> None:
    """The chance of that is the sixth power of one value's."""
    expected = NormalDist().inv_cdf(0.8 ** (1 / 6))
    assert stats.smallest_detectable(6, 1.0) == pytest.approx(expected, rel=0.02)
    assert stats.smallest_detectable(6, 0.01) == pytest.approx(0.01 * expected, rel=0.02)


def test_smallest_detectable_needs_as_many_as_can_reject() -> None:
    assert math.isinf(stats.smallest_detectable(5, 0.1))
    for family in (1, 7, 26):
        fewest = stats.fewest_pairs(family)
        assert math.isfinite(stats.smallest_detectable(fewest, 0.1, family))
        assert math.isinf(stats.smallest_detectable(fewest - 1, 0.1, family))


def test_what_was_held_at_a_limit_has_no_smallest_detectable() -> None:
    held = [0.0] * 7 + [-0.1]
    assert stats.deviation(held) == 0.0
    assert math.isinf(stats.smallest_detectable(len(held), stats.deviation(held)))
    assert stats.deviation([0.01, -0.01, 0.02, 0.0]) == pytest.approx(0.014826)


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


# -- differences, where ratios cannot be -----------------------------------------------------------

# Fisher, The Design of Experiments, section 21: Darwin's pairs of plants, in eighths of an inch.
DARWIN = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]


def test_signs_are_flipped_as_fisher_did() -> None:
    """863 of the 32,768 ways give a sum of 314 or more, and as many one of -314 or less."""
    assert stats.sign_flip_p(DARWIN) == pytest.approx(2 * 863 / 32_768)
    assert stats.sign_flip_p([-value for value in DARWIN]) == pytest.approx(2 * 863 / 32_768)


def test_sign_flips_of_few_and_of_many() -> None:
    assert stats.sign_flip_p([1.0] * 6) == 2 / 64
    assert stats.sign_flip_p([0.0] * 6) == 1.0
    assert stats.sign_flip_p([]) == 1.0
    assert stats.sign_flip_p([0.3]) == 1.0
    # More than can all be tried: drawn at random, the same each time.
    many = [0.01 * (index % 7 - 2) for index in range(40)]
    assert stats.sign_flip_p(many) == stats.sign_flip_p(many)
    reference = scipy_stats.ttest_1samp(many, 0.0).pvalue
    assert stats.sign_flip_p(many) == pytest.approx(reference, rel=0.1, abs=0.002)


def test_values_that_may_be_0_are_compared_by_their_differences() -> None:
    arm, baseline = [0.0, 0.0, 0.1, 0.2, 0.3, 0.4], [0.2, 0.0, 0.3, 0.5, 0.5, 0.9]
    found = stats.shifted(arm, baseline)
    differences = [a - b for a, b in zip(arm, baseline, strict=True)]
    assert found.shift == stats.hodges_lehmann(differences)
    assert found.low == pytest.approx(-0.5)
    assert found.high == pytest.approx(0.0)
    above = sum((a > b) - (a < b) for a in arm for b in baseline)
    assert found.cliffs_delta == pytest.approx(above / 36)
    assert (found.arm_zeros, found.baseline_zeros) == (2 / 6, 1 / 6)
    # Five differences that are not 0, all of one sign; the sixth does not count.
    assert found.p == pytest.approx(2 / 2**5)


@pytest.mark.parametrize("family", [1, 2, 3, 7, 8, 26])
def test_fewest_pairs_can_pass_holm_and_one_less_cannot(family: int) -> None:
    def best(count: int) -> float:
        # One size has the same difference in every pair, the others random ones.
        p = scipy_stats.wilcoxon(np.arange(1.0, count + 1), method="exact").pvalue
        return stats.holm([p, *[1.0] * (family - 1)])[0]

    count = stats.fewest_pairs(family)
    assert best(count) < stats.ALPHA
    assert count == 6 or best(count - 1) >= stats.ALPHA
