# SPDX-License-Identifier: BSD-3-Clause
"""`linerate compare`: check if a forwarder became slower from one run to another.

Two runs never share a moment, and on a shared machine absolute rates of two moments are not
comparable (docs/how-it-measures.md#ratios-within-a-block). Each arm's ratio to its baseline within
a setup is: the first run has some such ratios, the second others, and the ratio of the two ratios
has an interval by unpaired statistics (`linerate.verdict.unpaired`). Anything that slows both arms
equally cancels; so does a change of the baseline itself, which is why changed programs are named.
If link or generator limit an arm, rates say nothing about programs: cycles per packet at fixed
lower loads, again as ratios, answer instead.

A verdict is that of `linerate.verdict.margin`, with two more rules: "slower" needs Holm's p over
all comparisons below ALPHA, and limited rates are "undecided". Comparisons are "invalid" if

- the control (the A/A arm: one program against itself) differed between the runs by more than the
  lab's own margin, in the same cell by the same metric at the same load;
- a program lost frames at a fixed load, or fewer than half of a run's blocks were valid.

A control that differs by less forbids verdicts about differences that are no larger than its own. A
control that is wrong by the same factor in both runs cancels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ConfigDict, Field

from linerate.host.errors import RunError
from linerate.host.text import probability
from linerate.records.cells import cell_words
from linerate.records.run_file import made_of
from linerate.records.types import Strict
from linerate.runs.agreement import refuse_unlike
from linerate.runs.experiment import Comparable, Control, Experiment, Gate, Sample
from linerate.runs.kept.stored import Stored
from linerate.runs.provenance import (
    apart,
    changed_definitions,
    changed_programs,
    deciding,
    telling,
)
from linerate.runs.registry import find
from linerate.verdict import stats, unpaired
from linerate.verdict.judgement import MARGIN, too_few
from linerate.verdict.margin import beyond, border, left_out
from linerate.verdict.stats import ALPHA, MIN_COUNT
from linerate.verdict.unpaired import Shift

Verdict = Literal["slower", "not slower", "undecided", "invalid"]

# Offered loads further apart than this make other bursts, and so other costs of a packet.
LOADS_ALIKE = 0.1


class RunName(Strict):
    """One of the two runs."""

    directory: str
    id: str
    started_at: str
    trials: int
    complete: bool


class Change(Strict):
    """One figure of one arm, from the first run to the second."""

    link: str
    size: int
    arm: str
    baseline: str
    metric: str
    better: Literal["higher", "lower"]
    load_share: float | None = Field(
        default=None, description="share of the ceiling, at a fixed load"
    )
    before: float | None = Field(default=None, description="arm over baseline in the first run")
    after: float | None = Field(default=None, description="arm over baseline in the second run")
    n_before: int
    n_after: int
    ratio: float | None = Field(
        default=None, description="after divided by before: a ratio of ratios"
    )
    ci_low: float | None = None
    ci_high: float | None = None
    test: unpaired.Test | None = None
    p_holm: float | None = Field(
        default=None, description="p of the hypothesis that it is slower by exactly the margin"
    )
    held_back: bool = Field(
        default=False, description="a limit other than the programs, or different loads: no answer"
    )
    verdict: Verdict
    reason: str
    sentence: str


class Missing(Strict):
    """A figure of an arm that the second run does not have."""

    link: str
    size: int
    arm: str
    baseline: str
    metric: str
    load_share: float | None = None


class Regression(Strict):
    """The output of `linerate compare --json`."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    schema_id: Literal["linerate/compare-1"] = Field(default="linerate/compare-1", alias="schema")
    experiment: str
    margin: float
    before: RunName
    after: RunName
    changes: list[Change]
    missing: list[Missing] = Field(
        default_factory=list, description="figures that the first run has and the second lacks"
    )
    notes: list[str]

    @property
    def slower(self) -> bool:
        return any(change.verdict == "slower" for change in self.changes)

    @property
    def undecided(self) -> bool:
        """True if a figure of an arm in a cell has no answer, or is missing in the second run.

        Limited rates have no answer: there, the costs at lower loads must have one.
        """
        arms: dict[tuple[str, int, str], list[Change]] = {}
        for change in self.changes:
            every = arms.setdefault((change.link, change.size, change.arm), [])
            if not change.held_back:
                every.append(change)
        return bool(self.missing) or any(
            not every or any(each.verdict in ("undecided", "invalid") for each in every)
            for every in arms.values()
        )


