# SPDX-License-Identifier: BSD-3-Clause
"""The command `linerate duel`: reads its arguments, shows the rounds, gives answer and status."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from rich.console import Console

from linerate.cli.compare_screen import parse_margin
from linerate.cli.run_command import know_further_forwarders
from linerate.experiments.duel.programs import LETTERS, check_plugin, check_program, program_of
from linerate.experiments.duel.record import record_of
from linerate.experiments.duel.rounds import Asked, Duel, fight
from linerate.experiments.duel.sentences import called, notes, round_line, sentence
from linerate.experiments.duel.verdict import Verdict
from linerate.forwarders import Forwarder
from linerate.forwarders.definition import Lcores
from linerate.host import cpus
from linerate.host.errors import Interrupted, MachineError, UsageError, look_up
from linerate.host.exit_status import ExitStatus
from linerate.host.leases import leased
from linerate.host.process import RunDirectory, interruptible
from linerate.host.text import counted
from linerate.links import LINKS, Frames, Link, link
from linerate.links.eal import Memory
from linerate.links.ports import Ports
from linerate.runs.progress import say
from linerate.runs.session import pinned
from linerate.traffic.frame_files import frame_files
from linerate.trial.starts.ways import HUGE_MIB, Method, method_of, room
from linerate.trial.trial import Bench

_MIN_STARTS = 2
_MAX_STARTS = 16
_MIN_SIZE, _MAX_SIZE = 64, 1518
# On which each start can have a link of its own.
_LINKS = tuple(name for name in LINKS if name != Ports.name)
_METHODS: dict[str, Method | Literal["auto"]] = {
    "auto": "auto", "standing": "standing", "turns": "turns",
}  # fmt: skip
_WAYS: dict[Method, str] = {"standing": "all at once", "turns": "in turns"}
_MEMORY = dict.fromkeys(("auto", "yes", "no"))
_MAX_WITHIN_S = 24 * 3600.0


def parse_within(text: str) -> float:
    """`60s`, `2m` or `90` in seconds; raises `UsageError`."""
    found = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)\s*(s|m|min)?", text.strip())
    seconds = float(found[1]) * (60 if found[2] in ("m", "min") else 1) if found else 0.0
    if not 0 < seconds <= _MAX_WITHIN_S:
        raise UsageError(f"--within {text}: invalid time", "for instance --within 60s or 2m")
    return seconds


def lcores_of(text: str) -> tuple[Lcores, int]:
    """Which lcores a command line in quotes gets, and on how many CPUs; raises `UsageError`."""
    if text == "idle-main":
        return "idle-main", 1
    if not re.fullmatch(r"[1-9][0-9]?", text):
        raise UsageError(
            f"--lcores {text}: must be 1 to 99, or idle-main",
            "for instance --lcores 2, or --lcores idle-main for a program whose main lcore does "
            "not forward",
        )
    return "one", int(text)


def asked_of(
    margin: str, within: str, starts: int, size: int, seed: int | None, *, check: bool = True
) -> Asked:
    """The options of the command line; raises `UsageError`."""
    if not _MIN_STARTS <= starts <= _MAX_STARTS:
        raise UsageError(f"--starts {starts}: not within {_MIN_STARTS} to {_MAX_STARTS}")
    if not _MIN_SIZE <= size <= _MAX_SIZE:
        raise UsageError(f"--size {size}: not within {_MIN_SIZE} to {_MAX_SIZE} bytes")
    return Asked(
        margin=parse_margin(margin),
        within_s=parse_within(within),
        starts=starts,
        size=size,
        seed=secrets.randbelow(1 << 31) if seed is None else seed,
        check=check,
    )


def how(
    link: Link, programs: Sequence[Forwarder], wanted: Method | Literal["auto"], asked: Asked
) -> Asked:
    """How the programs are compared on this link; raises `UsageError` for a way that is none."""
    if link.name == Ports.name:
        raise UsageError(
            f"--link {link.name}: each start needs devices of its own, and these are there once",
            "choose from: " + ", ".join(_LINKS),
        )
    method, per = method_of(link, programs)
    if wanted == "standing" and method != "standing":
        why = "packets to take at any moment, which this link does not show"
        if not link.has_generator:
            why = "one lcore, and all work in their own processes"
        raise UsageError(f"--method standing: programs need {why}", "--method turns")
    return replace(asked, method=method if wanted == "auto" else wanted, per=per)


def with_traffic(on: Link, words: Sequence[str], directory: Path) -> Link:
    """The link with the user's frames; raises `UsageError` where it takes none."""
    if not words:
        return on
    if not isinstance(on, Frames):
        raise UsageError(
            f"--traffic: --link {on.name} has no place for your frames", "--link frames2, or frames"
        )
    return on.with_files(frame_files(words, on.ports, directory))


