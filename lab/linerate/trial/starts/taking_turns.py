# SPDX-License-Identifier: BSD-3-Clause
"""Forwarders of one block that take turns: all are started before the first is measured, and each
is stopped, with its sender, outside of its windows.

So the windows that are compared are not seconds of starting apart.

Lifecycle: `taking` is a context manager, within that of the device. At its end the device is
continued, so that it can be asked to end, while the others are still stopped: pollers that all run
at once on one CPU take half a minute to end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from linerate.host.errors import TrialError
from linerate.trial.search.setup_device import SetupDevice
from linerate.trial.starts.alone import turn
from linerate.trial.starts.halting import Pair


class TakingTurns:
    """Lets one device run at a time. Each has a link of its own."""

    def __init__(self) -> None:
        self._contenders: list[_Contender] = []
        self._begun = False

    @contextmanager
    def taking(self, device: SetupDevice) -> Iterator[None]:
        """Include a device while the context lasts."""
        contender = _Contender(device)
        self._contenders.append(contender)
        device.turn = partial(self._turn, contender)
        try:
            yield
        finally:
            contender.go_on()

    @contextmanager
    def _turn(self, contender: _Contender) -> Iterator[None]:
        if not self._begun:
            self._begun = True
            for each in self._contenders:
                each.begin()
        with turn(contender):
            yield


class _Contender:
    """A device whose program and sender are stopped and continued. Its program may be another one,
    or none, from turn to turn.
    """

    def __init__(self, device: SetupDevice) -> None:
        self.device = device
        # The stopped pair.
        self._stopped: Pair | None = None

    def begin(self) -> None:
        """Start it and stop it."""
        try:
            self.device.begin()
            self.halt()
        except TrialError:
            # Its first window tries again, and records the reason.
            self.device.close()
            self.device.setup.close()

    def halt(self) -> None:
        if exchange := self.device.exchange:
            self._stopped = Pair.of(exchange.running, exchange.sender)
            self._stopped.halt()

    def go_on(self) -> None:
        pair, self._stopped = self._stopped, None
        if pair and self.device.exchange is None:
            # The program has been closed, and its number may be another's.
            pair = replace(pair, pid=None)
        if pair:
            pair.go_on()
