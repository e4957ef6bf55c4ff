# SPDX-License-Identifier: BSD-3-Clause
"""Why trials are invalid, and which processes had the CPUs in disturbed ones."""

from __future__ import annotations

import pytest
from trials import made_trial

from linerate.records.trial import InvalidCode, Trial
from linerate.verdict.arms import invalid_reasons


def void(code: InvalidCode, others: dict[str, dict[str, float]] | None = None) -> Trial:
    trial = made_trial()
    trial.reject(code, f"it was {code}")
    trial.others = others
    return trial


def test_who_had_the_cpus_is_a_mean_over_the_windows() -> None:
    found = invalid_reasons(
        [
            void("late", {"0": {"cc1": 0.5, "as": 0.02}, "1": {"cc1": 0.3, "kworker": 0.001}}),
            void("late", {"0": {"cc1": 0.4}, "1": {"ld": 0.1}}),
            void("idle", {"0": {"cc1": 0.9}}),
            made_trial(),
        ]
    )
    late, idle = found
    assert (late.code, late.count, late.example) == ("late", 2, "it was late")
    # For both CPUs together, and the three largest.
    assert late.others == pytest.approx({"cc1": 0.6, "ld": 0.05, "as": 0.01})
    # Others did not keep a program from forwarding that forwards nothing.
    assert (idle.code, idle.others) == ("idle", None)


def test_nobody_is_named_whom_this_user_may_not_see_or_who_had_next_to_nothing() -> None:
    assert invalid_reasons([void("starved")])[0].others is None
    assert invalid_reasons([void("starved", {"1": {"sh": 0.004}})])[0].others is None
