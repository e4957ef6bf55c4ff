# SPDX-License-Identifier: BSD-3-Clause
"""The command `linerate duel`: reads its arguments, shows the rounds, gives answer and status."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.console import Console

from linerate.cli.duel_options import (
    MIN_STARTS,
    Around,
    Where,
    check_link,
    check_words,
    how,
    repeating,
    with_traffic,
)
from linerate.cli.run_command import know_further_forwarders
from linerate.experiments.duel import baseline as baselines
from linerate.experiments.duel.baseline import Baseline
from linerate.experiments.duel.building import BuildError, build
from linerate.experiments.duel.fight import fight
from linerate.experiments.duel.junit import junit
from linerate.experiments.duel.markdown import markdown
from linerate.experiments.duel.programs import (
    LETTERS,
    check_container,
    check_plugin,
    check_program,
    program_of,
)
from linerate.experiments.duel.record import DuelRecord, FromBaseline, record_of
from linerate.experiments.duel.reports import Report, of_duel, of_error, question
from linerate.experiments.duel.rounds import Asked, Duel
from linerate.experiments.duel.sentences import called, notes, round_line, sentence
from linerate.experiments.duel.verdict import Verdict
from linerate.experiments.instructions import explain
from linerate.experiments.instructions.callgrind import UncountableError, require_valgrind
from linerate.experiments.instructions.explain import Contestant
from linerate.experiments.instructions.record import Explanation
from linerate.experiments.instructions.sentences import lines
from linerate.experiments.instructions.sentences import sentence as why
from linerate.forwarders import Forwarder
from linerate.host import cpus
from linerate.host.errors import Interrupted, LabError, MachineError
from linerate.host.exit_status import BisectStatus, ExitStatus
from linerate.host.exit_status import say as complain
from linerate.host.leases import leased
from linerate.host.process import RunDirectory, interruptible
from linerate.host.text import counted
from linerate.links import Link
from linerate.links.eal import Memory
from linerate.runs.progress import say
from linerate.runs.session import pinned
from linerate.trial.starts.ways import HUGE_MIB, Method, huge_room, room
from linerate.trial.trial import Bench

_WAYS: dict[Method, str] = {"standing": "all at once", "turns": "in turns"}
_FORMATS: dict[str, Callable[[Report], str]] = {"junit": junit, "markdown": markdown}
_BISECT: dict[ExitStatus, BisectStatus] = {
    ExitStatus.DONE: BisectStatus.GOOD,
    ExitStatus.SLOWER: BisectStatus.BAD,
    ExitStatus.UNDECIDED: BisectStatus.SKIP,
}


def run(
    words: Sequence[str], where: Where, asked: Asked, around: Around, console: Console
) -> ExitStatus | BisectStatus:
    """Let the two programs meet, print what was found, and return the exit status."""
    check_words(words, around.baseline)
    found_link, method, own = where.check()
    know_further_forwarders()
    given = LETTERS[-len(words) :]
    programs = [program_of(*each, own) for each in zip(words, given, strict=True)]
    for each in zip(programs, given, strict=True):
        check_link(*each, found_link)
    if around.explain:
        explain.check_link(found_link)
        require_valgrind()
    files = around.files()
    repeat = around.repeat_with or repeating(words, where, asked, around.baseline)
    names = [called(*each) for each in zip(programs, given, strict=True)]
    if around.baseline:
        names = [LETTERS[0], *names]
    asks = question(names, asked.margin, where.link)

    def report(found: Report) -> None:
        for name, file in files.items():
            file.write(_FORMATS[name](found))

    with interruptible(), RunDirectory() as directory:
        for file in files.values():
            file.remove()
        try:
            if around.build is not None:
                complain(f"linerate: building: {around.build}")
                build(around.build, directory)
            baseline = None
            if around.baseline is not None:
                baseline, first = baselines.restore(around.baseline)
                check_link(first, LETTERS[0], found_link)
                words, programs = [baseline.given, *words], [first, *programs]
                asks = question([called(first, LETTERS[0]), names[1]], asked.margin, where.link)
            for each in zip(programs[-len(given) :], given, strict=True):
                check_program(*each)
                check_container(*each)
            asked = how(found_link, programs, method, asked)
            found_link = with_traffic(found_link, where.traffic, directory.path)
            fighting = _Fighting(
                words, programs, found_link, where, asked, console,
                quiet=around.json, explained=around.explain,
            )  # fmt: skip
            duel = fighting.run(directory)
        except BuildError as error:
            report(of_error(error, asks, repeat))
            if not around.bisect:
                raise
            complain(f"linerate: {error}")
            return BisectStatus.SKIP
        except LabError as error:
            report(of_error(error, asks, repeat))
            raise
        record = fighting.record(duel, repeat, came_from(around.baseline, baseline))
        if around.json:
            print(record.model_dump_json(by_alias=True, exclude_none=True, indent=2))
        else:
            say(console, record.sentence)
            for note in record.notes:
                say(console, f"note: {note}")
            if found := fighting.explanation:
                for line in ("why, by callgrind:", *lines(found), why(found, fighting.names)):
                    say(console, line)
        report(of_duel(record))
    return bisect_status_of(duel) if around.bisect else status_of(duel)


def came_from(file: Path | None, baseline: Baseline | None) -> FromBaseline | None:
    """For the record: where A came from, if from a baseline."""
    if baseline is None:
        return None
    return FromBaseline(file=str(file), program=baseline.program.sha256, kept_at=baseline.kept_at)


def keep(path: Path, word: str, where: Where, console: Console) -> ExitStatus:
    """Keep a program as a baseline, and say what is kept."""
    own = where.check()[2]
    know_further_forwarders()
    program = program_of(word, LETTERS[0], own)
    check_program(program, LETTERS[0])
    program.prepare()
    found = baselines.keep(path, word, program)
    say(
        console,
        f"{path}: {found.program.path}, SHA-256 {found.program.sha256[:12]}, with a copy of it in "
        f"{baselines.copy_of(path)}",
    )
    for note in baselines.notes(found):
        say(console, f"note: {note}")
    return ExitStatus.DONE


@dataclass
class _Fighting:
    """A duel on this machine. `quiet`: prints no line about a round. `explained`: instructions are
    counted afterwards, which changes nothing about the answer.
    """

    words: Sequence[str]
    programs: Sequence[Forwarder]
    link: Link
    where: Where
    asked: Asked
    console: Console
    quiet: bool
    explained: bool = False
    memory: Memory = field(init=False)
    explanation: Explanation | None = None
    unexplained: str | None = None

    @property
    def names(self) -> list[str]:
        return [called(*each) for each in zip(self.programs, LETTERS, strict=True)]

    def run(self, directory: RunDirectory) -> Duel:
        """Prepare all that a duel needs, and fight it; raises `LabError`."""
        programs, link = self.programs, self.link
        count = max(program.definition.cpus for program in programs)
        with leased(max(2, count + link.has_generator)):
            for program in programs:
                program.prepare()
            link.prepare()
            for each in zip(programs, LETTERS, strict=True):
                check_plugin(*each, link)
            contestants = [Contestant(*each) for each in zip(programs, self.names, strict=True)]
            if self.explained:
                for contestant in contestants:
                    explain.check_program(contestant)
            self.memory, starts = _memory(self.where.hugepages, programs, self.asked.starts, link)
            cores = cpus.Cores.choose()
            bench = Bench(
                run=directory, cores=cores, memory=self.memory, experiment="duel",
                seed=self.asked.seed, window_s=self.asked.window_s,
            )  # fmt: skip
            if self.memory.hugepages and starts < self.asked.starts and not link.has_generator:
                # More starts make tighter rounds.
                with pinned(bench.cores.control):
                    fit = huge_room(bench, link, self.asked.size, programs) or 0
                starts = max(starts, min(fit, self.asked.starts))
            self.asked = replace(self.asked, starts=starts)
            self._introduce(cores.lcores(count, generator=link.has_generator))
            duel = self._fight(bench)
            if self.explained and not duel.fault:
                self._explain(bench, contestants)
            return duel

    def _explain(self, bench: Bench, contestants: Sequence[Contestant]) -> None:
        try:
            with pinned(bench.cores.control):
                self.explanation = explain.explain(
                    bench.run, bench.cores, self.link, contestants, size=self.asked.size
                )
        except UncountableError as error:
            self.unexplained = f"not explained: {error}"

    def _introduce(self, lcores: Sequence[int]) -> None:
        one, other = self.names
        self._say(
            f"{one} and {other} on {self.link.name}, {counted(self.asked.starts, 'start')} of each "
            f"in a round, {_WAYS[self.asked.method]}, CPU {','.join(map(str, lcores))}, "
            f"{'huge pages' if self.memory.hugepages else 'small pages'}"
        )

    def _fight(self, bench: Bench) -> Duel:
        latest = Duel(Verdict(self.asked.margin))

        def show(duel: Duel) -> None:
            nonlocal latest
            latest = duel
            self._say(round_line(duel, self.asked))

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
        """All that was found."""
        told = [sentence(duel, self.names, self.asked), *notes(duel, self.names)]
        if self.unexplained:
            told.append(self.unexplained)
        return record_of(
            duel, self.words, self.programs, self.link.name, self.asked, told, repeat,
            self.where.traffic, hugepages=self.memory.hugepages, baseline=baseline,
            explanation=self.explanation,
        )  # fmt: skip


def _memory(
    wanted: str, programs: Sequence[Forwarder], starts: int, link: Link
) -> tuple[Memory, int]:
    """The same kind for all starts, and how many of each program fit into it."""
    pages = Memory(hugepages=True)
    huge = room(pages, programs, link) // len(programs)
    if wanted == "yes" or (wanted == "auto" and huge >= min(starts, MIN_STARTS)):
        kind, fit, what = pages, huge, "huge pages"
    else:
        kind = Memory(hugepages=False)
        fit, what = room(kind, programs, link) // len(programs), "memory"
    if fit < min(starts, MIN_STARTS):
        processes = MIN_STARTS * len(programs) * (2 if link.has_generator else 1)
        raise MachineError(
            f"too little {what} for {MIN_STARTS} starts of each program",
            f"end other programs, as root sysctl vm.nr_hugepages={processes * HUGE_MIB // 2} (of "
            "2 MiB), or --hugepages no",
        )
    return kind, min(starts, fit)


def status_of(duel: Duel) -> ExitStatus:
    """By the claim: 1 only where the second program is slower by more than the margin."""
    if duel.fault:
        return ExitStatus.CANNOT_RUN if duel.fault.kind == "start" else ExitStatus.UNDECIDED
    answer = duel.answer
    if answer == "undecided":
        return ExitStatus.UNDECIDED
    return ExitStatus.SLOWER if answer == "slower" else ExitStatus.DONE


def bisect_status_of(duel: Duel) -> ExitStatus | BisectStatus:
    """Of the commit that the second program is of. A fault of the first one ends the bisect."""
    if duel.fault:
        return BisectStatus.SKIP if duel.fault.arm else ExitStatus.CANNOT_RUN
    return _BISECT[status_of(duel)]
