# SPDX-License-Identifier: BSD-3-Clause
"""The soak's turns: which row is next, what is resumed, and what the table says."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import pytest

from linerate.host.errors import LabError, MissingError, UsageError
from linerate.host.process import RunDirectory
from linerate.links.eal import Memory
from linerate_bench.soak import __main__ as command
from linerate_bench.soak.bench import Bench
from linerate_bench.soak.plan import Plan, Row, chosen, state, table
from linerate_bench.soak.records import Counted, Turn, append, done, read


def nothing(bench: Bench, seconds: float, wanted: int) -> Counted:
    return Counted(0)


def row(part: str, subject: str, goal: int = 100) -> Row:
    return Row(part, subject, "things", goal, nothing)


ROWS = [row("a", "one"), row("a", "two"), row("b", "three", 10)]


def made(name: str, number: int, seconds: float = 10.0, *faults: str) -> Turn:
    part, subject = name.split(":")
    return Turn(part, subject, "things", number, seconds, faults, "2026-01-01T00:00:00", "c0ffee")


# -- the file --------------------------------------------------------------------------------------


def test_a_file_goes_on_where_it_stopped(tmp_path: Path) -> None:
    path = tmp_path / "soak.jsonl"
    assert read(path) == []
    first, second = made("a:one", 5), made("a:one", 7, 3.0, "a fault")
    append(path, first)
    append(path, second)
    assert read(path) == [first, second]
    assert done(read(path), "a", "one") == 12
    assert done(read(path), "a", "two") == 0


def test_half_a_line_of_a_killed_soak_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "soak.jsonl"
    append(path, made("a:one", 5))
    whole = path.read_text()
    halves = [whole[:cut].encode() for cut in (1, 20, len(whole) - 1)]
    # The first byte of a letter that has two.
    for half in [*halves, "é".encode()[:1]]:
        path.write_bytes(whole.encode() + half)
        assert len(read(path)) == 1
        append(path, made("a:two", 6))
        assert [turn.number for turn in read(path)] == [5, 6]
        path.write_text(whole)


def test_another_file_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "soak.jsonl"
    append(path, made("a:one", 5))
    with path.open("a") as file:
        file.write('{"part": "a"}\n')
    with pytest.raises(UsageError, match=r"soak\.jsonl: line 2: subject"):
        read(path)


# -- turns -----------------------------------------------------------------------------------------


def test_parts_share_the_time_and_rows_of_a_part_their_goals() -> None:
    plan = Plan(ROWS)
    order = []
    for _ in range(6):
        chosen_row = plan.next()
        assert chosen_row is not None
        order.append(chosen_row.name)
        plan.turns.append(made(chosen_row.name, 2))
    assert order == ["a:one", "b:three", "a:two", "b:three", "a:one", "b:three"]


def test_what_has_reached_its_goal_has_no_turn() -> None:
    plan = Plan(ROWS, [made("a:one", 100), made("b:three", 11), made("a:two", 99)])
    found = plan.next()
    assert found is not None
    assert found.name == "a:two"
    assert found.left(plan.turns) == 1
    plan.turns.append(made("a:two", 1))
    assert plan.next() is None


def test_what_cannot_run_here_has_no_turn() -> None:
    plan = Plan(ROWS, absent={"a:one": "why", "a:two": "why"})
    found = plan.next()
    assert found is not None
    assert found.part == "b"


def test_a_turn_is_a_share_of_the_time() -> None:
    plan = Plan(ROWS)
    assert plan.turn_s(ROWS[0], 3600) == 180
    assert plan.turn_s(ROWS[0], 200) == 100
    assert plan.turn_s(ROWS[0], 12) == 10
    assert plan.turn_s(ROWS[0], 4) == 4
    long = dataclasses.replace(ROWS[0], longest_s=600)
    assert plan.turn_s(long, 3600) == 600


def test_only_some_are_chosen_by_part_or_row() -> None:
    assert chosen(ROWS, []) == ROWS
    assert chosen(ROWS, ["a"]) == ROWS[:2]
    assert chosen(ROWS, ["a:two", "b"]) == ROWS[1:]
    with pytest.raises(ValueError, match="no part 'c'; there are a, b"):
        chosen(ROWS, ["c"])


# -- the table -------------------------------------------------------------------------------------


def test_the_table_has_rates_goals_and_faults() -> None:
    plan = Plan(
        ROWS,
        [made("a:one", 5, 10.0), made("a:one", 20, 10.0, "lost"), made("b:three", 10, 36.0)],
        {"a:two": "no root"},
    )
    lines = table(plan)
    assert lines[1].split() == ["a", "one", "25", "100", "25", "%", "4,500", "1"]
    assert lines[2].split() == ["a", "two", "0", "100", "0", "%", "-", "0"]
    assert lines[3].split() == ["b", "three", "10", "10", "100", "%", "1,000", "0"]
    assert "not here: a:two: no root" in lines
    assert "commits: c0ffee" in lines
    assert lines[-1] == "a:one: lost"


def test_a_goal_that_is_nearly_reached_is_not_reached() -> None:
    assert state(row("a", "one", 1000), 999) == "99 %"
    assert state(row("a", "one", 1000), 2000) == "100 %"


def test_every_promise_has_its_goal() -> None:
    goals = {each.name: each.goal for each in command.rows()}
    assert len(goals) == len(command.rows())
    assert goals["frames:l2fwd"] == 10**10
    assert goals["starts:l2fwd"] == goals["starts:generator"] == 10_000
    assert {goal for name, goal in goals.items() if name.startswith("kills:")} == {500}
    assert "kills:lab" in goals
    assert {goal for name, goal in goals.items() if name.startswith("exchanges:")} == {10_000}
    assert sum(goal for name, goal in goals.items() if name.startswith("fuzz:")) >= 10**8
    assert goals["generator:generator"] == 4 * 3600
    programs = {name.partition(":")[2] for name in goals if name.startswith("starts:")}
    assert programs == {name.partition(":")[2] for name in goals if name.startswith("kills:")} - {
        "lab"
    }


# -- the command -----------------------------------------------------------------------------------


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(RunDirectory(tmp_path), random.Random(1), tmp_path / "f.jsonl", Memory(False))


def test_turns_are_written_until_the_time_is_over(bench: Bench) -> None:
    def count(bench: Bench, seconds: float, wanted: int) -> Counted:
        return Counted(min(40, wanted))

    def broken(bench: Bench, seconds: float, wanted: int) -> Counted:
        raise MissingError("it is not built", "make build")

    def failing(bench: Bench, seconds: float, wanted: int) -> Counted:
        raise LabError("it fell over")

    rows = [
        Row("a", "one", "things", 100, count),
        Row("b", "two", "things", 100, broken),
        Row("c", "three", "things", 1, failing),
    ]
    plan = Plan(rows)
    command.soak(bench, plan, 1.0, lease=False)
    written = read(bench.records)
    assert [turn.number for turn in written if turn.part == "a"] == [40, 40, 20]
    (failed,) = (turn for turn in written if turn.part == "c")
    assert (failed.number, failed.faults) == (0, ("it fell over",))
    assert plan.absent.keys() == {"b:two", "c:three"}


def test_the_status_tells_of_faults(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "soak.jsonl"
    options = ["--records", str(path), "--hours", "0", "--only", "frames"]
    append(path, dataclasses.replace(made("frames:l2fwd", 5), unit="frames"))
    assert command.main(options) == 0
    append(path, dataclasses.replace(made("frames:l2fwd", 5, 1.0, "lost one"), unit="frames"))
    assert command.main(options) == 1
    assert "frames:l2fwd: lost one" in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        command.main(["--records", str(path), "--hours", "0", "--only", "nothing"])
    assert ended.value.code == 2
