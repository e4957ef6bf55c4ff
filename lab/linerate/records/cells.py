# SPDX-License-Identifier: BSD-3-Clause
"""Arms, cells of a design, and cells in records: the subjects of comparisons.

A trial's cell says in fields of its own what was measured: a link with a frame size (`LinkCell`),
with tables to route by (`TableCell`), or what an experiment defines (a class derived from
`TrialCell`). Designs and summaries name every cell by two words, which they call `link` and `size`:
those are a `TrialCell`'s `key`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from linerate.records.types import Count, Strict, Tagged

# Suffix of the label of the A/A arm: the baseline again.
AA_SUFFIX = "-again"


# The most blocks of a cell. Comparing so many takes gigabytes and minutes: all their pairs are
# formed.
MAX_BLOCKS = 10_000


@dataclass(frozen=True)
class Arm:
    """A label in the comparison, and its forwarder."""

    label: str
    forwarder: str


@dataclass(frozen=True)
class Cell:
    """One link and one frame size: the subject of a comparison."""

    link: str
    size: int
    blocks: Annotated[int, Field(ge=1, le=MAX_BLOCKS)]

    @property
    def key(self) -> CellKey:
        """The key that a trial's cell shares with this one."""
        return self.link, self.size


# Name and size of a cell in designs and summaries.
CellKey = tuple[str, int]


class TrialCell(Tagged):
    """The cell of a trial, of any kind."""

    known: ClassVar[dict[str, type[Tagged]]] = {}

    kind: str

    model_config = Strict.model_config | {"frozen": True}

    @property
    def key(self) -> CellKey:
        """Name and size, as in designs and summaries (`Cell.link` and `Cell.size`)."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        """The first word of the key: link and tables of a `TableCell`, the whole name of a
        graph.
        """
        return self.key[0]

    @property
    def beside(self) -> str:
        """Other users of the forwarder's core, and the rules of sharing, in words; "" if there are
        none.
        """
        return ""

    @property
    def words(self) -> str:
        """The cell in words, for sentences and tables."""
        return cell_words(*self.key)


class LinkCell(TrialCell):
    """A link and a frame size in bytes, with the 4-byte FCS."""

    kind: str = "link"
    link: str
    size: int = Field(description="frame size in bytes, the 4-byte FCS included")

    @property
    def key(self) -> CellKey:
        return self.link, self.size


class TableCell(TrialCell):
    """A link whose frames are spread over routes, and filtered by rules."""

    kind: str = "tables"
    link: str
    size: int = Field(description="frame size in bytes, the 4-byte FCS included")
    routes: Annotated[int, Field(ge=1)]
    rules: Count = Field(default=0, description="number of rules; 0: no filter")

    @property
    def tables(self) -> str:
        """The tables' name in `linerate.links.tables`."""
        return f"{self.routes}-routes" + (f":{self.rules}-rules" if self.rules else "")

    @property
    def key(self) -> CellKey:
        return f"{self.link}{TABLES}{self.tables}", self.size


# Separates a link's name from that of its tables, in names of cells.
TABLES = ":"


def is_graph(link: str) -> bool:
    """Return True if a summary's `link` is a cell of experiment graph: no link has such a name."""
    return "/" in link


def cell_words(link: str, size: int, between: str = " ") -> str:
    """Return a summary's cell for sentences and tables; a graph's name says everything."""
    return link if is_graph(link) else f"{link}{between}{size} B"
