# SPDX-License-Identifier: BSD-3-Clause
"""Numbers among the arguments of programs that have no others: `python -m linerate.NAME`."""

from __future__ import annotations

import math
import sys
from typing import TypeVar

Number = TypeVar("Number", int, float)


def number(usage: str, default: Number, at: int = 1) -> Number:
    """The argument at that place, of the default's type and above 0; the default if there is none.

    Where it is something else, the program ends with its usage (`acl_bench [ROUNDS [RULES]]`).
    """
    if len(sys.argv) <= at:
        return default
    try:
        given = type(default)(sys.argv[at])
    except ValueError:
        given = type(default)(0)
    if not (given > 0 and math.isfinite(given)):
        sys.exit(f"usage: python -m linerate.{usage}, not {sys.argv[at]!r}")
    return given
