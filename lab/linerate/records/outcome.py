# SPDX-License-Identifier: BSD-3-Clause
"""The outcome of a trial, of a class that belongs to its experiment.

`Frames` has the counts of a window of frames through a forwarder; most experiments share it. An
experiment with other figures derives a class of its own from `Outcome`, or from `Frames`, with a
`kind` of its own (see `records.types.Tagged`).

Units: counts are frames since the trial's start; times end in `_s` (seconds) or `_ns`; cycles are
those of the time stamp counter. An unknown figure is absent, never 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from linerate.records.types import Count, Difference, Quantiles, Rate, Seconds, Strict, Tagged

CpuPart = Literal["process", "napi", "softirq"]
# A window of which less than this was undisturbed is void: of its time, or of its frames.
SOUND_SHARE = 0.5


class Slice(Strict):
    """A part of a window, with its own counts and the cause of its disturbance, if any.

    A disturbed slice is left out of the figures and counted as such; loss in it is never the
    reason.
    """

    begin_ns: Count = Field(description="since the window's start")
    end_ns: Count
    counts: dict[str, Count] = Field(
        default_factory=dict, description="counts within it, by the names of the outcome's counts"
    )
    disturbed_by: list[str] = Field(
        default_factory=list, description="other users of the CPU, or what was late; empty: none"
    )


class Outcome(Tagged):
    """The outcome of a trial, of any kind."""

    known: ClassVar[dict[str, type[Tagged]]] = {}

    kind: str
    slices: list[Slice] | None = Field(
        default=None, description="the parts of the window; absent: it was judged as a whole"
    )

    @property
    def disturbed(self) -> str | None:
        """Why too few of the window's slices were undisturbed; None if enough were, or without
        slices.
        """
        return too_disturbed(self.slices or ())


def too_disturbed(slices: Sequence[Slice]) -> str | None:
    """Return why these slices make their window void; None if they do not.

    The rule: at least `SOUND_SHARE` of the time must lie in slices that nothing disturbed. A window
    without slices, or with none that took any time, is not judged by them.
    """
    whole = sum(each.end_ns - each.begin_ns for each in slices)
    sound = sum(each.end_ns - each.begin_ns for each in slices if not each.disturbed_by)
    if not whole or sound >= SOUND_SHARE * whole:
        return None
    names = ", ".join(dict.fromkeys(name for each in slices for name in each.disturbed_by))
    return f"only {sound / whole:.0%} of the window was undisturbed; disturbed by: {names}"


class Polling(Strict):
    """Core use of one (lcore, port, RX queue): differences over the window.

    The fields: docs/how-it-measures.md#telemetry-polling.
    """

    lcore: int
    port: int
    queue: int
    polls: Count
    empty_polls: Count
    packets: Count
    burst_limit: Count
    burst_histogram: list[Count]
    busy_tsc: Count
    total_tsc: Count


class LatencyFigures(Strict):
    """Delays of the frames that came back, from the moment each was sent (stamped in software).

    `net` says if one reading of the clock (`Clock.cost_cycles`) is still in the delays.
    """

    count: Count
    net: bool | None = Field(
        default=None,
        description="true: the sender subtracted the cost of one reading of the clock from "
        "every delay; false: it is in every delay; absent: not recorded (trial-1, "
        "another generator)",
    )
    minimum_ns: float
    mean_ns: float
    maximum_ns: float
    quantiles_ns: Quantiles = Field(
        default_factory=dict, description="by quantile, 0.5 being the median"
    )
    jitter_rfc3550_ns: float | None = Field(
        default=None, description="smoothed by the sender, for comparison with published figures"
    )
    ipdv_quantiles_ns: Quantiles = Field(
        default_factory=dict,
        description="by quantile: the absolute difference of the delays of two consecutive "
        "frames (RFC 3393)",
    )


class Clock(Strict):
    """The time stamp counter: the program's figures for it, and the lab's check."""

    tsc_hz: Annotated[int, Field(gt=0, lt=2**63)]
    cost_cycles: Count = Field(description="cost of one reading, measured by the program")
    checked_hz: Rate | None = Field(
        default=None,
        description="cycles over CLOCK_MONOTONIC, measured by the lab as its session began",
    )
    checked_within_ppm: Rate | None = Field(default=None, description="the uncertainty of that")


class Span(Strict):
    """How long frames were inside the forwarder, for one (port, TX queue): /linerate/latency."""

    span: str
    port: int
    queue: int
    one_in: Count = Field(description="on average one in this number of bursts was measured")
    sampled: Count = Field(description="bursts")
    count: Count = Field(description="frames")
    mean_cycles: float
    quantiles_cycles: Quantiles


class ChangeFigures(Strict):
    """A trial whose rate changed without a pause: RFC 2544, 26.5."""

    before_intended: Count
    before_received: Count
    after_intended: Count
    after_received: Count
    last_lost_s: Seconds | None = Field(
        default=None,
        description="time from the change to the end of the last slice that lost frames",
    )
    slice_s: Seconds | None = Field(default=None, description="length of that slice")
    before_disturbed: Count | None = Field(
        default=None,
        description="frames before the change that left or arrived while the generator was "
        "kept from its CPU; no figure of recovery includes them",
    )
    before_disturbed_lost: Count | None = Field(
        default=None, description="those of them that never came back"
    )
    after_disturbed: Count | None = Field(default=None, description="the same, after the change")
    after_disturbed_lost: Count | None = None

    @property
    def undisturbed_before(self) -> tuple[int, int]:
        """Frames intended and received before the change, without the disturbed ones."""
        return _without(
            self.before_intended,
            self.before_received,
            self.before_disturbed or 0,
            self.before_disturbed_lost or 0,
        )

    @property
    def undisturbed_after(self) -> tuple[int, int]:
        """The same after the change; no loss if `last_lost_s` is absent."""
        if self.last_lost_s is None and self.after_disturbed:
            intended = self.after_intended - min(self.after_disturbed, self.after_intended)
            return intended, intended
        return _without(
            self.after_intended,
            self.after_received,
            self.after_disturbed or 0,
            self.after_disturbed_lost or 0,
        )


def _without(intended: int, received: int, touched: int, lost: int) -> tuple[int, int]:
    left = max(intended - touched, 0)
    return left, max(min(received - (touched - lost), left), 0)


class CpuTime(Strict):
    """CPU time of the forwarder's end, within the window.

    process: all threads of the forwarder; napi: the kernel threads that receive for it; softirq: of
    its core, to 1/100 s, partly included in the other two.
    """

    of: CpuPart
    cpus: list[int] = Field(min_length=1)
    seconds: Seconds


class Frames(Outcome):
    """Frames through a forwarder in one window: counts, drops, delays, and their cost.

    The fields: docs/how-it-measures.md#the-books.
    """

    kind: str = "frames"

    duration_s: Seconds | None = Field(
        default=None, description="duration of the window or the sending"
    )
    duration_uncertainty_s: Seconds | None = None
    intended: Count | None = None
    attempted: Count | None = None
    refused: Count | None = Field(default=None, description="flood only: back-pressure, not loss")
    lost_at_ingress: Count | None = None
    late: Count | None = None
    disturbed_frames: Count | None = Field(
        default=None,
        description="frames that left or arrived while the generator was kept from its CPU; "
        "no latency includes them",
    )
    disturbed_lost: Count | None = Field(
        default=None, description="those of them that never came back"
    )
    accepted: Count | None = None
    forwarder_rx: Count | None = None
    forwarder_tx: Count | None = None
    alone_pps: Rate | None = Field(
        default=None,
        description="method standing: its rate for a moment while the others were stopped, in "
        "frames per second of its CPU time",
    )
    forwarder_drops: Difference | None = Field(
        default=None, description="forwarder_rx less forwarder_tx, below 0 if it sent more"
    )
    received: Count | None = None
    link_drops: dict[str, Difference] = Field(
        default_factory=dict,
        description="lost between the programs, by place; below 0: of an earlier window",
    )
    unattributed: Difference | None = Field(
        default=None, description="below 0 if more came back than was sent"
    )
    pacing_error_ppm: float | None = None

    latency: LatencyFigures | None = None
    spans: list[Span] | None = Field(
        default=None, description="how long frames were inside the forwarder"
    )
    clock: Clock | None = Field(
        default=None, description="the clock that stamped for latency or spans"
    )
    change: ChangeFigures | None = None
    polling: list[Polling] | None = Field(default=None, description="counted by the probe")
    cpu_time: list[CpuTime] | None = Field(
        default=None,
        description="CPU time of the forwarder's core in the window, if known",
    )

    @property
    def undisturbed(self) -> tuple[int, int] | None:
        """Frames intended and frames received, without the disturbed ones.

        The rule: docs/how-it-measures.md#disturbed-frames.
        """
        sent = self.intended or self.attempted
        if not sent or self.received is None:
            return None
        touched, lost = self.disturbed_frames or 0, self.disturbed_lost or 0
        return sent - touched, self.received - (touched - lost)

    @property
    def forwarder_rx_pps(self) -> float | None:
        return _rate(self.forwarder_rx, self.duration_s)

    @property
    def received_pps(self) -> float | None:
        return _rate(self.received, self.duration_s)

    @property
    def busy_cycles_per_packet(self) -> float | None:
        """Busy cycles per packet, if the program reports them."""
        packets = sum(entry.packets for entry in self.polling or ())
        return sum(entry.busy_tsc for entry in self.polling or ()) / packets if packets else None

    def cpu_seconds(self, *parts: CpuPart) -> float | None:
        """Return the sum of these parts in seconds; None if one of them is unknown."""
        found = {each.of: each.seconds for each in self.cpu_time or ()}
        if any(part not in found for part in parts):
            return None
        return sum(found[part] for part in parts)

    def cpu_ns_per_packet(self, *parts: CpuPart) -> float | None:
        """Return the time of these parts per received frame: it includes the work for lost
        frames.
        """
        seconds = self.cpu_seconds(*parts)
        return seconds / self.received * 1e9 if seconds is not None and self.received else None

    @property
    def average_rx_burst(self) -> float | None:
        """Packets per poll, the published metric."""
        polls = sum(entry.polls for entry in self.polling or ())
        return sum(entry.packets for entry in self.polling or ()) / polls if polls else None

    @property
    def average_nonempty_rx_burst(self) -> float | None:
        """Packets per non-empty poll."""
        polls = sum(entry.polls - entry.empty_polls for entry in self.polling or ())
        return sum(entry.packets for entry in self.polling or ()) / polls if polls else None

    @property
    def busy_share(self) -> float | None:
        """Busy cycles over all cycles of the lcores that polled.

        Each queue of an lcore counts the whole time of that lcore.
        """
        totals: dict[int, int] = {}
        for entry in self.polling or ():
            totals[entry.lcore] = max(totals.get(entry.lcore, 0), entry.total_tsc)
        total = sum(totals.values())
        busy = sum(entry.busy_tsc for entry in self.polling or ())
        # Busy time and all time are read one after the other.
        return min(busy / total, 1.0) if total else None

    @property
    def full_share(self) -> float | None:
        """Share of polls that returned as many packets as they asked for."""
        polls = sum(entry.polls for entry in self.polling or ())
        full = sum(sum(e.burst_histogram[max(e.burst_limit, 1) :]) for e in self.polling or ())
        return full / polls if polls else None

    @property
    def rx_spin(self) -> float | None:
        """Share of polls that found nothing."""
        polls = sum(entry.polls for entry in self.polling or ())
        return sum(entry.empty_polls for entry in self.polling or ()) / polls if polls else None


class _NoFrames(Frames):
    """The frames of a trial that failed before it counted anything."""

    model_config = Frames.model_config | {"frozen": True}


# Every figure is absent, and none can be entered.
NO_FRAMES: Frames = _NoFrames()


def _rate(count: int | None, seconds: float | None) -> float | None:
    return count / seconds if count is not None and seconds else None
