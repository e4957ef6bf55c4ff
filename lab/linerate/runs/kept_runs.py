# SPDX-License-Identifier: BSD-3-Clause
"""Common operations of all experiments on a stored run."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console

from linerate.links import FindLink
from linerate.records.cells import AA_SUFFIX, CellKey
from linerate.records.output import REPORT
from linerate.records.summary import SUMMARY, CellSummary, Summary, dump
from linerate.records.trial import Trial
from linerate.runs.experiment import Comparable, Control, Sample
from linerate.verdict.arms import median_of
from linerate.verdict.ceiling import cost_loads
from linerate.verdict.comparisons import CellPairs, blocks_of, pair_at_loads, pairs_of
from linerate.verdict.judgement import unequal_work
from linerate.verdict.metrics import COST, TrialMetric, words_of


@dataclass(frozen=True)
class SummaryFound(ABC):
    """A run's summary, and the trials and links for its report. Each experiment supplies the page
    and the printed text.
    """

    summary: Summary
    trials: list[Trial]
    link: FindLink

    @staticmethod
    @abstractmethod
    def page(summary: Summary, trials: list[Trial], link: FindLink, /) -> str:
        """Return the report."""

    @staticmethod
    @abstractmethod
    def tell(console: Console, summary: Summary, /) -> None:
        """Print it."""

    def files(self) -> dict[str, str]:
        page = self.page(self.summary, self.trials, self.link)
        return {SUMMARY: dump(self.summary), REPORT: page}

    def show(self, console: Console) -> None:
        self.tell(console, self.summary)


def interrupted_blocks(trials: list[Trial]) -> list[str]:
    """Return a warning if blocks were cut by the end of a session: it costs them pairs."""
    sessions: dict[tuple[CellKey, bool, int], set[int]] = {}
    for trial in trials:
        key = (trial.cell.key, trial.role == "lower-load", trial.block)
        sessions.setdefault(key, set()).add(trial.session)
    cut = sum(len(each) > 1 for each in sessions.values())
    if not cut:
        return []
    return [
        f"{cut} of {len(sessions)} blocks were interrupted and finished in another session: their "
        "trials are paired only within a session, so that some arms have a pair less"
    ]


def logs(pairs: Sequence[tuple[float, float]]) -> tuple[float, ...]:
    """Return the logarithms of the ratios, first over second."""
    return tuple(math.log(a / b) for a, b in pairs)


def rate_sample(
    pairs: CellPairs, label: str, values: Sequence[tuple[float, float]], zero_blocks: int
) -> Sample:
    """Return an arm's rate against its baseline's; a limit of link or generator is an obstacle."""
    limits = {arm.arm: arm.limited_by for arm in pairs.cell.arms}
    held = [name for name in (label, pairs.baseline) if limits.get(name)]
    obstacle = None
    if held:
        by = " or the ".join(dict.fromkeys(str(limits[name]) for name in held))
        was = "was" if len(held) == 1 else "were"
        obstacle = f"{' and '.join(held)} {was} limited by the {by}"
    return Sample(
        link=pairs.cell.link,
        size=pairs.cell.size,
        arm=label,
        baseline=pairs.baseline,
        metric=pairs.metric,
        words=words_of(pairs.metric),
        logs=logs(values),
        planned=pairs.planned,
        zero_blocks=zero_blocks,
        obstacle=obstacle,
    )


def control_sample(pairs: CellPairs, values: Sequence[tuple[float, float]]) -> Control:
    """Return the baseline against itself, by this metric."""
    return Control(
        link=pairs.cell.link,
        size=pairs.cell.size,
        metric=pairs.metric,
        logs=logs(values),
        load_share=pairs.load_share,
    )


def compared_costs(
    cell: CellSummary,
    trials: list[Trial],
    labels: list[str],
    metric: TrialMetric = COST,
    loads: Sequence[float] | None = None,
) -> Comparable:
    """Return the cost of a packet at the fixed lower loads, against the baseline's on the same
    setup.

    `trials`: those at such loads. `labels`: the arms, the baseline first. `loads`: default: those
    where cycles per packet are known.
    """
    baseline = labels[0]
    shares = cost_loads(cell) if loads is None else loads
    found = Comparable()
    for pairs in pair_at_loads(cell, trials, labels, blocks_of(trials), metric, shares):
        mine = [t for t in trials if t.request.load_share == pairs.load_share]
        offered = median_of(_offered_pps(t) for t in mine if t.valid)
        itself = pairs_of(mine, baseline + AA_SUFFIX, baseline, metric)[0]
        found.controls.append(control_sample(pairs, itself))
        found.samples.extend(cost_samples(pairs, mine, metric, offered))
    return found


def cost_samples(
    pairs: CellPairs, trials: list[Trial], metric: TrialMetric, level: float | None
) -> list[Sample]:
    """Return each arm's cost against its baseline's, of the trials at one load. An arm that failed
    in all of them has a sample without a value; an arm of unknown cost has none.
    """
    found = []
    for label in pairs.pairs:
        values, zero_blocks = pairs_of(trials, label, pairs.baseline, metric)
        if not values and not zero_blocks and not _failed(trials, label, pairs.baseline):
            continue
        unequal = unequal_work(pairs.lost_by(label), metric.most_lost)
        sample = Sample(
            link=pairs.cell.link,
            size=pairs.cell.size,
            arm=label,
            baseline=pairs.baseline,
            metric=metric.name,
            words=words_of(metric.name, pairs.load_share),
            logs=logs(values),
            planned=pairs.planned,
            better="lower",
            load_share=pairs.load_share,
            level=level,
            zero_blocks=zero_blocks,
            unsound=unequal.reason if unequal else None,
        )
        found.append(sample)
    return found


def _failed(trials: list[Trial], *labels: str) -> bool:
    """Return True if all trials of one of these arms are invalid. Valid ones have no figure to
    lose.
    """
    return any(
        mine and not any(trial.valid for trial in mine)
        for label in labels
        for mine in [[trial for trial in trials if trial.arm == label]]
    )


def _offered_pps(trial: Trial) -> float | None:
    """Return the offered rate; None for another generator, which does not report for how long it
    sent.
    """
    if trial.frames.attempted and trial.frames.duration_s:
        return trial.frames.attempted / trial.frames.duration_s
    return trial.request.pps
