# SPDX-License-Identifier: BSD-3-Clause
"""Communicate with `graph-bench`: a request per line of JSON, an answer per line.

Lifecycle: a `Conversation` owns one process, from `__enter__` to `__exit__`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from linerate.host.errors import ProcessError, TrialError
from linerate.host.host import LOCAL, Host
from linerate.host.process import Command, RunDirectory
from linerate.records.trial import first_complaint
from linerate.records.types import Count

# A window lasts milliseconds; EAL takes its time before the first answer.
TIMEOUT_S = 30.0

T = TypeVar("T", bound=BaseModel)


class RefusedError(TrialError):
    """The program refused to run that window, with a reason."""


class CellOffer(BaseModel):
    """A cell and the arms that it has. `path_nodes`: workers that each object passes."""

    cell: str
    arms: list[str]
    path_nodes: int | None = Field(default=None, ge=1)


class _Cells(BaseModel):
    cells: list[CellOffer]


class Slice(BaseModel):
    """Timed walks. `waited_ns`: how long the program waited for its CPU; None if the kernel does
    not count it.
    """

    model_config = ConfigDict(allow_inf_nan=False)

    cell: str
    arm: str
    walks: Count
    objects: Count
    sunk: Count
    tsc_cycles: Count
    tsc_hz: int = Field(gt=0, lt=2**63)
    waited_ns: Count | None
    work: str


class _Slices(BaseModel):
    slices: list[dict[str, Any]]


@dataclass(frozen=True)
class Asked:
    """A requested slice: a number of walks of an arm. `again`: of another one of the same kind."""

    cell: str
    arm: str
    walks: int
    again: bool = False


class Conversation:
    """One process, asked one thing at a time. `build`: the suffix of its arms' names here, because
    the program does not know how it was built.
    """

    def __init__(
        self, command: Command, run: RunDirectory, build: str = "", host: Host = LOCAL
    ) -> None:
        self.child = host.start(command, run)
        self._build = build
        # False after a request without an answer: later answers may belong to other requests.
        self.in_step = True

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, *_: object) -> None:
        self.child.stop()

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        self.in_step = False
        try:
            self.child.tell(json.dumps(request))
        except OSError as error:
            raise ProcessError(f"{self.child.command.role} takes no request: {error}") from error
        line = self.child.answer(TIMEOUT_S)
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise ProcessError(
                f"{self.child.command.role} answered {line[:80]!r}, which is not JSON"
            )
        self.in_step = True
        if "error" in answer:
            raise RefusedError(str(answer["error"]))
        return answer

    def cells(self) -> list[CellOffer]:
        offers = self._read(_Cells, self._ask({"do": "cells"})).cells
        for offer in offers:
            offer.arms = [arm + self._build for arm in offer.arms]
        return offers

    def run(self, cell: str, arm: str, *, us: int) -> Slice:
        """Run as many walks as take about `us` microseconds."""
        asked = {"do": "run", "cell": cell, "arm": arm.removesuffix(self._build), "us": us}
        return self._ran(self._ask(asked), Asked(cell, arm, 0))

    def slices(self, asked: Sequence[Asked]) -> list[Slice | RefusedError]:
        """Run slices one after the other; a slice that cannot be run has the reason in its
        place.
        """
        wanted = [
            {
                "cell": each.cell,
                "arm": each.arm.removesuffix(self._build),
                "walks": each.walks,
                "again": each.again,
            }
            for each in asked
        ]
        found = self._read(_Slices, self._ask({"do": "slices", "of": wanted})).slices
        if len(found) != len(asked):
            raise ProcessError(f"{self.child.command.role} ran {len(found)} slices of {len(asked)}")
        return [
            RefusedError(str(answer["error"])) if "error" in answer else self._ran(answer, each)
            for answer, each in zip(found, asked, strict=True)
        ]

    def _ran(self, answer: dict[str, Any], asked: Asked) -> Slice:
        ran = self._read(Slice, answer)
        name = asked.arm.removesuffix(self._build)
        if (ran.cell, ran.arm) != (asked.cell, name) or asked.walks not in {0, ran.walks}:
            raise ProcessError(
                f"{self.child.command.role} ran {ran.walks} walks of {ran.arm} in {ran.cell}, not "
                f"{asked.walks or 'some'} of {asked.arm} in {asked.cell}"
            )
        return ran

    def _read(self, kind: type[T], answer: dict[str, Any]) -> T:
        try:
            return kind.model_validate(answer)
        except ValidationError as error:
            raise ProcessError(
                f"{self.child.command.role} gave an invalid answer: {first_complaint(error)}"
            ) from error
