# SPDX-License-Identifier: BSD-3-Clause
"""Entry point of the command `linerate`; the commands themselves are in `linerate.cli.commands`.

Exit statuses are those of `linerate.host.exit_status`; results measured before an error or a signal
are kept. `attach` becomes the program that it starts, and ends with that program's status.

Importing this module imports next to nothing: everything else is imported when signals are handled.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import signal
import sys
from types import FrameType
from typing import NoReturn, TextIO

from linerate.host.exit_status import ExitStatus, for_git, say

# The lab with its libraries takes half of it.
ADDRESS_SPACE = 1 << 30


def _leave(number: int, frame: FrameType | None) -> None:
    """End at once: while this handles signals, there is nothing to clean up.

    Not by an exception: raised in a handler it would appear in the middle of an import. While a run
    owns processes and directories, `linerate.host.process.interruptible` handles the signals.
    """
    try:
        os.write(2, b"linerate: interrupted\n")
    finally:
        os._exit(128 + number)


def _handle_signals() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        # Signals that the caller ignores, as a shell does for its background jobs, stay ignored.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _leave)


def main() -> NoReturn:
    """Run the command line. Errors become one message and an exit status."""
    _handle_signals()
    # A status of 1 is a verdict: whatever else ends the process, it is not by 1.
    status = _status()
    # Python ends with 120 if it cannot write buffered output.
    if not _flushed(sys.stdout, 1):
        status = ExitStatus.CANNOT_RUN
    _flushed(sys.stderr, 2)
    sys.exit(for_git(status) if _bisects(sys.argv[1:]) else status)


def _bisects(words: list[str]) -> bool:
    """Return True if `git bisect run` reads the status, even if the command line is refused."""
    return words[:1] == ["duel"] and "--bisect" in words


def _status() -> int:
    import logging  # noqa: PLC0415 - all of these are slower than a quick Ctrl-C
    import traceback  # noqa: PLC0415

    from linerate.host.errors import Interrupted, LabError, UsageError  # noqa: PLC0415

    try:
        _refuse_little_memory()
        level = os.environ.get("LINERATE_LOG", "WARNING").upper()
        if level not in logging.getLevelNamesMapping():
            raise UsageError(f"LINERATE_LOG={level}: no such level", "for instance INFO or DEBUG")
        logging.basicConfig(level=level)
        logging.getLogger("snappi").setLevel(logging.ERROR)
        from linerate.cli.commands import app  # noqa: PLC0415

        status = app(standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
        return ExitStatus.DONE if status is None else status
    except LabError as error:
        return say(f"linerate: {error}", error.exit_code)
    except Interrupted as stop:
        return say("\n  ".join(filter(None, ["linerate: interrupted", stop.hint])), stop.exit_code)
    except (BrokenPipeError, SystemExit):
        # The reader of our output is gone, so the result cannot be printed. Typer and Rich would
        # return 1.
        return ExitStatus.CANNOT_RUN
    except ImportError as error:
        return say(f"linerate: {error}\n  make setup")
    except OSError as error:
        # A failed write names no file.
        full = "standard output, or a file" if error.errno == errno.ENOSPC else "system"
        return say(f"linerate: {error.filename or full}: {error.strerror}")
    except Exception as error:
        # Typer's usage errors print themselves; their class has no name that its releases share.
        if show := getattr(error, "show", None):
            with contextlib.suppress(OSError):
                show()
            return ExitStatus.USAGE
        return _fault(traceback.format_exc())
    except BaseException:
        # A panic of a library in Rust, for instance where no thread can be made.
        return _fault(traceback.format_exc())


def _fault(trace: str) -> int:
    return say(f"{trace}linerate: this is a fault of the lab, not of what it measures")


def _refuse_little_memory() -> None:
    """Refuse to start with too little memory: numpy's linear algebra library would end the process
    with status 1.
    """
    # One thread only: others would run on the measured CPUs.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for what, option in ((resource.RLIMIT_AS, "-v"), (resource.RLIMIT_DATA, "-d")):
        limit, _ = resource.getrlimit(what)
        if limit != resource.RLIM_INFINITY and limit < ADDRESS_SPACE:
            from linerate.host.errors import LabError  # noqa: PLC0415

            raise LabError(
                f"memory is limited to {limit >> 20} MiB (ulimit {option}), and the lab needs "
                f"{ADDRESS_SPACE >> 20} MiB",
                f"ulimit {option} unlimited",
            )


def _flushed(stream: TextIO | None, number: int) -> bool:
    """Write the buffered output of a stream; if that fails, discard it."""
    try:
        if stream is not None:
            stream.flush()
    except (OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
        return False
    return True


if __name__ == "__main__":
    main()
