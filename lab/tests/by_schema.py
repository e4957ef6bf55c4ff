# SPDX-License-Identifier: BSD-3-Clause
"""Holds JSON against the schemas that are shipped; each of these is itself checked but once."""

from __future__ import annotations

from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from linerate.cli import schemas


@cache
def _validator(name: str) -> Draft202012Validator:
    schema = schemas.stored(name)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def check(data: Any, name: str) -> None:
    """Raises `ValidationError` where the data is not by the schema of that file."""
    error = best_match(_validator(name).iter_errors(data))
    if error is not None:
        raise error
