# SPDX-License-Identifier: BSD-3-Clause
"""The fields in which runs must agree to be resumed with other options, merged, or compared.

Everything follows from the declarations of the fields of options and designs
(`linerate.runs.options`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import cache
from typing import Any, Literal, TypeVar, get_type_hints

from pydantic import TypeAdapter, ValidationError

from linerate.host.errors import RunError
from linerate.links.ports import MAX_PORTS, NAME
from linerate.records.run_file import RUN
from linerate.records.trial import first_complaint
from linerate.runs.options import Agreement, Options, parameters
from linerate.runs.run_summary import Design

T = TypeVar("T")
AnyDesign = TypeVar("AnyDesign", bound=Design)

_CHANGED = "the file was changed, or another version of linerate wrote it"


# -- options and designs in run.json ---------------------------------------------------------------


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def adapter(kind: Any) -> TypeAdapter[Any]:
    return _adapter(kind)


def read(kind: type[T], data: dict[str, Any], what: str) -> T:
    """Parse a part of run.json; raises `RunError` naming the invalid field."""
    try:
        found: T = adapter(kind).validate_python(data)
    except ValidationError as error:
        raise RunError(f"{RUN}: {what}.{first_complaint(error)}", _CHANGED) from error
    return found


def as_stored(value: Options | Design) -> dict[str, Any]:
    """Convert a value as if read from run.json: JSON has no tuples."""
    found: dict[str, Any] = adapter(type(value)).dump_python(value, mode="json")
    return found


def check_devices(links: Sequence[str], asked: Options | Design, what: str) -> None:
    """Raise `RunError` for devices of a run that make no link; `links`: the links of its cells.

    Does not check that they exist.
    """
    ours, theirs = len(asked.generator_ports), len(asked.forwarder_ports)
    if ours != theirs or not (NAME in links) <= ours <= MAX_PORTS:
        raise RunError(
            f"{RUN}: {what}: {ours} generator_ports and {theirs} forwarder_ports, where link "
            f"{NAME} has as many of one as of the other, and up to {MAX_PORTS}",
            _CHANGED,
        )


# -- two runs ------------------------------------------------------------------------------------


def must_agree(design: Design, how: Literal["merge", "compare"]) -> dict[str, object]:
    """Return the values of a design that must be the same in another run, by option."""
    hints = get_type_hints(type(design), include_extras=True)
    found: dict[str, object] = {}
    for each in fields(design):
        for said in getattr(hints[each.name], "__metadata__", ()):
            if isinstance(said, Agreement) and getattr(said, how) == "same":
                value = getattr(design, each.name)
                by = said.merge_by if how == "merge" else said.compare_by
                found[said.name] = by(value) if by else value
    return found


def merge_designs(every: Sequence[AnyDesign], options: type[Options]) -> AnyDesign:
    """Merge the designs of several runs; raises `RunError` naming the difference."""
    first = every[0]
    free = [each.option.name for each in parameters(options) if each.option.merge == "may differ"]
    for other in every[1:]:
        refuse_unlike(
            must_agree(first, "merge"),
            must_agree(other, "merge"),
            f"merge runs with the same options: only {', '.join(free)} may differ",
        )
    blocks = [{(c.link, c.size): c.blocks for c in each.cells} for each in every]
    return replace(
        first,
        preset="merged",
        preset_note=f"{len(every)} runs, merged: "
        + "; ".join(f"{each.preset}, seed {each.seed}" for each in every),
        cells=[
            replace(cell, blocks=sum(each[cell.link, cell.size] for each in blocks))
            for cell in first.cells
        ],
    )


def refuse_unlike(one: Mapping[str, object], other: Mapping[str, object], hint: str) -> None:
    """Raise `RunError` naming the first option in which two runs differ."""
    for what, mine in one.items():
        theirs = other[what]
        if mine != theirs:
            raise RunError(
                f"the runs have different options: {what} {_words(mine)} and {_words(theirs)}", hint
            )


def _words(value: object) -> str:
    if value is None or value == []:
        return "none"
    value = getattr(value, "name", value)
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
