# SPDX-License-Identifier: BSD-3-Clause
"""The two programs of a duel: names from the list, files in TOML, or command lines in quotes."""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import ValidationError

from linerate.forwarders import FORWARDERS, Forwarder, named
from linerate.forwarders.definition import Definition
from linerate.forwarders.template import Template
from linerate.host.errors import UsageError, look_up
from linerate.links import Link

# With what a command line is called where its program's own name says nothing.
LETTERS = ("A", "B")
_EXAMPLE = "'./my-forwarder {eal} -- -p {portmask}'"


def program_of(word: str, letter: str) -> Forwarder:
    """What a word on the command line stands for; raises `UsageError`. `letter`: A or B."""
    if word in FORWARDERS:
        return FORWARDERS[word]
    if word.endswith(".toml"):
        names = named([word])
        if len(names) != 1:
            raise UsageError(
                f"{word}: it has {len(names)} forwarders, of which a duel takes one",
                f"a file with one of them alone: {', '.join(names)}",
            )
        return FORWARDERS[names[0]]
    if re.search(r"[\s/{]", word):
        return _of_command(word, letter)
    return look_up(FORWARDERS, word, letter, "forwarder, and no command line in quotes either")


def _of_command(text: str, letter: str) -> Forwarder:
    try:
        template = Template(text)
    except ValueError as error:
        raise UsageError(f"{letter}, {text!r}: {error}", f"for instance {_EXAMPLE}") from error
    if "eal" not in template.placeholders:
        raise UsageError(
            f"{letter}, {text!r}: has no {{eal}}, which stands for the EAL options that the lab "
            "chooses",
            f"for instance {_EXAMPLE}; a program that takes none is described in a file: "
            "docs/describe-a-forwarder.md",
        )
    first = "".join(part for part, _ in template.words[0])
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(first).name).strip("-._") or "program"
    try:
        definition = Definition(
            name=f"{letter}-{stem}",
            kind="dpdk",
            command=text,
            polls="nothing",
            spans="nothing",
        )
    except ValidationError as error:
        why = str(error.errors()[0]["msg"]).removeprefix("Value error, ")
        raise UsageError(f"{letter}, {text!r}: {why}", f"for instance {_EXAMPLE}") from error
    return Forwarder(definition)


def refuse(program: Forwarder, link: Link) -> None:
    """Raise `UsageError` for what cannot stand beside another on this link."""
    told = f"{program.name}: "
    if not program.kind.startswith("dpdk") or program.interfaces_only:
        raise UsageError(
            told + "packets of the kernel's ways are in no process's CPU time, by which a duel "
            "compares",
            "linerate run paths compares such forwarders",
        )
    if not program.has_telemetry or program.counted_by_link:
        raise UsageError(
            told + "a duel reads its packets over DPDK's telemetry, which it does not serve"
        )
    if misfit := program.misfit(link):
        raise UsageError(told + misfit)
