# SPDX-License-Identifier: BSD-3-Clause
"""A running guest: QEMU as a child of the lab, and the guest's messages on its console.

Lifecycle: from construction to `stop`, which asks the guest to power off, waits a bounded time and
then ends QEMU. A guest also powers off by itself when its time is over, and dies with the lab. Its
messages are read when the lab listens: nothing runs beside the lab's main thread, which must be the
one that starts guests. Until then they wait in a pipe of a megabyte, hours of reports. Times are
seconds.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence

from linerate.experiments.cloud.tenants.vm.guest_console import (
    Console,
    Failed,
    Message,
    Network,
    Ready,
    Up,
    Worked,
)
from linerate.experiments.cloud.tenants.vm.qemu import Machine, argv
from linerate.experiments.cloud.tenants.vm.vm_network import Tap
from linerate.host.errors import LinkError, ProcessError
from linerate.host.host import LOCAL
from linerate.host.process import Command, RunDirectory, checkpoint

OFF_S = 5.0
_LISTEN_S = 0.05


class GuestProcess:
    """A guest. `worked` is its last report."""

    def __init__(
        self, machine: Machine, run: RunDirectory, cpus: Sequence[int], role: str = "vm"
    ) -> None:
        network = machine.network
        self.role = role
        self.up = False
        self.ready: Ready | None = None
        self.network: Network | None = None
        self.worked: Worked | None = None
        self.reports = 0
        self._failed: Failed | None = None
        self._console = Console()
        # QEMU opens the tap that it is given in its own namespace.
        host = network.host if isinstance(network, Tap) else LOCAL
        self._child = host.start(
            Command(
                role,
                argv(machine),
                tuple(cpus),
                hold_stdin=True,
                answers=True,
            ),
            run,
        )
        self._child.widen_output()

    @property
    def pid(self) -> int:
        """The pid of QEMU, whose threads are the guest."""
        return self._child.pid

    @property
    def running(self) -> bool:
        return self._child.running

    @property
    def garbage(self) -> int:
        """Lines on the console that were not understood."""
        return self._console.garbage

    def listen(self, timeout_s: float = 0.0) -> None:
        """Read messages; wait up to `timeout_s` for some."""
        for message in self._console.feed(self._child.hear(timeout_s)):
            self._take(message)

    def check(self) -> None:
        """Raise if the guest failed or is gone, or if the lab should end."""
        checkpoint()
        if self._failed:
            raise ProcessError(f"{self.role}: its guest failed: {self._failed.why}")
        if not self._child.running:
            # Its last message is usually the reason.
            self.listen()
            if self._failed:
                self.check()
            said = self._console.last_words
            try:
                self._child.check()
            except ProcessError as error:
                raise ProcessError(f"{error.message}{said and f'; console: {said}'}") from error

    def wait_until(self, holds: Callable[[], object], timeout_s: float, what: str) -> None:
        """Listen until a condition holds; raises `LinkError` if it does not within the time."""
        deadline = time.monotonic() + timeout_s
        while True:
            self.listen(_LISTEN_S)
            if holds():
                return
            self.check()
            if time.monotonic() >= deadline:
                said = self._console.last_words
                raise LinkError(
                    f"{self.role}: {what} within {timeout_s:g} s{said and f'; console: {said}'}"
                )

    def report(self, timeout_s: float) -> Worked | None:
        """Ask for a report and wait for it up to `timeout_s`; None if none came."""
        self.listen()
        before = self.reports
        self._child.tell("report")
        deadline = time.monotonic() + timeout_s
        while self.reports == before and time.monotonic() < deadline:
            self.listen(_LISTEN_S)
            self.check()
        return self.worked if self.reports > before else None

    def stop(self, patience_s: float = OFF_S) -> bool:
        """Power it off, or end it; return True if it powered off. Its last report is in
        `worked`.
        """
        powered_off = False
        try:
            if self.ready and self._child.running:
                # It may have ended, or the lab may have been asked to end: do not wait.
                with contextlib.suppress(ProcessError, OSError):
                    self._child.tell("stop")
                    deadline = time.monotonic() + patience_s
                    while self._child.running and time.monotonic() < deadline:
                        self.listen(_LISTEN_S)
                    powered_off = not self._child.running
                self.listen()
        finally:
            self._child.stop()
        return powered_off

    def _take(self, message: Message) -> None:
        match message:
            case Up():
                self.up = True
            case Network():
                self.network = message
            case Ready():
                self.ready = message
            case Worked():
                self.worked = message
                self.reports += 1
            case Failed():
                self._failed = message
            case _:
                pass
