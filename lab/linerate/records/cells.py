# SPDX-License-Identifier: BSD-3-Clause
"""What is compared where: arms, cells of a design, and cells as records have them.

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

# Of the label of the A/A arm: the baseline once more.
AA_SUFFIX = "-again"


# Of a cell. To compare so many takes gigabytes and minutes: all their pairs are formed.
MAX_BLOCKS = 10_000


@dataclass(frozen=True)
class Arm:
    """A label in the comparison and the forwarder behind it."""

    label: str
    forwarder: str


@dataclass(frozen=True)
class Cell:
    """One link and one frame size: what a comparison is about."""

    link: str
    size: int
    blocks: Annotated[int, Field(ge=1, le=MAX_BLOCKS)]

    @property
    def key(self) -> CellKey:
        """By which a trial's cell is found to be this one."""
        return self.link, self.size


# Name and size of a cell in designs and summaries.
CellKey = tuple[str, int]


class TrialCell(Tagged):
    """What a trial measured, of any kind."""

    known: ClassVar[dict[str, type[Tagged]]] = {}

    kind: str

    model_config = Strict.model_config | {"frozen": True}

    @property
    def key(self) -> CellKey:
        """Name and size, as designs and summaries have them (`Cell.link` and `Cell.size`)."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        """The first word of the key: of a link with tables both, of a graph all that it is."""
        return self.key[0]

    @property
    def beside(self) -> str:
        """Who else uses the forwarder's core, and by which rules, in words; "": nobody."""
        return ""

    @property
    def words(self) -> str:
        """The cell in sentences and tables."""
        return cell_words(*self.key)


class LinkCell(TrialCell):
    """A link and a frame size in bytes, with the 4-byte FCS."""

    kind: str = "link"
    link: str
    size: int = Field(description="of frames, in bytes, the 4-byte FCS included")

    @property
    def key(self) -> CellKey:
        return self.link, self.size


class TableCell(TrialCell):
    """A link whose frames are spread over routes, past rules."""

    kind: str = "tables"
    link: str
    size: int = Field(description="of frames, in bytes, the 4-byte FCS included")
    routes: Annotated[int, Field(ge=1)]
    rules: Count = Field(default=0, description="0: nothing is filtered")

    @property
    def tables(self) -> str:
        """The tables' name, as `linerate.links.tables` has it."""
        return f"{self.routes}-routes" + (f":{self.rules}-rules" if self.rules else "")

    @property
    def key(self) -> CellKey:
        return f"{self.link}{TABLES}{self.tables}", self.size


# Between a link's name and that of its tables, in names of cells.
TABLES = ":"


def is_graph(link: str) -> bool:
    """Whether a summary's `link` is a cell of experiment graph: no link has such a name."""
    return "/" in link


def cell_words(link: str, size: int, between: str = " ") -> str:
    """A summary's cell in sentences and tables; a graph's name has all in it."""
    return link if is_graph(link) else f"{link}{between}{size} B"
