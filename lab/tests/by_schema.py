# SPDX-License-Identifier: BSD-3-Clause
"""Validates JSON by the schemas that are shipped; each schema is checked once."""

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
    """Raise `ValidationError` if the data does not follow the schema of that file."""
    error = best_match(_validator(name).iter_errors(data))
    if error is not None:
        raise error
