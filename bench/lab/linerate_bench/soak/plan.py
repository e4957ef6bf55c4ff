# SPDX-License-Identifier: BSD-3-Clause
"""Decides which row has the next turn, and writes the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from linerate_bench.soak.records import Counted, Turn, done

if TYPE_CHECKING:
    from linerate_bench.soak.bench import Bench

# The longest and the shortest turn, in seconds: long enough that starts cost little, short enough
# that every part has turns.
LONGEST_S, SHORTEST_S = 180.0, 10.0


@dataclass(frozen=True)
class Row:
    """One promise, and how often it is to be tried.

    `count` counts for a number of seconds, or until it has counted `wanted` more. `longest_s`: its
    longest turn. `leases`: the turn leases the CPUs, so that nobody measures meanwhile; a turn that
    starts the lab does not, because the lab leases them itself.
    """

    part: str
    subject: str
    unit: str
    goal: int
    count: Callable[[Bench, float, int], Counted]
    longest_s: float = LONGEST_S
    leases: bool = True

    @property
    def name(self) -> str:
        return f"{self.part}:{self.subject}"

    def left(self, turns: Sequence[Turn]) -> int:
        """Return how many are left to count."""
        return max(self.goal - done(turns, self.part, self.subject), 0)


@dataclass
class Plan:
    """Chooses the next turn: the part that has had the least time, and in it the row that is
    furthest from its goal. Only the recorded turns decide, so a soak goes on where the file ends.

    `absent`: rows that cannot run here, with the reasons.
    """

    rows: Sequence[Row]
    turns: list[Turn] = field(default_factory=list)
    absent: dict[str, str] = field(default_factory=dict)

    def next(self) -> Row | None:
        """Return the row of the next turn; None if every row that can run has reached its goal."""
        wanting = [row for row in self.rows if row.left(self.turns) and row.name not in self.absent]
        if not wanting:
            return None
        part = min((row.part for row in wanting), key=self.seconds)
        of_it = [row for row in wanting if row.part == part]
        return max(of_it, key=lambda row: row.left(self.turns) / row.goal)

    def seconds(self, part: str) -> float:
        """Return how long all turns of a part took."""
        return sum(each.seconds for each in self.turns if each.part == part)

    def turn_s(self, row: Row, rest_s: float) -> float:
        """Return the length of the row's turn if `rest_s` seconds are left for all parts."""
        parts = {each.part for each in self.rows}
        share = min(row.longest_s, max(rest_s / len(parts), SHORTEST_S))
        return min(share, max(rest_s, 1.0))


def chosen(rows: Sequence[Row], only: Sequence[str]) -> list[Row]:
    """Return the rows that `PART` or `PART:SUBJECT` names; all rows if nothing is named. Raises
    `ValueError` for an unknown name.
    """
    for word in only:
        if not any(word in (row.part, row.name) for row in rows):
            parts = dict.fromkeys(row.part for row in rows)
            raise ValueError(
                f"no part {word!r}; there are {', '.join(parts)}, and PART:SUBJECT such as "
                f"{rows[0].name}"
            )
    return [row for row in rows if not only or row.part in only or row.name in only]


def table(plan: Plan) -> list[str]:
    """Return the lines of the table: for each row the count, goal, rate and faults."""
    lines = [
        f"{'part':<10} {'of':<16} {'counted':>16} {'goal':>15}  {'':>6} {'per hour':>15} "
        f"{'faults':>6}"
    ]
    told: list[str] = []
    for row in plan.rows:
        turns = [
            each for each in plan.turns if (each.part, each.subject) == (row.part, row.subject)
        ]
        number, seconds = sum(each.number for each in turns), sum(each.seconds for each in turns)
        faults = [fault for each in turns for fault in each.faults]
        rate = f"{number / seconds * 3600:,.0f}" if seconds else "-"
        lines.append(
            f"{row.part:<10} {row.subject:<16} {number:>16,} {row.goal:>15,}  "
            f"{state(row, number):>6} {rate:>15} {len(faults):>6}"
        )
        told += [f"{row.name}: {fault}" for fault in faults]
    units = {row.part: row.unit for row in plan.rows}
    lines.append("counted: " + ", ".join(f"{part}: {unit}" for part, unit in units.items()))
    lines += [f"not here: {name}: {why}" for name, why in plan.absent.items()]
    commits = dict.fromkeys(each.commit for each in plan.turns)
    if commits:
        lines.append(f"commits: {', '.join(commits)}")
    return lines + told


def state(row: Row, number: int) -> str:
    """Return the share of the goal; 100 % only if the goal is reached."""
    return f"{min(number * 100 // row.goal, 100)} %"
