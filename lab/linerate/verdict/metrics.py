# SPDX-License-Identifier: BSD-3-Clause
"""The metrics of comparisons, and their words in sentences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar, get_args

from linerate.records.trial import Protocol, Trial
from linerate.verdict.delays import COMMON_SPAN, inside_cycles, latency_us, round_trip_cycles
from linerate.verdict.judgement import LOAD_LOSS

Better = Literal["higher", "lower"]


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One figure of each arm and block.

    `words`: its name, `plural` or not. `wins` and `loses`: verb phrases for an arm that is better
    or worse than its baseline; `better_word` and `worse_word`: the same in a word or two, for a
    verdict without its sentence. `more` and `less`: adjectives for the higher and the lower figure.
    """

    name: str
    words: str
    plural: bool = True
    better: Better = "higher"
    wins: str = "is faster than"
    loses: str = "is slower than"
    better_word: str = "faster"
    worse_word: str = "slower"
    more: str = "more"
    less: str = "fewer"
    # A rate that generator or link may hold back.
    rate: bool = False
    # The quantity of which its load is a share.
    load_of: str = "load"
    # At a fixed load: the share of the frames that an arm may lose and still have done the same
    # work.
    most_lost: float = LOAD_LOSS
    # The name of a run whose figure is 0; None: zeros are no result, and have no ratio.
    zero: str | None = None
    # The unit of differences, which replace ratios if there are zeros.
    unit: str = ""
    scale: float = 1.0


# Lost frames would have been among the slowest. If 5 % are lost, the median of all frames is the
# 52.6 % quantile of the received ones.
_MEDIAN_LOSS = 0.05


@dataclass(frozen=True, kw_only=True)
class TrialMetric(Metric):
    """A metric that each trial has by itself."""

    value: Callable[[Trial], float | None]


RECEIVED = TrialMetric(
    name="received_pps",
    words="frames per second carried there and back",
    rate=True,
    value=lambda trial: trial.frames.received_pps,
)
FORWARDED = TrialMetric(
    name="forwarder_rx_pps",
    words="packets per second taken by the forwarder",
    rate=True,
    value=lambda trial: trial.frames.forwarder_rx_pps,
)
COST = TrialMetric(
    name="busy_cycles_per_packet",
    words="busy cycles per packet",
    better="lower",
    wins="is cheaper than",
    loses="is dearer than",
    better_word="cheaper",
    worse_word="dearer",
    value=lambda trial: trial.frames.busy_cycles_per_packet,
)

# Loads of experiment paths, at rates that all paths of a cell carry.
_COMMON = "the common rate"
CPU_TIME = TrialMetric(
    name="cpu_ns_per_packet",
    words="CPU time per packet",
    plural=False,
    better="lower",
    wins="is cheaper than",
    loses="is dearer than",
    better_word="cheaper",
    worse_word="dearer",
    less="less",
    load_of=_COMMON,
    value=lambda trial: trial.frames.cpu_ns_per_packet("process", "napi"),
)
COMMON_MEDIAN_LATENCY = TrialMetric(
    name="common_latency_p50_us",
    words="median latency",
    plural=False,
    better="lower",
    more="higher",
    less="lower",
    load_of=_COMMON,
    most_lost=_MEDIAN_LOSS,
    value=lambda trial: latency_us(trial, "0.5"),
)
COMMON_HIGH_LATENCY = TrialMetric(
    name="common_latency_p99_us",
    words="99 % quantile of latency",
    plural=False,
    better="lower",
    more="higher",
    less="lower",
    load_of=_COMMON,
    value=lambda trial: latency_us(trial, "0.99"),
)

# Rates that a search found. A goal may forgive some trials their loss, so "without loss" is none.
NDR = Metric(
    name="ndr_pps", words="frames per second at the non-drop rate", rate=True,
    zero="found no load that reaches it", unit=" million", scale=1e-6,
)  # fmt: skip
PDR = Metric(
    name="pdr_pps", words="frames per second at the partial-drop rate", rate=True,
    zero="found no load that reaches it", unit=" million", scale=1e-6,
)  # fmt: skip

