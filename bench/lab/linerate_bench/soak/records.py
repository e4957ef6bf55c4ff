# SPDX-License-Identifier: BSD-3-Clause
"""What was counted: a line of JSON for each turn, in a file that only grows.

A soak that is killed while it writes leaves half a line at the end: that turn is made again.
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
    """What one turn found. `number`: of what is counted; `faults`: in words, none when the promise
    was kept.
    """

    number: int
    faults: tuple[str, ...] = ()


@dataclass(frozen=True)
class Turn:
    """A line. `part` and `subject`: what was counted, such as `starts` of `l2fwd`; `unit`: in what
    (`frames`); `seconds`: for which it ran; `commit`: of the checkout, with `+` where files were
    changed since; `machine`: its CPU, kernel and DPDK.
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
    """All turns of a file, none where there is no file. Raises `UsageError` with the line."""
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
    """Add a line; half a line at the end goes first."""
    with path.open("a+b") as file:
        file.seek(0)
        file.truncate(end_of_lines(file.read()))
        file.write(json.dumps(asdict(turn)).encode() + b"\n")


def done(turns: Sequence[Turn], part: str, subject: str) -> int:
    """How many of a subject are counted."""
    return sum(each.number for each in turns if (each.part, each.subject) == (part, subject))
