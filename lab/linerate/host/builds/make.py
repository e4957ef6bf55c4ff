# SPDX-License-Identifier: BSD-3-Clause
"""Running make for the programs that the lab builds when they are first needed."""

from __future__ import annotations

import fcntl
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from linerate.host.errors import LabError, MissingError
from linerate.host.exit_status import say
from linerate.host.host import LOCAL

TIMEOUT_S = 300


@contextmanager
def locked(directory: Path, what: str) -> Iterator[None]:
    """Make `directory` and hold its lock, so that one process builds there at a time. A failed
    write inside the block is reported as a failure to build `what`.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with (directory / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise LabError(
            f"cannot build {what} in {directory}: {error.strerror}",
            "free some space there, or set XDG_CACHE_HOME",
        ) from error


def announce(what: str, compiler: str, flags: str) -> None:
    """Say on standard error that a program is built now: beside other work it can take a minute."""
    say(f"linerate: building {what}, once ({shlex.join([compiler, *shlex.split(flags)])})")


def make(
    what: str, source: Path, arguments: Sequence[str], environment: Mapping[str, str] | None = None
) -> str:
    """Run make in `source`, independent of a make that may have started us; return its output."""
    try:
        done = LOCAL.run(
            ["make", *arguments],
            timeout_s=TIMEOUT_S,
            directory=source,
            environment={"MAKELEVEL": None, **(environment or {})},
            ends_by_terminal=True,
        )
    except FileNotFoundError as error:
        raise MissingError("make is missing", "make setup") from error
    except TimeoutError as error:
        raise LabError(f"{what} does not build: {error.strerror}", "linerate doctor") from error
    if done.exit_code:
        tail = "\n".join(done.errors.strip().splitlines()[-5:])
        raise LabError(f"{what} does not build:\n{tail}", "linerate doctor")
    return done.output
