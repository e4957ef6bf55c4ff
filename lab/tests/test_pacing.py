# SPDX-License-Identifier: BSD-3-Clause
"""The rate that fixed loads are shares of: what the sender keeps, also on a slow machine."""

from __future__ import annotations

from collections.abc import Callable

from linerate.records.cells import Arm, Cell
from linerate.runs.plans.pacing import PACED_STARTS, Late, hundred_percent, kept_rate
from linerate.runs.plans.steps import OnSetup

CELL, ARM, LOAD = Cell("memif", 64, 6), Arm("c-l2fwd", "c-l2fwd"), 0.9


def found(flooded: float, late: Callable[[int, float], Late | None]) -> tuple[float | None, int]:
    """Return the kept rate, and the number of starts. `late`: the share by start and rate."""
    steps, starts = kept_rate(CELL, ARM, flooded, LOAD), 0
    answer = None
    try:
        while True:
            step = steps.send(answer)
            assert isinstance(step, OnSetup)
            *_, pps, _ = step.steps.args  # type: ignore[attr-defined]
            answer = late(starts, pps)
            starts += 1
    except StopIteration as end:
        return end.value, starts


def test_a_rate_must_be_kept_in_several_starts() -> None:
    assert found(10e6, lambda _, __: None) == (10e6, PACED_STARTS)
    # The second start is late.
    kept, starts = found(10e6, lambda start, pps: Late(0.97 * pps) if start == 1 else None)
    assert (kept, starts) == (9e6, 2 + PACED_STARTS)


def test_no_more_is_tried_than_what_a_late_sender_sent() -> None:
    def slow_once(start: int, _: float) -> Late | None:
        return Late(5e6) if start == 0 else None

    assert found(10e6, slow_once) == (5e6, 1 + PACED_STARTS)


def test_a_sender_that_is_always_late_keeps_nothing() -> None:
    kept, starts = found(10e6, lambda _, pps: Late(0.99 * pps))
    assert (kept, starts) == (None, 12)
    # Nothing was sent at all: no share is small enough.
    assert found(10e6, lambda _, __: Late(0.0)) == (None, 1)


def test_forwarders_of_about_the_same_speed_meet_the_same_loads() -> None:
    flooded = {"fast": 15e6, "as-fast": 9e6, "slow": 0.4e6}
    assert hundred_percent({"fast": 12e6, "as-fast": 4e6, "slow": 0.2e6}, flooded) == {
        "fast": 4e6, "as-fast": 4e6, "slow": 0.2e6,
    }  # fmt: skip
    # Programs that carry much more are not held back by those that carry little.
    assert hundred_percent({"fast": 12e6, "slow": 0.1e6}, flooded)["fast"] == 12e6
    # With only one of them nothing is known.
    assert hundred_percent({"as-fast": 4e6}, flooded) == {"as-fast": 4e6}
