# SPDX-License-Identifier: BSD-3-Clause
"""What a search asks of the device under test: trials, one at a time.

Behind it stands a forwarder on a link with a sender, or a simulated one. Rates are frames per
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

    `jitter` is RFC 3550's, `ipdv` how much the delays of neighbours differ (RFC 3393), without the
    sign; None and empty where the sender does not tell.
    """

    count: int
    minimum: float
    mean: float
    maximum: float
    # By quantile, 0 to 1.
    quantiles: dict[float, float]
    jitter: float | None = None
    ipdv: dict[float, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """What became of a trial's frames. Loss at the link's ingress is loss.

    The rule: docs/how-it-measures.md#paced-and-flood.
    """

    intended: int
    received: int
    # For how long was sent.
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

    `last_lost`: seconds from the change until the sender offered the last frame that never came
    back; None when none was lost after the change. Lost frames arrive nowhere, so only the sender's
    time can tell when they were lost. `slice_s`: it may have been earlier by as much.
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
        """One paced trial, open loop: `pps` for `seconds`, then wait until all has settled."""

    def burst(self, frames: int) -> Outcome:
        """Send this number of frames back to back, at `max_pps`."""


class ChangingDevice(Device, Protocol):
    """A device whose sender can change its rate under way and knows when it offered what was lost.

    Only system recovery (RFC 2544, 26.5) asks for this; a generator that lacks it serves the rest.
    """

    def change(self, pps: float, seconds: float, then_pps: float, then_seconds: float) -> Changed:
        """One paced trial, open loop: `pps` for `seconds`, then at once `then_pps`."""


class TestedDevice(ChangingDevice, Protocol):
    """A device that is told which test its next trials are for, as its records say it."""

    test: Test


class RecordingDevice(TestedDevice, Protocol):
    """A device that makes records. Of its next trial `void` windows are on record already."""

    void: int
