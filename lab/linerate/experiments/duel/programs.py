# SPDX-License-Identifier: BSD-3-Clause
"""The two programs of a duel: names from the list, files in TOML, or command lines in quotes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from linerate.forwarders import FORWARDERS, Forwarder, named
from linerate.forwarders.definition import Definition, Lcores
from linerate.forwarders.template import Template
from linerate.host.errors import UsageError, look_up

# With what a command line is called where its program's own name says nothing.
LETTERS = ("A", "B")
# A command line with interfaces instead of EAL's options.
_ON_INTERFACES: dict[str, Any] = {
    "kind": "kernel",
    "ready": {"by": "forwarding"},
    "counted": "link",
    "ports": {"number": 2, "on": "made-interfaces"},
}
_EXAMPLE = "'./my-forwarder {eal} -- -p {portmask}'"


def program_of(word: str, letter: str, lcores: tuple[Lcores, int] = ("one", 1)) -> Forwarder:
    """What a word on the command line stands for; raises `UsageError`. `letter`: A or B. `lcores`:
    those of a command line, and on how many CPUs.
    """
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
        return _of_command(word, letter, lcores)
    return look_up(FORWARDERS, word, letter, "forwarder, and no command line in quotes either")


def _of_command(text: str, letter: str, lcores: tuple[Lcores, int]) -> Forwarder:
    try:
        template = Template(text)
    except ValueError as error:
        raise UsageError(f"{letter}, {text!r}: {error}", f"for instance {_EXAMPLE}") from error
    used = set(template.placeholders)
    if not used & {"eal", "rx", "tx"}:
        raise UsageError(
            f"{letter}, {text!r}: has no {{eal}}, which stands for the EAL options that the lab "
            "chooses, and no {rx} or {tx}, the interfaces of a program on the kernel",
            f"for instance {_EXAMPLE}; other programs are described in a file: "
            "docs/describe-a-forwarder.md",
        )
    first = "".join(part for part, _ in template.words[0])
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(first).name).strip("-._") or "program"
    try:
        definition = Definition(
            name=f"{letter}-{stem}",
            command=text,
            polls="nothing",
            spans="nothing",
            cpus=lcores[1],
            **({"kind": "dpdk", "lcores": lcores[0]} if "eal" in used else _ON_INTERFACES),
        )
    except ValidationError as error:
        why = str(error.errors()[0]["msg"]).removeprefix("Value error, ")
        raise UsageError(f"{letter}, {text!r}: {why}", f"for instance {_EXAMPLE}") from error
    return Forwarder(definition)
