# SPDX-License-Identifier: BSD-3-Clause
"""Files of callgrind: the cost of each function by itself.

The format is https://valgrind.org/docs/manual/cl-format.html. A name may be literal or have a
number, `fn=(7) main`, by which later lines refer to it. The line after `calls=` is the cost of the
called function, which has lines of its own, and is skipped.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from linerate.host.errors import LabError

INSTRUCTIONS = "Ir"
_NUMBERED = re.compile(r"\((\d+)\)(?: (.*))?")
_SPECIFICATION = re.compile(r"(ob|fl|fi|fe|fn|cob|cfi|cfl|cfn)=(.*)")
# The kinds of names that share their numbers.
_OBJECT, _FUNCTION = "object", "function"
_NAMES = {"ob": _OBJECT, "cob": _OBJECT, "fn": _FUNCTION, "cfn": _FUNCTION}


class ProfileError(LabError):
    """A file that is not in callgrind's format."""


@dataclass(frozen=True, order=True)
class Place:
    """A function, as named by callgrind: by its address in the object if it has no symbol."""

    object: str
    function: str


Costs = dict[Place, Counter[str]]


def read(path: Path) -> Costs:
    """Read the costs by event, such as `Ir`, without those of called functions.

    Raises `ProfileError` that names the line, or `OSError` if reading fails.
    """
    parser = _Parser()
    with path.open(errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            try:
                parser.take(line.rstrip("\n"))
            except (ValueError, KeyError) as error:
                raise ProfileError(f"{path}, line {number}: not of callgrind's format") from error
    return parser.found


def total(costs: Costs, event: str = INSTRUCTIONS) -> int:
    return sum(each[event] for each in costs.values())


def added(parts: Iterable[Costs]) -> Costs:
    """Return the sum of several."""
    found: Costs = {}
    for part in parts:
        for place, cost in part.items():
            found.setdefault(place, Counter()).update(cost)
    return found


class _Parser:
    def __init__(self) -> None:
        self.found: Costs = {}
        self._events: list[str] = []
        self._positions = 1
        self._names: dict[tuple[str, str], str] = {}
        self._now = {_OBJECT: "", _FUNCTION: ""}
        self._called = False

    def take(self, line: str) -> None:
        if line[:1] in tuple("0123456789+-*"):
            self._cost(line)
        elif match := _SPECIFICATION.fullmatch(line):
            self._name(*match.groups())
        elif line.startswith("calls="):
            self._called = True
        elif line.startswith("events:"):
            self._events = line.split()[1:]
        elif line.startswith("positions:"):
            self._positions = len(line.split()) - 1

    def _name(self, key: str, text: str) -> None:
        if key not in _NAMES:
            return
        kind = _NAMES[key]
        if match := _NUMBERED.fullmatch(text):
            number, name = match.groups()
            text = self._names[kind, number] if name is None else name
            self._names[kind, number] = text
        if not key.startswith("c"):
            self._now[kind] = text

    def _cost(self, line: str) -> None:
        if self._called:
            self._called = False
            return
        values = line.split()[self._positions :]
        cost = self.found.setdefault(Place(self._now[_OBJECT], self._now[_FUNCTION]), Counter())
        # Zeros at the end are left out. All events of a line belong to one position.
        for event, value in zip(self._events, values, strict=False):
            cost[event] += int(value)
