# SPDX-License-Identifier: BSD-3-Clause
"""The figures of an arm in summary.json: its searches, paths to packets, and delays."""

from __future__ import annotations

from pydantic import Field

from linerate.records.outcome import CpuPart
from linerate.records.trial import InvalidCode, Protocol
from linerate.records.types import Answer, BoundKind, Strict, Verdict


class Quartiles(Strict):
    """Distribution of a figure over the valid trials of an arm, or over its searches."""

    n: int
    median: float
    q1: float
    q3: float
    low: float | None = Field(
        default=None,
        description="lower end of the 95 % interval of the median; absent if n allows none",
    )
    high: float | None = None

    def scaled(self, factor: float) -> Quartiles:
        """Return the same in another unit."""

        def scale(value: float | None) -> float | None:
            return None if value is None else value * factor

        return Quartiles(
            n=self.n,
            median=self.median * factor,
            q1=self.q1 * factor,
            q3=self.q3 * factor,
            low=scale(self.low),
            high=scale(self.high),
        )


class GraphFigures(Strict):
    """The figures of an arm in a cell of experiment graph."""

    build: str = Field(description="the program behind the arm: the best of its builds")
    mobjects_per_s: Quartiles | None = Field(
        default=None, description="million objects per second through the graph"
    )
    cycles_per_object: Quartiles | None = None
    path_nodes: int | None = Field(
        default=None, description="workers that each object passes: neither source nor sink"
    )
    cycles_per_object_per_node: Quartiles | None = None
    disturbed: float | None = Field(
        default=None, description="the share of its slices in which others had the CPU"
    )


class CellRatio(Strict):
    """Two cells of one arm, paired in blocks: the first over the second."""

    first: str
    second: str
    n: int
    ratio: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None


class JudgedRatio(CellRatio):
    """A ratio with a verdict, by the rules of all comparisons."""

    p: float | None = None
    p_holm: float | None = Field(
        default=None, description="corrected over the pairs of one arm's ordering or splitting"
    )
    verdict: Verdict
    reason: str


class Ordering(Strict):
    """A published ordering of passing mechanisms, tested in one arm: each over the next."""

    arm: str
    work: str
    stats: str
    steps: list[JudgedRatio]
    holds: Answer
    reason: str = ""


class Splitting(Strict):
    """The cost of each doubling of the number of ways that a batch is split, for one arm."""

    arm: str
    passing: str
    work: str
    stats: str
    doublings: list[CellRatio] = Field(description="objects/s with twice the ways over without")
    changes: list[JudgedRatio] = Field(
        default_factory=list,
        description="each doubling over the previous one; `first` and `second` are the cells "
        "that these two led to",
    )
    alike: Answer = Field(description="whether every doubling costs as much as the previous one")
    reason: str = ""


class GraphAnswers(Strict):
    """Published statements without numbers, and whether they hold here."""

    orderings: list[Ordering]
    splitting: list[Splitting]


class AtLeast(Strict):
    """A lower bound of a rate that no search found. For each search, it is a load that lost no more
    than the goal allows; no verdict is based on it.
    """

    pps: Quartiles = Field(description="over the searches that have one")
    kind: BoundKind = Field(
        description="disturbed: it reached the goal, and greater loads could not be tried, "
        "because the sender or the forwarder was kept from its CPU; trials: in "
        "fewer or shorter trials than the goal requires; for several searches, "
        "trials if one of them is so"
    )
    l2_bps: float = Field(description="bit rate of the median; frames with FCS")
    l1_bps: float = Field(description="bit rate of the median; with preamble, SFD and gap")
    share: float | None = Field(
        default=None, description="share of 100 %, like `share` of the rate"
    )


class GoalFigure(Strict):
    """The results of an arm's searches for one goal, in frames per second over all directions."""

    goal: str
    loss_ratio: float = Field(description="a load may lose up to this share")
    searches: int = Field(description="completed searches")
    pps: Quartiles | None = Field(
        default=None, description="greatest load that reached the goal (relevant lower bound)"
    )
    l2_bps: float | None = Field(
        default=None, description="bit rate of the median; frames with FCS"
    )
    l1_bps: float | None = Field(
        default=None,
        description="bit rate of the median; 20 bytes a frame more: preamble, SFD and gap",
    )
    width: float | None = Field(
        default=None, description="largest distance of the two bounds, as a share of the upper one"
    )
    share: float | None = Field(
        default=None, description="median over searches of the rate over 100 % of that search"
    )
    at_maximum: int = Field(default=0, description="searches that ended at 100 %")
    below_minimum: int = Field(default=0, description="searches without any load that reached it")
    at_least: AtLeast | None = Field(
        default=None, description="replaces `pps` if no search found it"
    )

    @property
    def rate(self) -> GoalFigure | AtLeast:
        """The rate, or its lower bound, with its figures."""
        return self.at_least or self

    @property
    def is_bound(self) -> bool:
        """True if the forwarder may carry more: most searches ended at 100 %, or none found a
        rate.
        """
        if self.pps is None:
            return self.at_least is not None
        return 2 * self.at_maximum > self.searches


