# SPDX-License-Identifier: BSD-3-Clause
"""The command `linerate instructions`: counts a program's instructions under callgrind, and checks
a limit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.console import Console

from linerate.cli.duel_options import (
    check_link,
    check_size,
    lcores_of,
    link_of,
    parse_time,
    with_traffic,
)
from linerate.cli.run_command import know_further_forwarders
from linerate.experiments.duel.programs import (
    LETTERS,
    check_plugin,
    check_program,
    given,
    program_of,
)
from linerate.experiments.duel.sentences import called
from linerate.experiments.instructions import explain, sentences
from linerate.experiments.instructions.callgrind import require_valgrind
from linerate.experiments.instructions.explain import Contestant
from linerate.experiments.instructions.record import Answer, InstructionsRecord
from linerate.host.cores.cpus import Cores
from linerate.host.cores.leases import leased
from linerate.host.errors import UsageError
from linerate.host.exit_status import ExitStatus
from linerate.host.leftovers import inventory
from linerate.host.process import RunDirectory, interruptible
from linerate.runs.progress import say
from linerate.runs.session import pinned

_MIN_PACKETS, _MAX_PACKETS = 10_000, 100_000_000
_STATUSES: dict[Answer | None, ExitStatus] = {
    None: ExitStatus.DONE,
    "not more": ExitStatus.DONE,
    "more": ExitStatus.SLOWER,
    "undecided": ExitStatus.UNDECIDED,
}


@dataclass(frozen=True)
class Asked:
    """The options of the command line. `most`: the permitted increase of B over A, as a share."""

    link: str
    lcores: str
    size: int
    packets: int
    traffic: tuple[str, ...] = ()
    most: float | None = None
    wait: str = "10m"


def parse_max(text: str) -> float:
    """Parse a limit such as `+1%`, `1%` or `0.01` as a share; raises `UsageError`."""
    found = re.fullmatch(r"\+?([0-9]{1,4}(?:\.[0-9]{1,6})?|\.[0-9]{1,6})\s*(%?)", text.strip())
    if not found:
        raise UsageError(f"--max {text}: not a share", "for instance --max +1% or 0.01")
    return float(found[1]) / (100 if found[2] else 1)


def asked_of(asked: Asked, most: str | None, programs: int) -> Asked:
    """Check the options of the command line with the value of --max; raises `UsageError`."""
    if most is not None and programs == 1:
        raise UsageError(
            f"--max {most}: compares two programs, and there is one",
            "linerate instructions A B --max +1%",
        )
    if not _MIN_PACKETS <= asked.packets <= _MAX_PACKETS:
        raise UsageError(f"--packets {asked.packets}: not within {_MIN_PACKETS} to {_MAX_PACKETS}")
    check_size(asked.size)
    return asked if most is None else replace(asked, most=parse_max(most))


def run(words: Sequence[str], asked: Asked, console: Console, *, json_output: bool) -> ExitStatus:
    """Count one program or two, print the results, and return the exit status."""
    know_further_forwarders()
    link = link_of(asked.link)
    explain.check_link(link)
    own = lcores_of(asked.lcores)
    named = list(zip(words, LETTERS, strict=False))
    programs = [program_of(*each, own) for each in named]
    lettered = list(zip(programs, LETTERS, strict=False))
    for each in lettered:
        check_program(*each)
        check_link(*each, link)
    require_valgrind()
    with (
        interruptible(),
        leased(
            max(2, *(program.definition.cpus for program in programs)),
            patience_s=parse_time(asked.wait, "--wait"),
        ),
        RunDirectory() as directory,
    ):
        inventory.remove()
        link, _ = with_traffic(link, asked.traffic, directory.path)
        for program in programs:
            program.prepare()
        link.prepare()
        contestants = [Contestant(program, called(program, letter)) for program, letter in lettered]
        for each, contestant in zip(lettered, contestants, strict=True):
            check_plugin(*each, link)
            explain.check_program(contestant)
        cores = Cores.choose()

        def seen(text: str) -> None:
            if not json_output:
                say(console, text)

        names = " and ".join(each.name for each in contestants)
        seen(f"{names} on {link.name} under callgrind, {asked.packets} packets in each run")
        with pinned(cores.control):
            found = explain.explain(
                directory, cores, link, contestants,
                size=asked.size, packets=asked.packets, seen=seen,
            )  # fmt: skip
    told = sentences.sentence(found, [each.name for each in contestants], asked.most)
    answer = sentences.answer(found, asked.most)
    if json_output:
        record = InstructionsRecord(
            programs=[given(word, each) for word, each in zip(words, programs, strict=True)],
            link=link.name,
            size=asked.size,
            traffic=list(asked.traffic),
            explanation=found,
            max=asked.most,
            answer=answer,
            sentence=told,
        )
        print(record.model_dump_json(by_alias=True, exclude_none=True, ensure_ascii=True, indent=2))
    else:
        for line in (*sentences.lines(found), told):
            say(console, line)
    return _STATUSES[answer]
