# SPDX-License-Identifier: BSD-3-Clause
"""Describe how a run of `rfc2544` was measured, in sentences derived from its request and
records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from linerate.experiments.rfc2544.presets import Preset
from linerate.experiments.rfc2544.summarise import Asked
from linerate.host.text import listed
from linerate.records.cells import AA_SUFFIX
from linerate.records.summary import Comparison, Summary
from linerate.records.trial import Test, Trial
from linerate.records.types import LOW_LOAD
from linerate.trial.search.goals import Goal
from linerate.trial.search.recovery import OVERLOAD, REDUCED
from linerate.trial.search.setup_device import Terms
from linerate.verdict.judgement import MARGIN
from linerate.verdict.metrics import METRICS


def percent(share: float) -> str:
    return f"{share * 100:g} %"


def goal_words(goal: Goal) -> str:
    """Describe the conditions of a goal."""
    loses = "lose nothing" if goal.loss_ratio == 0 else f"lose at most {percent(goal.loss_ratio)}"
    together = f", together {goal.sum_s:g} s," if goal.sum_s > goal.final_s else ""
    trials = f"trials of {goal.final_s:g} s{together}"
    if goal.exceed_ratio == 0:
        return f"{trials} {loses}"
    share = "half" if goal.exceed_ratio == 0.5 else percent(1 - goal.exceed_ratio)
    return f"{trials} were made, and at least {share} of them {loses}"


def bed_note(trials: Sequence[Trial]) -> str:
    """Say which programs stay off the forwarder's CPU; unknown for another generator."""
    own = any(
        process.role == "generator" for trial in trials for process in trial.program.processes
    )
    who = "The lab, the generator and all their threads" if own else "The lab and all its threads"
    return (
        f"{who} stay off the forwarder's CPU. Each search starts the forwarder anew and goes "
        "through all its tests; the order of the arms within a block is drawn from the seed."
    )


def tests_done(asked: Asked, trials: Sequence[Trial]) -> list[str]:
    """Return each test that has windows, with its procedure and their duration."""
    windows: dict[Test, list[Trial]] = {}
    for trial in trials:
        if trial.role == "search" and trial.request.test:
            windows.setdefault(trial.request.test, []).append(trial)
    return [
        words(asked.search, mine) for test, words in _TESTS.items() if (mine := windows.get(test))
    ]


def method(summary: Summary, asked: Asked, trials: Sequence[Trial]) -> list[str]:
    """Return paragraphs on how searches were arranged, compared and made void."""
    own = {arm.label for arm in asked.arms}
    control = any(label.endswith(AA_SUFFIX) for label in own)
    arranged = "Searches are interleaved in randomised complete blocks"
    if any(trial.role == "search" and trial.arm not in own for trial in trials):
        arranged += ", with the best reference peer in each"
    if control:
        arranged += (
            ", and the baseline twice (A/A): if that control shows a difference beyond the margin "
            f"of {percent(MARGIN)}, its cell gets no verdict"
        )
    return [f"{arranged}.", *_compared(summary.comparisons), _sent(asked.search.terms)]


def _compared(comparisons: Sequence[Comparison]) -> list[str]:
    if not comparisons:
        return []
    said = "Only searches of one block are compared, with one value per search"
    if len(comparisons) > len({(c.metric, c.link, c.arm) for c in comparisons}):
        said += "; Holm's correction is over the frame sizes and loads of one arm by one metric"
    paragraphs = [f"{said}. Equality is tested first."]
    if ratios := [c for c in comparisons if c.ratio is not None]:
        paragraphs.append(
            "Compared by ratio, with Wilcoxon's signed-rank test; the ratio is Hodges-Lehmann's "
            f"with the classical interval of that test: {_metrics(ratios)}."
        )
    if differences := [c for c in comparisons if c.difference]:
        paragraphs.append(
            "Compared by difference, for a value of 0 has no ratio, with a sign-flip permutation "
            "test; the difference is Hodges-Lehmann's, with Cliff's delta beside it: "
            f"{_metrics(differences)}."
        )
    return paragraphs


