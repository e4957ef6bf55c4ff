# SPDX-License-Identifier: BSD-3-Clause
"""Find or build the programs of definitions: a function for each `recipe`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from linerate.forwarders.definition import (
    BenchBuild,
    CExampleBuild,
    Definition,
    InstalledProgram,
    RustBuild,
)
from linerate.forwarders.template import Template
from linerate.host.builds import c_examples, compilers
from linerate.host.builds.bench_programs import bench_program
from linerate.host.errors import MissingError
from linerate.host.host import LOCAL
from linerate.host.places import rust_binary


@dataclass(frozen=True)
class Built:
    """A program that exists, and facts about its build if the lab built it."""

    program: Path
    facts: dict[str, str] = field(default_factory=dict)


def build(definition: Definition, folder: Path) -> Built:
    """Find or build the program of a definition that has a command.

    `folder`: the base of a relative path in the command. Raises `MissingError` with the command
    that helps, or `LabError` if it does not build.
    """
    match definition.build:
        case CExampleBuild() as wanted:
            return _c_example(wanted)
        case RustBuild(binary=binary):
            return Built(rust_binary(binary))
        case BenchBuild(folder=place, product=product):
            return Built(bench_program(place, product))
        case InstalledProgram(program=program, package=package):
            if (found := LOCAL.which(program)) is None:
                raise MissingError(f"{program} is not installed", f"make setup (Debian: {package})")
            return Built(found)
        case None:
            return Built(_find(definition.name, definition.command or "", folder, "command"))


def check_commands(definition: Definition, folder: Path) -> None:
    """Raise `MissingError` if a command of setup or teardown does not exist."""
    for text in (*definition.setup, *definition.teardown):
        _find(definition.name, text, folder, "setup or teardown")


def _c_example(wanted: CExampleBuild) -> Built:
    compiler = None
    if wanted.compiler == "clang" and (compiler := compilers.clang()) is None:
        raise MissingError(
            f"clang is missing, which one of the C {wanted.example} is built with", "make bench"
        )
    native = wanted.march == "native"
    made = c_examples.build(
        wanted.example, compiler, native=native, include=wanted.include, sources=wanted.sources
    )
    changes = {"changes": wanted.changes} if wanted.changes else {}
    return Built(made.program, {**made.facts, **changes})


def _find(forwarder: str, command: str, folder: Path, key: str) -> Path:
    """Return the program that a command begins with: a path below the folder, or a name in PATH."""
    name = "".join(text for text, _ in Template(command).words[0])
    path = folder / name if "/" in name else None
    found = LOCAL.which(str(path or name))
    if found is None:
        raise MissingError(
            f"forwarder {forwarder}: {path or name} is not there or cannot be executed",
            f"correct {key} of its definition, or install the program",
        )
    return found.absolute()
