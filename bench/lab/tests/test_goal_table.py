# SPDX-License-Identifier: BSD-3-Clause
"""When a goal is reached, and how the table says so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from linerate.verdict.stats import Paired
from linerate_bench.goal_table import Row, gated, lines

CALM = Paired(20, 1.0, 0.99, 1.01, 0.6, 0.5, 0.01, 0.01)
FOUND = Paired(20, 1.2, 1.15, 1.25, 1e-5, 1.0, 0.02, 0.02)
CONTROL = Row("null2", "c-l2fwd-again", "c-l2fwd", CALM, None)


def row(goal: float | None, found: Paired = FOUND) -> Row:
    return Row("null2", "rust-l2fwd", "c-l2fwd", found, goal)


@pytest.mark.parametrize(
    ("goal", "state"),
    [
        (1.1, "reached"), (1.15, "reached"), (1.16, "not shown"), (1.25, "not shown"),
        (1.26, "not reached"), (None, ""),
    ],
)  # fmt: skip
def test_a_goal_is_held_against_the_interval(goal: float | None, state: str) -> None:
    assert row(goal).state == state


def test_without_an_interval_nothing_is_shown() -> None:
    assert row(1.1, replace(FOUND, n=5, ci_low=None, ci_high=None)).state == "not shown"


@pytest.mark.parametrize(
    ("control", "why"),
    [
        (None, "too few valid blocks"),
        (replace(CALM, n=5, ci_low=None, ci_high=None), "too few valid blocks"),
        (replace(CALM, ratio=1.1, ci_low=1.05, ci_high=1.15), "differed (ratio 1.100"),
    ],
)
def test_the_control_forbids_the_verdicts_of_a_cell(control: Paired | None, why: str) -> None:
    told = replace(CONTROL, found=control) if control else None
    rows, reasons = gated("null2", told, [row(1.1), row(1.3), row(None), None])
    assert [each.state for each in rows if each.goal] == ["no verdict", "no verdict"]
    assert [each.state for each in rows if not each.goal] == [""] * (2 if control else 1)
    (reason,) = reasons
    assert reason.startswith("null2: no verdict, for ")
    assert why in reason


def test_a_row_that_spreads_takes_no_verdict_from_itself_or_others() -> None:
    told = replace(CONTROL, found=CALM)
    rows, reasons = gated("null2", told, [row(1.1), row(1.1, replace(FOUND, spread=0.4))])
    assert [each.state for each in rows if each.goal] == ["reached", "reached"]
    assert reasons == []


def test_a_small_difference_of_the_control_forbids_nothing() -> None:
    control = replace(CALM, ratio=1.015, ci_low=1.01, ci_high=1.02, p=0.001)
    rows, reasons = gated("null2", replace(CONTROL, found=control), [row(1.1)])
    assert ([each.state for each in rows], reasons) == (["", "reached"], [])


def test_the_table_has_the_same_columns_for_all() -> None:
    long = Row("chain4/speculate/hash5/nostats/256", "fused", "c-graph", FOUND, 1.4)
    heading, first, second, last = lines([row(1.1), long], ["null2: no verdict, for a reason"])
    assert heading.split() == [
        "cell", "forwarder", "against", "blocks", "ratio", "95", "%", "interval", "goal",
    ]  # fmt: skip
    for name in ("forwarder", "against"):
        assert first[: heading.index(name)].endswith("  ")
    assert first.endswith("1.150 to 1.250  1.10  reached")
    assert second.endswith("1.150 to 1.250  1.40  not reached")
    assert first.index("1.150") == second.index("1.150")
    assert last == "null2: no verdict, for a reason"
