# SPDX-License-Identifier: BSD-3-Clause
"""What a start of a program did in a round."""

from __future__ import annotations

import statistics
from dataclasses import dataclass


@dataclass(frozen=True)
class Slice:
    """What a start did between two samples."""

    received: tuple[int, ...]
    sent: tuple[int, ...]
    cpu_ns: int

    @property
    def pps(self) -> float:
        """Packets sent per second of CPU time."""
        return sum(self.sent) * 1e9 / self.cpu_ns if self.cpu_ns > 0 else 0.0


@dataclass(frozen=True)
class Window:
    """What a start did in all slices of a round. `arm`: which of the programs it is of."""

    arm: int
    slices: tuple[Slice, ...]

    @property
    def received(self) -> tuple[int, ...]:
        """Packets by port."""
        return tuple(map(sum, zip(*(each.received for each in self.slices), strict=True)))

    @property
    def sent(self) -> tuple[int, ...]:
        """Packets by port."""
        return tuple(map(sum, zip(*(each.sent for each in self.slices), strict=True)))

    @property
    def cpu_ns(self) -> int:
        return sum(each.cpu_ns for each in self.slices)

    @property
    def pps(self) -> float:
        """Packets sent per second of CPU time: the median of the slices. Of one in hundreds the
        hypervisor had a part, which counts as the program's CPU time.
        """
        return statistics.median(each.pps for each in self.slices)