class LatencyFigure(Strict):
    """Delays of an arm at a share of its own throughput. Each search is one value: the mean of its
    trials' means, and for a figure that each trial has once, the median over its trials (never
    pooled).
    """

    share: float
    trials: int = Field(description="repetitions of all searches together")
    average_us: float = Field(description="the mean of all trials' means, as RFC 2544 reports it")
    mean_us: Quartiles
    minimum_us: float
    maximum_us: float
    quantiles_us: dict[str, Quartiles] = Field(
        description="by quantile; absent if a trial has too few frames for it"
    )
    pdv_us: dict[str, Quartiles] = Field(
        description="packet delay variation (RFC 5481): the quantile less the trial's minimum"
    )
    jitter_us: Quartiles | None = Field(
        default=None, description="RFC 3550's, smoothed by the sender; for comparison with others"
    )
    ipdv_us: dict[str, Quartiles] | None = Field(
        default=None,
        description="by quantile: the absolute difference of the delays of two consecutive "
        "frames (RFC 3393); absent if the sender does not report it",
    )


class LossFigure(Strict):
    """Frame loss of an arm at a share of 100 % that every search tried."""

    share: float
    searches: int = Field(description="searches that measured frame loss at this load")
    loss_ratio: Quartiles


class LossEnded(Strict):
    """A load that only some searches tried, so that it has no median: those that still lost frames.

    RFC 2544, 26.3: two trials in a row without loss end the test.
    """

    share: float
    tried: int = Field(description="searches that measured frame loss at this load")
    ended: int = Field(description="searches that had ended above it, without loss at the end")


class BurstFigure(Strict):
    """The longest burst at 100 % of which no frame is lost (RFC 2544, 26.4; RFC 9004)."""

    repetitions: int = Field(description="repetitions of all searches together")
    at_limit: int = Field(description="repetitions in which the longest burst tried passed")
    disturbed: int = Field(
        default=0,
        description="repetitions whose length is a lower bound, because no longer burst was "
        "sent without gaps",
    )
    average: float = Field(
        description="frames, over all repetitions; like the next three RFC 9004's"
    )
    minimum: int
    maximum: int
    deviation: float | None = Field(
        default=None, description="standard deviation of the sample (n - 1)"
    )
    frames: Quartiles = Field(description="per search, the mean of its repetitions")
    implied_s: Quartiles | None = Field(
        default=None,
        description="implied buffer time (RFC 9004), per search; absent if the longest burst "
        "tried passed in a repetition, because then it is longer",
    )
    corrected_s: Quartiles | None = Field(
        default=None,
        description="corrected buffer time (RFC 9004), per search; absent in the same cases",
    )


class RecoveryFigure(Strict):
    """The time from an overload to the last lost frame after it (RFC 2544, 26.5)."""

    repetitions: int = Field(description="repetitions of all searches together")
    not_overloaded: int = Field(
        description="repetitions in which nothing was lost before the rate was halved"
    )
    not_recovered: int = Field(
        description="repetitions in which frames were lost in the last tenth of the time"
    )
    recovered_s: Quartiles | None = Field(
        default=None,
        description="per search, the mean of its repetitions; absent unless every repetition "
        "recovered, because a figure of only those that did would be too good; 0: "
        "nothing was lost after the change",
    )
    average_s: float | None = Field(
        default=None,
        description="the mean of all repetitions, as RFC 2544 reports it; absent in the same cases",
    )


class InvalidReason(Strict):
    """The number of trials that are invalid for one reason, and the first one's message."""

    code: InvalidCode
    count: int
    example: str
    others: dict[str, float] | None = Field(
        default=None,
        description="other users of the lab's CPUs meanwhile, by name: share of a CPU's time",
    )


class LowerLoad(Strict):
    """An arm at a load below the ceiling, fixed unless stated otherwise."""

    arm: str
    load_share: float
    offered_mpps: float | None = None
    trials: int
    invalid: int
    invalid_reasons: list[InvalidReason] = Field(
        default_factory=list, description="the most frequent first"
    )
    loss_share: float | None = Field(
        default=None,
        description="(attempted - received) / attempted, over all valid trials together",
    )
    busy_cycles_per_packet: Quartiles | None = None
    average_rx_burst: Quartiles | None = Field(
        default=None, description="packets / polls, empty polls counted"
    )
    average_nonempty_rx_burst: Quartiles | None = Field(
        default=None, description="packets / (polls - empty polls)"
    )
    busy_share: Quartiles | None = Field(
        default=None, description="share of the polling cores' cycles that were spent on packets"
    )
    full_share: Quartiles | None = Field(
        default=None, description="polls that returned all they asked for / polls: saturation"
    )
    rx_spin: Quartiles | None = Field(default=None, description="empty polls / polls")
    path: PathFigures | None = None


