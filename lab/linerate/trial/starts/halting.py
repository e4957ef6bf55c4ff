# SPDX-License-Identifier: BSD-3-Clause
"""Stop (SIGSTOP) and continue a program and its generator."""

from __future__ import annotations

import contextlib
import signal
import time
from dataclasses import dataclass

from linerate.host.errors import ProcessError
from linerate.host.host import LOCAL
from linerate.host.process import pause, stands_still
from linerate.traffic.sender import Sender
from linerate.trial.running import Running

# The time for a program to forward packets on their way after its generator was stopped.
DRAIN_S = 0.003
_FREEZE_S = 2.0


@dataclass(frozen=True)
class Pair:
    """A program and its generator. `pid`: the process that polls, which is a child's child if the
    command is a script; None if the kernel forwards alone. `sender`: the program's own generator.
    """

    running: Running
    pid: int | None
    sender: Sender | None = None

    @classmethod
    def of(cls, running: Running, sender: Sender | None = None) -> Pair:
        """Return the pair of a running program; its telemetry knows the polling process."""
        pid = running.telemetry.peer_pid() if running.telemetry else None
        if pid is None and running.forwarder:
            pid = running.forwarder.pid
        return cls(running, pid, sender)

    def halt(self) -> None:
        """Stop the generator, then the program: packets on their way must not wait in between.

        Raises `ProcessError` if one of them has ended or does not stop.
        """
        if self.sender and self.sender.child:
            self.sender.child.freeze()
            pause(DRAIN_S)
        for child in self.running.children:
            child.freeze()
        self._signal(signal.SIGSTOP)
        children = [*self.running.children]
        if self.sender and self.sender.child:
            children.append(self.sender.child)
        still = {*(child.pid for child in children), *([self.pid] if self.pid else [])}
        deadline = time.monotonic() + _FREEZE_S
        while not all(map(stands_still, still)):
            if self.sender:
                self.sender.check()
            self.running.check()
            if time.monotonic() >= deadline:
                raise ProcessError(f"it does not stop within {_FREEZE_S:g} s")
            time.sleep(0.0005)

    def go_on(self) -> None:
        """Continue the program first, so that it takes the first packet."""
        self._signal(signal.SIGCONT)
        for child in self.running.children:
            child.thaw()
        if self.sender and self.sender.child:
            self.sender.child.thaw()

    def _signal(self, number: signal.Signals) -> None:
        """Send a signal to the polling process, which may be in no process group of the lab's."""
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                LOCAL.kill(self.pid, number)
