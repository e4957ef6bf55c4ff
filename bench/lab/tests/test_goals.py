# SPDX-License-Identifier: BSD-3-Clause
"""The table of `make bench`: the best build is chosen in some blocks and judged in others."""

from __future__ import annotations

import random

from conftest import simulated_trial

from linerate.records.cells import Cell
from linerate.records.trial import Trial
from linerate_bench import goals


def trials(**arms: list[float]) -> list[Trial]:
    """Return one trial of each arm in each block, with these rates in Mpps."""
    made = []
    for name, rates in arms.items():
        for block, rate in enumerate(rates):
            arm = name.replace("_", "-")
            cell = Cell("null2", 64, len(rates))
            trial = simulated_trial(random.Random(1), "c-l2fwd", arm, cell, block=block, position=0)
            trial.frames.forwarder_rx, trial.frames.duration_s = round(rate * 1e6), 1.0
            made.append(trial)
    return made


def test_the_best_build_is_chosen_in_the_even_blocks_only() -> None:
    found = trials(c_l2fwd=[2, 1, 2, 1], c_l2fwd_native=[1, 9, 1, 9])
    assert goals.best_build(found) == "c-l2fwd"
    assert goals.best_build([]) is None


def test_it_is_judged_in_the_odd_blocks_only() -> None:
    rows, _ = goals.table(trials(c_l2fwd=[9, 1] * 20, rust_l2fwd=[1, 2] * 20))
    [row] = rows
    assert (row.arm, row.found.n, round(row.found.ratio, 6)) == ("rust-l2fwd", 20, 2.0)


def test_a_goal_is_held_against_the_lower_bound() -> None:
    found = trials(a=[1.0, 1.3] * 10, b=[1.0] * 20)
    row = goals.row("null2", found, "a", "b", goal=1.05)
    assert row is not None
    assert row.found.ratio > 1.05 > (row.found.ci_low or 0)
    assert row.state == "not shown"
    row = goals.row("null2", found, "a", "b", goal=1.0)
    assert row is not None
    assert row.state == "reached"


def test_no_goal_is_reached_on_a_link_whose_control_differs() -> None:
    def noisy(again: float) -> list[Trial]:
        source = random.Random(3)
        rates = {"c_l2fwd": 10.0, "c_l2fwd_again": again, "rust_l2fwd": 20.0, "raw_rust": 20.0}
        return trials(
            **{
                arm: [rate * source.gauss(1, 0.005) for _ in range(40)]
                for arm, rate in rates.items()
            }
        )

    rows, reasons = goals.table(noisy(10.0))
    states = {row.arm: row.state for row in rows}
    assert (states["c-l2fwd-again"], states["rust-l2fwd"]) == ("", "reached")
    assert reasons == []
    rows, reasons = goals.table(noisy(12.0))
    assert {row.state for row in rows if row.goal} == {"no verdict"}
    assert "A/A" in reasons[0]


def test_without_common_blocks_there_is_no_row() -> None:
    found = trials(a=[1.0, 1.0], b=[1.0, 1.0])
    found = [trial for trial in found if (trial.arm == "a") == (trial.block == 0)]
    assert goals.row("null2", found, "a", "b", None) is None