class PathFigures(Strict):
    """An arm of experiment paths in a flood or at a fixed load: the cost of a packet on the
    forwarder's core, the fate of lost frames, and the delays of the others.
    """

    cpus: dict[CpuPart, list[int]] = Field(
        default_factory=dict, description="CPUs on which the work ran, by its kind"
    )
    cpu_ns_per_packet: Quartiles | None = Field(
        default=None, description="process and NAPI threads, per received frame"
    )
    process_ns: Quartiles | None = None
    napi_ns: Quartiles | None = Field(
        default=None, description="the kernel threads that receive for the forwarder"
    )
    softirq_ns: float | None = Field(
        default=None,
        description="over all trials together, from ticks of 1/100 s; partly included in the "
        "others",
    )
    core_share: Quartiles | None = Field(
        default=None, description="process and NAPI threads, as a share of the window"
    )
    own_share: float | None = Field(
        default=None, description="the offered rate over the arm's rate in a flood, medians"
    )
    latency_us: dict[str, Quartiles] = Field(
        default_factory=dict,
        description="by quantile: the sender's, for each trial; absent if trials have too few "
        "frames for it",
    )
    lost: dict[str, float] | None = Field(
        default=None,
        description="share of all sent frames by the counter that names them: below 0 if one "
        "was counted twice; absent without a valid trial",
    )


class SearchFigures(Strict):
    """An arm of experiment rfc2544. A search is one process; its windows are the trials."""

    searches: int
    unfinished: int = Field(description="searches without a throughput")
    reasons: dict[str, int] = Field(description="why a test of a search has no result")
    windows: int
    void_windows: int = Field(
        description="windows in which the sender was late or the forwarder starved; each was "
        "repeated, and none counted"
    )
    goals: list[GoalFigure]
    latency_definition: str | None = Field(
        default=None, description="RFC 1242's definition of the latency; absent without any"
    )
    latency: list[LatencyFigure] = Field(default_factory=list)
    loss: list[LossFigure] = Field(default_factory=list)
    loss_ended: list[LossEnded] = Field(
        default_factory=list, description="the loads below those of `loss` that some searches tried"
    )
    back_to_back: BurstFigure | None = None
    recovery: RecoveryFigure | None = None
    at_throughput: LowerLoad | None = Field(
        default=None,
        description="core use at each search's own throughput, not comparable between arms, "
        "whose loads differ; `load_share` is the median",
    )
    deviations: list[str] = Field(default_factory=list, description="deviations from RFC 2544")


class Delays(Strict):
    """Delays, of which each trial is one value; `minimum` and `maximum` are over all of them."""

    minimum: float | None = Field(default=None, description="absent if it is not known")
    mean: Quartiles
    quantiles: dict[str, Quartiles] = Field(
        description="by quantile; absent if a trial has too few frames for it"
    )
    maximum: float | None = None


class Delayed(Strict):
    """The delays of an arm for a kind of frame and a load, each less one reading of the clock."""

    protocol: Protocol
    load_share: float = Field(description="share of the forwarder's own capacity; 0: idle")
    asked_pps: float | None = Field(
        default=None, description="the offered rate, median of the trials"
    )
    trials: int
    invalid: int
    packets: int = Field(description="frames that were measured, in all valid trials")
    cycles: Delays | None = Field(default=None, description="absent: no trial is valid")
    ns: Delays | None = Field(default=None, description="cycles over the checked frequency")


class RoundTrip(Delayed):
    """The time from just before the sender's send call to the return of its receive call."""

    loss_share: float | None = Field(
        default=None, description="share of lost frames, over all valid trials together"
    )
    buffered_ns: float | None = Field(
        default=None,
        description="computed: the longest wait in the forwarder's TX buffer at this rate, "
        "min((frames - 1) / rate, drain period); absent: it has no such buffer",
    )


class Inside(Delayed):
    """A span inside the forwarder, measured by the forwarder or the probe in it."""

    span: str
    one_in: int = Field(description="one in this number of bursts was measured")


class LatencySummary(Strict):
    """An arm of experiment latency."""

    flood_pps: float | None = Field(
        default=None,
        description="the received rate of a flood, the median; absent with --line-rate",
    )
    capacity_pps: float | None = Field(
        default=None,
        description="100 %: that rate, or a lower one at which the sender is on time at the "
        "greatest load; absent if it is not known",
    )
    round_trips: list[RoundTrip]
    packet_sender: list[RoundTrip] | None = Field(
        default=None,
        description="round trips by a packet socket in the generator's place, at idle; absent "
        "on links where that is impossible",
    )
    inside: list[Inside]
