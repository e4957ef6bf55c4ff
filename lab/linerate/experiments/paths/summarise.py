# SPDX-License-Identifier: BSD-3-Clause
"""Summarise the records of a run of `paths`. Pure: the records decide everything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from linerate.experiments.paths.published import bands
from linerate.records.cells import Arm, Cell
from linerate.records.outcome import CpuPart
from linerate.records.summary import ArmSummary, Ceiling, CellSummary, Summary
from linerate.records.summary_figures import PathFigures
from linerate.records.trial import Trial
from linerate.runs.options import Agreement, Pairing, Probing
from linerate.runs.run_summary import Design, Setup, books_of, summary_of
from linerate.verdict.arms import (
    last_windows,
    median_of,
    quartiles,
    summarise_arm,
    summarise_lower_load,
)
from linerate.verdict.ceiling import CEILING_SHARE, limits
from linerate.verdict.comparisons import CellPairs, blocks_of, led, pair_arms, pair_at_loads
from linerate.verdict.delays import latency_us
from linerate.verdict.metrics import COMMON_HIGH_LATENCY, COMMON_MEDIAN_LATENCY, CPU_TIME, RECEIVED

GENERATOR = "generator"
QUANTILES = ("0.5", "0.9", "0.99", "0.999")


@dataclass(kw_only=True)
class PathsDesign(Pairing, Probing, Design):
    """A `Design` with the probe, the pairing of forwarders, and the fixed loads."""

    loads: Annotated[
        list[Annotated[float, Field(gt=0, le=1)]], Field(min_length=1), Agreement("loads")
    ] = field(default_factory=list)


# -- figures -------------------------------------------------------------------------------------


def path_figures(trials: Sequence[Trial], own_mpps: float | None = None) -> PathFigures:
    """Return the figures of an arm's trials in a flood or at one load. `own_mpps`: its rate in a
    flood.
    """
    valid = [trial for trial in trials if trial.valid]
    offered = median_of(
        t.frames.attempted / t.frames.duration_s / 1e6
        for t in valid
        if t.frames.attempted and t.frames.duration_s
    )
    return PathFigures(
        cpus=_cpus(valid),
        cpu_ns_per_packet=quartiles(t.frames.cpu_ns_per_packet("process", "napi") for t in valid),
        process_ns=quartiles(t.frames.cpu_ns_per_packet("process") for t in valid),
        napi_ns=quartiles(t.frames.cpu_ns_per_packet("napi") for t in valid),
        softirq_ns=_softirq_ns(valid),
        core_share=quartiles(_core_share(t) for t in valid),
        own_share=offered / own_mpps if offered and own_mpps else None,
        latency_us={
            name: found
            for name in QUANTILES
            if (found := quartiles(latency_us(t, name) for t in valid))
        },
        lost=_lost(valid),
    )


def _cpus(trials: Sequence[Trial]) -> dict[CpuPart, list[int]]:
    return {each.of: each.cpus for trial in trials[:1] for each in trial.frames.cpu_time or ()}


def _softirq_ns(trials: Sequence[Trial]) -> float | None:
    """Return softirq time per packet over all trials together: one trial has only a few ticks."""
    known = [
        (seconds, trial.frames.received)
        for trial in trials
        if (seconds := trial.frames.cpu_seconds("softirq")) is not None and trial.frames.received
    ]
    received = sum(count for _, count in known)
    return sum(seconds for seconds, _ in known) / received * 1e9 if received else None


def _core_share(trial: Trial) -> float | None:
    seconds = trial.frames.cpu_seconds("process", "napi")
    return (
        seconds / trial.frames.duration_s
        if seconds is not None and trial.frames.duration_s
        else None
    )


def _lost(trials: Sequence[Trial]) -> dict[str, float] | None:
    """Return the lost share by counter, over all trials together. None if no frame was sent."""
    sent = sum((t.frames.accepted or 0) + (t.frames.lost_at_ingress or 0) for t in trials)
    if not sent:
        return None
    counts: dict[str, int] = {}
    for trial in trials:
        named = {
            "link ingress": trial.frames.lost_at_ingress,
            "forwarder": trial.frames.forwarder_drops,
            **trial.frames.link_drops,
            "unattributed": trial.frames.unattributed,
        }
        for place, count in named.items():
            counts[place] = counts.get(place, 0) + (count or 0)
    return {place: count / sent for place, count in counts.items() if count}


# -- cells ---------------------------------------------------------------------------------------


def summarise_cell(
    cell: Cell, arms: list[Arm], trials: list[Trial], line_rate: float | None
) -> CellSummary:
    """Return arms, the sender's rate, the common rate and the books of one link and size."""
    mine = [t for t in trials if t.cell.key == cell.key]
    found = []
    for arm in arms:
        own = [t for t in mine if t.role == "measure" and t.arm == arm.label]
        if own:
            entry = summarise_arm(arm.label, own, [])
            entry.path = path_figures(own)
            _place(entry, own)
            found.append(entry)
    paced = [t for t in mine if t.role == "lower-load"]
    places = {arm.label: place for place, arm in enumerate(arms)}
    loads = sorted(
        summarise_lower_load(paced), key=lambda each: (each.load_share, places[each.arm])
    )
    carried = {each.arm: each.received_mpps.median for each in found if each.received_mpps}
    windows = last_windows(paced)
    for load in loads:
        at_load = [
            t for t in windows if (t.arm, t.request.load_share) == (load.arm, load.load_share)
        ]
        load.path = path_figures(at_load, carried.get(load.arm))
    return CellSummary(
        link=cell.link,
        size=cell.size,
        blocks=cell.blocks,
        ceiling=_sender(found),
        common_pps=line_rate or _common(paced, carried),
        arms=found,
        references=[],
        lower_load=loads,
        books_closed=books_of(mine)[0],
    )


