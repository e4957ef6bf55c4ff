# SPDX-License-Identifier: BSD-3-Clause
"""Check the time stamp counter's frequency that programs assume against CLOCK_MONOTONIC.

Python cannot read the counter. One of our programs reports for how many cycles it has been running;
two answers, each with the kernel's clock read around it, give the frequency.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from linerate.forwarders import FORWARDERS
from linerate.host.errors import TelemetryError
from linerate.links import Wire
from linerate.records.trial import Trial
from linerate.telemetry.client import Reading, Telemetry, ask_when_known, connect, socket_path
from linerate.telemetry.spans import read_clock
from linerate.trial.running import START_TIMEOUT_S
from linerate.trial.trial import Bench

_POLLING = "/linerate/polling"
_APART_S = 1.0
# DPDK rounds its measurement to 10 MHz. A larger difference, beyond the uncertainty of the
# readings, means another clock.
LIMIT_PPM = 10_000.0


@dataclass(frozen=True)
class ClockCheck:
    """The result. `told_hz`: the program's frequency; `checked_hz`: the measured one, to
    `within_ppm`.
    """

    told_hz: int
    cost_cycles: int
    checked_hz: float
    within_ppm: float

    @property
    def apart_ppm(self) -> float:
        return (self.checked_hz / self.told_hz - 1) * 1e6

    def complaint(self) -> str | None:
        """Return a warning if the clock is wrong, else None."""
        if abs(self.apart_ppm) <= LIMIT_PPM + self.within_ppm:
            return None
        return (
            f"the time stamp counter runs at {self.checked_hz / 1e6:.3f} MHz by CLOCK_MONOTONIC, "
            f"and programs take it for {self.told_hz / 1e6:.3f} MHz: it is not what measures time "
            "here, and neither cycles nor nanoseconds can be trusted"
        )

    def enter(self, trial: Trial) -> None:
        """Enter the check beside the clock of the program that stamped."""
        clock = trial.frames.clock if trial.has_frames else None
        if clock:
            clock.checked_hz = self.checked_hz
            clock.checked_within_ppm = self.within_ppm


def check_clock(bench: Bench) -> ClockCheck:
    """Check the clock, which takes two seconds. Raises `TrialError` if the program fails."""
    prefix = bench.run.new_prefix("clock")
    command = FORWARDERS["reflect"].command(
        bench.cores, bench.memory, prefix, Wire(vdevs=("net_null0",))
    )
    assert command is not None
    with bench.host.start(command, bench.run) as child:
        path = socket_path(bench.run.path, prefix)
        with connect(path, START_TIMEOUT_S, child.check) as telemetry:
            ask_when_known(telemetry, _POLLING, START_TIMEOUT_S, child.check)
            child.wait_until(
                lambda: _cycles(telemetry.read(_POLLING)) > 0, START_TIMEOUT_S, "it does not poll"
            )
            clock = read_clock(telemetry)
            return check(telemetry, clock.tsc_hz, clock.cost_cycles)


def check(telemetry: Telemetry, told_hz: int, cost_cycles: int) -> ClockCheck:
    """Check the clock of a program that polls."""
    first = telemetry.read_tight(_POLLING)
    time.sleep(_APART_S)
    last = telemetry.read_tight(_POLLING)
    nanoseconds = last.at_ns - first.at_ns
    return ClockCheck(
        told_hz=told_hz,
        cost_cycles=cost_cycles,
        checked_hz=(_cycles(last) - _cycles(first)) * 1e9 / nanoseconds,
        within_ppm=(first.uncertainty_ns + last.uncertainty_ns) / nanoseconds * 1e6,
    )


def _cycles(reading: Reading) -> int:
    """Return the cycles since the first poll."""
    try:
        return int(reading.value[0]["total_tsc"])
    except (LookupError, TypeError, ValueError) as error:
        raise TelemetryError(f"{_POLLING} answered {reading.value!r:.200}") from error
