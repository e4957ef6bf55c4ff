# SPDX-License-Identifier: BSD-3-Clause
"""The interface of the device under test for searches: trials, one at a time.

Implementations are a forwarder on a link with a sender, or a simulated one. Rates are frames per
second over all directions together; counts are frames. A trial that could not be measured raises
`linerate.host.errors.TrialError`: it is neither loss nor success.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from linerate.records.trial import Test


@dataclass(frozen=True)
class Latency:
    """Delays of the frames that came back, in seconds: minimum, mean, maximum and quantiles.

    `jitter` is RFC 3550's, `ipdv` the absolute difference of the delays of consecutive frames (RFC
    3393); None and empty if the sender does not report them.
    """

    count: int
    minimum: float
    mean: float
    maximum: float
    # Keys are quantiles, 0 to 1.
    quantiles: dict[float, float]
    jitter: float | None = None
    ipdv: dict[float, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """The counts of a trial's frames. Loss at the link's ingress is loss.

    The rule: docs/how-it-measures.md#paced-and-flood.
    """

    intended: int
    received: int
    # The duration of sending.
    seconds: float
    latency: Latency | None = None

    @property
    def lost(self) -> int:
        return max(self.intended - self.received, 0)

    @property
    def loss_ratio(self) -> float:
        return self.lost / self.intended if self.intended else 0.0


@dataclass(frozen=True)
class Changed:
    """A trial whose rate changed once, without a pause between.

    `last_lost`: seconds from the change until the sender offered the last lost frame; None if none
    was lost after the change. Lost frames arrive nowhere, so only the sender's time can tell when
    they were lost. `slice_s`: the loss may have been earlier by this much.
    """

    before: Outcome
    after: Outcome
    last_lost: float | None
    slice_s: float = 0.0


class Device(Protocol):
    """A device under test."""

    @property
    def max_pps(self) -> float:
        """100 %: the line rate, or the measured ceiling (docs/how-it-measures.md#100-percent)."""

    def send(self, pps: float, seconds: float, *, latency: bool = False) -> Outcome:
        """Send one paced trial, open loop: `pps` for `seconds`, then wait until all has settled."""

    def burst(self, frames: int) -> Outcome:
        """Send this number of frames back to back, at `max_pps`."""


class ChangingDevice(Device, Protocol):
    """A device whose sender can change its rate during a trial and knows when it offered lost
    frames.

    Only system recovery (RFC 2544, 26.5) needs this; a generator without it serves the other
    procedures.
    """

    def change(self, pps: float, seconds: float, then_pps: float, then_seconds: float) -> Changed:
        """Send one paced trial, open loop: `pps` for `seconds`, then at once `then_pps`."""


class TestedDevice(ChangingDevice, Protocol):
    """A device that records the test for which its next trials are."""

    test: Test


class RecordingDevice(TestedDevice, Protocol):
    """A device that makes records. `void`: windows of its next trial that are on record already."""

    void: int
