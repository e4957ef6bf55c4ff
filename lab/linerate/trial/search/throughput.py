# SPDX-License-Identifier: BSD-3-Clause
"""Throughput (RFC 2544, 26.1), NDR and PDR: a search by the MLRsearch library (RFC 9971).

The library chooses loads and durations and classifies the loads; this module runs the trials and
converts the answer to a result. One search finds all goals. Rates are frames per second over all
directions together, as everywhere in `linerate.trial.search`.

With `bounds` a load at which all windows were disturbed does not end the search. It continues
below, as if that load and all above it had lost half of their frames; its result is then the
throughput if a lower load lost frames, and otherwise a lower bound (`disturbed_above`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from MLRsearch import Config, GoalResult, MeasurementResult, MultipleLossRatioSearch, SearchGoal

from linerate.host.errors import DisturbedError, TrialError, UsageError
from linerate.trial.search.device import Device
from linerate.trial.search.goals import Goal
from linerate.trial.search.procedure import ATTEMPTS, Invalid, Result, Trials, invalid

# Default least load: this share of the greatest.
MIN_SHARE = 0.001
# Coarser targets that the library reaches for first, with shorter trials.
PRECEDING_TARGETS = 2

# Why a bound is missing. at_maximum: the greatest load reached the goal, so the sender or the link
# is the limit. below_minimum: not even the least load did. disturbed_above: in windows at greater
# loads the sender or the forwarder was kept from its CPU.
State = Literal["found", "at_maximum", "below_minimum", "disturbed_above"]


@dataclass(frozen=True)
class Found:
    """The result of a search for one goal.

    `lower_pps`: the relevant lower bound, the greatest load that reached the goal below the least
    one that did not, `upper_pps`. `conditional_pps`: the forwarding rate at the lower bound (RFC
    9971, Conditional Throughput): with zero loss the bound itself.
    """

    goal: Goal
    state: State
    lower_pps: float | None
    upper_pps: float | None
    conditional_pps: float | None

    @property
    def width(self) -> float | None:
        """The distance of the bounds as a share of the upper one; None without both."""
        if self.lower_pps is None or self.upper_pps is None:
            return None
        return (self.upper_pps - self.lower_pps) / self.upper_pps


@dataclass(frozen=True, kw_only=True)
class Throughput(Result):
    """One `Found` for each goal, by the goal's name; empty if `invalid` says why.

    `held`: for goals that no load reached, the greatest load that met the goal in the few trials it
    had (`held`), with `bounds`. `deviations` are those of all goals.
    """

    found: dict[str, Found] = field(default_factory=dict)
    held: Mapping[str, float] = field(default_factory=dict)

    def carried(self, goal: str) -> float | None:
        """Return the proven rate of a goal: a throughput, or a lower bound of one."""
        found = self.found.get(goal)
        return self.held.get(goal) if found is None else found.lower_pps or self.held.get(goal)


def search(
    device: Device,
    goals: Sequence[Goal],
    *,
    limit_s: float,
    min_pps: float | None = None,
    max_pps: float | None = None,
    attempts: int = ATTEMPTS,
    bounds: bool = False,
) -> Throughput:
    """Search between `min_pps` and `max_pps` (default: the device's own).

    Raises `UsageError` for invalid loads or goals.
    """
    top = device.max_pps if max_pps is None else max_pps
    bottom = top * MIN_SHARE if min_pps is None else min_pps
    if not 0 < bottom < top <= device.max_pps:
        raise UsageError(
            f"loads from {bottom:.0f} to {top:.0f} packets/s: they must rise from above 0 to at "
            f"most {device.max_pps:.0f}",
            "change the least or the greatest load",
        )
    if len({goal.name for goal in goals}) != len(goals) or not goals:
        raise UsageError("goals: each needs a name of its own, and there must be one", "name them")
    trials = Trials(device, attempts, bounds=bounds)
    measurer = _Measurer(trials, bounds=bounds)
    theirs = {goal.name: _theirs(goal) for goal in goals}
    config = Config(
        # Two goals may differ by name only; the library wants each once.
        goals=tuple(dict.fromkeys(theirs.values())),
        min_load=bottom,
        max_load=top,
        search_duration_max=limit_s,
        warmup_duration=None,
    )
    found: dict[str, Found] = {}
    reason: Invalid | None = None
    try:
        answer = MultipleLossRatioSearch(config).search(measurer, debug=_quiet)
        for goal in goals:
            if one := _found(goal, answer[theirs[goal.name]], measurer.disturbed_pps):
                found[goal.name] = one
        if not found and measurer.disturbed:
            reason = invalid(measurer.disturbed)
    except TrialError as error:
        reason = invalid(error)
    except RuntimeError as error:
        # The library has no other way to say that the time is over, or that it got lost.
        reason = unfinished(str(error))
    bound: dict[str, float] = {}
    if bounds:
        for goal in goals:
            reached = found.get(goal.name)
            if (reached is None or reached.lower_pps is None) and (
                pps := held(goal, measurer.valid)
            ):
                bound[goal.name] = pps
    return Throughput(
        found=found,
        held=bound,
        invalid=reason,
        effort=trials.effort(),
        deviations=tuple(dict.fromkeys(each for goal in goals for each in goal.deviations)),
    )


def unfinished(why: str) -> Invalid:
    """Return the reason for a search that ended without an answer."""
    return Invalid("error", f"the search ended before its goal: {why}")


class _Measurer:
    """The measurer interface of the library."""

    def __init__(self, trials: Trials, *, bounds: bool) -> None:
        self._trials = trials
        self._bounds = bounds
        # The valid ones, in their order.
        self.valid: list[Tried] = []
        # The least load at which all windows were disturbed, and how.
        self.disturbed_pps = math.inf
        self.disturbed: DisturbedError | None = None

    def measure(self, intended_duration: float, intended_load: float) -> MeasurementResult:
        if intended_load >= self.disturbed_pps:
            return self._disturbed(intended_duration, intended_load)
        try:
            result = self._measured(intended_duration, intended_load)
        except DisturbedError as error:
            if not self._bounds:
                raise
            self.disturbed_pps, self.disturbed = intended_load, error
            return self._disturbed(intended_duration, intended_load)
        self.valid.append(Tried(intended_load, intended_duration, result.loss_ratio))
        return result

    @staticmethod
    def _disturbed(seconds: float, pps: float) -> MeasurementResult:
        """Return a result that makes the library continue at lower loads. Half is lost, because the
        library uses the forwarding rate as a hint.
        """
        frames = max(round(pps * seconds), 2)
        return MeasurementResult(
            intended_duration=seconds,
            intended_load=pps,
            offered_count=frames,
            forwarding_count=frames // 2,
        )

    def _measured(self, intended_duration: float, intended_load: float) -> MeasurementResult:
        outcome = self._trials.send(intended_load, intended_duration)
        # The duration is the intended one: a sender that stops some microseconds early would
        # leave each sum of durations short, and each of them would cost one more trial.
        return MeasurementResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            offered_count=outcome.intended,
            forwarding_count=outcome.intended - outcome.lost,
        )


def _theirs(goal: Goal) -> SearchGoal:
    return SearchGoal(
        loss_ratio=goal.loss_ratio,
        exceed_ratio=goal.exceed_ratio,
        relative_width=goal.width,
        initial_trial_duration=goal.initial_s,
        final_trial_duration=goal.final_s,
        duration_sum=goal.sum_s,
        preceding_targets=PRECEDING_TARGETS,
        # Otherwise one goal that the least load misses would end the search for all.
        fail_fast=False,
    )


@dataclass(frozen=True)
class Tried:
    """A valid trial at one rate."""

    pps: float
    seconds: float
    loss_ratio: float


def held(goal: Goal, trials: Sequence[Tried]) -> float | None:
    """Return the greatest load that met the goal in the trials it had, below the least that did
    not.

    Meeting it does not need the full sum of seconds: the share of the time in trials that lost too
    much must be within the goal's limit. If the least load did not, the greatest with one trial
    that did.
    """
    spent: dict[float, tuple[float, float]] = {}
    for trial in trials:
        good, bad = spent.get(trial.pps, (0.0, 0.0))
        if trial.loss_ratio <= goal.loss_ratio:
            good += trial.seconds
        else:
            bad += trial.seconds
        spent[trial.pps] = (good, bad)
    greatest: float | None = None
    for load, (good, bad) in sorted(spent.items()):
        if bad > goal.exceed_ratio * (good + bad):
            break
        greatest = load
    return greatest or max((load for load, (good, _) in spent.items() if good), default=None)


def _found(goal: Goal, result: GoalResult, disturbed_pps: float) -> Found | None:
    """Convert a goal's result; None if no load reached the goal, and the least that did not could
    not be tried.
    """
    lower, upper = result.relevant_lower_bound, result.relevant_upper_bound
    state: State = "found"
    if upper is not None and float(upper) >= disturbed_pps:
        if lower is None:
            return None
        state, upper = "disturbed_above", None
    elif upper is None:
        state = "at_maximum"
    elif lower is None:
        state = "below_minimum"
    return Found(
        goal=goal,
        state=state,
        lower_pps=None if lower is None else float(lower),
        upper_pps=None if upper is None else float(upper),
        conditional_pps=None if lower is None else float(result.conditional_throughput),
    )


def _quiet(text: str) -> None:
    """Discard the library's message about each step."""
