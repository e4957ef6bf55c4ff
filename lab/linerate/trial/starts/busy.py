# SPDX-License-Identifier: BSD-3-Clause
"""The time in which a program was busy with packets, as the probe in it counts."""

from __future__ import annotations

from collections.abc import Callable

from linerate.host.errors import TelemetryError
from linerate.telemetry.client import Telemetry
from linerate.telemetry.spans import read_clock
from linerate.trial.window import Polls


class BusyTime:
    """From the return of each poll that brought packets to the return of the same thread's next
    poll, over all lcores (docs/how-it-measures.md#telemetry-polling).
    """

    def __init__(self, polls: Polls, telemetry: Telemetry, alive: Callable[[], None]) -> None:
        """Waits until the probe has looked; raises `TelemetryError` when it does not look."""
        polls.await_known(alive)
        self._polls = polls
        self._hz = read_clock(telemetry).tsc_hz

    def ns(self) -> int:
        """Since the program's start."""
        entries = self._polls.read()
        if entries is None:
            raise TelemetryError("the probe in it has no figures of its polls")
        return sum(each.busy_tsc for each in entries) * 1_000_000_000 // self._hz
