# SPDX-License-Identifier: BSD-3-Clause
"""duels.json in the directory of `linerate duel --out`: the duels of one command, and where they
took place.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, ValidationError

from linerate.experiments.duel.record import DuelRecord
from linerate.experiments.duel.sentences import on_link
from linerate.host import foreign
from linerate.host.errors import RunError
from linerate.host.machine import Machine
from linerate.records.output import DUELS
from linerate.records.trial import first_complaint
from linerate.records.types import Strict


class Failure(Strict):
    """A link without a duel, and the reason."""

    link: str
    message: str


class Duels(Strict):
    """The content of a page."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, populate_by_name=True)

    schema_id: Literal["linerate/duels-1"] = Field(default="linerate/duels-1", alias="schema")
    question: str
    answer: str = Field(description="one sentence about all duels")
    began_at: str = Field(description="ISO 8601, UTC")
    repeat: str = Field(description="the command line that repeats the duels, in the same orders")
    machine: Machine
    versions: dict[str, str]
    duels: list[DuelRecord] = Field(description="one duel for each link")
    failures: list[Failure] = Field(default_factory=list)


def last_lines(duels: Duels) -> list[str]:
    """Return the answers as a command prints them at its end."""
    if len(duels.duels) + len(duels.failures) == 1:
        return [duels.answer]
    told = [on_link(record.link, record.sentence) for record in duels.duels]
    told += [
        on_link(failure.link, f"No comparison: {failure.message}") for failure in duels.failures
    ]
    return [*told, duels.answer]


def schema() -> dict[str, Any]:
    document = Duels.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **document}


def dump(duels: Duels) -> str:
    """Return the content of the file."""
    found = duels.model_dump_json(by_alias=True, exclude_none=True, ensure_ascii=True, indent=2)
    return found + "\n"


def load(directory: Path) -> Duels:
    """Read the file. Raises `RunError` if it is missing or invalid."""
    path = directory / DUELS
    try:
        return Duels.model_validate_json(foreign.content(path, foreign.MOST_SUMMARY))
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror}") from error
    except ValidationError as error:
        raise RunError(f"{path}: {first_complaint(error)}", "the file was changed") from error
