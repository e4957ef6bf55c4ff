# SPDX-License-Identifier: BSD-3-Clause
"""Each rule that gives or forbids a verdict."""

from __future__ import annotations

from dataclasses import replace

import pytest

from linerate.stats import Paired
from linerate.verdict import judge

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
        (replace(FASTER, spread=0.5), "invalid"),
    ],
)
def test_verdicts(paired: Paired, verdict: str) -> None:
    assert judge(paired, paired.p, planned=20, aa=CALM).verdict == verdict


def test_fewer_cycles_are_faster() -> None:
    found = judge(SLOWER, SLOWER.p, planned=20, aa=CALM, higher_is_better=False)
    assert found.verdict == "faster"


def test_aa_difference_forbids_a_verdict() -> None:
    found = judge(FASTER, FASTER.p, planned=20, aa=replace(CALM, p=0.01))
    assert found.verdict == "invalid"
    assert "A/A" in found.reason


def test_missing_aa_forbids_a_verdict() -> None:
    assert judge(FASTER, FASTER.p, planned=20, aa=None).verdict == "invalid"


def test_small_runs_are_undecided_and_say_so() -> None:
    few = replace(FASTER, n=4, ci_low=None, ci_high=None)
    assert judge(few, few.p, planned=4, aa=CALM).verdict == "undecided"


def test_loss_at_a_low_load_is_unstable() -> None:
    assert judge(FASTER, FASTER.p, planned=20, aa=CALM, low_load_loss=0.01).verdict == "invalid"


def test_holm_can_take_a_verdict_away() -> None:
    assert judge(FASTER, 0.2, planned=20, aa=CALM).verdict == "undecided"