def schema() -> dict[str, Any]:
    document = Regression.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **document}


@dataclass(frozen=True)
class _Both:
    """The same figure of both runs, and why it has no verdict.

    `drift`: log of the ratio by which the control differs between the runs; 0 if the difference is
    not significant.
    """

    before: Sample
    after: Sample
    unsound: str | None
    drift: float
    shift: Shift | None
    p: float | None

    @property
    def logs(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        return self.before.logs, self.after.logs


def compare(before: Stored, after: Stored, margin: float) -> Regression:
    """Compare two runs; raises `RunError` if that is impossible."""
    refuse(before, after)
    experiment = find(before.run.experiment)
    found = [_comparable(experiment, each) for each in (before, after)]
    common = _common(before, after, *found)
    controls = _controls(*found)
    both = [_pair(one, other, controls.get(one.gate), margin) for one, other in common]
    tested = [each for each in both if each.p is not None]
    holm = stats.holm([each.p for each in tested if each.p is not None])
    p_holm = {id(each): p for each, p in zip(tested, holm, strict=True)}
    return Regression(
        experiment=before.run.experiment,
        margin=margin,
        before=_name(before),
        after=_name(after),
        changes=[_change(each, p_holm.get(id(each)), margin) for each in both],
        missing=_missing(*found),
        notes=_notes(before, after, *found),
    )


def _comparable(experiment: Experiment[Any, Any], run: Stored) -> Comparable:
    with made_of(run.directory):
        return experiment.comparable(run.run, run.trials)


def refuse(before: Stored, after: Stored) -> None:
    """Raise `RunError` for two runs whose ratios are not the same figure."""
    names = f"{before.directory} and {after.directory}"
    if before.run.experiment != after.run.experiment:
        raise RunError(
            f"{names} are of different experiments: {before.run.experiment} and "
            f"{after.run.experiment}"
        )
    if before.run.ids & after.run.ids:
        raise RunError(f"{names} hold the same run", "name two runs that were measured apart")
    experiment = find(before.run.experiment)
    refuse_unlike(
        experiment.decisive(before.run.design),
        experiment.decisive(after.run.design),
        "compare runs that were asked the same; seed and number of blocks may differ",
    )
    one, other = before.run.sessions[0], after.run.sessions[0]
    if ran := apart(one, other, dpdk_may_differ=True):
        raise RunError(
            f"{names} {ran}. The ratio of two programs can differ between the two, so nothing is "
            "compared",
            "run both on one machine with the same set-up, for instance with --hugepages no",
        )


def _name(run: Stored) -> RunName:
    return RunName(
        directory=str(run.directory),
        id=run.run.id,
        started_at=run.run.sessions[0].started_at,
        trials=len(run.trials),
        complete=run.run.complete(len(run.trials)),
    )


def _common(
    before: Stored, after: Stored, first: Comparable, second: Comparable
) -> list[tuple[Sample, Sample]]:
    if not first.samples and not second.samples:
        raise RunError(
            f"{before.directory} and {after.directory} have no figure in common: neither has one "
            f"that runs of experiment {before.run.experiment} are compared by",
            "linerate report DIR DIR --out DIR takes runs of one design together",
        )
    others = {sample.key: sample for sample in second.samples}
    common = [(sample, others[sample.key]) for sample in first.samples if sample.key in others]
    if not common:
        raise RunError(
            f"{before.directory} and {after.directory} have no figure in common: no arm with the "
            "same baseline on the same link at the same size",
            "compare runs with the same forwarders, links and sizes",
        )
    return common


def _missing(first: Comparable, second: Comparable) -> list[Missing]:
    """Return the figures of the first run that the second does not have. Reported even if other
    figures answer: it may have become slower at the missing one.
    """
    there = {each.key for each in second.samples}
    lacking = {each.key: each for each in first.samples if each.logs and each.key not in there}
    return [
        Missing(
            link=each.link,
            size=each.size,
            arm=each.arm,
            baseline=each.baseline,
            metric=each.metric,
            load_share=each.load_share,
        )
        for _, each in sorted(lacking.items())
    ]


@dataclass(frozen=True)
class _Drift:
    """The difference of the control between the runs. `unsound`: why nothing beside it has a
    verdict; `log`: as in `_Both`.
    """

    unsound: str | None = None
    log: float = 0.0


def _controls(first: Comparable, second: Comparable) -> dict[Gate, _Drift]:
    others = {each.gate: each for each in second.controls}
    return {one.gate: _drift(one, others[one.gate]) for one in first.controls if one.gate in others}


def _drift(one: Control, other: Control) -> _Drift:
    for which, control in (("first", one), ("second", other)):
        if len(control.logs) < MIN_COUNT:
            return _Drift(f"the {which} run's A/A arm has too few valid blocks")
    shift = unpaired.compare(one.logs, other.logs)
    p, found = shift.p(), shift.interval
    if found and (found.low > math.log(1 + MARGIN) or found.high < math.log(1 - MARGIN)):
        return _Drift(
            "the A/A arm, one program against itself, differs between the runs "
            f"(ratio {math.exp(shift.estimate):.3f}, {probability(p, 3)})"
        )
    return _Drift(log=shift.estimate if p < ALPHA else 0.0)


def _pair(before: Sample, after: Sample, control: _Drift | None, margin: float) -> _Both:
    control = control or _Drift()
    unsound = control.unsound or _lossy(before, after) or _lost_blocks(before, after)
    if min(len(before.logs), len(after.logs)) == 0:
        return _Both(before, after, unsound, control.log, None, None)
    shift = unpaired.compare(before.logs, after.logs)
    told = unsound or _held_back(before, after) or shift.interval is None
    p = None if told else shift.p(math.log(border(before.better, margin)))
    return _Both(before, after, unsound, control.log, shift, p)


def _lossy(before: Sample, after: Sample) -> str | None:
    for which, sample in (("first", before), ("second", after)):
        if sample.unsound:
            return f"in the {which} run {sample.unsound}"
    return None


def _lost_blocks(before: Sample, after: Sample) -> str | None:
    for which, sample in (("first", before), ("second", after)):
        if few := too_few(len(sample.logs), sample.planned, sample.zero_blocks):
            return f"in the {which} run {few}"
    return None


def _held_back(before: Sample, after: Sample) -> str | None:
    """Return why a change of this figure would say nothing about the programs."""
    for which, sample in (("first", before), ("second", after)):
        if sample.obstacle:
            return f"in the {which} run {sample.obstacle}, so rates say nothing about the programs"
    if before.level and after.level:
        apart = max(before.level, after.level) / min(before.level, after.level) - 1
        if apart > LOADS_ALIKE:
            return (
                f"the loads are not alike: {before.level / 1e6:.2f} and "
                f"{after.level / 1e6:.2f} Mpps were offered"
            )
    return None


def _judge(both: _Both, p_holm: float | None, margin: float) -> tuple[Verdict, str]:
    """Apply the rules; those that forbid a verdict come first."""
    zeros = both.before.zero_blocks + both.after.zero_blocks
    if both.shift is None:
        lacking = f"; {left_out(zeros)}" if zeros else ""
        return "invalid", f"a run has no block with valid trials of both{lacking}"
    if both.unsound:
        return "invalid", both.unsound
    if held := _held_back(both.before, both.after):
        return "undecided", held
    if min(both.shift.counts) < MIN_COUNT or both.shift.interval is None or p_holm is None:
        return "undecided", f"fewer than {MIN_COUNT} blocks in a run"
    better, found = both.before.better, both.shift.interval
    side, why = beyond(
        math.exp(found.low), math.exp(found.high), better=better, margin=margin, zero_blocks=zeros
    )
    if side != "slower":
        return side, why
    if p_holm >= ALPHA:
        return "undecided", f"Holm's p over all comparisons is {p_holm:.3f}, not below {ALPHA:g}"
    far, drift = (found.high, both.drift) if better == "higher" else (-found.low, -both.drift)
    if drift < 0 and far >= drift:
        return (
            "undecided",
            "the A/A arm, one program against itself, differs as far between the runs "
            f"(ratio {math.exp(both.drift):.3f})",
        )
    return side, why


def _change(both: _Both, p_holm: float | None, margin: float) -> Change:
    verdict, reason = _judge(both, p_holm, margin)
    sample, shift = both.before, both.shift
    result = Change(
        link=sample.link,
        size=sample.size,
        arm=sample.arm,
        baseline=sample.baseline,
        metric=sample.metric,
        better=sample.better,
        load_share=sample.load_share,
        n_before=len(both.before.logs),
        n_after=len(both.after.logs),
        held_back=_held_back(both.before, both.after) is not None,
        verdict=verdict,
        reason=reason,
        sentence="",
    )
    if shift:
        result.before, result.after = (math.exp(_middle(logs)) for logs in both.logs)
        result.ratio = math.exp(shift.estimate)
        result.test = shift.test
        result.p_holm = p_holm
        if shift.interval:
            result.ci_low = math.exp(shift.interval.low)
            result.ci_high = math.exp(shift.interval.high)
    result.sentence = sentence(result, sample.words, margin)
    return result


def _middle(logs: tuple[float, ...]) -> float:
    return stats.hodges_lehmann(logs)


def sentence(change: Change, words: str, margin: float) -> str:
    """Return the verdict in words; decides nothing."""
    where = f"On {cell_words(change.link, change.size, ' at ')}"
    what = f"{change.arm} against {change.baseline}"
    if change.ratio is None:
        return f"{where}, nothing can be said of {what}: {change.reason}."
    numbers = f"ratio of ratios {change.ratio:.3f}"
    if change.ci_low is not None and change.ci_high is not None:
        numbers += f", 95 % interval {change.ci_low:.3f} to {change.ci_high:.3f}"
    numbers += f", {change.n_before} and {change.n_after} blocks"
    border = f"{margin * 100:g} %"
    if change.verdict == "slower":
        return (
            f"{where}, {what} has become slower by more than {border}, measured by {words} "
            f"({numbers})."
        )
    if change.verdict == "not slower":
        return (
            f"{where}, {what} has not become slower by {border}, measured by {words} ({numbers})."
        )
    if change.verdict == "undecided":
        return (
            f"{where}, these runs cannot tell whether {what} has become slower by {border}, "
            f"measured by {words} ({numbers}): {change.reason}."
        )
    return f"{where}, no verdict on {what} by {words} ({numbers}): {change.reason}."


def _notes(before: Stored, after: Stored, first: Comparable, second: Comparable) -> list[str]:
    """Return the other differences between the runs, in words."""
    one, other = before.run.sessions[0], after.run.sessions[0]
    notes = [f"{name} is another build in the second run" for name in changed_programs(one, other)]
    notes += [
        f"{name} has another definition in the second run"
        for name in changed_definitions(one, other)
    ]
    differing = [*deciding(one, other), *telling(one, other)]
    if differing:
        notes.append(f"the runs differ in {'; '.join(differing)}")
    for run in (before, after):
        if not run.run.complete(len(run.trials)):
            notes.append(f"{run.directory} ended early: compared are the trials done until then")
    ours, theirs = ({sample.key: sample for sample in each.samples} for each in (first, second))
    for run, mine, others in ((before, ours, theirs), (after, theirs, ours)):
        if alone := [mine[key] for key in sorted(mine.keys() - others.keys())]:
            named = ", ".join(
                f"{each.arm} on {cell_words(each.link, each.size, ' at ')} by {each.words}"
                for each in alone
            )
            notes.append(f"figures only {run.directory} has, not compared: {named}")
    return notes
