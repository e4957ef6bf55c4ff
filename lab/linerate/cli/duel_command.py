# SPDX-License-Identifier: BSD-3-Clause
"""The command `linerate duel`: reads its arguments, shows the rounds, prints the answer, returns
the exit status.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from rich.console import Console

from linerate.cli.duel_options import (
    Around,
    Where,
    check_link,
    check_words,
    how,
    repeating,
    with_traffic,
)
from linerate.cli.duel_session import DuelSession
from linerate.cli.run_command import know_further_forwarders
from linerate.experiments.duel import baseline as baselines
from linerate.experiments.duel.baseline import Baseline
from linerate.experiments.duel.building import BuildError, build
from linerate.experiments.duel.kept import Duels, Failure, dump, last_lines
from linerate.experiments.duel.programs import (
    LETTERS,
    Side,
    check_container,
    check_program,
    program_of,
    side_of,
)
from linerate.experiments.duel.record import DuelRecord, FromBaseline
from linerate.experiments.duel.reports.junit import junit
from linerate.experiments.duel.reports.markdown import markdown
from linerate.experiments.duel.reports.report import Report, of_duel, of_error, question
from linerate.experiments.duel.rounds import Asked, Duel
from linerate.experiments.duel.sentences import altogether, on_link, side_called
from linerate.experiments.instructions import explain
from linerate.experiments.instructions.callgrind import require_valgrind
from linerate.experiments.instructions.sentences import lines
from linerate.experiments.instructions.sentences import sentence as why
from linerate.host import machine
from linerate.host.errors import BusyError, LabError
from linerate.host.exit_status import BisectStatus, ExitStatus
from linerate.host.exit_status import say as complain
from linerate.host.process import RunDirectory, interruptible
from linerate.links import Link
from linerate.records.output import DUELS, REPORT, OutputDirectory, OutputFile
from linerate.runs.progress import say
from linerate.runs.provenance import now, versions
from linerate.trial.starts.ways import Method

_FORMATS: dict[str, Callable[[Sequence[Report]], str]] = {"junit": junit, "markdown": markdown}
# The worst status first.
_ORDER = ("SLOWER", "BAD", "CANNOT_RUN", "BUSY", "UNDECIDED", "SKIP", "DONE", "GOOD")
# After one link has waited for CPUs without success, the next ones only try.
_TRY = "1s"
_BISECT: dict[ExitStatus, BisectStatus] = {
    ExitStatus.DONE: BisectStatus.GOOD,
    ExitStatus.SLOWER: BisectStatus.BAD,
    ExitStatus.UNDECIDED: BisectStatus.SKIP,
}


def run(
    words: Sequence[str], where: Where, asked: Asked, around: Around, console: Console
) -> ExitStatus | BisectStatus:
    """Compare the two programs on each link, print the results, and return the exit status."""
    check_words(words, around)
    links, method, own = where.check()
    know_further_forwarders()
    sides = [side_of(*each, own) for each in zip(words, LETTERS[-len(words) :], strict=True)]
    _check_links(sides, links)
    if around.explain:
        for link in links:
            explain.check_link(link)
        require_valgrind()
    files = around.files()
    duels = _Duels(words, where, asked, around, method, links, sides, console)
    with (
        interruptible(),
        _output(around.out) as output,
        RunDirectory() as directory,
    ):
        for file in files.values():
            file.remove()
        try:
            status = duels.fight(directory)
        except LabError:
            _write(files, duels.reports)
            raise
        finally:
            if output and duels.records:
                keep_duels(output, duels.kept(), console)
        _write(files, duels.reports)
        if around.json:
            print(dump(duels.kept()) if len(links) > 1 else duels.records[0].as_json(), end="")
        elif len(links) > 1:
            say(console, "")
            for line in last_lines(duels.kept()):
                say(console, line)
    return status


def _write(files: Mapping[str, OutputFile], reports: Sequence[Report]) -> None:
    for name, file in files.items():
        file.write(_FORMATS[name](reports))


@contextmanager
def _output(out: Path | None) -> Iterator[OutputDirectory | None]:
    """Make the output directory, and remove it again if nothing was written into it."""
    if out is None:
        yield None
        return
    with OutputDirectory(out) as output:
        try:
            yield output
        finally:
            output.discard_if_empty()


def _check_links(sides: Sequence[Side], links: Sequence[Link]) -> None:
    for side in sides:
        for program in side.programs:
            for link in links:
                check_link(program, side.letter, link)


@dataclass
class _Duels:
    """The duels of one command: one on each link, of the same programs with the same options.

    With one link an error ends the command. With several it is reported for its link, and the next
    one follows.
    """

    words: Sequence[str]
    where: Where
    asked: Asked
    around: Around
    method: Method | Literal["auto"]
    links: Sequence[Link]
    sides: list[Side]
    console: Console
    reports: list[Report] = field(default_factory=list)
    records: list[DuelRecord] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    began_at: str = field(default_factory=now)

    @property
    def names(self) -> list[str]:
        """Names of A and B in the answer."""
        names = [
            side_called([program.name for program in side.programs], side.letter)
            for side in self.sides
        ]
        return names if len(names) > 1 else [LETTERS[0], *names]

    @property
    def repeat(self) -> str:
        return self.around.repeat_with or repeating(
            self.words, self.where, self.asked, self.around.baseline
        )

    def question(self, *links: Link) -> str:
        return question(self.names, self.asked.margin, *(link.name for link in links))

    def answer(self) -> str:
        """Return one sentence about all links."""
        answers = {link.name: "none" for link in self.links}
        answers |= {record.link: record.answer for record in self.records if not record.fault}
        return altogether(self.names, self.asked.margin, answers)

    def kept(self) -> Duels:
        """Return the record to write; with one duel, its sentence is the answer."""
        return Duels(
            question=self.question(*self.links),
            answer=self.answer() if len(self.links) > 1 else self.records[0].sentence,
            began_at=self.began_at, repeat=self.repeat, machine=machine.facts(),
            versions=versions(), duels=self.records, failures=self.failures,
        )  # fmt: skip

    def fight(self, directory: RunDirectory) -> ExitStatus | BisectStatus:
        """Fight all duels; raises `LabError` if none could begin."""
        baseline = None
        try:
            if self.around.build is not None:
                complain(f"linerate: building: {self.around.build}")
                build(self.around.build, directory)
            if self.around.baseline is not None:
                baseline, first = baselines.restore(self.around.baseline)
                side = Side(LETTERS[0], (baseline.given,), (first,))
                _check_links([side], self.links)
                self.sides = [side, *self.sides]
            for side in self.sides:
                for program in side.programs:
                    if program is not (baseline and self.sides[0].programs[0]):
                        check_program(program, side.letter)
                        check_container(program, side.letter)
        except BuildError as error:
            self._report_error(error, *self.links)
            if not self.around.bisect:
                raise
            complain(f"linerate: {error}")
            return BisectStatus.SKIP
        except LabError as error:
            self._report_error(error, *self.links)
            raise
        found = [self._one(link, came_from(self.around.baseline, baseline)) for link in self.links]
        return worst(found)

    def _one(self, link: Link, baseline: FromBaseline | None) -> ExitStatus | BisectStatus:
        around, several = self.around, len(self.links) > 1
        if several and not around.json:
            say(self.console, "")
        try:
            with RunDirectory() as directory:
                programs = [program for side in self.sides for program in side.programs]
                asked = how(link, programs, self.method, self.asked)
                on, files = with_traffic(link, self.where.traffic, directory.path)
                session = DuelSession(
                    self.sides, on, self.where, asked, self.console, files,
                    quiet=around.json, explained=around.explain, which=around.which,
                    kept=baseline is not None,
                )  # fmt: skip
                duel = session.run(directory)
        except LabError as error:
            self._report_error(error, link)
            if not several:
                raise
            self.failures.append(Failure(link=link.name, message=error.message))
            complain(f"linerate: on {link.name}: {error}")
            if isinstance(error, BusyError):
                self.where = replace(self.where, wait=_TRY)
                return ExitStatus.BUSY
            return ExitStatus.CANNOT_RUN
        record = session.record(duel, self.repeat, baseline)
        self.records.append(record)
        report = of_duel(record)
        if several:
            report = replace(report, sentence=on_link(link.name, report.sentence))
        self.reports.append(report)
        if not around.json:
            tell(self.console, record, session)
        return bisect_status_of(duel) if around.bisect else status_of(duel)

    def _report_error(self, error: LabError, *links: Link) -> None:
        self.reports.append(of_error(error, self.question(*links), self.repeat))


def tell(console: Console, record: DuelRecord, session: DuelSession) -> None:
    """Print the answer, and the remarks on it."""
    say(console, record.sentence)
    for note in record.notes:
        say(console, f"note: {note}")
    if found := session.explanation:
        for line in ("why, by callgrind:", *lines(found), why(found, session.names)):
            say(console, line)


def keep_duels(output: OutputDirectory, duels: Duels, console: Console) -> None:
    """Write the record and the page."""
    from linerate.experiments.duel.reports import page  # noqa: PLC0415 - a slow import: altair

    output.write(DUELS, dump(duels))
    output.write(REPORT, page.render(duels))
    say(console, f"report: {output.path / REPORT}")


def worst(found: Sequence[ExitStatus | BisectStatus]) -> ExitStatus | BisectStatus:
    """Return the status of a command with several duels. A program that is slower on one link is
    slower, even if another link is undecided.
    """
    return min(found, key=lambda status: _ORDER.index(status.name))


def came_from(file: Path | None, baseline: Baseline | None) -> FromBaseline | None:
    """Return A's origin for the record: None unless A came from a baseline."""
    if baseline is None:
        return None
    return FromBaseline(file=str(file), program=baseline.program.sha256, kept_at=baseline.kept_at)


def keep(path: Path, word: str, where: Where, console: Console) -> ExitStatus:
    """Keep a program as a baseline, and print what was kept."""
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


def status_of(duel: Duel) -> ExitStatus:
    """Return the exit status: 1 only if the second program is slower by more than the margin."""
    if duel.fault:
        return ExitStatus.CANNOT_RUN if duel.fault.kind == "start" else ExitStatus.UNDECIDED
    answer = duel.answer
    if answer == "undecided":
        return ExitStatus.UNDECIDED
    return ExitStatus.SLOWER if answer == "slower" else ExitStatus.DONE


def bisect_status_of(duel: Duel) -> ExitStatus | BisectStatus:
    """Return the status for the commit of the second program. A fault of the first one ends the
    bisect.
    """
    if duel.fault:
        return BisectStatus.SKIP if duel.fault.arm else ExitStatus.CANNOT_RUN
    return _BISECT[status_of(duel)]
