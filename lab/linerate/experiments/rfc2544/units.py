# SPDX-License-Identifier: BSD-3-Clause
"""All tests of one unit, in order, on one device. The results are the procedures' own."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from linerate.experiments.rfc2544.presets import Preset
from linerate.host.errors import TrialError
from linerate.records.trial import Test
from linerate.records.types import LOW_LOAD
from linerate.trial.search.back_to_back import BackToBack, back_to_back
from linerate.trial.search.core_use import CoreUse, core_use
from linerate.trial.search.device import TestedDevice
from linerate.trial.search.frame_loss import FrameLoss, frame_loss
from linerate.trial.search.latency import LatencyResult, latency
from linerate.trial.search.recovery import Recovery, recovery
from linerate.trial.search.throughput import Found, Throughput, search


@dataclass
class Unit:
    """The results of one forwarder in one block; None: not requested, or not reached."""

    throughput: Throughput | None = None
    latency: LatencyResult | None = None
    loss: FrameLoss | None = None
    back_to_back: BackToBack | None = None
    recovery: Recovery | None = None
    core_use: CoreUse | None = None

    @property
    def lossless(self) -> Found | None:
        """The result for the first goal, which allows no loss."""
        if self.throughput is None or not self.throughput.found:
            return None
        first = next(iter(self.throughput.found.values()))
        # If the machine was too busy for it there may only be another goal.
        return first if first.goal.loss_ratio == 0 else None

    def carried(self, preset: Preset) -> float | None:
        """Return the throughput, or its lower bound: the rate of the other tests."""
        found = self.throughput
        if found is None:
            return None
        name = preset.goals[0].name
        if preset.bounds:
            return found.carried(name)
        return found.found[name].lower_pps if name in found.found else None


def run_tests(
    device: TestedDevice, preset: Preset, tests: Sequence[Test], blocks: int, unit: Unit
) -> None:
    """Fill `unit` test by test, so that an interruption keeps the finished ones.

    A test that fails leaves its reason; those that need a throughput are left out without one.
    """
    device.test = "low-load"
    # Its record has the loss; without one the summary says that the gate is not known.
    with suppress(TrialError):
        device.send(LOW_LOAD * device.max_pps, preset.low_load_s)
    device.test = "throughput"
    unit.throughput = search(device, preset.goals, limit_s=preset.limit_s, bounds=preset.bounds)
    rate = unit.carried(preset)
    if "latency" in tests and rate:
        device.test = "latency"
        unit.latency = latency(
            device,
            rate,
            seconds=preset.latency_s,
            repetitions=preset.latency_share(blocks),
            loads=preset.latency_loads,
            bounds=preset.bounds,
        )
    if "loss" in tests:
        device.test = "loss"
        unit.loss = frame_loss(
            device, seconds=preset.loss_s, step=preset.loss_step, bounds=preset.bounds
        )
    if "back-to-back" in tests:
        device.test = "back-to-back"
        unit.back_to_back = back_to_back(
            device,
            rate,
            repetitions=preset.burst_share(blocks),
            longest_s=preset.burst_longest_s,
            resolution=preset.burst_resolution,
            bounds=preset.bounds,
        )
    if "recovery" in tests and rate:
        device.test = "recovery"
        unit.recovery = recovery(
            device,
            rate,
            overload_s=preset.recovery_overload_s,
            watched_s=preset.recovery_watched_s,
            repetitions=preset.recovery_share(blocks),
            bounds=preset.bounds,
        )
    if "core-use" in tests and rate:
        # Last, for the probe looks at the forwarder from then on.
        device.test = "core-use"
        unit.core_use = core_use(
            device,
            rate,
            seconds=preset.core_use_s,
            loads=preset.core_use_loads,
            bounds=preset.bounds,
        )
