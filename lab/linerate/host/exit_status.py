# SPDX-License-Identifier: BSD-3-Clause
"""The exit statuses of every command of the lab; a signal N ends it with 128 + N."""

from __future__ import annotations

import contextlib
import sys
from enum import IntEnum
from typing import NoReturn


class ExitStatus(IntEnum):
    """SLOWER is said of programs that were measured, and of nothing else: scripts rely on it."""

    DONE = 0  # not slower beyond the margin, or nothing was asked
    SLOWER = 1  # slower beyond the margin
    USAGE = 2  # a wrong option, value, file or directory
    UNDECIDED = 3  # the data cannot tell, or are invalid
    CANNOT_RUN = 4  # a missing program, a busy machine, a full disk, a fault of the lab


def say(message: object, status: int = ExitStatus.CANNOT_RUN) -> int:
    """Print a message on standard error, if it can be written to, and return the status."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(message, file=sys.stderr, flush=True)
    return status


def fail(message: object, status: ExitStatus = ExitStatus.CANNOT_RUN) -> NoReturn:
    """End the process with this message on standard error."""
    sys.exit(say(message, status))
