# SPDX-License-Identifier: BSD-3-Clause
"""The comparison of header views: the best peer is chosen in some blocks and judged in others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from linerate.host.errors import TrialError
from linerate_bench.nat import BY_HAND, OURS, Timed, best, collected, cost_lines, read, run, table

CELL = "address"
ARMS = {"smoltcp": 10.0, "pnet": 20.0, "smoltcp" + BY_HAND: 30.0, "pnet" + BY_HAND: 25.0}


def timed(ours: float, blocks: int = 40, again: float = 1.0) -> list[Timed]:
    found = []
    for block in range(blocks):
        noise = 1 + (block // 2 * 7 % 5 - 2) / 1000
        for arm, rate in {OURS: ours, **ARMS}.items():
            found.append(Timed(CELL, arm, block, rate * noise))
            found.append(Timed(CELL, arm + "-again", block, rate * again * (2 - noise)))
    return found


def test_lines_are_read() -> None:
    line = json.dumps({"cell": CELL, "arm": OURS, "block": 3, "rate": 1.5})
    assert read(f"{line}\n") == [Timed(CELL, OURS, 3, 1.5)]


def test_the_best_is_chosen_in_even_blocks() -> None:
    odd = [Timed(CELL, "smoltcp", block, 99.0) for block in range(1, 40, 2)]
    even = [each for each in timed(1.0) if each.block % 2 == 0]
    assert best([*even, *odd], CELL, ["smoltcp", "pnet"]) == "pnet"


@pytest.mark.parametrize(
    ("ours", "by_hand_state"), [(40.0, "reached"), (29.0, "not reached"), (30.0, "reached")]
)
def test_either_kind_has_its_goal(ours: float, by_hand_state: str) -> None:
    rows, reasons = table(timed(ours))
    pairs = [(row.arm, row.baseline) for row in rows]
    by_hand = "smoltcp" + BY_HAND
    assert pairs == [
        ("pnet-again", "pnet"), (OURS, "pnet"), (by_hand + "-again", by_hand), (OURS, by_hand),
    ]  # fmt: skip
    assert ([row.state for row in rows], reasons) == (["", "reached", "", by_hand_state], [])


def test_there_is_no_verdict_when_the_best_differs_from_itself() -> None:
    rows, reasons = table(timed(40.0, again=1.2))
    assert [row.state for row in rows] == ["", "no verdict"] * 2
    assert "the A/A arm" in reasons[0]


def test_costs_are_told_with_instructions_where_there_are_some() -> None:
    heading, *told = cost_lines(timed(2e8), {(CELL, OURS): 31.25})
    assert heading.split() == ["ns/frame", "instructions"]
    assert told[0].split() == ["address", OURS, "5.00", "31.2"]
    assert told[1].split()[-1] == "-"
    assert len(told) == 5


def test_callgrinds_count_is_found_or_missed() -> None:
    assert collected("==1== Collected : 12345\n") == 12345
    with pytest.raises(TrialError, match="told no count"):
        collected("killed")


def test_a_program_that_fails_says_why(tmp_path: Path) -> None:
    program = tmp_path / "nat-bench"
    program.write_text("#!/bin/sh\necho 'pnet left wrong bytes' >&2\nexit 1\n")
    program.chmod(0o755)
    with pytest.raises(TrialError, match="pnet left wrong bytes"):
        run(program, "1", "1")
