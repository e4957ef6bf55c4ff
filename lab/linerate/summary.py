# SPDX-License-Identifier: BSD-3-Clause
"""summary.json: what a run found. Computed from its records alone.

`ratio` is always arm over baseline of the named metric; `better` says which way is better.
"""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from linerate import books, stats
from linerate.design import AA_SUFFIX
from linerate.machine import Machine
from linerate.records import Trial
from linerate.stats import Paired
from linerate.verdict import Judgement, Verdict, found_difference, judge

SUMMARY = "summary.json"
# A forwarder this near to the ceiling is not what limits the cell (measuring.md 6).
CEILING_SHARE = 0.95
# A flood of which less is refused is limited by the sender, not by the link.
REFUSED_SHARE = 0.01

Metric = Literal["received_pps", "forwarder_rx_pps"]
METRICS: dict[str, Callable[[Trial], float | None]] = {
    "received_pps": lambda trial: trial.received_pps,
    "forwarder_rx_pps": lambda trial: trial.forwarder_rx_pps,
}


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Quartiles(_Strict):
    """Distribution of a figure over the valid trials of an arm."""

    n: int
    median: float
    q1: float
    q3: float
    low: float = Field(description="95 % interval of the median, where n allows one")
    high: float


class ArmSummary(_Strict):
    """One arm of a cell. Absent: the figure cannot be had for this program or link."""

    arm: str
    forwarder: str
    language: str
    trials: int
    invalid: int
    mpps: Quartiles | None = None
    received_mpps: Quartiles | None = None
    cycles_per_packet: Quartiles | None = Field(
        default=None, description="all cycles of the window over its packets (core always full)"
    )
    busy_cycles_per_packet: Quartiles | None = None
    average_rx_burst: Quartiles | None = None
    generator_tx_mpps: float | None = None
    forwarder_tx_mpps: float | None = None
    dropped_share: float | None = Field(default=None, description="forwarder drops / accepted")
    refused_share: float | None = Field(default=None, description="refused / attempted")
    lost_before_share: float | None = Field(
        default=None, description="(accepted - forwarder_rx) / accepted: before the application"
    )
    frames: dict[str, int] = Field(default_factory=dict, description="sums over valid trials")
    limited_by: Literal["generator", "link"] | None = None


class LowerLoad(_Strict):
    """An arm at a fixed load below the ceiling."""

    arm: str
    load_share: float
    offered_mpps: float | None = None
    trials: int
    invalid: int
    loss_share: float | None = None
    busy_cycles_per_packet: Quartiles | None = None
    average_rx_burst: Quartiles | None = None


class Ceiling(_Strict):
    """100 % of a link without a physical rate: the best reference peer (measuring.md 5)."""

    pps: float
    peer: str
    measured_mpps: dict[str, float] = Field(default_factory=dict)


class AA(_Strict):
    """The baseline against itself: it must find nothing."""

    link: str
    size: int
    metric: str
    n: int
    ratio: float
    ci_low: float | None = None
    ci_high: float | None = None
    p: float
    found_difference: bool


class Comparison(_Strict):
    """An arm against the baseline of its cell."""

    metric: str
    better: Literal["higher", "lower"] = "higher"
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
    a12: float | None = None
    spread: float | None = None
    smallest_detectable: float | None = None
    limited_by: Literal["generator", "link"] | None = None
    verdict: Verdict
    reason: str
    sentence: str


class CellSummary(_Strict):
    """One link and one frame size."""

    link: str
    size: int
    blocks: int
    ceiling: Ceiling | None = None
    arms: list[ArmSummary]
    references: list[ArmSummary] = Field(description="the self-test's peers")
    lower_load: list[LowerLoad]
    books_closed: bool | None = Field(default=None, description="absent: no books to close")


