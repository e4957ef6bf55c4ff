# SPDX-License-Identifier: BSD-3-Clause
"""The arithmetic of the probe's cost, on a machine whose speed changes from process to process."""

from __future__ import annotations

import random

import pytest

from linerate_bench.probe_cost import MODES, QUESTIONS, compare, cost, table

FACTORS = {"off": 1.0, "off again": 1.0, "polling": 1.02, "latency": 1.03}


def simulated(processes: int) -> list[list[dict[str, float]]]:
    source = random.Random(1)
    return [
        [
            {mode: 50 * speed * source.gauss(1, 0.005) * FACTORS[mode] for mode in MODES}
            for _ in range(12)
        ]
        for speed in (source.choice([1.0, 1.5]) for _ in range(processes))
    ]


def test_a_cost_is_the_time_that_a_packet_takes_longer() -> None:
    found = {q.words: cost(compare(simulated(40), q)) for q in QUESTIONS}
    expected = [0.0, 0.02, 1.03 / 1.02 - 1, 0.03]
    for (middle, low, high), true in zip(found.values(), expected, strict=True):
        assert low is not None
        assert high is not None
        assert low < middle < high
        assert middle == pytest.approx(true, abs=0.002)
        assert high - low < 0.01


def test_a_goal_is_about_the_upper_end() -> None:
    lines = table(simulated(40), goals=True)
    assert [line.endswith(" reached") and "not" not in line for line in lines] == [
        False, False, True, True, False,
    ]  # fmt: skip
    costly = simulated(40)
    for rounds in costly:
        for rates in rounds:
            rates["polling"] *= 1.05
    assert table(costly, goals=True)[2].endswith("not reached")


def test_too_few_processes_reach_nothing() -> None:
    assert all("not reached" in line for line in table(simulated(3), goals=True)[2:4])
    assert "reached" not in "".join(table(simulated(40), goals=False))
    assert table([], goals=True)[1].startswith("absent")