def _common(paced: Sequence[Trial], carried: Mapping[str, float | None]) -> float | None:
    """Return the rate of which the fixed loads are shares; before there are any, the slowest path's
    rate.
    """
    asked = {t.request.maximum_pps for t in paced if t.request.maximum_pps}
    return min(asked or {rate * 1e6 for rate in carried.values() if rate}, default=None)


def _place(arm: ArmSummary, own: Sequence[Trial]) -> None:
    """Set the limiter: a path that returns nearly all frames of the generator is not the limit.

    A veth accepts every frame and drops those without room, so the accepted rate is the sender's
    own rate, beside this path.
    """
    arm.ceiling_share = median_of(
        t.frames.received / t.frames.accepted
        for t in own
        if t.valid and t.frames.accepted and t.frames.received is not None
    )
    if arm.ceiling_share is not None and arm.ceiling_share >= CEILING_SHARE:
        arm.limited_by = "generator"


def _sender(arms: Sequence[ArmSummary]) -> Ceiling | None:
    """Return the rate that the generator put on the wire, by the path beside it; the greatest is
    its own ceiling.
    """
    sent = {each.arm: rate for each in arms if (rate := each.generator_tx_mpps)}
    if not sent:
        return None
    return Ceiling(pps=max(sent.values()) * 1e6, peer=GENERATOR, measured_mpps=sent)


# -- comparisons ---------------------------------------------------------------------------------


def loads_of(cell: CellSummary) -> list[float]:
    """Return the shares of the common rate that were offered, rising."""
    return sorted({each.load_share for each in cell.lower_load})


def rate_pairs(cell: CellSummary, trials: list[Trial], labels: list[str]) -> CellPairs:
    """Pair every path with the reference by its received rate in a flood."""
    return pair_arms(cell, RECEIVED, trials, labels, planned=blocks_of(trials), primary=True)


def _pairs(cell: CellSummary, trials: list[Trial], labels: list[str]) -> list[CellPairs]:
    mine = [t for t in trials if t.cell.key == cell.key]
    low = [t for t in mine if t.role == "lower-load"]
    planned, loads = blocks_of(low), loads_of(cell)
    rates = rate_pairs(cell, [t for t in mine if t.role == "measure"], labels)
    costs = pair_at_loads(cell, low, labels, planned, CPU_TIME, loads)
    result = led([rates], costs, costs_lead=bool(limits(cell)))
    for metric in (COMMON_MEDIAN_LATENCY, COMMON_HIGH_LATENCY):
        result += pair_at_loads(cell, low, labels, planned, metric, loads)
    return result


def summarise(setup: Setup, trials: list[Trial], *, interrupted: bool) -> Summary:
    """Return the summary."""
    done = {t.cell.key for t in trials}
    found = [
        summarise_cell(cell, setup.arms, trials, setup.line_rate)
        for cell in setup.cells
        if cell.key in done
    ]
    labels = [arm.label for arm in setup.arms]
    pairs = [each for cell in found for each in _pairs(cell, trials, labels)]
    summary = summary_of(setup, trials, found, pairs, interrupted=interrupted)
    summary.bands = bands(summary.cells, summary.comparisons)
    summary.warnings += [
        f"{cell.link} {cell.size} B: no path brought back a frame of a flood, so that there is no "
        "rate that all carry, and nothing was measured at fixed loads"
        for cell in found
        if cell.common_pps is None
    ]
    return summary
