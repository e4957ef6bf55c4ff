# SPDX-License-Identifier: BSD-3-Clause
"""The rows of the tables of experiment `rfc2544`: figures of the summary, counts of the records."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from linerate.experiments.rfc2544.page.published import PublishedRow
from linerate.experiments.rfc2544.results import Searched
from linerate.experiments.rfc2544.summarise import Searches
from linerate.records.cells import AA_SUFFIX
from linerate.records.summary import ArmSummary, CellSummary, Summary
from linerate.records.summary_figures import GoalFigure, LatencyFigure, Quartiles, SearchFigures
from linerate.records.trial import Trial
from linerate.trial.search.replay import RATE_TOLERANCE
from linerate.verdict.ceiling import LINE_RATE


@dataclass(frozen=True)
class Counted:
    """Sums over the valid windows of the throughput test at the rate that their search found."""

    windows: int
    duration_s: float
    sent: int
    received: int

    @property
    def loss_share(self) -> float:
        return (self.sent - self.received) / self.sent


@dataclass(frozen=True)
class Row:
    """One forwarder at one size; `goal` is the first, which allows no loss."""

    cell: CellSummary
    arm: ArmSummary
    figures: SearchFigures
    goal: GoalFigure
    counted: Counted | None
    reference: bool

    @property
    def control(self) -> bool:
        return self.arm.arm.endswith(AA_SUFFIX)

    @property
    def sent_bytes(self) -> int | None:
        return self.counted.sent * self.cell.size if self.counted else None

    @property
    def mpps(self) -> Quartiles | None:
        """The throughput, or a lower bound of it (`least`)."""
        return pps.scaled(1e-6) if (pps := self.goal.rate.pps) else None

    @property
    def least(self) -> bool:
        return self.goal.is_bound

    @property
    def at_throughput(self) -> LatencyFigure | None:
        """The latency at the throughput itself."""
        return next((each for each in self.figures.latency if each.share == 1), None)

    @property
    def reproduced(self) -> PublishedRow | None:
        """The row by the published arithmetic."""
        if self.counted is None:
            return None
        latency = self.at_throughput
        jitter = latency.jitter_us if latency else None
        return PublishedRow(
            language=self.arm.arm,
            size=self.cell.size,
            duration_s=self.counted.duration_s,
            tx_packets=self.counted.sent,
            rx_packets=self.counted.received,
            latency_avg_us=latency.mean_us.median if latency else None,
            latency_max_us=latency.maximum_us if latency else None,
            latency_jitter_us=jitter.median if jitter else None,
        )


def line_rate_known(cells: Iterable[CellSummary]) -> bool:
    """Return True if 100 % is a line rate, and not a reference peer's rate."""
    return any(cell.ceiling and cell.ceiling.peer == LINE_RATE for cell in cells)


def rows_of(summary: Summary, searches: Searches) -> list[Row]:
    """Return the rows by cell: the arms, then the reference peer."""
    found: list[Row] = []
    for cell in summary.cells:
        goal = next((a.search.goals[0].goal for a in cell.arms if a.search), "")
        counts = _counts(searches.get((cell.link, cell.size), []), goal)
        references = {id(arm) for arm in cell.references}
        found += [
            Row(
                cell=cell,
                arm=arm,
                figures=arm.search,
                goal=arm.search.goals[0],
                counted=counts.get(arm.arm),
                reference=id(arm) in references,
            )
            for arm in [*cell.arms, *cell.peers]
            if arm.search and arm.search.goals
        ]
    return found


def _counts(units: Sequence[Searched], goal: str) -> dict[str, Counted]:
    """Return the counts by arm, without arms for which no search found a rate."""
    return {
        arm: counted
        for arm in dict.fromkeys(each.arm for each in units)
        if (counted := _sum([each for each in units if each.arm == arm], goal))
    }


def _sum(units: list[Searched], goal: str) -> Counted | None:
    windows = [trial for each in units for trial in _at_rate(each, goal)]
    if not windows:
        return None
    return Counted(
        windows=len(windows),
        duration_s=math.fsum(trial.frames.duration_s or 0.0 for trial in windows),
        sent=sum(trial.frames.intended or 0 for trial in windows),
        received=sum(trial.frames.received or 0 for trial in windows),
    )


def _at_rate(each: Searched, goal: str) -> list[Trial]:
    throughput = each.unit.throughput
    rate = throughput.carried(goal) if throughput else None
    if rate is None:
        return []
    return [
        trial
        for trial in each.trials
        if trial.valid
        and trial.request.test == "throughput"
        and trial.request.pps
        and trial.frames.duration_s
        and trial.frames.intended
        and trial.frames.received is not None
        and math.isclose(trial.request.pps, rate, rel_tol=RATE_TOLERANCE)
    ]
