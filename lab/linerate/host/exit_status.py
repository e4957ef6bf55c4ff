# SPDX-License-Identifier: BSD-3-Clause
"""The exit statuses of every command of the lab; a signal N ends it with 128 + N.

`git bisect run` reads statuses by another table: 0 good, 125 cannot be tested, 1 to 127 bad, and
only 128 or more ends it. So a command that must return a `BisectStatus` has no other status below
128: statuses 2 to 5 become 202 to 205.
"""

from __future__ import annotations

import contextlib
import sys
from enum import IntEnum
from typing import NoReturn

from linerate.host.text import printable


class ExitStatus(IntEnum):
    """Exit statuses. SLOWER is returned only after programs were measured: scripts rely on it."""

    DONE = 0  # not slower beyond the margin, a rate is carried, or nothing was asked
    SLOWER = 1  # slower beyond the margin, more instructions than allowed, or a rate not carried
    USAGE = 2  # a wrong option, value, file or directory
    UNDECIDED = 3  # the data cannot tell, or are invalid
    CANNOT_RUN = 4  # a missing program, a full disk, a fault of the lab
    BUSY = 5  # others had the CPUs; later it may run


class BisectStatus(IntEnum):
    """The status of a commit that was tested for `git bisect run`."""

    GOOD = 0  # not slower beyond the margin
    BAD = 1  # slower beyond the margin
    SKIP = 125  # it does not build or run, or the time was too short to decide


# Added to statuses that git would read as "bad".
_ABORT = 200


def for_git(status: int) -> int:
    """Return the status for `git bisect run`: any status that is not a `BisectStatus` ends the
    bisect.
    """
    if isinstance(status, BisectStatus) or status >= 128:
        return status
    return _ABORT + status


def say(message: object, status: int = ExitStatus.CANNOT_RUN) -> int:
    """Print a message on standard error, if that can be written to, and return the status.

    The message may quote a file or a program, so control characters are replaced.
    """
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(printable(str(message), keep="\n\t"), file=sys.stderr, flush=True)
    return status


def fail(message: object, status: ExitStatus = ExitStatus.CANNOT_RUN) -> NoReturn:
    """End the process with this message on standard error."""
    sys.exit(say(message, status))
