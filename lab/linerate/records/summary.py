# SPDX-License-Identifier: BSD-3-Clause
"""summary.json: the results of a run. The models and how to write them; other modules fill them.

`ratio` is always arm over baseline of the named metric; `better` says which direction is better.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import ConfigDict, Field

from linerate.host.machine import Machine
from linerate.records.cells import CellKey
from linerate.records.cloud_summary import CloudAnswers, TakeawayEntry
from linerate.records.outcome import Clock
from linerate.records.summary_figures import (
    GraphAnswers,
    GraphFigures,
    InvalidReason,
    LatencySummary,
    LowerLoad,
    PathFigures,
    Quartiles,
    SearchFigures,
)
from linerate.records.trial import Kind
from linerate.records.types import LOW_LOAD, Limited, Limiter, Strict, Verdict

SUMMARY = "summary.json"


class Band(Strict):
    """A published ratio, and ours beside it."""

    path: str = Field(description="the published path")
    ratio: float = Field(
        description="published rate over that of DPDK forwarding at 64 B on one core"
    )
    low: float = Field(
        description="the band around the published ratio, which is of one run without an interval"
    )
    high: float
    link: str | None = Field(default=None, description="the link of our cell; absent without one")
    size: int | None = None
    arm: str | None = None
    baseline: str | None = None
    ours: float | None = None
    ours_low: float | None = None
    ours_high: float | None = None
    ours_in_band: Literal["inside", "partly", "outside"] | None = Field(
        default=None,
        description="the place of our interval; absent if nothing of ours is comparable",
    )
    note: str = ""


class ArmSummary(Strict):
    """One arm of a cell. An absent figure is unavailable for this program or link."""

    arm: str
    forwarder: str
    language: str
    kind: Kind | None = None
    trials: int
    invalid: int
    mpps: Quartiles | None = None
    received_mpps: Quartiles | None = None
    probed_trials: int = Field(
        default=0,
        description="trials with the probe in the program, for the three figures of polls",
    )
    cycles_per_packet: Quartiles | None = Field(
        default=None, description="all cycles of the window per packet (core always full)"
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
        default=False,
        description="it had a higher rate than the reference peers, so they prove no limit",
    )
    limited_by: Limiter | None = None
    search: SearchFigures | None = None
    latency: LatencySummary | None = None
    path: PathFigures | None = None
    graph: GraphFigures | None = None


class Ceiling(Strict):
    """100 % of a link without a physical rate: the best reference peer
    (docs/how-it-measures.md#100-percent). In experiment paths: the rate that the generator put on
    the wire.
    """

    pps: float = Field(description="a median over the cell; for this machine and time only")
    peer: str
    measured_mpps: dict[str, float] = Field(default_factory=dict)


class Difference(Strict):
    """The difference (arm less baseline, paired) in a metric that is 0 in some runs, which
    therefore have no ratio.
    """

    shift: float = Field(description="Hodges-Lehmann estimate, in the metric's unit")
    low: float | None = Field(default=None, description="lower end of its 95 % interval")
    high: float | None = None
    cliffs_delta: float = Field(description="P(arm above baseline) less P(arm below), -1 to 1")
    arm_zeros: float = Field(description="share of the arm's runs that were 0, such as loss-free")
    baseline_zeros: float


class AA(Strict):
    """The baseline against itself: it must find nothing."""

    link: str
    size: int
    metric: str
    load_share: float | None = None
    n: int
    ratio: float | None = Field(default=None, description="absent if zeros allow none")
    ci_low: float | None = None
    ci_high: float | None = None
    difference: Difference | None = None
    p: float
    spread: float | None = None
    found_difference: bool


class Comparison(Strict):
    """An arm against the baseline of its cell."""

    metric: str
    better: Literal["higher", "lower"] = "higher"
    load_share: float | None = Field(
        default=None,
        description="for a metric at a fixed load: the share of the ceiling; for latency and "
        "delay variation, the share of the arm's own throughput; for experiment "
        "latency, of its own capacity, 0 being idle",
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
        default=None, description="instead of a ratio, if some values are 0"
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
    limited: Limited | None = Field(default=None, description="the side of `limited_by`")
    verdict: Verdict
    reason: str
    sentence: str


class CellSummary(Strict):
    """One link and one frame size; of experiment graph, one graph."""

    link: str = Field(description="experiment graph: the cell's name")
    size: int = Field(description="bytes with FCS; experiment graph: objects in a batch")
    blocks: int
    routes: int | None = Field(
        default=None, description="experiment l3fwd: IPv4 routes in the table"
    )
    rules: int | None = Field(
        default=None, description="experiment l3fwd: rules that filter the packets"
    )
    ceiling: Ceiling | None = None
    common_pps: float | None = Field(
        default=None, description="experiment paths: the rate of which its loads are shares"
    )
    arms: list[ArmSummary]
    references: list[ArmSummary] = Field(description="the self-test's peers")
    lower_load: list[LowerLoad]
    low_load_share: float = Field(
        default=LOW_LOAD, description="the least load of `lower_load`, whose loss tables show"
    )
    books_closed: bool | None = Field(default=None, description="null: no books to close")

    @property
    def key(self) -> CellKey:
        """The key that a trial's cell shares with this one."""
        return self.link, self.size

    @property
    def peers(self) -> list[ArmSummary]:
        """The references that are not also arms, which are in every table already."""
        arms = {arm.arm for arm in self.arms}
        return [each for each in self.references if each.arm not in arms]


class Limit(Strict):
    """An arm that was limited by something other than the forwarder."""

    link: str
    size: int
    arm: str
    by: Limiter


class Summary(Strict):
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
        description="relative; the largest over the primary comparisons, null if one of them "
        "could find nothing",
    )
    cells: list[CellSummary]
    conforming: bool | None = Field(
        default=None,
        description="whether the run conforms to RFC 2544; null if that is not claimed or not "
        "known",
    )
    tsc_hz: int | None = None
    clock: Clock | None = Field(
        default=None, description="experiment latency: the time stamp counter, and its cost"
    )
    machine: Machine
    versions: dict[str, str]
    bands: list[Band] = Field(
        default_factory=list, description="experiment paths: published ratios, ours beside them"
    )
    graph: GraphAnswers | None = Field(
        default=None, description="experiment graph: published orderings, tested here"
    )
    takeaways: list[TakeawayEntry] = Field(
        default_factory=list,
        description="experiment cloud: statements, and the answers of the data",
    )
    cloud: CloudAnswers | None = None
    warnings: list[str]


def schema() -> dict[str, Any]:
    document = Summary.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **document}


def dump(summary: Summary) -> str:
    data = summary.model_dump(mode="json", by_alias=True, exclude_none=True)
    # Fields that readers look up are always there; null if unknown.
    for name in ("books_closed", "smallest_detectable"):
        data.setdefault(name, None)
    for comparison in data["comparisons"]:
        for name in ("ratio", "ci_low", "ci_high", "smallest_detectable"):
            comparison.setdefault(name, None)
    # A figure that was added later was not checked, and JSON has no NaN.
    return json.dumps(data, indent=2, allow_nan=False) + "\n"
