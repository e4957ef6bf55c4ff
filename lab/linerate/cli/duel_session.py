# SPDX-License-Identifier: BSD-3-Clause
"""A duel on one link of this machine: leases CPUs, chooses among builds, and prints each round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.console import Console

from linerate.cli.duel_options import MIN_STARTS, Where
from linerate.experiments.duel import choosing
from linerate.experiments.duel.advice import advice_on
from linerate.experiments.duel.choosing import ROUNDS
from linerate.experiments.duel.fight import fight
from linerate.experiments.duel.programs import LETTERS, Side, check_plugin
from linerate.experiments.duel.record import (
    Build,
    DuelRecord,
    FrameFile,
    FromBaseline,
    described,
    record_of,
)
from linerate.experiments.duel.rounds import Asked, Duel
from linerate.experiments.duel.sentences import (
    apart,
    called,
    named,
    notes,
    round_line,
    sentence,
    side_called,
)
from linerate.experiments.duel.verdict import Verdict
from linerate.experiments.instructions import explain
from linerate.experiments.instructions.callgrind import UncountableError
from linerate.experiments.instructions.explain import Contestant
from linerate.experiments.instructions.record import Explanation
from linerate.forwarders import Forwarder
from linerate.host.cores import cpus, weight
from linerate.host.cores.leases import leased
from linerate.host.errors import Interrupted, MachineError
from linerate.host.leftovers import inventory
from linerate.host.process import RunDirectory
from linerate.host.text import counted
from linerate.links import Link
from linerate.links.eal import Memory
from linerate.runs.progress import say
from linerate.runs.session import pinned
from linerate.trial.starts.faults import FaultError
from linerate.trial.starts.ways import (
    HUGE_MIB,
    Method,
    countable,
    frames_mib,
    frames_room,
    huge_room,
    room,
)
from linerate.trial.trial import Bench

_WAYS: dict[Method, str] = {"standing": "all at once", "turns": "in turns"}


@dataclass
class DuelSession:
    """A duel on this machine. `files`: captures of the user's frames for the link. `quiet`: print
    no line per round. `explained`: instructions are counted afterwards, which does not change the
    answer. `which`: labels that distinguish A and B, if the user gave better ones than their
    command lines. `kept`: A is a program that was kept as a baseline.
    """

    sides: Sequence[Side]
    link: Link
    where: Where
    asked: Asked
    console: Console
    files: tuple[Path, ...]
    quiet: bool
    explained: bool = False
    which: tuple[str, ...] = ()
    kept: bool = False
    words: list[str] = field(init=False)
    programs: list[Forwarder] = field(init=False)
    builds: list[Build] = field(default_factory=list)
    frames: list[FrameFile] = field(default_factory=list)
    memory: Memory = field(init=False)
    explanation: Explanation | None = None
    unexplained: str | None = None

    @property
    def labels(self) -> list[str]:
        """Names of the two programs, without their letters."""
        names = [
            program.name.removeprefix(f"{letter}-")
            for program, letter in zip(self.programs, LETTERS, strict=True)
        ]
        if self.which:
            return [f"{name} {which}" for name, which in zip(names, self.which, strict=True)]
        found = apart(names, self.words)
        if self.kept and found[0] == found[1]:
            found[0] += " of the baseline"
        return found

    @property
    def names(self) -> list[str]:
        """Names of the two programs, such as `A (old/fw)`."""
        return [named(*each) for each in zip(self.labels, LETTERS, strict=True)]

    def run(self, directory: RunDirectory) -> Duel:
        """Prepare everything that a duel needs, and fight it; raises `LabError`."""
        link = self.link
        # The files are gone when the record is written.
        self.frames = described(self.files, link.ports)
        every = [(program, side.letter) for side in self.sides for program in side.programs]
        count = max(program.definition.cpus for program, _ in every)
        with (
            leased(max(2, count + link.has_generator), patience_s=self.where.wait_s),
            weight.raised(1 if link.receives_by_softirq else self.where.cpu_weight),
        ):
            inventory.remove()
            for program, _ in every:
                program.prepare()
            link.prepare()
            for each in every:
                check_plugin(*each, link)
            probed = countable([program for program, _ in every])
            if link.has_generator and self.asked.per == "cpu" and probed:
                self.asked = replace(self.asked, per="busy")
            if self.explained:
                for program, letter in every:
                    explain.check_program(Contestant(program, called(program, letter)))
            self.memory, starts = _memory(
                self.where.hugepages, self.sides, self.asked.starts, link, self.files
            )
            cores = cpus.Cores.choose()
            bench = Bench(
                run=directory, cores=cores, memory=self.memory, experiment="duel",
                seed=self.asked.seed, window_s=self.asked.window_s, frame_files=self.files,
            )  # fmt: skip
            if self.memory.hugepages and starts < self.asked.starts and not link.has_generator:
                # More starts make rounds more precise.
                pair = [side.programs[0] for side in self.sides]
                with pinned(bench.cores.control):
                    fit = huge_room(bench, link, self.asked.size, pair) or 0
                fit = min(fit, frames_room(self.files) // len(pair))
                starts = max(starts, min(fit, self.asked.starts))
            self.asked = replace(self.asked, starts=starts)
            self._introduce(cores.lcores(count, generator=link.has_generator))
            try:
                with pinned(bench.cores.control):
                    self._choose(bench)
            except FaultError as fault:
                return self._without_comparison(fault)
            duel = self._fight(bench)
            if self.explained and not duel.fault:
                contestants = [
                    Contestant(*each) for each in zip(self.programs, self.names, strict=True)
                ]
                self._explain(bench, contestants)
            return duel

    def _choose(self, bench: Bench) -> None:
        """Choose the programs that take part."""
        self._take(
            [self._fastest(bench, side) if len(side.programs) > 1 else 0 for side in self.sides]
        )

    def _take(self, places: Sequence[int]) -> None:
        pairs = list(zip(self.sides, places, strict=True))
        self.words = [side.words[place] for side, place in pairs]
        self.programs = [side.programs[place] for side, place in pairs]

    def _fastest(self, bench: Bench, side: Side) -> int:
        def show(number: int) -> None:
            self._say(f"choosing {side.letter}: round {number + 1} of {ROUNDS}")

        found = choosing.choose(bench, self.link, side, self.asked, show)
        # The choice may have run without the probe, if a build did not start with it.
        self.asked = replace(self.asked, per=found.per)
        of_side = [
            Build(program="A" if side.place == 0 else "B", name=program.name, share=share)
            for program, share in zip(side.programs, found.shares, strict=True)
        ]
        self.builds += of_side
        told = ", ".join(f"{each.name} {each.share:.3f}" for each in of_side)
        self._say(f"{side.letter} is {side.programs[found.chosen].name}, the fastest here: {told}")
        return found.chosen

    def _without_comparison(self, fault: FaultError) -> Duel:
        """Return a duel without a comparison, because one of the builds to choose from is at
        fault.
        """
        self._take([0, 0])
        return Duel(Verdict(self.asked.margin), method=self.asked.method, fault=fault)

    def _explain(self, bench: Bench, contestants: Sequence[Contestant]) -> None:
        try:
            with pinned(bench.cores.control):
                self.explanation = explain.explain(
                    bench.run, bench.cores, self.link, contestants, size=self.asked.size,
                    seen=self._say,
                )  # fmt: skip
        except UncountableError as error:
            self.unexplained = f"not explained: {error}"

    def _introduce(self, lcores: Sequence[int]) -> None:
        if all(len(side.programs) == 1 for side in self.sides):
            self._take([0, 0])
            one, other = self.names
        else:
            one, other = (
                side_called([each.name for each in side.programs], side.letter)
                for side in self.sides
            )
        self._say(
            f"{one} and {other} on {self.link.name}, {counted(self.asked.starts, 'start')} of each "
            f"in a round, {_WAYS[self.asked.method]}, CPU {','.join(map(str, lcores))}, "
            f"{'huge pages' if self.memory.hugepages else 'small pages'}"
        )
        names, given = {side.own_names for side in self.sides}, {side.given for side in self.sides}
        if len(names) < len(given):
            for side in self.sides:
                self._say(f"{side.letter}: {side.given}")

    def _fight(self, bench: Bench) -> Duel:
        latest = Duel(Verdict(self.asked.margin))

        def show(duel: Duel) -> None:
            nonlocal latest
            latest = duel
            self._say(round_line(duel))

        try:
            with pinned(bench.cores.control):
                return fight(bench, self.link, self.programs, self.asked, show)
        except Interrupted:
            if latest.rounds:
                self._say(sentence(latest, self.names, self.asked))
            raise

    def _say(self, line: str) -> None:
        if not self.quiet:
            say(self.console, line)

    def record(self, duel: Duel, repeat: str, baseline: FromBaseline | None) -> DuelRecord:
        """Return the record of everything found."""
        told = [sentence(duel, self.names, self.asked), *notes(duel, self.names)]
        for fault in filter(None, (duel.fault, duel.other_fault)):
            advised = advice_on(fault, self.link, self.programs)
            told += [each for each in advised if each not in told]
        if self.unexplained:
            told.append(self.unexplained)
        return record_of(
            duel, self.words, self.programs, self.link.name, self.asked, told, repeat,
            self.where.traffic, self.frames, hugepages=self.memory.hugepages, baseline=baseline,
            builds=self.builds, explanation=self.explanation, labels=self.labels,
        )  # fmt: skip


def _memory(
    wanted: str, sides: Sequence[Side], starts: int, link: Link, files: Sequence[Path]
) -> tuple[Memory, int]:
    """Choose the same kind of memory for all starts, and return how many of each program fit. All
    builds of a side must fit at once.
    """
    programs = [program for side in sides for program in side.programs]
    least = max(MIN_STARTS * len(sides), *(len(side.programs) for side in sides))
    if frames_room(files) < least:
        raise MachineError(
            f"too little memory for the frames of --traffic: {frames_mib(files):,} MiB for each of "
            f"{least} programs at once",
            "end other programs, or give fewer frames",
        )
    pages = Memory(hugepages=True)
    huge = room(pages, programs, link, files)
    wished = max(min(starts, MIN_STARTS) * len(sides), least)
    if wanted == "yes" or (wanted == "auto" and huge >= wished):
        kind, fit, what = pages, huge, "huge pages"
    else:
        kind = Memory(hugepages=False)
        fit, what = room(kind, programs, link, files), "memory"
    if fit < least:
        processes = least * (2 if link.has_generator else 1)
        raise MachineError(
            f"too little {what} for {least} programs at once",
            f"end other programs, as root sysctl vm.nr_hugepages={processes * HUGE_MIB // 2} (of "
            "2 MiB), or --hugepages no",
        )
    return kind, min(starts, fit // len(sides))
