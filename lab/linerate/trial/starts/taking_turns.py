# SPDX-License-Identifier: BSD-3-Clause
"""Forwarders of one block that take turns: all are started before the first is measured, and each
stands still, with its sender, outside of its windows.

So seconds of starting lie no longer between the windows that are compared.

Lifecycle: a context manager, within those of the devices. In the end all go on, so that they can be
asked to end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial

from linerate.host.errors import TrialError
from linerate.host.process import pause
from linerate.trial.search.setup_device import SetupDevice
from linerate.trial.starts.alone import SETTLE_S
from linerate.trial.starts.halting import Pair, polling_pid


class TakingTurns:
    """Lets one device run at a time. Each has a link of its own."""

    def __init__(self, devices: Sequence[SetupDevice]) -> None:
        self._devices = devices
        self._begun = False
        # Programs that are stopped now, by their place in `devices`.
        self._still: dict[int, Pair] = {}
        for place, device in enumerate(devices):
            device.turn = partial(self._turn, place)

    @contextmanager
    def _turn(self, place: int) -> Iterator[None]:
        if not self._begun:
            self._begin()
        self._go_on(place)
        pause(SETTLE_S)
        try:
            yield
        except TrialError:
            # The cause is better news than that it cannot be stopped.
            with suppress(TrialError):
                self._halt(place)
            raise
        self._halt(place)

    def _begin(self) -> None:
        self._begun = True
        for place, device in enumerate(self._devices):
            try:
                device.begin()
                self._halt(place)
            except TrialError:
                # Its first window tries again, and has the reason on record.
                device.close()
                device.setup.close()

    def _halt(self, place: int) -> None:
        exchange = self._devices[place].exchange
        if exchange:
            pair = Pair(exchange.running, polling_pid(exchange.running), exchange.sender)
            self._still[place] = pair
            pair.halt()

    def _go_on(self, place: int) -> None:
        pair = self._still.pop(place, None)
        if pair is None:
            return
        if self._devices[place].exchange is None:
            # The program has been closed, and its number may be another's.
            pair = replace(pair, pid=None)
        pair.go_on()

    def __enter__(self) -> TakingTurns:
        return self

    def __exit__(self, *_: object) -> None:
        for place in list(self._still):
            self._go_on(place)
