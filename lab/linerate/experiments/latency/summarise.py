# SPDX-License-Identifier: BSD-3-Clause
"""Summarise the records of a run. Pure: the records decide everything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linerate.experiments.latency.design import LatencyDesign
from linerate.experiments.latency.figures import (
    flood_pps,
    insides,
    low_loads,
    round_trips,
    trials_at,
)
from linerate.experiments.latency.loads import IDLE, INSIDE_LOADS, LOADS, LOW_LOAD, Step
from linerate.records.cells import Arm, Cell
from linerate.records.outcome import Clock
from linerate.records.summary import ArmSummary, CellSummary, Summary
from linerate.records.summary_figures import LatencySummary
from linerate.records.trial import Protocol, Trial
from linerate.runs.run_summary import Setup, books_of, summary_of
from linerate.verdict.arms import arm_of, median_of, quartiles
from linerate.verdict.comparisons import CellPairs, blocks_of, pair_arms
from linerate.verdict.metrics import HIGH_ROUND_TRIP, INSIDE, ROUND_TRIP, TrialMetric
from linerate.verdict.programs import program_of


@dataclass
class Asked(Setup):
    """A `Setup` with this experiment's own parameters."""

    protocols: tuple[Protocol, ...] = ()


def asked_of(setup: Setup, design: LatencyDesign) -> Asked:
    return Asked(**vars(setup), protocols=design.protocols)


def summarise(asked: Asked, trials: list[Trial], *, interrupted: bool) -> Summary:
    """Return the summary."""
    done = {t.cell.key for t in trials}
    found = [summarise_cell(cell, asked, trials) for cell in asked.cells if cell.key in done]
    pairs = [each for cell in found for each in pairs_of_cell(cell, asked, trials)]
    summary = summary_of(asked, trials, found, pairs, interrupted=interrupted)
    summary.clock = clock_of(trials)
    return summary


def clock_of(trials: list[Trial]) -> Clock | None:
    """Return the clock of the sender of the first trial."""
    return next((t.frames.clock for t in trials if t.frames.latency and t.frames.clock), None)


def of_cell(cell: Cell | CellSummary, trials: list[Trial]) -> list[Trial]:
    return [t for t in trials if t.cell.key == cell.key]


def searched(trials: Sequence[Trial], test: str) -> list[Trial]:
    return [t for t in trials if t.role == "search" and t.request.test == test]


def summarise_cell(cell: Cell, asked: Asked, trials: list[Trial]) -> CellSummary:
    """Return arms and books of one link and size; arms that do not fit the link have no trials."""
    mine = of_cell(cell, trials)
    arms = [arm for arm in asked.arms if any(t.arm == arm.label for t in mine)]
    low = searched(mine, "latency")
    return CellSummary(
        link=cell.link,
        size=cell.size,
        blocks=cell.blocks,
        arms=[
            _arm(arm, cell, asked, [t for t in mine if t.arm == arm.label], mine) for arm in arms
        ],
        references=[],
        lower_load=[
            each
            for arm in arms
            for each in low_loads([t for t in low if t.arm == arm.label], arm.label)
        ],
        low_load_share=LOW_LOAD,
        books_closed=books_of(mine)[0],
    )


def _arm(arm: Arm, cell: Cell, asked: Asked, own: list[Trial], trials: list[Trial]) -> ArmSummary:
    """Return an arm's summary. `own`: the arm's trials, of `trials`, those of the cell."""
    program = program_of(own, arm.forwarder)
    floods = [t for t in own if t.request.load == "flood"]
    # At idle without a capacity, `maximum_pps` holds a placeholder.
    loaded = [t for t in searched(own, "latency") if t.request.maximum_pps != t.request.pps]
    return arm_of(
        arm,
        own,
        received_mpps=quartiles(
            t.frames.received_pps / 1e6
            for t in floods
            if t.valid and t.frames.received_pps is not None
        ),
        latency=LatencySummary(
            flood_pps=flood_pps(trials, cell, arm.forwarder),
            capacity_pps=median_of(t.request.maximum_pps for t in loaded),
            round_trips=round_trips(searched(own, "latency"), asked.protocols, program.tx_buffer),
            packet_sender=round_trips(searched(own, "ping"), asked.protocols, program.tx_buffer)
            or None,
            inside=insides(searched(own, "spans"), asked.protocols),
        ),
    )


def pairs_of_cell(cell: CellSummary, asked: Asked, trials: list[Trial]) -> list[CellPairs]:
    """Pair every arm with the baseline. The median round trip at idle answers the question."""
    mine = of_cell(cell, trials)
    labels = [arm.arm for arm in cell.arms]
    if asked.arms[0].label not in labels:
        return []
    found = []
    for place, protocol in enumerate(asked.protocols):
        for metric, test, loads in (
            (ROUND_TRIP[protocol], "latency", LOADS),
            (HIGH_ROUND_TRIP[protocol], "latency", LOADS),
            (INSIDE[protocol], "spans", INSIDE_LOADS),
        ):
            for load in loads:
                here = trials_at_step(mine, test, Step(protocol, load))
                first = place == 0 and metric is ROUND_TRIP[protocol] and load == IDLE
                # The metric that answers the question is listed even if nothing is known.
                if first or any(t.valid and metric.value(t) is not None for t in here):
                    found.append(pairs_at(cell, metric, here, labels, load, primary=first))
    return found


def trials_at_step(trials: list[Trial], test: str, step: Step) -> list[Trial]:
    return trials_at(searched(trials, test), step)


def pairs_at(
    cell: CellSummary,
    metric: TrialMetric,
    trials: list[Trial],
    labels: list[str],
    load: float,
    *,
    primary: bool = False,
) -> CellPairs:
    """Pair every arm with the baseline, by one metric of the trials of one step."""
    planned = blocks_of(trials)
    return pair_arms(
        cell, metric, trials, labels, planned=planned, primary=primary, load_share=load
    )
