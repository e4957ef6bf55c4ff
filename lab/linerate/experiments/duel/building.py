# SPDX-License-Identifier: BSD-3-Clause
"""Run the command that builds a program before it is compared."""

from __future__ import annotations

import os
from pathlib import Path

from linerate.host.errors import LabError
from linerate.host.host import LOCAL
from linerate.host.process import Command, RunDirectory, checkpoint

_LOOK_S = 0.5
_LAST_LINES = 20


class BuildError(LabError):
    """The command failed."""


def build(command: str, run: RunDirectory) -> None:
    """Run a shell command in the working directory; it ends with its caller.

    Raises `BuildError` with the end of its output.
    """
    words = ("sh", "-c", command)
    # The run directory takes the place of this one for programs that the lab measures.
    own = {name: os.environ[name] for name in ("XDG_RUNTIME_DIR",) if name in os.environ}
    cpus = tuple(sorted(LOCAL.cpus()))
    with LOCAL.start(Command("build", words, cpus, own, directory=Path.cwd()), run) as child:
        while not child.wait(_LOOK_S):
            checkpoint()
        output = child.output()
        code = child.stop()
    if code:
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        tail = output.rstrip().splitlines()[-_LAST_LINES:]
        raise BuildError("\n".join([f"--build {command}: {how}", *tail]))