class Limit(_Strict):
    """Where something other than the forwarder was the limit."""

    link: str
    size: int
    arm: str
    by: Literal["generator", "link"]


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
    invalid_reasons: dict[str, int]
    comparisons: list[Comparison]
    aa: list[AA]
    books_closed: bool
    books_checked: int = Field(description="trials that have books to close")
    limited_by: list[Limit]
    smallest_detectable: float | None = Field(
        default=None, description="relative; the largest over the primary comparisons"
    )
    cells: list[CellSummary]
    tsc_hz: int | None = None
    machine: Machine
    versions: dict[str, str]
    warnings: list[str]


def schema() -> dict[str, Any]:
    document = Summary.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **document}


def dump(summary: Summary) -> str:
    data = summary.model_dump(mode="json", by_alias=True, exclude_none=True)
    return json.dumps(data, indent=2) + "\n"


def quartiles(values: Iterable[float | None]) -> Quartiles | None:
    """Quartiles and the median's 95 % interval by order statistics; absent without values."""
    data = sorted(value for value in values if value is not None)
    if not data:
        return None
    if len(data) == 1:
        value = data[0]
        return Quartiles(n=1, median=value, q1=value, q3=value, low=value, high=value)
    q1, median, q3 = statistics.quantiles(data, n=4, method="inclusive")
    cut = _median_cut(len(data))
    return Quartiles(
        n=len(data), median=median, q1=q1, q3=q3, low=data[cut], high=data[len(data) - 1 - cut]
    )


def _median_cut(count: int) -> int:
    """Observations to leave out at each end for a 95 % interval of the median (sign test)."""
    tail, cut = 0.0, 0
    for k in range(count):
        tail += math.comb(count, k) * 0.5**count
        if tail > 0.025:
            break
        cut = k
    return cut


def _share(part: int | None, whole: int | None) -> float | None:
    return part / whole if part is not None and whole else None


def _median(values: Iterable[float | None]) -> float | None:
    data = [value for value in values if value is not None]
    return statistics.median(data) if data else None


def summarise_arm(label: str, language: str, trials: list[Trial]) -> ArmSummary:
    valid = [trial for trial in trials if trial.valid]
    frames = {}
    for name in (
        "attempted",
        "refused",
        "accepted",
        "lost_at_ingress",
        "forwarder_rx",
        "forwarder_tx",
        "forwarder_drops",
        "received",
        "unattributed",
    ):
        counts = [count for trial in valid if (count := getattr(trial, name)) is not None]
        if counts:
            frames[name] = sum(counts)

    def rate(name: str) -> float | None:
        return _median(
            getattr(trial, name) / trial.duration_s / 1e6
            for trial in valid
            if getattr(trial, name) is not None and trial.duration_s
        )

    def lost_before(trial: Trial) -> float | None:
        if trial.accepted is None or trial.forwarder_rx is None:
            return None
        return _share(trial.accepted - trial.forwarder_rx, trial.accepted)

    return ArmSummary(
        arm=label,
        forwarder=trials[0].forwarder,
        language=language,
        trials=len(trials),
        invalid=len(trials) - len(valid),
        mpps=quartiles(_mega(trial.forwarder_rx_pps) for trial in valid),
        received_mpps=quartiles(_mega(trial.received_pps) for trial in valid),
        cycles_per_packet=quartiles(
            trial.window_cycles_per_packet for trial in valid if trial.load == "self-driven"
        ),
        busy_cycles_per_packet=quartiles(trial.busy_cycles_per_packet for trial in valid),
        average_rx_burst=quartiles(trial.average_rx_burst for trial in valid),
        generator_tx_mpps=rate("accepted"),
        forwarder_tx_mpps=rate("forwarder_tx"),
        dropped_share=_median(_share(trial.forwarder_drops, trial.accepted) for trial in valid),
        refused_share=_median(_share(trial.refused, trial.attempted) for trial in valid),
        lost_before_share=_median(lost_before(trial) for trial in valid),
        frames=frames,
    )


def _mega(value: float | None) -> float | None:
    return None if value is None else value / 1e6


