# SPDX-License-Identifier: BSD-3-Clause
"""Summarise the records of a run of `cloud`. Pure: the records decide everything."""

from __future__ import annotations

from datetime import datetime

from linerate.experiments.cloud.analysis.figures import cells, own_rates
from linerate.experiments.cloud.analysis.not_run import not_run
from linerate.experiments.cloud.analysis.takeaways import takeaways
from linerate.experiments.cloud.analysis.windows import Windows, windows_of
from linerate.experiments.cloud.design.design import CloudDesign
from linerate.experiments.cloud.design.estimate import estimate
from linerate.experiments.cloud.design.levels import FACTORS, in_order
from linerate.experiments.cloud.session.isolation import isolation
from linerate.experiments.cloud.window import beside_of, levels_of
from linerate.records.cells import AA_SUFFIX
from linerate.records.cloud_summary import CloudAnswers
from linerate.records.summary import CellSummary, Summary
from linerate.records.trial import Trial
from linerate.runs.run_summary import Setup, books_of, summary_of
from linerate.verdict.arms import arm_of

ACCELERATORS = {
    "kvm": "KVM: the processor runs them itself",
    "tcg": "TCG: every instruction is emulated, for this machine lets nobody use KVM",
}


def summarise(
    setup: Setup, design: CloudDesign, trials: list[Trial], *, interrupted: bool
) -> Summary:
    """Return the summary."""
    windows = windows_of(trials)
    told = takeaways(windows, design)
    rates = own_rates(design, trials)
    nobody_beside = [t for t in trials if (levels := levels_of(t)) and not levels.tenants]
    summary = summary_of(
        setup,
        trials,
        _cells(setup, trials),
        [],
        interrupted=interrupted,
        undisturbed=nobody_beside,
    )
    summary.takeaways = told.entries
    summary.cloud = CloudAnswers(
        factors=_factors(windows, design),
        reference=design.reference,
        control=told.control,
        own_rates=rates,
        cells=cells(windows, design),
        not_run=not_run(design, windows, rates, interrupted=interrupted),
        estimated_s=estimate(design).seconds,
        took_s=_took(trials, summary.started_at, summary.finished_at),
        accelerator=_accelerator(trials),
        isolation=isolation(design),
    )
    return summary


def _cells(setup: Setup, trials: list[Trial]) -> list[CellSummary]:
    """Return the cells by link and size, with the number of windows of each framework."""
    found = []
    for cell in setup.cells:
        mine = [trial for trial in trials if (trial.cell.key, trial.role) == (cell.key, "measure")]
        arms = []
        for arm in setup.arms:
            own = [trial for trial in mine if trial.arm == arm.label]
            if own:
                arms.append(arm_of(arm, own))
        if arms:
            found.append(
                CellSummary(
                    link=cell.link,
                    size=cell.size,
                    blocks=cell.blocks,
                    arms=arms,
                    references=[],
                    lower_load=[],
                    books_closed=books_of(mine)[0],
                )
            )
    return found


def _factors(windows: Windows, design: CloudDesign) -> dict[str, list[str]]:
    """Return the levels with a valid window."""
    valid = {place for place, trial in windows.measured if trial.valid}
    own = [
        place
        for place in design.places
        if place in valid and not place.framework.endswith(AA_SUFFIX)
    ]
    return {factor: in_order(factor, [place.level(factor) for place in own]) for factor in FACTORS}


def _accelerator(trials: list[Trial]) -> str | None:
    """Return the accelerator in words; sessions, and merged runs, may have had different ones."""
    every = [each.accelerator for trial in trials if (each := beside_of(trial))]
    found = dict.fromkeys(each for each in every if each)
    return ", in other sessions ".join(ACCELERATORS[each] for each in found) or None


def _took(trials: list[Trial], started_at: str, finished_at: str) -> float | None:
    """Return the duration (s) of a run of one session; between two sessions nothing is measured."""
    if any(trial.session > 1 for trial in trials):
        return None
    try:
        took = datetime.fromisoformat(finished_at) - datetime.fromisoformat(started_at)
    except (TypeError, ValueError):  # not in ISO 8601, or not in one zone
        return None
    return max(0.0, took.total_seconds())
