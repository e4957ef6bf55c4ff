# SPDX-License-Identifier: BSD-3-Clause
"""Facts about a program from records. Reports use these, never the list of forwarders of this
build.
"""

from __future__ import annotations

from collections.abc import Iterable

from linerate.forwarders import FORWARDERS
from linerate.records.trial import Program, Trial


def program_of(trials: Iterable[Trial], forwarder: str) -> Program:
    """Return the facts in the first of its trials that has any.

    Records of older versions have none: then it is this build's program of that name, or an unknown
    language and kind.
    """
    for trial in trials:
        if trial.forwarder == forwarder and trial.program.described:
            return trial.program.described
    known = FORWARDERS.get(forwarder)
    return known.described() if known else Program(language="unknown")