def summarise_lower_load(trials: list[Trial]) -> list[LowerLoad]:
    result = []
    keys = sorted({(trial.load_share or 0.0, trial.arm) for trial in trials})
    for share, arm in keys:
        mine = [t for t in trials if t.arm == arm and t.load_share == share]
        valid = [t for t in mine if t.valid]
        result.append(
            LowerLoad(
                arm=arm,
                load_share=share,
                offered_mpps=_median(
                    t.attempted / t.duration_s / 1e6
                    for t in valid
                    if t.attempted is not None and t.duration_s
                ),
                trials=len(mine),
                invalid=len(mine) - len(valid),
                loss_share=_median(_loss(t) for t in valid),
                busy_cycles_per_packet=quartiles(t.busy_cycles_per_packet for t in valid),
                average_rx_burst=quartiles(t.average_rx_burst for t in valid),
            )
        )
    return result


def _loss(trial: Trial) -> float | None:
    if trial.received is None or trial.attempted is None:
        return None
    return _share(trial.attempted - trial.received, trial.attempted)


def ceiling_of(trials: list[Trial], line_rate: float | None) -> Ceiling | None:
    """The best reference peer of the self-test, or what the user gave."""
    measured = {
        name: value
        for name in sorted({trial.forwarder for trial in trials})
        if (value := _median(t.received_pps for t in trials if t.valid and t.forwarder == name))
    }
    mega = {name: value / 1e6 for name, value in measured.items()}
    if line_rate:
        return Ceiling(pps=line_rate, peer="--line-rate", measured_mpps=mega)
    if not measured:
        return None
    peer = max(measured, key=lambda name: measured[name])
    return Ceiling(pps=measured[peer], peer=peer, measured_mpps=mega)


def limit_of(arm: ArmSummary, ceiling: Ceiling | None) -> Literal["generator", "link"] | None:
    """What limits an arm other than the forwarder; None when the forwarder does, or unknown."""
    if ceiling is None or arm.received_mpps is None:
        return None
    if arm.received_mpps.median * 1e6 < CEILING_SHARE * ceiling.pps:
        return None
    refused = arm.refused_share
    return "generator" if refused is not None and refused < REFUSED_SHARE else "link"


def pair(trials: list[Trial], arm: str, baseline: str, metric: str) -> Paired | None:
    """Compare two arms over the blocks in which both are valid."""
    value = METRICS[metric]
    by_block: dict[int, dict[str, float]] = {}
    for trial in trials:
        if trial.valid and trial.arm in (arm, baseline) and (found := value(trial)):
            by_block.setdefault(trial.block, {})[trial.arm] = found
    both = [block for _, block in sorted(by_block.items()) if arm in block and baseline in block]
    if not both:
        return None
    return stats.compare([block[arm] for block in both], [block[baseline] for block in both])


def compare_cell(
    cell: CellSummary, trials: list[Trial], labels: list[str], metric: Metric, *, primary: bool
) -> tuple[list[Comparison], AA | None]:
    """All comparisons of one cell with its baseline, the first label. Holm comes later."""
    baseline = labels[0]
    aa_paired = pair(trials, baseline + AA_SUFFIX, baseline, metric)
    aa = aa_paired and AA(
        link=cell.link,
        size=cell.size,
        metric=metric,
        n=aa_paired.n,
        ratio=aa_paired.ratio,
        ci_low=aa_paired.ci_low,
        ci_high=aa_paired.ci_high,
        p=aa_paired.p,
        found_difference=found_difference(aa_paired),
    )
    result = []
    for label in labels[1:]:
        if label.endswith(AA_SUFFIX):
            continue
        paired = pair(trials, label, baseline, metric)
        result.append(
            _comparison(cell, label, baseline, metric, primary=primary, paired=paired, aa=aa_paired)
        )
    return result, aa or None


