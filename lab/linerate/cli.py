# SPDX-License-Identifier: BSD-3-Clause
"""Entry point of the command `linerate`; the commands themselves are in `linerate.commands`.

Exit codes: 0 done, 1 an error with its remedy on standard error, 2 a wrong option, 128 + N ended by
signal N (130 for Ctrl-C); what was measured until then is kept. Of `compare` 1 says that
something became slower, so that there every error is 2. `attach` becomes the program that it
starts, whose exit code it then is.

Importing this module imports next to nothing: everything else is imported when signals are handled.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType


def _leave(number: int, frame: FrameType | None) -> None:
    """End at once: there is nothing to clean up where this handles signals.

    No exception: raised from a handler it would surface in the middle of somebody's import. While a
    run owns processes and directories, `linerate.process.interruptible` takes the signals.
    """
    try:
        os.write(2, b"linerate: interrupted\n")
    finally:
        os._exit(128 + number)


def _handle_signals() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        # What the caller ignores, as a shell does for its background jobs, stays ignored.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _leave)


def _status(code: int = 1) -> int:
    """The exit code of an error that has this one elsewhere."""
    return max(code, 2) if sys.argv[1:2] == ["compare"] else code


def main() -> None:
    """Errors become one message and an exit code."""
    _handle_signals()
    import logging  # noqa: PLC0415 - all of these are slower than a quick Ctrl-C

    from linerate.errors import Interrupted, LabError, OutputError, UsageError  # noqa: PLC0415

    try:
        level = os.environ.get("LINERATE_LOG", "WARNING").upper()
        if level not in logging.getLevelNamesMapping():
            raise UsageError(f"LINERATE_LOG={level}: no such level", "for instance INFO or DEBUG")
        logging.basicConfig(level=level)
        logging.getLogger("snappi").setLevel(logging.ERROR)
        from linerate.commands import app  # noqa: PLC0415

        app()
    except LabError as error:
        print(f"linerate: {error}", file=sys.stderr)
        sys.exit(_status(error.exit_code))
    except Interrupted as stop:
        print("linerate: interrupted", file=sys.stderr)
        sys.exit(stop.exit_code)
    except BrokenPipeError:
        # The reader of our output went away; not an error of the run.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(_status())
    except ImportError as error:
        print(f"linerate: {error}\n  make setup", file=sys.stderr)
        sys.exit(_status())
    except OSError as error:
        failure = OutputError(f"{error.filename or 'system'}: {error.strerror}")
        print(f"linerate: {failure}", file=sys.stderr)
        sys.exit(_status(failure.exit_code))
    except Exception as error:
        if _status() == 1:
            raise
        print(f"linerate: cannot compare: {type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(_status())


if __name__ == "__main__":
    main()
