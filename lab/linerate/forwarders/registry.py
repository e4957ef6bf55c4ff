# SPDX-License-Identifier: BSD-3-Clause
"""The forwarders that this process knows: those in `definitions`, and those of further files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib import resources
from pathlib import Path

from linerate.forwarders import files
from linerate.forwarders.definition import Definition
from linerate.forwarders.engine import Forwarder
from linerate.host.errors import UsageError, look_up

# Further folders of definitions, separated by colons.
VARIABLE = "LINERATE_FORWARDERS"

FORWARDERS: dict[str, Forwarder] = {}


def forwarder(name: str) -> Forwarder:
    """Return the forwarder of that name; raises `UsageError` that lists the known names."""
    return look_up(FORWARDERS, name, "--forwarders", "forwarder")


def named(words: Iterable[str]) -> list[str]:
    """Return the names of forwarders on a command line, where files of definitions may replace
    names.

    A word that ends with .toml is such a file. Raises `UsageError` if the file is wrong.
    """
    found: list[str] = []
    for word in words:
        found += add_file(Path(word)) if word.endswith(".toml") else [word]
    return found


def add_file(path: Path) -> list[str]:
    """Register the definitions in a TOML file, and return their names; raises `UsageError`."""
    found = files.read(path)
    add(found, str(path), path.absolute())
    return [each.name for each in found]


def add_folder(folder: Path) -> None:
    """Register the definitions in a folder's TOML files; raises `UsageError`."""
    try:
        paths = sorted(folder.glob("*.toml"))
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror}") from error
    if not paths:
        raise UsageError(f"{folder}: no folder with definitions of forwarders (*.toml)")
    for path in paths:
        add_file(path)


def add_from_environment() -> None:
    """Register the definitions in the folders of `LINERATE_FORWARDERS`; raises `UsageError`."""
    for folder in filter(None, os.environ.get(VARIABLE, "").split(":")):
        add_folder(Path(folder))


def add(found: Iterable[Definition], where: str, file: Path | None = None) -> None:
    """Register these definitions. `where`: their file, for errors; `file`: if it is not the lab's
    own.

    Raises `UsageError` for a name that another definition has already.
    """
    for each in found:
        known = FORWARDERS.get(each.name)
        if known and known.definition != each:
            raise UsageError(
                f"{where}: there is another forwarder called {each.name} already",
                "choose another name",
            )
        FORWARDERS.setdefault(each.name, Forwarder(each, file))


def _add_own() -> None:
    folder = resources.files("linerate.forwarders").joinpath("definitions")
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        if file.name.endswith(".toml"):
            add(files.parse(file.read_text(encoding="utf-8"), file.name), file.name)


_add_own()