def _comparison(
    cell: CellSummary,
    label: str,
    baseline: str,
    metric: str,
    *,
    primary: bool,
    paired: Paired | None,
    aa: Paired | None,
) -> Comparison:
    limits = {arm.arm: arm.limited_by for arm in cell.arms}
    common: dict[str, Any] = {
        "metric": metric,
        "primary": primary,
        "link": cell.link,
        "size": cell.size,
        "baseline": baseline,
        "arm": label,
        "sentence": "",
        "limited_by": limits.get(label) if limits.get(baseline) else None,
    }
    if paired is None:
        lost = Judgement("invalid", "no block has a valid trial of both")
        return Comparison(**common, n=0, verdict=lost.verdict, reason=lost.reason)
    found = judge(
        paired,
        paired.p,
        planned=cell.blocks,
        aa=aa,
        low_load_loss=_worst_low_load_loss(cell, (label, baseline)),
    )
    smallest = paired.smallest_detectable
    return Comparison(
        **common,
        n=paired.n,
        ratio=paired.ratio,
        ci_low=paired.ci_low,
        ci_high=paired.ci_high,
        p=paired.p,
        a12=paired.a12,
        spread=paired.spread,
        smallest_detectable=smallest if math.isfinite(smallest) else None,
        verdict=found.verdict,
        reason=found.reason,
    )


def _worst_low_load_loss(cell: CellSummary, labels: tuple[str, str]) -> float | None:
    losses = [
        entry.loss_share
        for entry in cell.lower_load
        if entry.arm in labels and entry.loss_share is not None and entry.load_share <= 0.25
    ]
    return max(losses) if losses else None


def finish(comparisons: list[Comparison]) -> None:
    """Holm across the sizes of each (metric, link, arm), the ceiling rule, and the sentences."""
    families: dict[tuple[str, str, str], list[Comparison]] = {}
    for each in comparisons:
        if each.p is not None:
            families.setdefault((each.metric, each.link, each.arm), []).append(each)
    for family in families.values():
        adjusted = stats.holm([each.p for each in family if each.p is not None])
        for each, p_holm in zip(family, adjusted, strict=True):
            each.p_holm = p_holm
            if p_holm >= 0.05 and each.verdict in ("faster", "slower"):
                each.verdict = "undecided"
                each.reason = f"Holm's p over {len(family)} sizes is {p_holm:.3f}"
    for each in comparisons:
        if each.verdict == "equal" and each.limited_by:
            each.verdict = "undecided"
            each.reason = (
                f"both are limited by the {each.limited_by}, so equal rates say nothing "
                "about the programs"
            )
        each.sentence = sentence(each)


def sentence(found: Comparison) -> str:
    """What a comparison says, in one sentence."""
    where = f"On {found.link} at {found.size} B"
    what = {
        "received_pps": "frames per second carried there and back",
        "forwarder_rx_pps": "packets per second taken by the forwarder",
    }[found.metric]
    if found.ratio is None:
        return f"{where}, no verdict on {found.arm} against {found.baseline}: {found.reason}."
    numbers = f"ratio {found.ratio:.3f}"
    if found.ci_low is not None and found.ci_high is not None:
        numbers += f", 95 % interval {found.ci_low:.3f} to {found.ci_high:.3f}"
    numbers += f", {found.n} blocks"
    percent = abs(found.ratio - 1) * 100
    more = "more" if found.ratio >= 1 else "fewer"
    if found.verdict in ("faster", "slower"):
        return (
            f"{where}, {found.arm} is {found.verdict} than {found.baseline}: "
            f"{percent:.1f} % {more} {what} ({numbers})."
        )
    if found.verdict == "equal":
        return (
            f"{where}, {found.arm} and {found.baseline} are equal within 2 %: {what} differ by "
            f"{percent:.1f} % ({numbers})."
        )
    if found.verdict == "undecided":
        floor = (
            f" The smallest difference it could find is {found.smallest_detectable * 100:.1f} %."
            if found.smallest_detectable is not None
            else ""
        )
        return (
            f"{where}, this run cannot tell {found.arm} from {found.baseline} by {what} "
            f"({numbers}): {found.reason}.{floor}"
        )
    return (
        f"{where}, no verdict on {found.arm} against {found.baseline} by {what} ({numbers}): "
        f"{found.reason}."
    )


def invalid_reasons(trials: list[Trial]) -> dict[str, int]:
    return dict(Counter(trial.invalid for trial in trials if trial.invalid))


def books_of(trials: list[Trial]) -> tuple[bool, int]:
    return books.closed(trials), sum(books.checkable(trial) for trial in trials)
