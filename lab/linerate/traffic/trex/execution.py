# SPDX-License-Identifier: BSD-3-Clause
"""Runs a profile in a process of its own, and reads what it describes."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from linerate.host import foreign
from linerate.host.errors import MachineError, UsageError
from linerate.host.host import LOCAL
from linerate.traffic.trex.described import Description

# What TRex's own profiles have is up to 20 KB.
MOST_PROFILE = 1 << 20
# Longer than the time that the program below gives the profile.
_TIMEOUT_S = 120.0
_PROGRAM = Path(__file__).parent / "profile" / "main.py"


@dataclass(frozen=True)
class Tunables:
    """What is handed to a profile: values by name, and words as a command line has them."""

    named: dict[str, int | float | str]
    words: list[str]


def describe(profile: Path, tunables: Tunables, ports: int) -> Description:
    """The streams of a profile for so many ports.

    Raises `UsageError` with the profile's line where it cannot be read or executed, and
    `MachineError` where no process can be started for it.
    """
    try:
        source = foreign.text(profile, MOST_PROFILE)
    except OSError as error:
        raise UsageError(f"{profile}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{profile}: not a text file (UTF-8)") from error
    request = {
        "path": str(profile.resolve()),
        "source": source,
        "tunables": {"named": tunables.named, "words": tunables.words},
        "ports": ports,
    }
    try:
        done = LOCAL.run(
            # Without the user's environment, and without writing what Python compiles.
            [sys.executable, "-I", "-B", str(_PROGRAM)],
            timeout_s=_TIMEOUT_S,
            environment=dict.fromkeys(os.environ) | {"HOME": "/nonexistent"},
            given=json.dumps(request),
        )
    except OSError as error:
        raise MachineError(f"{profile}: cannot be run: {error.strerror}") from error
    try:
        found = Description.model_validate(foreign.parsed(done.output))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(each) for each in first["loc"])
        raise UsageError(f"{profile}: a stream is not valid: {where}: {first['msg']}") from error
    except ValueError as error:
        said = done.errors.strip().splitlines()
        raise MachineError(
            f"{profile}: cannot be run: {said[-1] if said else f'status {done.exit_code}'}"
        ) from error
    if found.error is not None or found.streams is None:
        where = f"{profile}:{found.line}" if found.line else str(profile)
        printed = found.printed.strip()
        raise UsageError(f"{where}: {found.error}", f"it printed: {printed}" if printed else None)
    return found
