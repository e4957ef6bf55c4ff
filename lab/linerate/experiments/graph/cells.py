# SPDX-License-Identifier: BSD-3-Clause
"""Names of cells and arms, and the cells that each published question needs.

A cell is SHAPE/PASS/WORK/STATS/BATCH, such as chain4/swap/hash5/nostats/256. `graph-bench` lists
the existing ones; this module only reads, groups and chooses them.
"""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from linerate.host.errors import RunError, UsageError
from linerate.records.trial import Program

BASE = "chain4/swap/hash5/nostats/256"
# The arms of comparisons, the baseline first; behind each are one or more builds.
LANGUAGES = {"c-graph": "C", "rust-graph": "Rust", "fused": "Rust", "one-loop": "Rust"}
FAMILIES = tuple(LANGUAGES)
# The article's: by pointer swap, by memory copy, by pointer assignment.
ORDERING = ("swap", "copy8", "assign1")
# The article says that it tried other counts of pointers, but does not name them.
COPIES = ("copy8", "copy16", "copy32", "copy64", "copy128")
# Shapes that split a batch, by the number of ways.
WAYS = {1: "chain1", 2: "split2", 4: "split4", 8: "split8"}
GROUPS = ("passing", "splitting", "shapes", "batch")
_NEAR = 5


@dataclass(frozen=True)
class GraphCell:
    """The parts of a cell's name."""

    shape: str
    passing: str
    work: str
    stats: str
    batch: int

    @property
    def name(self) -> str:
        return f"{self.shape}/{self.passing}/{self.work}/{self.stats}/{self.batch}"


_BASE = GraphCell("chain4", "swap", "hash5", "nostats", 256)


def parse(name: str) -> GraphCell:
    """Parse a cell's name; raises `RunError` for an invalid one, in a program's answer or a run's
    directory.
    """
    parts = name.split("/")
    if len(parts) != 5 or not all(parts) or not parts[4].isascii() or not parts[4].isdigit():
        raise RunError(f"{name!r} is not a cell: SHAPE/PASS/WORK/STATS/BATCH, such as {BASE}")
    shape, passing, work, stats, batch = parts
    return GraphCell(shape, passing, work, stats, int(batch))


def groups(cell: GraphCell) -> list[str]:
    """Return the questions that a cell helps to answer; empty for a cell that is on no line of
    them.
    """
    found = []
    at_batch = cell.batch == _BASE.batch
    if cell.shape == _BASE.shape and at_batch:
        found.append("passing")
    if cell.shape in WAYS.values() and at_batch:
        found.append("splitting")
    elif cell.shape not in WAYS.values() and (
        (at_batch and (cell.shape != _BASE.shape or cell.passing == _BASE.passing))
        or (cell.shape == _BASE.shape and cell.batch == 1)
    ):
        found.append("shapes")
    if cell.shape == _BASE.shape and cell.passing == _BASE.passing and cell.batch > 1:
        found.append("batch")
    return found


def family(arm: str) -> str:
    """Return the family of an arm: c-graph for c-graph/gcc-native."""
    return arm.partition("/")[0]


def families(arms: Iterable[str]) -> list[str]:
    """Return the families of these arms, each once: as in `FAMILIES`, then those unknown to this
    build.

    Another build may have made the run, and a report covers everything on record.
    """
    there = dict.fromkeys(family(arm) for arm in arms)
    return [name for name in FAMILIES if name in there] + [n for n in there if n not in FAMILIES]


def described(arm: str) -> Program:
    """Return an arm's description for records."""
    return Program(language=LANGUAGES.get(family(arm), "unknown"))


def chosen(words: Sequence[str], there: Sequence[str]) -> list[str]:
    """Return the cells that match these names and patterns (`*`, `?`), in the order of `there`.

    Raises `UsageError` with similar names for a word that matches none.
    """
    found: set[str] = set()
    for word in words:
        hits = fnmatch.filter(there, word)
        if not hits:
            raise UsageError(f"--cells {word}: no such cell", _near(word, there))
        found.update(hits)
    return [name for name in there if name in found]


def _near(word: str, there: Sequence[str]) -> str:
    near = difflib.get_close_matches(word.strip("*"), there, _NEAR, 0.5)
    if near:
        return f"near to it: {', '.join(near)}"
    shapes = dict.fromkeys(name.partition("/")[0] for name in there)
    return (
        f"the cells here are of the shapes {', '.join(shapes)}; for instance {BASE} or 'chain4/*'"
    )


def ordered_arms(arms: Iterable[str]) -> list[str]:
    """Return the arms, sorted by family; each family's builds are in the program's order."""
    listed = list(arms)
    return [arm for name in families(listed) for arm in listed if family(arm) == name]
