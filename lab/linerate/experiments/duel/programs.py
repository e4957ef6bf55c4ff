# SPDX-License-Identifier: BSD-3-Clause
"""The two programs of a duel: names from the list, files in TOML, or command lines in quotes."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from linerate.forwarders import FORWARDERS, Forwarder, named
from linerate.forwarders.containers import container_misfit
from linerate.forwarders.definition import Definition, Lcores, check_placeholders
from linerate.forwarders.template import Template
from linerate.host.errors import MissingError, UsageError, look_up
from linerate.host.host import LOCAL
from linerate.links import Link
from linerate.records.types import GivenProgram

# The letters that distinguish programs whose names do not.
LETTERS = ("A", "B")
# A command line with interfaces instead of EAL's options.
_ON_INTERFACES: dict[str, Any] = {
    "kind": "kernel",
    "ready": {"by": "forwarding"},
    "counted": "link",
    "ports": {"number": 2, "on": "made-interfaces"},
    "polls": "nothing",
}
# A DPDK program that reads commands, such as testpmd, ends when its standard input does.
_ON_EAL: dict[str, Any] = {"kind": "dpdk", "stdin": "open", "polls": "probe"}
_EXAMPLE = "'./my-forwarder {eal} -- -p {portmask}'"


@dataclass(frozen=True)
class Side:
    """A or B: one program, or several builds of it, of which the fastest takes part."""

    letter: str
    words: tuple[str, ...]
    programs: tuple[Forwarder, ...]

    @property
    def place(self) -> int:
        """The index: 0 for A, 1 for B."""
        return LETTERS.index(self.letter)

    @property
    def given(self) -> str:
        """The words as on the command line."""
        return ",".join(self.words)

    @property
    def own_names(self) -> tuple[str, ...]:
        """Names of its programs, without the letter in front of a command line's program."""
        return tuple(each.name.removeprefix(f"{self.letter}-") for each in self.programs)


def side_of(word: str, letter: str, lcores: tuple[Lcores, int] = ("one", 1)) -> Side:
    """Parse A or B from the command line; raises `UsageError`. Only names from the lab's list can
    be in a list, because command lines have commas of their own.
    """
    names = [each.strip() for each in word.split(",")]
    words = tuple(names) if len(names) > 1 and names[0] in FORWARDERS else (word,)
    if len(set(words)) < len(words):
        raise UsageError(f"{letter}, {word}: names a forwarder twice", "name each once")
    if unknown := [each for each in words[1:] if each not in FORWARDERS]:
        look_up(FORWARDERS, unknown[0], letter, "forwarder")
    return Side(letter, words, tuple(program_of(each, letter, lcores) for each in words))


def program_of(word: str, letter: str, lcores: tuple[Lcores, int] = ("one", 1)) -> Forwarder:
    """Return the program of a word on the command line; raises `UsageError`. `letter`: A or B.
    `lcores`: those of a command line, and the number of CPUs.
    """
    if word in FORWARDERS:
        return FORWARDERS[word]
    if word.endswith(".toml"):
        names = named([word])
        if len(names) != 1:
            raise UsageError(
                f"{word}: it defines {len(names)} forwarders, but a duel takes one",
                f"a file with one of them alone: {', '.join(names)}",
            )
        return FORWARDERS[names[0]]
    if re.search(r"[\s/{]", word):
        return _of_command(word, letter, lcores)
    return look_up(
        FORWARDERS, word, letter, f"forwarder; a command line of your own looks like {_EXAMPLE}"
    )


def _of_command(text: str, letter: str, lcores: tuple[Lcores, int]) -> Forwarder:
    try:
        template = Template(text)
        check_placeholders(template.placeholders)
    except ValueError as error:
        raise UsageError(f"{letter}, {text!r}: {error}", f"for instance {_EXAMPLE}") from error
    used = set(template.placeholders)
    first = "".join(part for part, _ in template.words[0]) if template.words else ""
    if template.words and not first:
        raise UsageError(f"{letter}, {text!r}: names no program", f"for instance {_EXAMPLE}")
    if not used & {"eal", "rx", "tx"}:
        raise UsageError(
            f"{letter}, {text!r}: has neither {{eal}} (EAL's options, for a DPDK program) nor "
            "{rx} or {tx} (interfaces, for a program on the kernel)",
            f"for instance {_EXAMPLE}; other programs are described in a file: "
            "docs/describe-a-forwarder.md",
        )
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(first).name).strip("-._") or "program"
    try:
        definition = Definition(
            name=f"{letter}-{stem}",
            command=text,
            spans="nothing",
            cpus=lcores[1],
            **({**_ON_EAL, "lcores": lcores[0]} if "eal" in used else _ON_INTERFACES),
        )
    except ValidationError as error:
        why = str(error.errors()[0]["msg"]).removeprefix("Value error, ")
        raise UsageError(f"{letter}, {text!r}: {why}", f"for instance {_EXAMPLE}") from error
    return Forwarder(definition)


def given(word: str, program: Forwarder) -> GivenProgram:
    """Return the program of a word on the command line, for records."""
    return GivenProgram(
        given=word,
        name=program.name,
        definition=program.definition.as_data(),
        sha256=program.definition.digest,
    )


def check_program(program: Forwarder, letter: str) -> None:
    """Raise `MissingError` for a command line whose program cannot be started."""
    if program is FORWARDERS.get(program.name) or not program.definition.command:
        return
    template = Template(program.definition.command)
    name = "".join(part for part, _ in template.words[0])
    if LOCAL.which(name):
        return
    path = Path(name)
    if "/" not in name and path.is_file():
        raise MissingError(
            f"{letter}: no program {name} in PATH", f"for the file in this directory: ./{name}"
        )
    if path.is_dir():
        raise MissingError(f"{letter}: {name} is a directory", "name the program in it")
    if path.is_file():
        raise MissingError(f"{letter}: {name} is not executable", f"chmod +x {name}")
    if "/" not in name:
        raise MissingError(f"{letter}: no program {name} in PATH", "install it, or give its path")
    if not path.parent.is_dir():
        raise MissingError(f"{letter}: no such directory: {path.parent}")
    near = difflib.get_close_matches(path.name, (each.name for each in path.parent.iterdir()), 1)
    raise MissingError(
        f"{letter}: no such program: {name}",
        f"did you mean {name[: -len(path.name)]}{near[0]}?" if near else None,
    )


def check_container(program: Forwarder, letter: str) -> None:
    """Raise `UsageError` for a container in which the lab could not find the program."""
    if why := container_misfit(program.definition):
        raise UsageError(f"{_named(program, letter)}: {why[0]}", why[1])


def check_plugin(program: Forwarder, letter: str, on: Link) -> None:
    """Raise `UsageError` for a program that cannot load the link's driver; both are prepared.

    A script shows this only in its output: `linerate.experiments.duel.advice`.
    """
    if why := program.plugin_misfit(on):
        raise UsageError(f"{_named(program, letter)}: {why[0]}", why[1])


def _named(program: Forwarder, letter: str) -> str:
    return f"{letter} ({program.name.removeprefix(f'{letter}-')})"
