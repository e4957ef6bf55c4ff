# SPDX-License-Identifier: BSD-3-Clause
"""Entry point of the command `linerate`; the commands themselves are in `linerate.cli.commands`.

Exit statuses are those of `linerate.host.exit_status`; what was measured until an error or a signal
is kept. `attach` becomes the program that it starts, whose status it then is.

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
    run owns processes and directories, `linerate.host.process.interruptible` takes the signals.
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


def main() -> None:
    """Run the command line. Errors become one message and an exit status."""
    _handle_signals()
    import logging  # noqa: PLC0415 - all of these are slower than a quick Ctrl-C
    import traceback  # noqa: PLC0415

    from linerate.host.errors import Interrupted, LabError, UsageError  # noqa: PLC0415
    from linerate.host.exit_status import ExitStatus, fail  # noqa: PLC0415

    try:
        level = os.environ.get("LINERATE_LOG", "WARNING").upper()
        if level not in logging.getLevelNamesMapping():
            raise UsageError(f"LINERATE_LOG={level}: no such level", "for instance INFO or DEBUG")
        logging.basicConfig(level=level)
        logging.getLogger("snappi").setLevel(logging.ERROR)
        from linerate.cli.commands import app  # noqa: PLC0415

        if os.environ.get("LINERATE_FORWARDERS"):
            from linerate.forwarders import add_from_environment  # noqa: PLC0415

            add_from_environment()
        status = app(standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except LabError as error:
        fail(f"linerate: {error}", error.exit_code)
    except Interrupted as stop:
        print("linerate: interrupted", file=sys.stderr)
        sys.exit(stop.exit_code)
    except (BrokenPipeError, SystemExit):
        # The reader of our output went away: what it asked for cannot be told. Typer and Rich make
        # a status of 1 of that.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(ExitStatus.CANNOT_RUN)
    except ImportError as error:
        fail(f"linerate: {error}\n  make setup")
    except OSError as error:
        fail(f"linerate: {error.filename or 'system'}: {error.strerror}")
    except Exception as error:
        # Typer's usage errors print themselves; their class has no name that its releases share.
        if show := getattr(error, "show", None):
            show()
            sys.exit(ExitStatus.USAGE)
        traceback.print_exc()
        fail("linerate: this is a fault of the lab, not of what it measures")
    sys.exit(status or ExitStatus.DONE)


if __name__ == "__main__":
    main()
