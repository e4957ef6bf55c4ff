# SPDX-License-Identifier: BSD-3-Clause
"""Reads numbers from the command lines `python -m linerate_bench.NAME`, which take nothing else."""

from __future__ import annotations

import math
import sys
from contextlib import suppress
from typing import TypeVar

from linerate.host.exit_status import ExitStatus, fail

Number = TypeVar("Number", int, float)


def number(usage: str, default: Number, at: int = 1, least: int = 0) -> Number:
    """Return the argument at that place as the default's type, above 0 and at least `least`; the
    default if there is none.

    A wrong argument ends the program with its usage (`acl [ROUNDS [RULES]]`).
    """
    if len(sys.argv) <= at:
        return default
    with suppress(ValueError, OverflowError):
        given = type(default)(sys.argv[at])
        if given > 0 and given >= least and math.isfinite(given):
            return given
    return fail(f"usage: python -m linerate_bench.{usage}, not {sys.argv[at]!r}", ExitStatus.USAGE)
