# SPDX-License-Identifier: BSD-3-Clause
"""The time in which a program was busy with packets, as the probe in it counts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from linerate.host.errors import TelemetryError
from linerate.telemetry.client import Telemetry
from linerate.telemetry.spans import read_clock
from linerate.trial.window import Polls


@dataclass(frozen=True)
class Busy:
    """Since the program's start: so long busy, by the time stamp counter, on so many lcores that
    poll. It was read at `at_ns`.
    """

    ns: int
    lcores: int
    at_ns: int

    def since(self, before: Busy, cpu_ns: int) -> int:
        """Nanoseconds of CPU time that it was busy, of `cpu_ns` that it had the CPU in between.

        While others have the CPU, the counter runs on. They take it from a program whether it is
        busy or not, and so from both alike.
        """
        lasted = (self.at_ns - before.at_ns) * self.lcores
        had = min(1.0, cpu_ns / lasted) if lasted > 0 else 0.0
        return round((self.ns - before.ns) * had)


class BusyTime:
    """Time from the return of each poll with packets to the return of the same thread's next
    poll, over all lcores (docs/how-it-measures.md#telemetry-polling).
    """

    def __init__(self, polls: Polls, telemetry: Telemetry, alive: Callable[[], None]) -> None:
        """Waits until the probe has looked; raises `TelemetryError` when it does not look."""
        polls.await_known(alive)
        self._polls = polls
        self._hz = read_clock(telemetry).tsc_hz

    def read(self) -> Busy:
        entries = self._polls.read()
        if entries is None:
            raise TelemetryError("the probe in it has no figures of its polls")
        cycles = sum(each.busy_tsc for each in entries)
        lcores = {each.lcore for each in entries}
        return Busy(cycles * 1_000_000_000 // self._hz, len(lcores), time.monotonic_ns())
