# SPDX-License-Identifier: BSD-3-Clause
"""summary.json: what a run found. The models and how they are written; others fill them.

`ratio` is always arm over baseline of the named metric; `better` says which way is better.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from linerate.machine import Machine
from linerate.records import Clock, CpuPart, InvalidCode, Protocol
from linerate.verdict import LOW_LOAD, Limited, Limiter, Verdict

SUMMARY = "summary.json"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Quartiles(_Strict):
    """Distribution of a figure over the valid trials of an arm, or over its searches."""

    n: int
    median: float
    q1: float
    q3: float
    low: float | None = Field(
        default=None, description="95 % interval of the median; absent where n allows none"
    )
    high: float | None = None

    def scaled(self, factor: float) -> Quartiles:
        """The same in another unit."""

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


class GoalFigure(_Strict):
    """What the searches of an arm found for one goal, in frames per second over all directions."""

    goal: str
    loss_ratio: float = Field(description="a load may lose up to this share")
    searches: int = Field(description="searches that came to an end")
    pps: Quartiles | None = Field(
        default=None, description="greatest load that reached the goal (relevant lower bound)"
    )
    l2_bps: float | None = Field(default=None, description="of the median; frames with FCS")
    l1_bps: float | None = Field(
        default=None, description="of the median; 20 bytes a frame more: preamble, SFD and gap"
    )
    width: float | None = Field(
        default=None, description="largest distance of the two bounds, as a share of the upper one"
    )
    share: float | None = Field(
        default=None, description="median over searches of the rate over 100 % of that search"
    )
    at_maximum: int = Field(default=0, description="searches that 100 % ended")
    below_minimum: int = Field(default=0, description="searches without any load that reached it")


class LatencyFigure(_Strict):
    """Of an arm at a share of its own throughput. Each search is one value: the mean of its trials'
    means, and the median over its trials of what each has once (never pooled).
    """

    share: float
    trials: int = Field(description="repetitions of all searches together")
    average_us: float = Field(description="the mean of all trials' means, as RFC 2544 reports it")
    mean_us: Quartiles
    minimum_us: float
    maximum_us: float
    quantiles_us: dict[str, Quartiles] = Field(
        description="by quantile; absent where a trial has too few frames for it"
    )
    pdv_us: dict[str, Quartiles] = Field(
        description="packet delay variation (RFC 5481): the quantile less the trial's minimum"
    )
    jitter_us: Quartiles | None = Field(
        default=None, description="RFC 3550's, as the sender smooths it; for comparison with others"
    )
    ipdv_us: dict[str, Quartiles] | None = Field(
        default=None,
        description="by quantile: how much the delays of two frames in a row differ (RFC 3393), "
        "without the sign; absent where the sender does not tell",
    )


class LossFigure(_Strict):
    """Frame loss of an arm at a share of 100 % that no search ended above."""

    share: float
    searches: int = Field(description="searches that measured frame loss at this load")
    loss_ratio: Quartiles


class LossEnded(_Strict):
    """A load that only some searches tried, so that it has no median: those that still lost frames.

    RFC 2544, 26.3: two trials in a row without loss end the test.
    """

    share: float
    tried: int = Field(description="searches that measured frame loss at this load")
    ended: int = Field(description="searches that had ended above it, without loss at the end")


class BurstFigure(_Strict):
    """The longest burst at 100 % of which nothing is lost (RFC 2544, 26.4; RFC 9004)."""

    repetitions: int = Field(description="of all searches together")
    at_limit: int = Field(description="repetitions in which the longest burst tried passed")
    average: float = Field(description="frames, over all repetitions; as the next three RFC 9004's")
    minimum: int
    maximum: int
    deviation: float | None = Field(
        default=None, description="standard deviation of the sample (n - 1)"
    )
    frames: Quartiles = Field(description="per search, the mean of its repetitions")
    implied_s: Quartiles | None = Field(
        default=None,
        description="implied buffer time (RFC 9004), per search; absent where the longest burst "
        "tried passed in a repetition, for then it is longer",
    )
    corrected_s: Quartiles | None = Field(
        default=None, description="corrected buffer time (RFC 9004), per search; absent likewise"
    )


class RecoveryFigure(_Strict):
    """From an overload to the last lost frame after it (RFC 2544, 26.5)."""

    repetitions: int = Field(description="of all searches together")
    not_overloaded: int = Field(description="nothing was lost before the rate was halved")
    not_recovered: int = Field(description="frames were lost in the last tenth of the time")
    recovered_s: Quartiles | None = Field(
        default=None,
        description="per search, the mean of its repetitions; absent unless every repetition "
        "recovered, for a figure of those that did would be too good; 0: nothing was lost after "
        "the change",
    )
    average_s: float | None = Field(
        default=None, description="the mean of all repetitions, as RFC 2544 reports it; likewise"
    )


class InvalidReason(_Strict):
    """How many trials do not count for one reason, and the words of the first of them."""

    code: InvalidCode
    count: int
    example: str


class LowerLoad(_Strict):
    """An arm at a load below the ceiling, fixed unless said otherwise."""

    arm: str
    load_share: float
    offered_mpps: float | None = None
    trials: int
    invalid: int
    invalid_reasons: list[InvalidReason] = Field(
        default_factory=list, description="the commonest first"
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
        default=None, description="of the polling cores' cycles, those spent on packets"
    )
    full_share: Quartiles | None = Field(
        default=None, description="polls that returned all they asked for / polls: saturation"
    )
    rx_spin: Quartiles | None = Field(default=None, description="empty polls / polls")
    path: PathFigures | None = None


class PathFigures(_Strict):
    """An arm of experiment paths in a flood or at a fixed load: what a packet cost the forwarder's
    core, what became of those that did not come back, and how long the others took.
    """

    cpus: dict[CpuPart, list[int]] = Field(
        default_factory=dict, description="which cores paid, by what ran on them"
    )
    cpu_ns_per_packet: Quartiles | None = Field(
        default=None, description="process and NAPI threads, over the frames that came back"
    )
    process_ns: Quartiles | None = None
    napi_ns: Quartiles | None = Field(
        default=None, description="the kernel's threads that receive for the forwarder"
    )
    softirq_ns: float | None = Field(
        default=None,
        description="over all trials together, from ticks of 1/100 s; in part within the others",
    )
    core_share: Quartiles | None = Field(
        default=None, description="process and NAPI threads, of the window"
    )
    own_share: float | None = Field(
        default=None, description="the offered rate over what the arm carried in a flood, medians"
    )
    latency_us: dict[str, Quartiles] = Field(
        default_factory=dict,
        description="by quantile: the sender's, of each trial; absent where trials have too few "
        "frames for it",
    )
    lost: dict[str, float] | None = Field(
        default=None,
        description="by the counter that names them, of all frames that were sent: below 0 where "
        "one was counted twice; absent without a valid trial",
    )


class Band(_Strict):
    """A published ratio, as published, and ours beside it."""

    path: str = Field(description="what was published")
    ratio: float = Field(description="published, of DPDK forwarding at 64 B on one core")
    low: float = Field(description="the band around it: it is of one run, without an interval")
    high: float
    link: str | None = Field(default=None, description="of our cell, absent without one")
    size: int | None = None
    arm: str | None = None
    baseline: str | None = None
    ours: float | None = None
    ours_low: float | None = None
    ours_high: float | None = None
    ours_in_band: Literal["inside", "partly", "outside"] | None = Field(
        default=None, description="our interval; absent where nothing of ours can be compared"
    )
    note: str = ""


class SearchFigures(_Strict):
    """An arm of experiment rfc2544. A search is one process; its windows are the trials."""

    searches: int
    unfinished: int = Field(description="searches without a throughput")
    reasons: dict[str, int] = Field(description="why a test of a search has no result")
    windows: int
    void_windows: int = Field(
        description="sender late or forwarder starved; each was repeated, and none counted"
    )
    goals: list[GoalFigure]
    latency_definition: str | None = Field(
        default=None, description="which of RFC 1242's the latency is; absent without any"
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
        description="core use at each search's own throughput, for itself alone: loads of other "
        "arms are others; `load_share` is the median",
    )
    deviations: list[str] = Field(default_factory=list, description="from RFC 2544")


class Delays(_Strict):
    """Each trial is one value; `minimum` and `maximum` are over all of them."""

    minimum: float | None = Field(default=None, description="absent where it is not known")
    mean: Quartiles
    quantiles: dict[str, Quartiles] = Field(
        description="by quantile; absent where a trial has too few frames for it"
    )
    maximum: float | None = None


class Delayed(_Strict):
    """Of an arm, a kind of frame and a load: the delays, each less one reading of the clock."""

    protocol: Protocol
    load_share: float = Field(description="of the forwarder's own capacity; 0: idle")
    asked_pps: float | None = Field(default=None, description="offered, median of the trials")
    trials: int
    invalid: int
    packets: int = Field(description="that were measured, in all valid trials")
    cycles: Delays | None = Field(default=None, description="absent: no trial is valid")
    ns: Delays | None = Field(default=None, description="cycles over the frequency as checked")


class RoundTrip(Delayed):
    """From the moment before the sender's send call to the return of its receive call."""

    loss_share: float | None = Field(default=None, description="of all valid trials together")
    buffered_ns: float | None = Field(
        default=None,
        description="computed: the longest wait in the forwarder's TX buffer at this rate, "
        "min((frames - 1) / rate, drain period); absent: it has no such buffer",
    )


