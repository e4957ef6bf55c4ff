# SPDX-License-Identifier: BSD-3-Clause
"""Talking with `graph-bench`: a request per line of JSON, an answer per line.

Lifecycle: a `Conversation` owns one process, from `__enter__` to `__exit__`.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from linerate.experiments.graph.window import GraphWindow
from linerate.host.errors import ProcessError, TrialError
from linerate.host.host import LOCAL, Host
from linerate.host.process import Command, RunDirectory
from linerate.records.trial import first_complaint
from linerate.records.types import Count

# A window lasts milliseconds; EAL takes its time before the first answer.
TIMEOUT_S = 30.0

T = TypeVar("T", bound=BaseModel)


class RefusedError(TrialError):
    """The program would not run that window, and said why."""


class CellOffer(BaseModel):
    """A cell and the arms that it has. `path_nodes`: workers that each object passes."""

    cell: str
    arms: list[str]
    path_nodes: int | None = Field(default=None, ge=1)


class _Cells(BaseModel):
    cells: list[CellOffer]


class _Ran(BaseModel):
    model_config = ConfigDict(allow_inf_nan=False)

    cell: str
    arm: str
    walks: Count
    objects: Count
    sunk: Count
    tsc_cycles: Count
    tsc_hz: int = Field(gt=0, lt=2**63)
    work: str


class Conversation:
    """One process, asked one thing at a time. `build`: what the names of its arms end in here, for
    the program does not know how it was built."""

    def __init__(
        self, command: Command, run: RunDirectory, build: str = "", host: Host = LOCAL
    ) -> None:
        self.child = host.start(command, run)
        self._build = build
        # Whether every request had its answer: after one that had none, answers are of others.
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
                f"{self.child.command.role} answered {line[:80]!r}, which is no JSON"
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

    def run(
        self, cell: str, arm: str, *, walks: int | None = None, ms: int | None = None
    ) -> GraphWindow:
        """One window of so many walks, or of about so many milliseconds."""
        name = arm.removesuffix(self._build)
        asked: dict[str, Any] = {"do": "run", "cell": cell, "arm": name}
        asked |= {"walks": walks} if walks is not None else {"ms": ms}
        ran = self._read(_Ran, self._ask(asked))
        if (ran.cell, ran.arm) != (cell, name) or (walks is not None and ran.walks != walks):
            raise ProcessError(
                f"{self.child.command.role} ran {ran.walks} walks of {ran.arm} in {ran.cell}, not "
                f"{walks or 'some'} of {arm} in {cell}"
            )
        return GraphWindow(**ran.model_dump(exclude={"cell", "arm"}))

    def _read(self, kind: type[T], answer: dict[str, Any]) -> T:
        try:
            return kind.model_validate(answer)
        except ValidationError as error:
            raise ProcessError(
                f"{self.child.command.role} answered otherwise than agreed: "
                f"{first_complaint(error)}"
            ) from error
