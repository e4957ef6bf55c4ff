# SPDX-License-Identifier: BSD-3-Clause
"""Forwarders of one block that take turns: all are started before the first is measured, and each
stands still, with its sender, outside of its windows.

So seconds of starting lie no longer between the windows that are compared.

Lifecycle: a context manager, within those of the devices. In the end all go on, so that they can be
asked to end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from linerate.host.errors import TrialError
from linerate.trial.search.setup_device import SetupDevice
from linerate.trial.starts.alone import turn
from linerate.trial.starts.halting import Pair


class TakingTurns:
    """Lets one device run at a time. Each has a link of its own."""

    def __init__(self, devices: Sequence[SetupDevice]) -> None:
        self._contenders = [_Contender(device) for device in devices]
        self._begun = False
        for contender in self._contenders:
            contender.device.turn = partial(self._turn, contender)

    @contextmanager
    def _turn(self, contender: _Contender) -> Iterator[None]:
        if not self._begun:
            self._begun = True
            for each in self._contenders:
                each.begin()
        with turn(contender):
            yield

    def __enter__(self) -> TakingTurns:
        return self

    def __exit__(self, *_: object) -> None:
        for contender in self._contenders:
            contender.go_on()


class _Contender:
    """A device whose program and sender are stopped and go on. Its program may be another one, or
    none, from turn to turn.
    """

    def __init__(self, device: SetupDevice) -> None:
        self.device = device
        # What is stopped now.
        self._stopped: Pair | None = None

    def begin(self) -> None:
        """Start it and stop it."""
        try:
            self.device.begin()
            self.halt()
        except TrialError:
            # Its first window tries again, and has the reason on record.
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
