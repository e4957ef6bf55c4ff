# SPDX-License-Identifier: BSD-3-Clause
"""The comparison of lookups with C: chosen build, goal, control, and what is refused."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from linerate.host.errors import TrialError
from linerate_bench.lookups import (
    NATIVE_CELL,
    TIMES,
    WINDOW_MS,
    Bench,
    Block,
    best_in_c,
    cost_lines,
    measure,
    table,
)

AGAIN = "c/gcc-again"


def blocks(rust: float, again: float = 10.0, count: int = 40) -> list[Block]:
    """Return cycles per operation; clang's build is the best."""
    return [
        {
            "lpm": {
                "c/gcc": 10.0 + n % 3 / 10,
                AGAIN: again + (n + 1) % 3 / 10,
                "c/clang": 5.0 + n % 3 / 20,
                "rust": rust + (n + 1) % 3 / 20,
            }
        }
        for n in range(count)
    ]


@pytest.mark.parametrize(
    ("rust", "state"), [(4.9, "reached"), (5.15, "not shown"), (5.5, "not reached")]
)
def test_the_best_build_is_what_the_goal_is_against(rust: float, state: str) -> None:
    assert best_in_c(blocks(rust), "lpm", native=False) == "c/clang"
    rows, reasons = table(blocks(rust))
    assert [(row.arm, row.baseline, row.state) for row in rows] == [
        (AGAIN, "c/gcc", ""), ("rust", "c/clang", state),
    ]  # fmt: skip
    assert reasons == []
    # It was chosen in the others.
    assert rows[1].found.n == 20


def test_a_build_for_this_processor_is_held_against_the_best_of_all() -> None:
    both = blocks(4.9)
    for n, block in enumerate(both):
        block["lpm"]["c/gcc-native"] = 4.0 + n % 3 / 20
        block["lpm" + NATIVE_CELL] = dict(block["lpm"])
    rows, _ = table(both)
    assert [(row.cell, row.baseline, row.state) for row in rows if row.arm == "rust"] == [
        ("lpm", "c/clang", "reached"), ("lpm native", "c/gcc-native", "not reached"),
    ]  # fmt: skip


def test_there_is_no_verdict_when_c_differs_from_itself() -> None:
    rows, reasons = table(blocks(4.0, again=11.0))
    assert rows[1].state == "no verdict"
    assert "lpm: no verdict" in reasons[0]


def test_every_arm_has_its_cost() -> None:
    heading, *told = cost_lines(blocks(4.0), {"lpm": {"rust": 7.25}})
    assert heading.split() == ["cycles", "least", "instructions"]
    assert [line.split()[:2] for line in told] == [
        ["lpm", arm] for arm in sorted(["c/gcc", AGAIN, "c/clang", "rust"])
    ]
    assert told[-1].split()[-1] == "7.2"
    assert told[0].split()[-1] == "-"


class Answers(Bench):
    """A program that finds one thing in Rust and, on request, another in C."""

    def __init__(self, differs: bool, suffix: str = "") -> None:
        self.differs = differs
        self.suffix = suffix
        self.operations = {"lpm": 1, "hash": 1}
        self.arms = ["c/gcc", "rust"]
        self.windows: Counter[tuple[str, str]] = Counter()

    def run(self, cell: str, arm: str, **length: int) -> tuple[float, str]:
        assert length == {"ms": WINDOW_MS}
        self.windows[cell, arm] += 1
        # The third window is the one that nobody disturbs.
        return 1.0 if self.windows[cell, arm] == 3 else 2.0, cell + (
            "!" if self.differs and arm == "rust" else ""
        )


def test_a_block_has_the_fastest_window_of_each_loop() -> None:
    benches = [Answers(differs=False), Answers(differs=False, suffix=NATIVE_CELL)]
    block = measure(benches, random.Random(1), {})
    assert all(set(bench.windows.values()) == {TIMES} for bench in benches)
    cells = ("lpm", "hash", "lpm native", "hash native")
    assert block == {cell: dict.fromkeys(("c/gcc", AGAIN, "rust"), 1.0) for cell in cells}


def test_all_loops_of_a_cell_find_the_same() -> None:
    with pytest.raises(TrialError, match="found"):
        measure([Answers(differs=True)], random.Random(1), {})
