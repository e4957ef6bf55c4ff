# SPDX-License-Identifier: BSD-3-Clause
"""The lab's errors. Each message says what to do next; the command line prints it and no trace."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import ClassVar, TypeVar

from linerate.host.exit_status import ExitStatus

T = TypeVar("T")


class LabError(Exception):
    """An error that the user can fix. `hint` is the command or the change that fixes it."""

    exit_code = ExitStatus.CANNOT_RUN

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  {self.hint}" if self.hint else self.message


class UsageError(LabError):
    """A wrong option, value, file or directory."""

    exit_code = ExitStatus.USAGE


class DesignError(UsageError):
    """Observations do not fit their design, or a design cannot be analysed."""


class RunError(UsageError):
    """The named directory holds no run, or no run that this command accepts."""


def look_up(table: Mapping[str, T], name: str, option: str, what: str) -> T:
    """Return the entry of that name, or raise an error that lists the known names."""
    try:
        return table[name]
    except KeyError:
        near = difflib.get_close_matches(name, table, 1)
        meant = f"did you mean {near[0]}? " if near else ""
        raise UsageError(
            f"{option} {name}: no such {what}", f"{meant}choose from: {', '.join(table)}"
        ) from None


class MissingError(LabError):
    """A program, package or file that the run needs is missing."""


class OutputError(LabError):
    """The output cannot be written: a full disk, or a directory that is in use."""


class MachineError(LabError):
    """This machine cannot run the experiment (cores, memory, a core that others use)."""


class BusyError(MachineError):
    """Other work kept the CPUs busy for longer than the lab waits."""

    exit_code = ExitStatus.BUSY


class HopelessError(LabError):
    """The run ended because too much failed in a row. `what` failed; the last failure was
    `reason`.
    """

    usual_hint: ClassVar = "linerate doctor looks for the cause"

    def __init__(self, what: str, reason: str | None, hint: str | None = None) -> None:
        super().__init__(
            f"{what}, the last because: {reason}",
            f"{hint or self.usual_hint}; a new run with --keep-going would not end here",
        )


class TooBusyError(HopelessError, BusyError):
    """The same, if the last failure was that other work kept the CPUs busy."""

    usual_hint = "wait until the machine is quieter"


class TrialError(LabError):
    """A trial failed. It is recorded as invalid with this reason and the run goes on.

    `code` is one of records.InvalidCode.
    """

    code = "error"


class LinkError(TrialError):
    """The link did not come up, or carried nothing."""

    code = "link"


class TelemetryError(TrialError):
    """A telemetry socket did not answer, or answered something else."""

    code = "telemetry"


class UnknownCommandError(TelemetryError):
    """The program does not know this command, or not with this parameter."""


class SilentError(TelemetryError):
    """No answer came in time; it may still come."""


class DisconnectedError(TelemetryError):
    """The program closed its telemetry: usually it has ended."""


class ProcessError(TrialError):
    """A forwarder or the generator ended unexpectedly, or did not start."""

    code = "ended"


class TenantError(TrialError):
    """A tenant did not begin its work, or stopped it."""

    code = "tenant"


class GeneratorError(TrialError):
    """The generator refused a configuration or did not finish."""

    code = "generator"


class DisturbedError(TrialError):
    """No window was quiet enough to measure in, within the permitted number of attempts."""

    code = "late"


class Interrupted(BaseException):
    """SIGINT or SIGTERM arrived. Not an `Exception`: no handler for errors may swallow it."""

    def __init__(self, signum: int) -> None:
        super().__init__(f"signal {signum}")
        self.signum = signum
        # What to do next, if there is anything.
        self.hint: str | None = None

    @property
    def exit_code(self) -> int:
        return 128 + self.signum
