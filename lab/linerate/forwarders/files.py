# SPDX-License-Identifier: BSD-3-Clause
"""TOML files of definitions.

A file holds one definition, or several in `[[forwarder]]` tables; keys of a `[defaults]` table then
apply to each definition that does not set them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from linerate.forwarders.definition import (
    Build,
    Definition,
    Ports,
    Ready,
    Routing,
    Stop,
    alternatives,
)
from linerate.host import foreign
from linerate.host.errors import UsageError
from linerate.records.trial import TxBuffer


def read(path: Path) -> list[Definition]:
    """Return the definitions of a TOML file.

    Raises `UsageError` that names the file, the definition and the key.
    """
    try:
        text = foreign.text(path, foreign.MOST_DEFINITIONS)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise UsageError(f"cannot read {path}: {why}") from error
    return parse(text, str(path))


def toml(text: str, where: str) -> dict[str, Any]:
    """Parse the text of a TOML file; raises `UsageError` naming the file, `where`."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{where}: not TOML: {error}") from error
    except (ValueError, RecursionError) as error:
        # The parser has no error of its own for long numbers and deeply nested lists.
        raise UsageError(f"{where}: TOML that cannot be read: {error}") from error


def parse(text: str, where: str) -> list[Definition]:
    """Return the definitions of a file's text; `where`: the file, for errors, which are those of
    `read`.
    """
    data = toml(text, where)
    if "forwarder" not in data and "defaults" not in data:
        return [_definition(data, where)]
    if other := sorted(set(data) - {"forwarder", "defaults"}):
        raise UsageError(
            f'{where}: "{other[0]}" stands beside [[forwarder]]',
            "put it into [defaults], or into one [[forwarder]]",
        )
    defaults, tables = data.get("defaults", {}), data.get("forwarder", [])
    if not isinstance(defaults, dict):
        raise UsageError(f"{where}: defaults must be a table, [defaults]")
    if not (isinstance(tables, list) and tables and all(isinstance(each, dict) for each in tables)):
        raise UsageError(f"{where}: forwarder must be an array of tables, [[forwarder]]")
    found = [_definition({**defaults, **table}, where, place) for place, table in enumerate(tables)]
    names = [each.name for each in found]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{where}: two forwarders are called {name}")
    return found


def _definition(data: Mapping[str, Any], where: str, place: int | None = None) -> Definition:
    try:
        return Definition.model_validate(data)
    except ValidationError as error:
        if place is not None:
            where += f", forwarder {data.get('name', place + 1)}"
        raise UsageError(f"{where}: {complaint(error)}", "docs/describe-a-forwarder.md") from error


def complaint(error: ValidationError) -> str:
    """Return the first error and its key."""
    first = error.errors()[0]
    keys = [str(part) for part in first["loc"]]
    if keys[:1] in (["build"], ["ready"]) and len(keys) > 2:
        # pydantic inserts the chosen recipe, which is not a key.
        del keys[1]
    message = str(first.get("ctx", {}).get("error", first["msg"]))
    if first["type"] == "extra_forbidden":
        key = keys.pop()
        message = f'unknown key "{key}"{alternatives(key, _keys(keys, first["loc"]))}'
    elif first["type"] == "missing":
        message = f'"{keys.pop()}" is missing'
    where = ".".join(keys)
    return f"{where}: {message}" if where else message


def _keys(table: list[str], location: tuple[int | str, ...]) -> tuple[str, ...]:
    """Return the valid keys of a definition's table."""
    models: dict[str, type[BaseModel]] = {
        "": Definition, "ports": Ports, "routing": Routing, "tx_buffer": TxBuffer, "stop": Stop,
    }  # fmt: skip
    for name, union, tag in (("build", Build, "recipe"), ("ready", Ready, "by")):
        for model in get_args(get_args(union)[0]):
            (value,) = get_args(model.model_fields[tag].annotation)
            if table == [name] and value in location:
                models[name] = model
    found = models[".".join(table)].model_fields
    return tuple(field.alias or name for name, field in found.items())