class Inside(Delayed):
    """A span inside the forwarder, as it or the probe in it measured."""

    span: str
    one_in: int = Field(description="of so many bursts one was measured")


class LatencySummary(_Strict):
    """An arm of experiment latency."""

    flood_pps: float | None = Field(
        default=None, description="what came back of a flood, the median; absent with --line-rate"
    )
    capacity_pps: float | None = Field(
        default=None,
        description="100 %: that, or as much less that the sender is on time at the greatest load; "
        "absent where it is not known",
    )
    round_trips: list[RoundTrip]
    packet_sender: list[RoundTrip] | None = Field(
        default=None,
        description="round trips by a packet socket in the generator's place, at idle; absent on "
        "links where it cannot be",
    )
    inside: list[Inside]


class ArmSummary(_Strict):
    """One arm of a cell. Absent: the figure cannot be had for this program or link."""

    arm: str
    forwarder: str
    language: str
    trials: int
    invalid: int
    mpps: Quartiles | None = None
    received_mpps: Quartiles | None = None
    probed_trials: int = Field(
        default=0,
        description="trials with the probe in the program, for the three figures of polls",
    )
    cycles_per_packet: Quartiles | None = Field(
        default=None, description="all cycles of the window over its packets (core always full)"
    )
    busy_cycles_per_packet: Quartiles | None = None
    average_rx_burst: Quartiles | None = Field(
        default=None, description="packets / polls, empty polls counted"
    )
    average_nonempty_rx_burst: Quartiles | None = Field(
        default=None, description="packets / (polls - empty polls)"
    )
    generator_tx_mpps: float | None = None
    forwarder_tx_mpps: float | None = None
    dropped_share: float | None = Field(default=None, description="forwarder drops / forwarder_rx")
    refused_share: float | None = Field(
        default=None, description="refused / attempted: offers, not frames"
    )
    lost_before_share: float | None = Field(
        default=None, description="(accepted - forwarder_rx) / accepted: before the application"
    )
    frames: dict[str, int] = Field(
        default_factory=dict,
        description="sums over valid trials; in a flood `attempted` and `refused` count offers",
    )
    ceiling_share: float | None = Field(
        default=None,
        description="median over blocks of received_pps over the best reference peer's in the same "
        "block; with --line-rate, the median received_pps over that rate",
    )
    ceiling_unproven: bool = Field(
        default=False, description="did more than the reference peers, so that they prove no limit"
    )
    limited_by: Limiter | None = None
    search: SearchFigures | None = None
    latency: LatencySummary | None = None
    path: PathFigures | None = None


