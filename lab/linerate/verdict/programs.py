# SPDX-License-Identifier: BSD-3-Clause
"""What records say of a program. Reports ask here, never the list of forwarders of this build."""

from __future__ import annotations

from collections.abc import Iterable

from linerate.forwarders import FORWARDERS
from linerate.records.trial import Program, Trial


def program_of(trials: Iterable[Trial], forwarder: str) -> Program:
    """Return what the first of its trials says.

    Records of older versions say nothing: for these it is what this build knows of a program of
    that name, or an unknown language and kind.
    """
    for trial in trials:
        if trial.forwarder == forwarder and trial.program.described:
            return trial.program.described
    known = FORWARDERS.get(forwarder)
    return known.described() if known else Program(language="unknown")
