# SPDX-License-Identifier: BSD-3-Clause
"""The programs of one block, and the slices of all arms in all cells, which they run in turn.

Lifecycle: a `Block` owns its programs, from `__enter__` to `__exit__`. Each is started on first
use, and again after it ended.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Protocol

from linerate.experiments.graph.running.conversation import Asked, Conversation, RefusedError, Slice
from linerate.experiments.graph.running.programs import NATIVE_SUFFIX, Programs
from linerate.experiments.graph.window import GraphWindow
from linerate.host.cores import switches
from linerate.host.cores.cpus import CPUS
from linerate.host.errors import TrialError
from linerate.host.process import Command
from linerate.records.cells import AA_SUFFIX, Arm
from linerate.trial.trial import Bench, worth_a_line


@dataclass(frozen=True)
class Item:
    """An arm in a cell."""

    cell: str
    arm: Arm

    @property
    def is_native(self) -> bool:
        """True if the native program runs it: C nodes are in the plain one, however they were
        built.
        """
        return self.arm.forwarder.endswith(NATIVE_SUFFIX)


@dataclass(frozen=True)
class Measured:
    """The slices of an item, and the use of the CPU while these and others were run.

    `start`: of the program, counted in the session. `steal_ticks`: all of the hypervisor's, at the
    first item of several, `stolen` the share of the time. `others`: the shares of other processes,
    by CPU.
    """

    slices: list[Slice]
    start: int
    command: Command
    steal_ticks: int = 0
    stolen: float = 0.0
    others: dict[str, dict[str, float]] | None = None


class _Session(Protocol):
    """The part of the session that a block needs."""

    bench: Bench
    found: Programs | None
    seed: int
    rounds: int
    calibrated: dict[str, GraphWindow]


@dataclass
class _Seen:
    """The observed use of the graphs' CPU."""

    steal_ticks: int = 0
    stolen: float = 0.0
    others: dict[str, dict[str, float]] | None = None


@dataclass
class _Rounds:
    """The results of all rounds of a block. `failed`: by item, why it has no slices."""

    slices: dict[Item, list[Slice]] = field(default_factory=dict)
    failed: dict[Item, RefusedError] = field(default_factory=dict)
    seen: _Seen = field(default_factory=_Seen)


class Block:
    """A block. `items`: all that are measured in it; none, in the block of the first slices."""

    def __init__(self, session: _Session, place: int = 0, items: Sequence[Item] = ()) -> None:
        self._session = session
        self._items = [item for item in items if item.cell in session.calibrated]
        self._source = random.Random(f"linerate:{session.seed}:graph:{place}")
        self._stack = ExitStack()
        # The running programs with the numbers of their starts.
        self._talks: dict[bool, tuple[Conversation, int]] = {}
        self._rounds: _Rounds | None = None

    def __enter__(self) -> Block:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def alone_for(self, cell: str, arm: Arm, seconds: float) -> Measured:
        """Run one slice of about `seconds`. Raises `TrialError`."""
        talk, start = self._talk(native=Item(cell, arm).is_native)
        with _Watch(self._session.bench) as seen:
            ran = talk.run(cell, arm.forwarder, us=max(round(seconds * 1e6), 1))
        return Measured(
            [ran], start, talk.child.command, seen.steal_ticks, seen.stolen, seen.others
        )

    def measured(self, item: Item, *, repeated: bool) -> Measured:
        """Return the item's slices of all rounds. `repeated`: of further ones, with this item
        alone.

        Also runs it alone if a program ended in the rounds of all: this finds the item at fault.
        Raises `TrialError`.
        """
        found = _Rounds()
        first = self._rounds is None
        if not repeated:
            found = self._rounds = self._rounds or self._all()
        if item in found.failed:
            raise found.failed[item]
        if item not in found.slices:
            first = True
            found = self._run([item])
            if item in found.failed:
                raise found.failed[item]
        talk, start = self._talk(native=item.is_native)
        seen = found.seen
        return Measured(
            found.slices[item],
            start,
            talk.child.command,
            seen.steal_ticks if first else 0,
            seen.stolen,
            seen.others,
        )

    def _all(self) -> _Rounds:
        try:
            return self._run(self._items)
        except TrialError:
            self.drop_dead()
            return _Rounds()

    def _run(self, items: Sequence[Item]) -> _Rounds:
        """Run all rounds, each in an order of its own."""
        found = _Rounds()
        order = list(items)
        with _Watch(self._session.bench) as found.seen:
            for _ in range(self._session.rounds):
                self._source.shuffle(order)
                # By program: in each round the one whose item comes first runs first.
                for native in dict.fromkeys(item.is_native for item in order):
                    mine = [item for item in order if item.is_native == native]
                    self._ask([item for item in mine if item not in found.failed], native, found)
        return found

    def _ask(self, items: Sequence[Item], native: bool, found: _Rounds) -> None:
        talk, _ = self._talk(native=native)
        answers = talk.slices([self._asked(item) for item in items])
        for item, answer in zip(items, answers, strict=True):
            if isinstance(answer, RefusedError):
                found.failed[item] = answer
            else:
                found.slices.setdefault(item, []).append(answer)

    def _asked(self, item: Item) -> Asked:
        walks = self._session.calibrated[item.cell].walks
        again = item.arm.label.endswith(AA_SUFFIX)
        return Asked(item.cell, item.arm.forwarder, walks, again)

    def _talk(self, *, native: bool) -> tuple[Conversation, int]:
        """Return a running program, and its start number in the session."""
        if native not in self._talks:
            found, bench = self._session.found, self._session.bench
            assert found
            talk = self._stack.enter_context(talk_with(found, bench, native=native))
            self._talks[native] = talk, next(bench.starts)
        return self._talks[native]

    def drop_dead(self) -> None:
        """Stop programs after an error that ended, or that no longer answer in step."""
        for native, (talk, _) in list(self._talks.items()):
            if not (talk.child.running and talk.in_step):
                del self._talks[native]
                talk.child.stop()


class _Watch:
    """Watches which processes use the graphs' CPU, and how much the hypervisor takes."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._stack = ExitStack()
        self._seen = _Seen()

    def __enter__(self) -> _Seen:
        self._uses = self._stack.enter_context(
            switches.watched({self._bench.cores.forwarder}, self._bench.run.owns)
        )
        self._before = self._sample()
        return self._seen

    def __exit__(self, *_: object) -> None:
        at_s, steal, tick_hz = self._sample()
        passed_s = at_s - self._before[0]
        self._seen.steal_ticks = steal - self._before[1]
        # One tick may have begun long before.
        certain_s = max(self._seen.steal_ticks - 1, 0) / tick_hz
        self._seen.stolen = certain_s / passed_s if passed_s > 0 else 0.0
        self._stack.close()
        if self._uses is not None:
            self._seen.others = {
                str(cpu): worth_a_line(use.others)
                for cpu, use in self._uses.items()
                if use.complete
            }

    def _sample(self) -> tuple[float, int, int]:
        found = self._bench.host.sample(CPUS)
        return found.at_s, found.cpus[self._bench.cores.forwarder].steal, found.tick_hz


def talk_with(found: Programs, bench: Bench, *, native: bool) -> Conversation:
    command = found.command(
        native=native,
        cpu=bench.cores.forwarder,
        memory=bench.memory,
        prefix=bench.run.new_prefix("graph"),
    )
    return Conversation(command, bench.run, NATIVE_SUFFIX if native else "", bench.host)
