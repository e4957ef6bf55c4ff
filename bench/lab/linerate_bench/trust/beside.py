# SPDX-License-Identifier: BSD-3-Clause
"""Runs a command while a compiler runs again and again on each CPU that the command may use.

    python -m linerate_bench.trust.beside COMMAND ARGUMENT...

The exit status is the command's, or 128 + N if signal N ended the command or this program.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from linerate.host.errors import Interrupted
from linerate.host.host import LOCAL
from linerate.host.places import project_root
from linerate.host.process import Command, RunDirectory, interruptible, pause

_LOOK_S = 0.2


@contextmanager
def compilers(run: RunDirectory, cpus: Iterable[int]) -> Iterator[None]:
    """Run a compiler on each of these CPUs, until the context ends."""
    with ExitStack() as stack:
        source = project_root() / "bench" / "plain" / "plain.c"
        loop = f"while :; do cc -O2 -c $(pkg-config --cflags libdpdk) {source} -o $0.o; done"
        for cpu in cpus:
            name = str(run.path / f"compiled-{cpu}")
            command = Command("compiler", ("sh", "-c", loop, name), (cpu,))
            stack.enter_context(LOCAL.start(command, run))
        yield


def attended(argv: Sequence[str], directory: Path | None = None) -> int:
    """Run a command to its end; return its exit status, 128 + N for a signal.

    If the lab is asked to end, all processes of the command's process group get SIGTERM, because
    git does not pass on the signals that it gets.
    """
    with subprocess.Popen(
        argv, cwd=directory, stdin=subprocess.DEVNULL, process_group=0
    ) as running:
        try:
            while running.poll() is None:
                pause(_LOOK_S)
        except Interrupted:
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGTERM)
            raise
    code: int = running.returncode
    return code if code >= 0 else 128 - code


def main() -> int:
    try:
        with interruptible(), RunDirectory() as run, compilers(run, os.sched_getaffinity(0)):
            return attended(sys.argv[1:])
    except Interrupted as stop:
        return stop.exit_code


if __name__ == "__main__":
    sys.exit(main())
