# SPDX-License-Identifier: BSD-3-Clause
"""What is compared where: arms and cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

# Of the label of the A/A arm: the baseline once more.
AA_SUFFIX = "-again"


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
    blocks: Annotated[int, Field(ge=1)]
