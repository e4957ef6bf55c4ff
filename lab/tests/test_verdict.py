# SPDX-License-Identifier: BSD-3-Clause
"""Each rule that gives or forbids a verdict."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from linerate.records.types import Limiter
from linerate.verdict import stats
from linerate.verdict.judgement import judge, judge_shift
from linerate.verdict.stats import Paired, Shifted

CALM = Paired(20, 1.0, 0.99, 1.01, 0.6, 0.5, 0.01, 0.01)
FASTER = Paired(20, 1.2, 1.15, 1.25, 1e-5, 1.0, 0.02, 0.02)
SLOWER = Paired(20, 0.8, 0.75, 0.85, 1e-5, 0.0, 0.02, 0.02)


@pytest.mark.parametrize(
    ("paired", "verdict"),
    [
        (FASTER, "faster"),
        (SLOWER, "slower"),
        (CALM, "equal"),
        (replace(CALM, ci_low=0.95, ci_high=1.05), "undecided"),
        (replace(CALM, ratio=1.01, ci_low=1.005, ci_high=1.015, p=1e-4), "equal"),
        (replace(FASTER, n=5, ci_low=None, ci_high=None), "invalid"),
    ],
)
def test_verdicts(paired: Paired, verdict: str) -> None:
    assert judge(paired, paired.p, planned=20, aa=CALM).verdict == verdict


@pytest.mark.parametrize(
    ("low", "high", "primary", "exploratory"),
    [
        (1.03, 1.2, "faster", "faster"),
        (1.009, 1.2, "faster", "undecided"),
        (0.8, 0.993, "slower", "undecided"),
        (0.8, 0.97, "slower", "slower"),
        (0.99, 1.01, "equal", "equal"),
    ],
)
def test_an_exploratory_difference_must_not_overlap_the_controls(
    low: float, high: float, primary: str, exploratory: str
) -> None:
    found = replace(FASTER, ratio=(low + high) / 2, ci_low=low, ci_high=high)
    assert judge(found, found.p, planned=20, aa=CALM).verdict == primary
    judged = judge(found, found.p, planned=20, aa=CALM, exploratory=True)
    assert judged.verdict == exploratory
    assert ("which is 0.990 to 1.010" in judged.reason) == (exploratory == "undecided")


@pytest.mark.parametrize("ratio", [1 / 1.2, 1.2])
def test_a_program_that_differs_as_far_from_itself_explains_a_difference(ratio: float) -> None:
    found = replace(FASTER, ratio=1.15, ci_low=1.1, ci_high=1.2)
    control = replace(CALM, ratio=ratio, ci_low=0.8, ci_high=1.3)
    judged = judge(found, found.p, planned=20, aa=control)
    assert (judged.verdict, "differed as far" in judged.reason) == ("undecided", True)
    nearer = replace(control, ratio=ratio**0.7)
    assert judge(found, found.p, planned=20, aa=nearer).verdict == "faster"


@pytest.mark.parametrize(("low", "verdict"), [(0.02, "slower"), (0.005, "undecided")])
def test_nor_must_one_where_some_values_are_0(low: float, verdict: str) -> None:
    found = replace(SHIFTED, low=low)
    judged = judge_shift(
        found, found.p, planned=20, aa=STILL, higher_is_better=False, exploratory=True
    )
    assert judged.verdict == verdict
    assert ("which is -0.01 to +0.01" in judged.reason) == (verdict == "undecided")


def test_a_copy_is_seldom_better_or_worse_where_a_run_explores() -> None:
    """Of 500 comparisons of equal programs, in 8 blocks with noise of 10 %."""
    rng = np.random.default_rng(1)
    wrong = {True: 0, False: 0}
    for _ in range(500):
        arm, baseline, control = (np.exp(rng.normal(0, 0.1, 8)).tolist() for _ in range(3))
        found, aa = stats.compare(arm, baseline), stats.compare(control, baseline)
        for exploratory in wrong:
            judged = judge(found, found.p, planned=8, aa=aa, exploratory=exploratory)
            wrong[exploratory] += judged.verdict in {"faster", "slower"}
    assert wrong[False] > 10
    assert wrong[True] <= 1


def test_fewer_cycles_are_faster() -> None:
    found = judge(SLOWER, SLOWER.p, planned=20, aa=CALM, higher_is_better=False)
    assert found.verdict == "faster"


@pytest.mark.parametrize(("planned", "verdict"), [(40, "faster"), (41, "invalid")])
def test_a_verdict_needs_half_of_the_blocks_however_many_there_are(
    planned: int, verdict: str
) -> None:
    found = judge(FASTER, FASTER.p, planned=planned, aa=CALM)
    assert found.verdict == verdict
    assert (found.reason == "only 20 of 41 blocks were valid") == (verdict == "invalid")


SHIFTED = Shifted(20, 0.05, 0.03, 0.07, 1e-4, 0.9, 0.0, 0.5)
STILL = Shifted(20, 0.0, -0.01, 0.01, 0.7, 0.0, 0.5, 0.5)


@pytest.mark.parametrize(
    ("found", "control", "verdict", "reason"),
    [
        (SHIFTED, STILL, "slower", "above 0"),
        (replace(SHIFTED, shift=-0.05, low=-0.07, high=-0.03), STILL, "faster", "below 0"),
        (STILL, STILL, "undecided", "does not exclude"),
        (replace(SHIFTED, p=0.06), STILL, "undecided", "Holm"),
        (replace(STILL, shift=0.0, arm_zeros=1.0, baseline_zeros=1.0), STILL, "equal", "are 0"),
        (SHIFTED, SHIFTED, "invalid", "A/A"),
        (SHIFTED, replace(SHIFTED, shift=0.04, low=0.0), "slower", "above 0"),
        (SHIFTED, replace(SHIFTED, shift=-0.05, low=-0.2, high=0.1), "undecided", "as far"),
        (SHIFTED, None, "invalid", "too few"),
        (replace(SHIFTED, n=5), STILL, "invalid", "only 5 of 20"),
        (replace(SHIFTED, n=9), STILL, "invalid", "only 9 of 20"),
    ],
)
def test_differences_where_some_values_are_0(
    found: Shifted, control: Shifted | None, verdict: str, reason: str
) -> None:
    judged = judge_shift(found, found.p, planned=20, aa=control, higher_is_better=False)
    assert judged.verdict == verdict
    assert reason in judged.reason


@pytest.mark.parametrize(("low", "high"), [(1.021, 1.06), (0.94, 0.979)])
def test_aa_difference_beyond_the_margin_forbids_a_verdict(low: float, high: float) -> None:
    differs = replace(CALM, ratio=(low + high) / 2, ci_low=low, ci_high=high, p=0.001)
    found = judge(FASTER, FASTER.p, planned=20, aa=differs)
    assert found.verdict == "invalid"
    assert "A/A" in found.reason


@pytest.mark.parametrize(
    ("paired", "control", "verdict"),
    [
        (FASTER, 1.016, "faster"),
        (replace(FASTER, ratio=1.03, ci_low=1.015, ci_high=1.045), 1.016, "undecided"),
        (replace(FASTER, ratio=1.03, ci_low=1.015, ci_high=1.045), 0.984, "faster"),
        (SLOWER, 0.984, "slower"),
        (replace(SLOWER, ratio=0.97, ci_low=0.955, ci_high=0.985), 0.984, "undecided"),
        (replace(SLOWER, ratio=0.97, ci_low=0.955, ci_high=0.985), 1.016, "slower"),
    ],
)
def test_a_small_aa_difference_takes_only_what_it_could_explain(
    paired: Paired, control: float, verdict: str
) -> None:
    """Its interval overlaps the margin, so it proves no relevant difference."""
    low, high = sorted((control, 2 - control))
    aa = replace(CALM, ratio=control, ci_low=low - 0.005, ci_high=high - 0.01, p=0.03)
    found = judge(paired, paired.p, planned=20, aa=aa)
    assert found.verdict == verdict
    if verdict == "undecided":
        assert "A/A" in found.reason


def test_missing_aa_forbids_a_verdict() -> None:
    assert judge(FASTER, FASTER.p, planned=20, aa=None).verdict == "invalid"


def test_small_runs_are_undecided_and_say_so() -> None:
    few = replace(FASTER, n=4, ci_low=None, ci_high=None)
    assert judge(few, few.p, planned=4, aa=CALM).verdict == "undecided"


@pytest.mark.parametrize(
    ("lost", "verdict"), [(None, "faster"), (0.0, "faster"), (0.02, "faster"), (0.021, "invalid")]
)
def test_a_program_that_drops_what_it_should_carry_is_not_compared(
    lost: float | None, verdict: str
) -> None:
    found = judge(FASTER, FASTER.p, planned=20, aa=CALM, lost=lost)
    assert found.verdict == verdict
    assert ("lost 2.1% of the frames" in found.reason) == (verdict == "invalid")


@pytest.mark.parametrize("spread", [0.2, 0.7])
def test_no_spread_forbids_what_the_interval_shows(spread: float) -> None:
    wide = replace(FASTER, ratio=1.749, ci_low=1.634, ci_high=1.889, p=2e-6, spread=spread)
    assert judge(wide, wide.p, planned=24, aa=replace(CALM, spread=spread)).verdict == "faster"


def test_holm_can_take_a_verdict_away() -> None:
    assert judge(FASTER, 0.2, planned=20, aa=CALM).verdict == "undecided"


def test_holm_is_named_when_it_decides() -> None:
    found = judge(FASTER, 0.2, planned=20, aa=CALM)
    assert "Holm's p over this arm's family of comparisons is 0.200" in found.reason


@pytest.mark.parametrize(
    ("limits", "verdict"),
    [
        (("link", "link"), "undecided"),
        (("generator", "link"), "undecided"),
        (("link", None), "equal"),
        ((None, "link"), "equal"),
    ],
)
def test_equal_rates_of_two_limited_programs_say_nothing(
    limits: tuple[Limiter | None, Limiter | None], verdict: str
) -> None:
    found = judge(CALM, CALM.p, planned=20, aa=CALM, limited_by=limits)
    assert found.verdict == verdict
    if limits == ("generator", "link"):
        assert "limited by the generator or the link" in found.reason


def test_no_pair_at_all_is_invalid_and_zero_rates_are_named() -> None:
    found = judge(None, None, planned=20, aa=CALM, zero_blocks=20)
    assert found.verdict == "invalid"
    assert found.reason == (
        "no block can be compared; 20 left out because a value was 0, which has no logarithm"
    )