def _metrics(comparisons: Sequence[Comparison]) -> str:
    """Format the metrics, each once, with all of its loads."""
    loads: dict[str, dict[str, None]] = {}
    for each in comparisons:
        share = each.load_share
        loads.setdefault(each.metric, {}).update({} if share is None else {percent(share): None})
    return "; ".join(
        METRICS[name].words + (f" at {listed(shares)} of {_whole(name)}" if shares else "")
        for name, shares in loads.items()
    )


def _whole(metric: str) -> str:
    """Name the quantity of which the loads of a metric are shares."""
    of = METRICS[metric].load_of
    return "100 %" if of == "load" else of


def _sent(terms: Terms) -> str:
    said = (
        "A window in which the sender was late or the forwarder waited for its CPU is void and "
        f"counts nowhere; it is sent again, up to {terms.windows} windows for one trial. Counters "
        "are read after the traffic stopped and the link settled"
    )
    if terms.settle_s:
        said += f", and {terms.settle_s:g} s are waited for late frames"
    if terms.rest_s:
        said += f"; {terms.rest_s:g} s pass before the next trial"
    return f"{said}."


# -- tests ---------------------------------------------------------------------------------------


def _seconds(trials: Sequence[Trial]) -> str:
    """Format the shortest to the longest requested duration."""
    asked = [trial.request.seconds for trial in trials if trial.request.seconds]
    return _range(min(asked), max(asked)) if asked else "unknown length"


def _range(low: float, high: float) -> str:
    first, last = f"{low:.3g}", f"{high:.3g}"
    return f"{last} s" if first == last else f"{first} to {last} s"


def _loads(shares: Iterable[float]) -> str:
    return listed(percent(share) for share in sorted(shares))


def _low_load(_: Preset, trials: Sequence[Trial]) -> str:
    return f"Loss at a low load, {percent(LOW_LOAD)} of 100 %, in windows of {_seconds(trials)}."


def _throughput(preset: Preset, trials: Sequence[Trial]) -> str:
    goals = ". ".join(
        f"{goal.name} is the greatest load found that reaches its goal: {goal_words(goal)}"
        for goal in preset.goals
    )
    return (
        "Throughput (RFC 2544, 26.1) is searched by MLRsearch (RFC 9971) in windows of "
        f"{_seconds(trials)}. {goals}."
    )


def _latency(preset: Preset, trials: Sequence[Trial]) -> str:
    return (
        f"Latency (RFC 2544, 26.2), in windows of {_seconds(trials)} at "
        f"{_loads(preset.latency_loads)} of the search's own {preset.goals[0].name}."
    )


def _loss(preset: Preset, trials: Sequence[Trial]) -> str:
    return (
        f"Frame loss (RFC 2544, 26.3), in windows of {_seconds(trials)} from 100 % down by "
        f"{percent(preset.loss_step)}."
    )


def _back_to_back(_: Preset, trials: Sequence[Trial]) -> str:
    longest = max(trial.request.frames or 0 for trial in trials)
    return (
        "Back-to-back frames (RFC 2544, 26.4, and RFC 9004), in bursts of up to "
        f"{longest:,} frames at 100 %."
    )


def _recovery(_: Preset, trials: Sequence[Trial]) -> str:
    then = [trial.request.then_s for trial in trials if trial.request.then_s]
    watched = f" for {_range(min(then), max(then))}" if then else ""
    return (
        f"System recovery (RFC 2544, 26.5): {_seconds(trials)} at {percent(OVERLOAD)} of the "
        f"throughput, at most 100 %, then {percent(REDUCED)} of that rate{watched}."
    )


def _core_use(preset: Preset, trials: Sequence[Trial]) -> str:
    fixed = [round(share, 9) for share in preset.core_use_loads]
    own = any(trial.request.load_share not in fixed for trial in trials)
    said = (
        f"Core use, in windows of {_seconds(trials)} at {_loads(preset.core_use_loads)} of 100 %, "
        "as far as the search's own throughput reaches"
    )
    said += ", and at that throughput" if own else ""
    return said + (
        ", with the probe in the forwarder."
        if any(trial.program.probe for trial in trials)
        else "."
    )


_TESTS: dict[Test, Callable[[Preset, Sequence[Trial]], str]] = {
    "low-load": _low_load,
    "throughput": _throughput,
    "latency": _latency,
    "loss": _loss,
    "back-to-back": _back_to_back,
    "recovery": _recovery,
    "core-use": _core_use,
}
