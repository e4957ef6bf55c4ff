# SPDX-License-Identifier: BSD-3-Clause
"""A simulated forwarder, to test the procedures against known values.

A single server with a queue: frames arrive evenly, each takes 1/capacity, and a frame that finds
`queue` frames in the forwarder is lost. So short overloads and bursts pass, and long ones do not.
Every trial starts with an empty queue. Nothing sleeps; the same seed and calls give the same
outcomes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linerate.host.errors import TrialError, UsageError
from linerate.trial.search.device import Changed, Latency, Outcome

# The most frames of a trial for which latency is drawn.
TAGS = 5000
QUANTILES = (0.5, 0.9, 0.99, 0.999)


@dataclass(frozen=True)
class Model:
    """The parameters of the forwarder. Rates are frames per second, times seconds."""

    capacity_pps: float
    max_pps: float
    # Frames that the forwarder holds, with the one in service. Two at least: with one the server
    # would wait for each next frame.
    queue: int = 256
    # Share of the frames that is lost at random, independently, at any load.
    random_loss: float = 0.0
    # Standard deviation of the logarithm of the capacity from trial to trial.
    spread: float = 0.0
    # Share of the trials that fail.
    failing: float = 0.0
    # Latency of a frame that does not wait, and the random addition without load (exponential).
    latency_s: float = 10e-6
    jitter_s: float = 2e-6
    # After an overload the capacity is multiplied by `tired` for this time.
    tired_s: float = 0.0
    tired: float = 1.0

    def __post_init__(self) -> None:
        if self.queue < 2 or not (self.capacity_pps > 0 and self.max_pps > 0):
            raise UsageError(
                f"a simulated forwarder of {self.capacity_pps:g} packets/s with a queue of "
                f"{self.queue} on a link of {self.max_pps:g}",
                "rates must be above 0 and the queue must hold two frames",
            )

    def accepted(self, frames: int, pps: float, capacity_pps: float | None = None) -> int:
        """Return the number of these frames, sent at `pps`, that find room.

        When frame k arrives, floor(capacity * (k - 1) / pps) have left a queue that never ran
        empty. In an overload it does not, so once it has been full all that leave are replaced.
        """
        capacity = self.capacity_pps if capacity_pps is None else capacity_pps
        if pps <= capacity or frames == 0:
            return frames
        left = math.floor(capacity * (frames - 1) / pps)
        return min(frames, self.queue + left)

    def longest_burst(self) -> int | None:
        """Return the longest burst at `max_pps` without loss; None if every burst passes."""
        if self.max_pps <= self.capacity_pps:
            return None
        frames = math.floor(self.queue / (1 - self.capacity_pps / self.max_pps)) + 2
        while self.accepted(frames, self.max_pps) < frames:
            frames -= 1
        return frames

    def lossless_pps(self, seconds: float, loss_ratio: float = 0.0) -> float:
        """Return the greatest rate that loses no more than `loss_ratio` in a trial of `seconds`."""
        return min((self.capacity_pps + self.queue / seconds) / (1 - loss_ratio), self.max_pps)

    def wait_s(self, pps: float) -> float:
        """Return the mean time in the queue (s): that of an M/D/1 queue, at most that of a full
        one.
        """
        full = self.queue / self.capacity_pps
        used = pps / self.capacity_pps
        return full if used >= 1 else min(used / (2 * (1 - used)) / self.capacity_pps, full)

    def mean_latency_s(self, pps: float) -> float:
        return self.latency_s + self.jitter_s + self.wait_s(pps)


class SimulatedForwarder:
    """A simulated `ChangingDevice`. `clock_s`: the time that its trials would have taken."""

    def __init__(self, model: Model, seed: int = 0) -> None:
        self.model = model
        self.clock_s = 0.0
        self.trials = 0
        self._random = np.random.default_rng(seed)

    @property
    def max_pps(self) -> float:
        return self.model.max_pps

    def send(self, pps: float, seconds: float, *, latency: bool = False) -> Outcome:
        self._check(pps)
        capacity = self._begin(seconds)
        frames = round(pps * seconds)
        received = self._survivors(self.model.accepted(frames, pps, capacity))
        return Outcome(frames, received, seconds, self._latency(pps, received) if latency else None)

    def burst(self, frames: int) -> Outcome:
        seconds = frames / self.max_pps
        capacity = self._begin(seconds)
        received = self._survivors(self.model.accepted(frames, self.max_pps, capacity))
        return Outcome(frames, received, seconds)

    def change(self, pps: float, seconds: float, then_pps: float, then_seconds: float) -> Changed:
        """Simulate a change of rate, with the queue as a fluid: counts and times are right to a
        frame or two.
        """
        self._check(pps)
        self._check(then_pps)
        capacity = self._begin(seconds + then_seconds)
        queue = _Fluid(self.model.queue)
        lost_before = queue.run(pps, capacity, seconds)
        tired_s = min(self.model.tired_s, then_seconds) if lost_before else 0.0
        lost_after, last_lost = 0.0, None
        passed = 0.0
        for part, share in ((tired_s, self.model.tired), (then_seconds - tired_s, 1.0)):
            lost = queue.run(then_pps, capacity * share, part)
            passed += part
            if lost:
                lost_after += lost
                last_lost = passed
        before, after = round(pps * seconds), round(then_pps * then_seconds)
        accepted = after - min(round(lost_after), after)
        survivors = self._survivors(accepted)
        if survivors < accepted:
            # The last of so many moments, each uniform in the time.
            chance = float(self._random.uniform(size=accepted - survivors).max()) * then_seconds
            last_lost = max(last_lost or 0.0, chance)
        return Changed(
            Outcome(before, self._survivors(before - min(round(lost_before), before)), seconds),
            Outcome(after, survivors, then_seconds),
            last_lost,
        )

    def _check(self, pps: float) -> None:
        if not 0 < pps <= self.max_pps * (1 + 1e-9):
            raise UsageError(
                f"{pps:.0f} packets/s: this link carries up to {self.max_pps:.0f}",
                "send slower",
            )

    def _begin(self, seconds: float) -> float:
        """Begin a trial: return its capacity, or raise the error that it fails with."""
        self.trials += 1
        self.clock_s += seconds
        failed = self._random.random() < self.model.failing
        capacity = self.model.capacity_pps * math.exp(
            self.model.spread * self._random.standard_normal()
        )
        if failed:
            raise TrialError("the simulated forwarder ended during the trial")
        return capacity

    def _survivors(self, frames: int) -> int:
        if not self.model.random_loss:
            return frames
        return frames - int(self._random.binomial(frames, self.model.random_loss))

    def _latency(self, pps: float, received: int) -> Latency | None:
        count = min(received, TAGS)
        if not count:
            return None
        mean = self.model.jitter_s + self.model.wait_s(pps)
        values = self.model.latency_s + self._random.exponential(mean, count)
        variation = np.abs(np.diff(values))
        return Latency(
            count=count,
            minimum=float(values.min()),
            mean=float(values.mean()),
            maximum=float(values.max()),
            quantiles=_quantiles(values),
            # The long-run mean of the smoothed value.
            jitter=float(variation.mean()) if count > 1 else None,
            ipdv=_quantiles(variation) if count > 1 else {},
        )


def _quantiles(values: NDArray[np.float64]) -> dict[float, float]:
    return {q: float(np.quantile(values, q)) for q in QUANTILES}


class _Fluid:
    """The queue's content while rates change, in frames."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.content = 0.0

    def run(self, pps: float, capacity_pps: float, seconds: float) -> float:
        """Run for `seconds` and return the lost frames."""
        content = self.content + (pps - capacity_pps) * seconds
        self.content = min(max(content, 0.0), self.limit)
        # Less than half a frame over the limit is a rounding error.
        over = content - self.limit
        return over if over >= 0.5 else 0.0
