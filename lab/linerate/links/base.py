# SPDX-License-Identifier: BSD-3-Clause
"""What the lab asks of a link."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class LinkContext:
    """Where a link's sockets go, and the frame size (with the 4-byte FCS) of the trial."""

    directory: Path
    size: int


class Link(ABC):
    """One way to carry frames; stateless."""

    name: str
    ports: int
    # False: the forwarder's ports make and swallow frames themselves; there is no generator.
    has_generator: bool
    description: str
    # False: the size of the frames changes nothing on this link.
    size_matters: bool = True

    @abstractmethod
    def forwarder_vdevs(self, context: LinkContext) -> list[str]:
        """Arguments of --vdev, one per port of the forwarder."""

    def generator_locations(self, context: LinkContext) -> list[str]:
        """OTG port locations, one per port of the generator."""
        return []