class Ceiling(_Strict):
    """100 % of a link without a physical rate: the best reference peer (measuring.md 5). Of
    experiment paths: what the generator put on the wire.
    """

    pps: float = Field(description="a median over the cell; of this machine and hour")
    peer: str
    measured_mpps: dict[str, float] = Field(default_factory=dict)


class Difference(_Strict):
    """Of a metric that is 0 in some runs, so that they have no ratio: arm less baseline, paired."""

    shift: float = Field(description="Hodges-Lehmann estimate, in the metric's unit")
    low: float | None = Field(default=None, description="its 95 % interval")
    high: float | None = None
    cliffs_delta: float = Field(description="P(arm above baseline) less P(arm below), -1 to 1")
    arm_zeros: float = Field(description="share of the arm's runs that were 0, such as loss-free")
    baseline_zeros: float


class AA(_Strict):
    """The baseline against itself: it must find nothing."""

    link: str
    size: int
    metric: str
    load_share: float | None = None
    n: int
    ratio: float | None = Field(default=None, description="absent where zeros allow none")
    ci_low: float | None = None
    ci_high: float | None = None
    difference: Difference | None = None
    p: float
    spread: float | None = None
    found_difference: bool


class Comparison(_Strict):
    """An arm against the baseline of its cell."""

    metric: str
    better: Literal["higher", "lower"] = "higher"
    load_share: float | None = Field(
        default=None,
        description="of a metric at a fixed load: the share of the ceiling; of latency and delay "
        "variation, the share of the arm's own throughput; of experiment latency, of its own "
        "capacity, 0 being idle",
    )
    primary: bool = Field(description="the metric that answers the experiment's question")
    link: str
    size: int
    baseline: str
    arm: str
    n: int
    ratio: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    p: float | None = None
    p_holm: float | None = None
    difference: Difference | None = Field(
        default=None, description="instead of a ratio, where some values are 0"
    )
    a12: float | None = None
    spread: float | None = None
    smallest_detectable: float | None = None
    zero_blocks: int = Field(
        default=0, description="blocks left out because a value was 0: a log-ratio needs more"
    )
    limited_by: Limiter | None = Field(
        default=None, description="the arm's limit or the baseline's"
    )
    limited: Limited | None = Field(default=None, description="whom `limited_by` is about")
    verdict: Verdict
    reason: str
    sentence: str


