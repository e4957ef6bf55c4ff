# SPDX-License-Identifier: BSD-3-Clause
"""Scheduling of the starts of a duel's round: all at once, or in turns.

Lifecycle: it (`opened`) lasts for all rounds, and the starts of a round end with the round.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace

from linerate.experiments.duel.rounds import Asked
from linerate.forwarders import Forwarder
from linerate.links import Link, Wire
from linerate.trial.starts.alone import by_itself, take_turns
from linerate.trial.starts.apart import apart
from linerate.trial.starts.faults import FaultError
from linerate.trial.starts.standing import standing, together
from linerate.trial.starts.start import Start
from linerate.trial.starts.ways import Method
from linerate.trial.starts.window import Window
from linerate.trial.trial import Bench


@dataclass(frozen=True)
class Meeting:
    """Programs, link and options of a duel. `source`: draws the order of starts and of turns."""

    bench: Bench
    link: Link
    programs: Sequence[Forwarder]
    asked: Asked
    source: random.Random


def without_probe(asked: Asked, fault: FaultError) -> Asked:
    """Return another way to compare programs after one did not start with the probe in it: the
    probe may be what does not start there. Raises the fault if it is another one.
    """
    if fault.kind != "start" or asked.per != "busy":
        raise fault
    return replace(asked, per="cpu")


class Scheduling(ABC):
    """A scheduling of starts."""

    def __init__(self, meeting: Meeting) -> None:
        self.meeting = meeting

    @abstractmethod
    def started(self, order: Sequence[int]) -> AbstractContextManager[Sequence[Start]]:
        """Start programs in this order, each named by its index; raises `FaultError` if one does
        not start or forward.
        """

    @abstractmethod
    def measure(self, starts: Sequence[Start]) -> list[Window]:
        """Measure each of them."""

    @abstractmethod
    def alone(self, starts: Sequence[Start]) -> list[Window]:
        """Measure each while the others are stopped; empty if `measure` already does that."""


class AllAtOnce(Scheduling):
    """Standing starts, on one link."""

    def __init__(self, meeting: Meeting, wire: Wire) -> None:
        super().__init__(meeting)
        self._wire = wire

    def started(self, order: Sequence[int]) -> AbstractContextManager[Sequence[Start]]:
        return standing(self.meeting.bench, self._wire, self.meeting.programs, order)

    def measure(self, starts: Sequence[Start]) -> list[Window]:
        asked = self.meeting.asked
        return together(starts, asked.window_s, asked.slices)

    def alone(self, starts: Sequence[Start]) -> list[Window]:
        return by_itself(starts, self.meeting.source)


class InTurns(Scheduling):
    """Exactly one start runs, and the others are stopped; each has a link of its own."""

    def started(self, order: Sequence[int]) -> AbstractContextManager[Sequence[Start]]:
        at, asked = self.meeting, self.meeting.asked
        return apart(at.bench, at.link, asked.size, at.programs, order, asked.per)

    def measure(self, starts: Sequence[Start]) -> list[Window]:
        asked = self.meeting.asked
        return take_turns(starts, self.meeting.source, asked.turn_s, asked.turns)

    def alone(self, starts: Sequence[Start]) -> list[Window]:
        del starts
        return []


@contextmanager
def opened(method: Method, meeting: Meeting) -> Iterator[Scheduling]:
    """Open the scheduling of a method, with everything that lasts for all its rounds."""
    if method == "turns":
        yield InTurns(meeting)
        return
    with meeting.link.open(meeting.bench.context(meeting.asked.size)) as wire:
        yield AllAtOnce(meeting, wire)