_OWN = "the own throughput"
MEDIAN_LATENCY = Metric(
    name="latency_p50_us", words="median latency", plural=False, better="lower", more="higher",
    less="lower", load_of=_OWN,
)  # fmt: skip
HIGH_LATENCY = Metric(
    name="latency_p99_us", words="99 % quantile of latency", plural=False, better="lower",
    more="higher", less="lower", load_of=_OWN,
)  # fmt: skip
VARIATION = Metric(
    name="pdv_p99_us", words="99 % quantile of packet delay variation", plural=False,
    better="lower", wins="is steadier than", loses="is less steady than",
    better_word="steadier", worse_word="less steady", more="higher", less="lower", load_of=_OWN,
)  # fmt: skip
BUFFER = Metric(
    name="corrected_buffer_s", words="corrected buffer time (RFC 9004)", plural=False,
    wins="takes longer bursts than", loses="takes shorter bursts than",
    better_word="longer", worse_word="shorter", more="longer", less="shorter",
)  # fmt: skip
LOSS = Metric(
    name="loss_ratio", words="frames lost", better="lower", wins="loses less than",
    loses="loses more than", better_word="loses less", worse_word="loses more",
    zero="lost nothing", unit=" points", scale=100.0,
)  # fmt: skip
RECOVERY = Metric(
    name="recovery_s", words="time to the last lost frame after an overload", plural=False,
    better="lower", wins="recovers sooner than", loses="recovers later than",
    better_word="sooner", worse_word="later", more="longer", less="shorter",
    zero="lost nothing after it", unit=" ms", scale=1e3,
)  # fmt: skip

_CAPACITY = "the own capacity"


def _round_trip(protocol: Protocol, quantile: str, words: str) -> TrialMetric:
    return TrialMetric(
        name=f"round_trip_{protocol}_p{float(quantile) * 100:g}_cycles",
        words=f"{words} of the round trip of {protocol.upper()} frames", plural=False,
        better="lower", more="higher", less="lower", load_of=_CAPACITY,
        most_lost=_MEDIAN_LOSS if quantile == "0.5" else LOAD_LOSS,
        value=lambda trial: round_trip_cycles(trial, quantile),
    )  # fmt: skip


def _inside(protocol: Protocol) -> TrialMetric:
    return TrialMetric(
        name=f"inside_{protocol}_p50_cycles",
        words=f"median of the time of {protocol.upper()} frames inside ({COMMON_SPAN})",
        plural=False, better="lower", more="higher", less="lower", load_of=_CAPACITY,
        most_lost=_MEDIAN_LOSS, value=inside_cycles,
    )  # fmt: skip


_PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
# Keys are kinds of frames.
ROUND_TRIP = {each: _round_trip(each, "0.5", "median") for each in _PROTOCOLS}
HIGH_ROUND_TRIP = {each: _round_trip(each, "0.99", "99 % quantile") for each in _PROTOCOLS}
INSIDE = {each: _inside(each) for each in _PROTOCOLS}

# Keys are names; experiments add their own.
METRICS: dict[str, Metric] = {
    each.name: each
    for each in (
        RECEIVED, FORWARDED, COST, CPU_TIME, COMMON_MEDIAN_LATENCY, COMMON_HIGH_LATENCY, NDR, PDR,
        MEDIAN_LATENCY, HIGH_LATENCY, VARIATION, BUFFER, LOSS, RECOVERY, *ROUND_TRIP.values(),
        *HIGH_ROUND_TRIP.values(), *INSIDE.values(),
    )
}  # fmt: skip


MetricOf = TypeVar("MetricOf", bound=Metric)


def registered(metric: MetricOf) -> MetricOf:
    """Register a metric under its name for readers of summaries, and return it."""
    METRICS[metric.name] = metric
    return metric


def words_of(metric: str, load_share: float | None = None) -> str:
    """Return the metric's name, and its load."""
    found = METRICS[metric]
    return found.words + at_load(found, load_share)


def at_load(metric: Metric, load_share: float | None) -> str:
    """Format the load for the end of a phrase; empty without one."""
    if load_share is None:
        return ""
    if load_share == 0:
        return " at idle"
    share = f"{load_share * 100:g} %"
    return f" at {share} load" if metric.load_of == "load" else f" at {share} of {metric.load_of}"
