# SPDX-License-Identifier: BSD-3-Clause
"""The count of duels: what is planted, and what counts as right."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from linerate_bench.trust.duels import KINDS, Costs, Fought, program, read, told

# A line of 30 ns, and 1 ns for each addition, measured with some noise.
COSTS = Costs((0, 10, 20), (29e-9, 42e-9, 49e-9))
EQUAL, SLOWER = KINDS[0], KINDS[2]
FOUGHT = Fought(EQUAL.name, 0, 0.0, "equal", None, 1.0, 20.0, 9)


def test_a_line_is_laid_through_what_was_measured() -> None:
    assert COSTS.slower(0) == 0
    assert COSTS.slower(15) == pytest.approx(15 / 45)


def test_the_number_that_comes_nearest_is_planted() -> None:
    assert COSTS.chain(0.0) == 0
    assert COSTS.chain(0.25) == 10
    assert COSTS.chain(0.33) == 15


def test_the_planted_program_is_told_the_number() -> None:
    command = program(12).definition.command
    assert command is not None
    assert command.endswith("--chain 12")


def test_duels_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "duels.jsonl"
    assert read(path) == []
    path.write_text(json.dumps(asdict(FOUGHT)) + "\n")
    assert read(path) == [FOUGHT]


def test_silence_is_not_right_where_programs_are_equal() -> None:
    silent = replace(FOUGHT, answer="undecided")
    assert "right   1" in told(EQUAL, [FOUGHT, silent])
    assert told(EQUAL, [FOUGHT, silent]).endswith("FAIL")
    assert told(EQUAL, [FOUGHT]).endswith("PASS")


def test_a_direction_between_equal_programs_is_wrong_and_so_is_the_other_way() -> None:
    wrong = replace(FOUGHT, direction="slower")
    assert "wrong  4" in told(EQUAL, [wrong] * 4 + [FOUGHT] * 46)
    assert told(EQUAL, [wrong] * 4 + [FOUGHT] * 46).endswith("FAIL")
    found = replace(FOUGHT, kind=SLOWER.name, answer="slower", direction="slower")
    assert told(SLOWER, [found] * 20).endswith("PASS")
    other = replace(found, direction="faster")
    assert told(SLOWER, [*[found] * 19, other]).endswith("FAIL")
    assert "0 of 20" in told(SLOWER, [])
