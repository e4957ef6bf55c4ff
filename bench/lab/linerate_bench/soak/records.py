# SPDX-License-Identifier: BSD-3-Clause
"""The records of the soak: one line of JSON for each turn, in a file that only grows.

A soak that is killed while it writes leaves half a line at the end: that turn is run again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from linerate.host.errors import UsageError
from linerate.records.trial import end_of_lines


@dataclass(frozen=True)
class Counted:
    """The result of one turn. `number`: how much it counted; `faults`: in words, none if the
    promise was kept.
    """

    number: int
    faults: tuple[str, ...] = ()


@dataclass(frozen=True)
class Turn:
    """A line of the file. `part` and `subject`: what was counted, such as `starts` of `l2fwd`;
    `unit`: what `number` counts (`frames`); `seconds`: how long the turn took; `commit`: that of
    the checkout, with `+` if files were changed since; `machine`: its CPU, kernel and DPDK.
    """

    part: str
    subject: str
    unit: str
    number: int
    seconds: float
    faults: tuple[str, ...]
    started_at: str
    commit: str
    machine: dict[str, str] = field(default_factory=dict)


_READER = TypeAdapter(Turn)


def read(path: Path) -> list[Turn]:
    """Return all turns of a file; empty if there is no file. Raises `UsageError` with the number of
    a line that is not a turn.
    """
    if not path.exists():
        return []
    content = path.read_bytes()
    turns = []
    for number, line in enumerate(content[: end_of_lines(content)].splitlines(), 1):
        try:
            turns.append(_READER.validate_json(line))
        except ValidationError as error:
            told = error.errors()[0]
            raise UsageError(
                f"{path}: line {number}: {'.'.join(map(str, told['loc']))} {told['msg']}".rstrip(),
                "name a file that `make soak` wrote, or another one",
            ) from error
    return turns


def append(path: Path, turn: Turn) -> None:
    """Append a line; half a line at the end is removed first."""
    with path.open("a+b") as file:
        file.seek(0)
        file.truncate(end_of_lines(file.read()))
        file.write(json.dumps(asdict(turn)).encode() + b"\n")


def done(turns: Sequence[Turn], part: str, subject: str) -> int:
    """Return how much was counted for a subject."""
    return sum(each.number for each in turns if (each.part, each.subject) == (part, subject))
