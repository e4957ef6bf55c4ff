# SPDX-License-Identifier: BSD-3-Clause
"""run.json: everything beside the records that is needed to resume, report or merge a run.

Written before the first trial, then whenever a session begins or ends, each time as a whole. A
session is one start of the lab: a run that was interrupted and resumed has several. `options` and
`design` belong to the experiment, and only it reads them (`linerate.runs.experiment`): the options
are needed to resume, the design is the request with every default filled in.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from linerate.host import foreign
from linerate.host.errors import RunError
from linerate.host.machine import Machine
from linerate.records.trial import RECORDS, first_complaint

RUN = "run.json"
SCHEMA = "linerate/run-1"

End = Literal["complete", "interrupted", "failed"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Described(_Strict):
    """A forwarder as it was defined in a session."""

    definition: dict[str, Any] = Field(
        description="the definition as in forwarder-1.json, without default values"
    )
    sha256: str = Field(
        description="digest of the definition as canonical JSON without description, as in "
        "the records"
    )
    file: str | None = Field(
        default=None, description="the file that it was read from; absent: one of the lab's own"
    )


class Session(_Strict):
    """One start of the lab, with its machine and programs."""

    session: int = Field(ge=1, description="counted from 1, as in the records")
    command: str
    started_at: str = Field(description="UTC, ISO 8601")
    machine: Machine
    versions: dict[str, str]
    programs: dict[str, str] = Field(
        default_factory=dict, description="SHA-256 of each program's file, by its name in the lab"
    )
    forwarders: dict[str, Described] = Field(
        default_factory=dict, description="definitions by name; empty: of an older version"
    )
    memory: Literal["hugepages", "no-huge"]
    cpus: dict[str, int] = Field(default_factory=dict, description="CPUs by role")
    cpu_weight: int | None = Field(
        default=None,
        description="the multiple of other processes' weight on these CPUs; 1: the same",
    )
    tsc_hz: int | None = None
    warnings: list[str] = Field(default_factory=list)
    trials: int | None = Field(
        default=None, description="trials on record at its end, those of other sessions included"
    )
    ended_at: str | None = Field(default=None, description="absent: it was killed")
    end: End | None = Field(default=None, description="absent: it was killed")


class Part(_Strict):
    """One of the runs that were merged into this one."""

    id: str
    directory: str = Field(description="as on the command line")
    seed: int
    sessions: list[int] = Field(description="its session numbers here")


class Run(_Strict):
    """run.json."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    schema_id: Literal["linerate/run-1"] = Field(default="linerate/run-1", alias="schema")
    id: str = Field(
        default_factory=lambda: uuid.uuid4().hex, description="id of this run and of its copies"
    )
    experiment: str
    options: dict[str, Any] = Field(description="the experiment's own: the request")
    design: dict[str, Any] = Field(description="the experiment's own: the resulting design")
    sessions: list[Session] = Field(default_factory=list)
    parts: list[Part] = Field(default_factory=list, description="the parts of a merged run")
    looks: int | None = Field(
        default=None,
        ge=1,
        description="the number of looks, if blocks were added after a first look: each look "
        "tests at half the level of the previous one",
    )

    def complete(self, trials: int) -> bool:
        """Return True if every part ran to its end, and had this number of trials then."""
        last = {part.sessions[-1] for part in self.parts if part.sessions}
        if not self.parts:
            last = {each.session for each in self.sessions[-1:]}
        ended = [each for each in self.sessions if each.session in last and each.end == "complete"]
        had = sum(each.trials or 0 for each in ended)
        return bool(last) and len(ended) == len(last) and trials == had

    @property
    def ids(self) -> set[str]:
        """The ids of the runs whose trials are in this one."""
        return {part.id for part in self.parts} or {self.id}

    @property
    def warnings(self) -> list[str]:
        """The warnings of all sessions, each once."""
        return list(dict.fromkeys(text for each in self.sessions for text in each.warnings))


def schema() -> dict[str, Any]:
    document = Run.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **document}


def dump(run: Run) -> str:
    data = run.model_dump(mode="json", by_alias=True, exclude_none=True)
    return json.dumps(data, indent=2) + "\n"


@contextmanager
def made_of(directory: object, what: str = f"{RUN} and {RECORDS}") -> Iterator[None]:
    """Turn errors in changed files that no other check found into an error that names the files."""
    try:
        yield
    except (ValueError, ArithmeticError, LookupError) as error:
        why = first_complaint(error) if isinstance(error, ValidationError) else f"{error!s:.400}"
        raise RunError(
            f"{directory}: nothing can be made of {what}: {type(error).__name__}: {why}",
            "a file was changed, or another version of linerate wrote it",
        ) from error


def load(directory: Path) -> Run:
    """The run of a directory; raises `RunError` that says what is wrong with it."""
    path = directory / RUN
    if not directory.is_dir():
        raise RunError(f"{directory}: there is no such directory")
    try:
        data = foreign.parsed(foreign.content(path, foreign.MOST_RUN))
    except FileNotFoundError:
        raise RunError(
            f"{directory} holds no run (there is no {RUN})",
            "name what a run's --out named; runs of earlier versions of linerate have no such file",
        ) from None
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise RunError(f"cannot read {path}: {error}", "the file was changed") from error
    found = data.get("schema") if isinstance(data, dict) else None
    if found != SCHEMA:
        raise RunError(
            f"{path}: its schema is {found!r:.80}, not {SCHEMA!r}",
            "another version of linerate wrote it; use that one",
        )
    try:
        return Run.model_validate(data)
    except ValidationError as error:
        raise RunError(f"{path}: {first_complaint(error)}", "the file was changed") from error
