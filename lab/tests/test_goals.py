# SPDX-License-Identifier: BSD-3-Clause
"""The table of `make bench`: the best build is chosen in other blocks than it is judged in."""

from __future__ import annotations

import random

from conftest import simulated_trial

from linerate import goals
from linerate.design import Cell
from linerate.records import Trial


def rates(**arms: list[float]) -> goals.Rates:
    return {name.replace("_", "-"): dict(enumerate(values)) for name, values in arms.items()}


def test_the_best_build_is_chosen_in_the_even_blocks_only() -> None:
    found = rates(c_l2fwd=[2, 1, 2, 1], c_l2fwd_native=[1, 9, 1, 9])
    assert goals.best_build(found) == "c-l2fwd"
    assert goals.best_build({}) is None


def test_a_row_compares_in_the_odd_blocks_only() -> None:
    found = rates(c_l2fwd=[9.0, 1.0] * 20, rust_l2fwd=[1.0, 2.0] * 20)
    row = goals.row("null2", found, "rust-l2fwd", "c-l2fwd", 1.02, odd_only=True)
    assert row is not None
    assert (row.found.n, round(row.found.ratio, 6)) == (20, 2.0)
    assert str(row).endswith("reached")


def test_a_goal_is_held_against_the_lower_bound() -> None:
    noisy = [1.0, 1.3] * 10
    row = goals.row("null2", rates(a=noisy, b=[1.0] * 20), "a", "b", goal=1.05, odd_only=False)
    assert row is not None
    assert row.found.ratio > 1.05 > (row.found.ci_low or 0)
    assert str(row).endswith("not reached")


def test_no_goal_is_reached_on_a_link_whose_control_differs() -> None:
    def trials(again: float) -> list[Trial]:
        source = random.Random(3)
        rates = {"c-l2fwd": 1.0, "c-l2fwd-again": again, "rust-l2fwd": 2.0, "raw-rust": 2.0}
        made = []
        for block in range(40):
            for arm, rate in rates.items():
                cell = Cell("null2", 64, 40)
                trial = simulated_trial(source, "c-l2fwd", arm, cell, block=block, position=0)
                trial.forwarder_rx, trial.duration_s = round(rate * source.gauss(1e7, 5e4)), 1.0
                made.append(trial)
        return made

    rows, reasons = goals.table(trials(1.0))
    states = {row.arm: row.state for row in rows}
    assert (states["c-l2fwd-again"], states["rust-l2fwd"]) == ("", "reached")
    assert reasons == []
    rows, reasons = goals.table(trials(1.2))
    assert {row.state for row in rows if row.goal} == {"no verdict"}
    assert "A/A" in reasons[0]


def test_without_common_blocks_there_is_no_row() -> None:
    found: goals.Rates = {"a": {0: 1.0}, "b": {1: 1.0}}
    assert goals.row("null2", found, "a", "b", None, odd_only=False) is None
