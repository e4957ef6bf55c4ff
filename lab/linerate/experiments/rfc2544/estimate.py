# SPDX-License-Identifier: BSD-3-Clause
"""Estimate the duration of a run, by running all of it on a simulated forwarder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linerate.experiments.rfc2544.presets import THROUGHPUT, Preset
from linerate.experiments.rfc2544.units import Unit, run_tests
from linerate.records.trial import Test
from linerate.runs.plans.blocks import PEERS
from linerate.trial.search.device import Changed, Outcome
from linerate.trial.search.setup_device import Terms
from linerate.trial.search.simulated import Model, SimulatedForwarder

# The time to configure a sender, to let counters settle, and to write the record.
OVERHEAD_S = 0.15
# The time to start a forwarder and bring its link up; and that of a self-test trial beside its
# window.
START_S = 1.0
# A forwarder in the middle of the range: searches near its ends are shorter.
_MODEL = Model(capacity_pps=5e6, max_pps=10e6, queue=1024)


class _Clock:
    """A device that adds up the durations of its trials."""

    def __init__(self, terms: Terms) -> None:
        self.test: Test = "throughput"
        self.seconds = 0.0
        self.trials = 0
        self._terms = terms
        self._forwarder = SimulatedForwarder(_MODEL)

    @property
    def max_pps(self) -> float:
        return self._forwarder.max_pps

    def send(self, pps: float, seconds: float, *, latency: bool = False) -> Outcome:
        return self._count(self._forwarder.send(pps, seconds, latency=latency))

    def burst(self, frames: int) -> Outcome:
        return self._count(self._forwarder.burst(frames))

    def change(self, pps: float, seconds: float, then_pps: float, then_seconds: float) -> Changed:
        self._add(seconds + then_seconds)
        return self._forwarder.change(pps, seconds, then_pps, then_seconds)

    def _count(self, outcome: Outcome) -> Outcome:
        self._add(outcome.seconds)
        return outcome

    def _add(self, seconds: float) -> None:
        self.trials += 1
        self.seconds += seconds + self._terms.settle_s + self._terms.rest_s + OVERHEAD_S


@dataclass(frozen=True)
class Estimate:
    """The estimate of a whole run, if no window is void."""

    seconds: float
    trials: int


def estimate(
    preset: Preset, tests: Sequence[Test], *, cells: int, blocks: int, whole: int, short: int
) -> Estimate:
    """Return the estimate. `whole`: searches in a block with all tests; `short`: those for their
    throughput only.
    """
    seconds = preset.self_test * len(PEERS) * (preset.flood_s + START_S)
    trials = 0
    for count, made in ((whole, tests), (short, THROUGHPUT)):
        clock = _Clock(preset.terms)
        run_tests(clock, preset, made, blocks, Unit())
        seconds += blocks * count * (clock.seconds + START_S)
        trials += blocks * count * clock.trials
    return Estimate(seconds=cells * seconds, trials=cells * trials)


def told(seconds: float) -> str:
    """Format a duration in its natural unit."""
    for unit, length in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 1.5 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} seconds"