class CellSummary(_Strict):
    """One link and one frame size."""

    link: str
    size: int
    blocks: int
    ceiling: Ceiling | None = None
    common_pps: float | None = Field(
        default=None, description="experiment paths: the rate of which its loads are shares"
    )
    arms: list[ArmSummary]
    references: list[ArmSummary] = Field(description="the self-test's peers")
    lower_load: list[LowerLoad]
    low_load_share: float = Field(
        default=LOW_LOAD, description="the load of `lower_load` at which nothing may be lost"
    )
    books_closed: bool | None = Field(default=None, description="null: no books to close")

    @property
    def peers(self) -> list[ArmSummary]:
        """The references that are not arms too, and so in every table already."""
        arms = {arm.arm for arm in self.arms}
        return [each for each in self.references if each.arm not in arms]


class Limit(_Strict):
    """Where something other than the forwarder was the limit."""

    link: str
    size: int
    arm: str
    by: Limiter


class Summary(_Strict):
    """summary.json."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    schema_id: Literal["linerate/summary-1"] = Field(default="linerate/summary-1", alias="schema")
    experiment: str
    question: str
    preset: str
    preset_note: str
    command: str
    seed: int
    window_s: float
    started_at: str
    finished_at: str
    interrupted: bool
    trials: int
    invalid_trials: int
    invalid_reasons: list[InvalidReason]
    comparisons: list[Comparison]
    aa: list[AA]
    books_closed: bool | None = Field(default=None, description="null: no books to close")
    books_checked: int = Field(description="trials that have books to close")
    limited_by: list[Limit]
    smallest_detectable: float | None = Field(
        default=None,
        description="relative; the largest over the primary comparisons, "
        "null when one of them could find nothing",
    )
    cells: list[CellSummary]
    conforming: bool | None = Field(
        default=None, description="to RFC 2544; null where that is not claimed or not known"
    )
    tsc_hz: int | None = None
    clock: Clock | None = Field(
        default=None, description="of experiment latency: the time stamp counter, and what it costs"
    )
    machine: Machine
    versions: dict[str, str]
    bands: list[Band] = Field(
        default_factory=list, description="experiment paths: published ratios, ours beside them"
    )
    warnings: list[str]


def schema() -> dict[str, Any]:
    document = Summary.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **document}


def dump(summary: Summary) -> str:
    data = summary.model_dump(mode="json", by_alias=True, exclude_none=True)
    # What readers look up is always there; null where it is not known.
    for name in ("books_closed", "smallest_detectable"):
        data.setdefault(name, None)
    for comparison in data["comparisons"]:
        for name in ("ratio", "ci_low", "ci_high", "smallest_detectable"):
            comparison.setdefault(name, None)
    # A figure that was put in later was not checked, and JSON has no word for what is no number.
    return json.dumps(data, indent=2, allow_nan=False) + "\n"
