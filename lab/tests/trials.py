# SPDX-License-Identifier: BSD-3-Clause
"""Trials for tests, from the fields that matter to each."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from linerate.experiments.graph.window import GraphTrialCell
from linerate.links import base_name, link
from linerate.records.cells import LinkCell, TableCell, TrialCell
from linerate.records.outcome import Frames
from linerate.records.trial import Identity, Invalid, ProgramRun, Request, Trial

_PARTS: dict[str, type[BaseModel]] = {
    "identity": Identity,
    "program": ProgramRun,
    "request": Request,
    "outcome": Frames,
}
_WHOLE = ("started_at", "steal_ticks", "method", "cell", "outcome")
_ORDINARY: dict[str, Any] = {
    "experiment": "overload", "seed": 1, "block": 0, "position": 0, "role": "measure", "arm": "a",
    "load": "flood", "started_at": "", "link": "memif", "size": 64,
}  # fmt: skip


def made_trial(**fields: Any) -> Trial:
    """A trial with these fields of `Identity`, `ProgramRun`, `Request` and `Frames`.

    `link` and `size` are the cell by its key, as a `Cell` has them; `cell` is the cell itself.
    `invalid` is the reason in words, `invalid_code` its code. `outcome` takes the place of frames.
    The forwarder is the arm's label unless it is named. Others have ordinary values.
    """
    told = _ORDINARY | {"forwarder": fields.get("arm", "a")} | fields
    name, size = told.pop("link"), told.pop("size")
    whole: dict[str, Any] = {"cell": cell_of(name, size)}
    why, code = told.pop("invalid", None), told.pop("invalid_code", "error")
    if why is not None:
        whole["rejected"] = Invalid(code=code, why=why)
    parts: dict[str, dict[str, Any]] = {part: {} for part in _PARTS}
    for field, value in told.items():
        if field in _WHOLE:
            whole[field] = value
        else:
            parts[part_of(field)][field] = value
    made = {part: _PARTS[part](**values) for part, values in parts.items()}
    return Trial(**(made | whole))


def changed(trial: Trial, **fields: Any) -> Trial:
    """A copy with other values of such fields."""
    found = trial.model_copy(deep=True)
    if "invalid" in fields:
        why, code = fields.pop("invalid"), fields.pop("invalid_code", "error")
        found.rejected = None if why is None else Invalid(code=code, why=why)
    for field, value in fields.items():
        setattr(found if field in _WHOLE else getattr(found, part_of(field)), field, value)
    return found


def cell_of(name: str, size: int) -> TrialCell:
    """The cell that a `Cell` of this link and size is measured as."""
    if "/" in name:
        return GraphTrialCell(graph=name, batch=size)
    if base_name(name) != name and (tables := link(name).tables):
        return TableCell(link=base_name(name), size=size, routes=tables.routes, rules=tables.rules)
    return LinkCell(link=name, size=size)


def part_of(field: str) -> str:
    """The part of a record that contains the field."""
    return next(part for part, model in _PARTS.items() if field in model.model_fields)