def check_link(program: Forwarder, letter: str, on: Link) -> None:
    """Raise `UsageError` for a program that does not work on this link."""
    if misfit := program.misfit(on):
        fit = [name for name in _LINKS if not program.misfit(link(name))]
        raise UsageError(
            f"{called(program, letter)}: {misfit}",
            f"it works on: {', '.join(f'--link {name}' for name in fit)}" if fit else None,
        )


@dataclass(frozen=True)
class Where:
    """The options of the command line that say where and how the programs run."""

    link: str
    hugepages: str
    method: str
    lcores: str
    traffic: Sequence[str] = ()


def run(
    words: Sequence[str], where: Where, asked: Asked, console: Console, *, json_output: bool
) -> ExitStatus:
    """Let the two programs meet, print what was found, and return the exit status."""
    hugepages = where.hugepages
    look_up(_MEMORY, hugepages, "--hugepages", "choice")
    know_further_forwarders()
    method = look_up(_METHODS, where.method, "--method", "method")
    if where.link.partition(":")[0] not in LINKS:
        look_up(dict.fromkeys(_LINKS), where.link, "--link", "link")
    found_link = link(where.link)
    own = lcores_of(where.lcores)
    programs = [program_of(*each, own) for each in zip(words, LETTERS, strict=True)]
    for each in zip(programs, LETTERS, strict=True):
        check_program(*each)
        check_link(*each, found_link)
    asked = how(found_link, programs, method, asked)
    count = max(program.definition.cpus for program in programs)
    with (
        interruptible(),
        leased(max(2, count + found_link.has_generator)),
        RunDirectory() as directory,
    ):
        found_link = with_traffic(found_link, where.traffic, directory.path)
        for program in programs:
            program.prepare()
        found_link.prepare()
        for each in zip(programs, LETTERS, strict=True):
            check_plugin(*each, found_link)
        memory, starts = _memory(hugepages, programs, asked.starts, found_link)
        asked = replace(asked, starts=starts)
        cores = cpus.Cores.choose()
        bench = Bench(
            run=directory, cores=cores, memory=memory, experiment="duel", seed=asked.seed,
            window_s=asked.window_s,
        )  # fmt: skip
        names = [called(*each) for each in zip(programs, LETTERS, strict=True)]
        latest = Duel(Verdict(asked.margin))

        def show(duel: Duel) -> None:
            nonlocal latest
            latest = duel
            if not json_output:
                say(console, round_line(duel, asked))

        if not json_output:
            say(
                console,
                f"{names[0]} and {names[1]} on {found_link.name}, {counted(starts, 'start')} of "
                f"each in a round, {_WAYS[asked.method]}, CPU "
                f"{','.join(map(str, cores.lcores(count, generator=found_link.has_generator)))}, "
                f"{'huge pages' if memory.hugepages else 'small pages'}",
            )
        try:
            with pinned(cores.control):
                duel = fight(bench, found_link, programs, asked, show)
        except Interrupted:
            if latest.rounds and not json_output:
                say(console, sentence(latest, names, asked))
            raise
    told = sentence(duel, names, asked)
    if json_output:
        found = record_of(
            duel, words, programs, found_link.name, asked, (told, *notes(duel, names)),
            where.traffic, hugepages=memory.hugepages,
        )  # fmt: skip
        print(found.model_dump_json(by_alias=True, exclude_none=True, indent=2))
    else:
        say(console, told)
        for note in notes(duel, names):
            say(console, f"note: {note}")
    return status_of(duel)


def _memory(
    wanted: str, programs: Sequence[Forwarder], starts: int, link: Link
) -> tuple[Memory, int]:
    """The same kind for all starts, and how many of each program fit into it."""
    pages = Memory(hugepages=True)
    huge = room(pages, programs, link) // len(programs)
    if wanted == "yes" or (wanted == "auto" and huge >= min(starts, _MIN_STARTS)):
        kind, fit, what = pages, huge, "huge pages"
    else:
        kind = Memory(hugepages=False)
        fit, what = room(kind, programs, link) // len(programs), "memory"
    if fit < min(starts, _MIN_STARTS):
        processes = _MIN_STARTS * len(programs) * (2 if link.has_generator else 1)
        raise MachineError(
            f"too little {what} for {_MIN_STARTS} starts of each program",
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
