# SPDX-License-Identifier: BSD-3-Clause
"""The results of a program's start in a round."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

# A generator that offers at least so many times the received packets is not the limit.
_ENOUGH = 1.02
# An offer to a full ring costs the generator a fortieth of a frame that is taken, as measured on
# memif and tap. Two refusals in a hundred offers are a pause of a millisecond on a shared machine.
_REFUSAL = 1 / 40
# The least share of its CPU for a polling generator, if no other process wants it.
_UNDISTURBED = 0.9


@dataclass(frozen=True)
class Had:
    """The CPU time of a process, and the time at which it was read, or the length of the
    interval.
    """

    cpu_ns: int
    ns: int


@dataclass(frozen=True)
class Offered:
    """Frames of a start's own generator: sent (some are lost on the link), and offers that a full
    link refused. `cpu`: the CPU time of the generator, which polls; None if it is not known.
    """

    taken: int
    refused: int
    cpu: Had | None = None

    def since(self, before: Offered) -> Offered:
        cpu = None
        if self.cpu and before.cpu:
            cpu = Had(self.cpu.cpu_ns - before.cpu.cpu_ns, self.cpu.ns - before.cpu.ns)
        return Offered(self.taken - before.taken, self.refused - before.refused, cpu)

    @property
    def disturbed(self) -> bool:
        """True if others had the generator's CPU for a large part of the time. Then it fills the
        link while it runs, and the program finds nothing while it does not.
        """
        return self.cpu is not None and self.cpu.cpu_ns < _UNDISTURBED * self.cpu.ns


@dataclass(frozen=True)
class Slice:
    """The difference of two samples of a start. `time_ns`: by `linerate.trial.starts.clocks.Per`.
    `cost_only`: that is the cost of the packets, without waiting for packets.
    """

    received: tuple[int, ...]
    sent: tuple[int, ...]
    time_ns: int
    offered: Offered | None = None
    cost_only: bool = False

    @property
    def pps(self) -> float:
        """Packets sent per second."""
        return sum(self.sent) * 1e9 / self.time_ns if self.time_ns > 0 else 0.0

    @property
    def saturated(self) -> bool:
        """True if more was offered than it took: the link lost some, or was full for a large part
        of the time. Without a generator, the driver always has more.

        Received packets count, even those that found no room on the way back: a program that lost
        only those had taken all that there was.
        """
        if self.offered is None:
            return True
        if self.offered.disturbed:
            return False
        offered = self.offered.taken + self.offered.refused * _REFUSAL
        return offered > _ENOUGH * sum(self.received)


@dataclass(frozen=True)
class Window:
    """All slices of a start in a round. `arm`: the index of its program."""

    arm: int
    slices: tuple[Slice, ...]

    @property
    def received(self) -> tuple[int, ...]:
        """Received packets by port."""
        return tuple(map(sum, zip(*(each.received for each in self.slices), strict=True)))

    @property
    def sent(self) -> tuple[int, ...]:
        """Sent packets by port."""
        return tuple(map(sum, zip(*(each.sent for each in self.slices), strict=True)))

    @property
    def offered(self) -> Offered | None:
        """The offers of its own generator; None if it has none."""
        found = [each.offered for each in self.slices if each.offered]
        if not found:
            return None
        return Offered(sum(each.taken for each in found), sum(each.refused for each in found))

    @property
    def time_ns(self) -> int:
        return sum(each.time_ns for each in self.slices)

    @property
    def pps(self) -> float:
        """Packets sent per second: the median of the slices. In one of hundreds the hypervisor
        takes a part, which counts as the program's time.
        """
        return statistics.median(each.pps for each in self.slices)

    @property
    def lossless(self) -> bool:
        """True if the driver takes everything that is sent: there is no generator at the other
        end.
        """
        return self.offered is None

    @property
    def cost_only(self) -> bool:
        """True if its figure is valid even if it was not saturated."""
        return all(each.cost_only for each in self.slices)

    @property
    def saturated(self) -> bool:
        """True if it was saturated in most slices."""
        return sum(each.saturated for each in self.slices) > len(self.slices) / 2
