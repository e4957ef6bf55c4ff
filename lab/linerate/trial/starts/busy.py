# SPDX-License-Identifier: BSD-3-Clause
"""The time in which a program was busy with packets, counted by the probe in it."""

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
    """Busy time since the program's start, by the time stamp counter, and the number of polling
    lcores. Read at `at_ns`.
    """

    ns: int
    lcores: int
    at_ns: int

    def since(self, before: Busy, cpu_ns: int) -> int:
        """Return the CPU time (ns) that it was busy, out of the `cpu_ns` that it had the CPU in
        between.

        The counter continues while other processes have the CPU. They interrupt a program whether
        it is busy or not, and so reduce both in proportion.
        """
        lasted = (self.at_ns - before.at_ns) * self.lcores
        had = min(1.0, cpu_ns / lasted) if lasted > 0 else 0.0
        return round((self.ns - before.ns) * had)


class BusyTime:
    """Time from the return of each non-empty poll to the return of the same thread's next poll,
    over all lcores (docs/how-it-measures.md#telemetry-polling).
    """

    def __init__(self, polls: Polls, telemetry: Telemetry, alive: Callable[[], None]) -> None:
        """Wait until the probe counts; raises `TelemetryError` if it does not."""
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
