# SPDX-License-Identifier: BSD-3-Clause
"""A baseline: a program that is kept for comparison with its later versions. No figures are kept:
those of another hour are not comparable.

FILE has the command that starts the program, its path, and the digests of everything that must not
change; a copy of the executable is FILE.program. While the executable is unchanged at its path, it
is started there, so that it finds the files beside it; afterwards the copy is used.

Shared libraries are not copied. Those outside of the system's directories are identified by their
digests, and a baseline whose libraries have changed is refused: it would be another program.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, ValidationError

from linerate.forwarders import Forwarder
from linerate.forwarders.definition import Definition
from linerate.forwarders.template import Template
from linerate.host import foreign
from linerate.host.builds import elf
from linerate.host.errors import MissingError, UsageError
from linerate.records.output import OutputFile, replacing
from linerate.records.trial import first_complaint
from linerate.records.types import Strict

OPTION = "--keep-baseline"
# Directories of the distribution's packages: their libraries are the same for both programs.
_SYSTEM = (Path("/lib"), Path("/lib64"), Path("/usr/lib"), Path("/usr/lib64"))
_DIGEST = r"^[0-9a-f]{64}$"


class Contents(Strict):
    """A file that must not change."""

    path: str
    sha256: str = Field(pattern=_DIGEST)


class Baseline(Strict):
    """The content of FILE."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, populate_by_name=True)

    schema_id: Literal["linerate/baseline-1"] = Field(default="linerate/baseline-1", alias="schema")
    given: str = Field(description="the word on the command line")
    definition: dict[str, Any] = Field(description="the definition, by the schema forwarder-1")
    file: str | None = Field(default=None, description="the definition's file, if it has one")
    program: Contents = Field(description="the executable, at its path when it was kept")
    libraries: list[Contents] = Field(
        description="libraries that it loads from outside of the system's directories"
    )
    kept_at: str = Field(description="ISO 8601, UTC")


def schema() -> dict[str, Any]:
    document = Baseline.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **document}


def copy_of(path: Path) -> Path:
    """Return the path of the kept executable, beside the file."""
    return path.with_name(f"{path.name}.program")


def keep(path: Path, given: str, program: Forwarder) -> Baseline:
    """Keep a program, which must be startable here, in `path`; raises `LabError`."""
    file = OutputFile(path, OPTION)
    if file.path.exists():
        # Refuses a file that was named by mistake, such as the program.
        _read(path, OPTION)
    copy = OutputFile(copy_of(file.path), OPTION)
    executable = program.program()
    if executable is None:
        raise UsageError(f"{OPTION}: {given}: the kernel forwards, there is no program to keep")
    executable = executable.resolve()
    _refuse_starters(given, program.definition, executable)
    found = Baseline(
        given=given,
        definition=program.definition.as_data(),
        file=str(program.file) if program.file else None,
        program=_contents(executable),
        libraries=[_contents(each) for each in _private(executable, program.definition)],
        kept_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    _copy(executable, copy.path)
    file.write(found.model_dump_json(by_alias=True, exclude_none=True, indent=2) + "\n")
    return found


def restore(path: Path) -> tuple[Baseline, Forwarder]:
    """Return the program that was kept in `path`; raises `LabError` if it has changed."""
    found = _read(path, "--baseline")
    for file in (path, copy_of(path.resolve())):
        if file.exists():
            foreign.refuse_other_users(
                file, "a program that it names would be started", "keep a baseline of your own"
            )
    try:
        definition = Definition.model_validate(found.definition)
    except ValidationError as error:
        raise _no_baseline(path, "--baseline", first_complaint(error)) from error
    for library in found.libraries:
        if _digest(Path(library.path)) != library.sha256:
            raise UsageError(
                f"--baseline {path}: {library.path}, a shared library that the program loads, has "
                "changed, and libraries are not kept",
                f"keep it again with a library that stays: {OPTION} {path}",
            )
    executable = Path(found.program.path)
    if _digest(executable) != found.program.sha256:
        executable = copy_of(path.resolve())
        kept = _digest(executable)
        if kept is None:
            raise MissingError(
                f"--baseline {path}: {executable} is missing, and {found.program.path} has "
                "changed since it was kept",
                "move both files together, or keep it again",
            )
        if kept != found.program.sha256:
            raise UsageError(
                f"--baseline {path}: {executable} is not the kept program (sha256 {kept[:12]}, not "
                f"{found.program.sha256[:12]})",
                f"keep it again: {OPTION} {path}",
            )
    return found, Forwarder(definition, Path(found.file) if found.file else None, executable)


def notes(baseline: Baseline) -> list[str]:
    """Return remarks on a kept program."""
    return [
        f"{library.path} is not kept: the baseline is refused when it changes"
        for library in baseline.libraries
    ]


def _read(path: Path, option: str) -> Baseline:
    try:
        return Baseline.model_validate_json(foreign.text(path, foreign.MOST_BASELINE))
    except OSError as error:
        raise UsageError(
            f"{option} {path}: {error.strerror}", f"linerate duel {OPTION} {path} PROGRAM makes it"
        ) from error
    except ValidationError as error:
        raise _no_baseline(path, option, first_complaint(error)) from error
    except ValueError as error:
        raise _no_baseline(path, option, "not text") from error


def _no_baseline(path: Path, option: str, why: str) -> UsageError:
    return UsageError(f"{option} {path}: not a baseline ({why})", "name another file")


def _digest(path: Path) -> str | None:
    """Return the SHA-256 of a file; None if it cannot be read."""
    try:
        with foreign.opened(path, foreign.MOST_PROGRAM) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def _contents(path: Path) -> Contents:
    found = _digest(path)
    if found is None:
        raise MissingError(f"{OPTION}: {path} cannot be read")
    return Contents(path=str(path), sha256=found)


def _refuse_starters(given: str, definition: Definition, executable: Path) -> None:
    """Raise `UsageError` for a command that starts another program: that one would not be kept."""
    with foreign.opened(executable, foreign.MOST_PROGRAM) as file:
        if file.read(len(elf.MAGIC)) != elf.MAGIC:
            raise UsageError(
                f"{OPTION}: {executable} is a script, and what it starts would not be kept",
                "give the program itself; its environment can be set in a TOML file: "
                "docs/describe-a-forwarder.md",
            )
    words = Template(definition.command or "").words
    for word in words[1:]:
        text = "".join(part for part, _ in word)
        literal = all(name is None for _, name in word)
        if literal and Path(text).is_file() and os.access(text, os.X_OK):
            raise UsageError(
                f"{OPTION}: {given}: {executable.name} starts {text}, which would not be kept",
                f"give {text} itself",
            )


def _private(executable: Path, definition: Definition) -> list[Path]:
    """Return shared libraries outside of the system's directories, from the program's own
    loader.
    """
    environment: Mapping[str, str] = {**os.environ, **definition.environment}
    try:
        found = elf.libraries(elf.read(executable), environment)
    except (OSError, elf.UnreadableError):
        return []
    return [
        each for each in found or () if not any(each.is_relative_to(place) for place in _SYSTEM)
    ]


def _copy(executable: Path, to: Path) -> None:
    with replacing(to, OPTION) as file:
        os.fchmod(file.fileno(), 0o755)
        shutil.copyfile(executable, f"/proc/self/fd/{file.fileno()}")
