# SPDX-License-Identifier: BSD-3-Clause
"""Takeaways of all tests: a statement for each effect and each trend.

They were not chosen beforehand, so all of a kind are corrected together by Holm. Verdicts are as in
`takeaways`.
"""

from __future__ import annotations

from collections.abc import Sequence

from linerate.experiments.cloud.factorial import sizes
from linerate.experiments.cloud.factorial.answers.takeaways import (
    Answer,
    Takeaway,
    caveats,
    delta_of,
    difference_words,
    estimate,
    place_words,
)
from linerate.experiments.cloud.factorial.contrasts import contrasts, inside_margin
from linerate.experiments.cloud.factorial.design import Observations, crossed
from linerate.experiments.cloud.factorial.effects import Analysis, Effect
from linerate.experiments.cloud.factorial.trends import Trend
from linerate.host.text import counted
from linerate.verdict import stats
from linerate.verdict.judgement import MARGIN
from linerate.verdict.stats import ALPHA, MIN_COUNT

# A smaller p is shown as smaller than this.
_LEAST_TOLD = 1e-4


def effects_found(analysis: Analysis, observations: Observations) -> list[Takeaway]:
    """Return a statement for each main effect and interaction of an analysis, Holm's correction
    over all.

    A main effect whose contrasts all lie inside the margin is not held; an interaction cannot be.
    """
    return [_effect(each, analysis, crossed(observations)) for each in analysis.effects]


def _effect(effect: Effect, analysis: Analysis, observations: Observations) -> Takeaway:
    alone = len(effect.term) == 1
    interval = effect.interval()
    few = analysis.blocks < MIN_COUNT
    verdict: Answer = "held" if effect.p_holm < ALPHA and not few else "undecided"
    reason = f"Holm's p over {counted(len(analysis.effects), 'effect')} is {effect.p_holm:.4f}"
    if analysis.least_p * len(analysis.effects) >= ALPHA:
        reason += f"; {analysis.permutations} permutations cannot reach {ALPHA:g}"
    if few:
        reason += f"; {counted(analysis.blocks, 'block')}, of which {MIN_COUNT} or more are needed"
    ranks = effect.ranked
    if verdict == "held" and ranks and ranks.aligned and ranks.p >= ALPHA:
        reason += f"; by aligned ranks p is {ranks.p:.3f}, so some extreme values may decide"
    least = sizes.detectable_share(
        effect.df, effect.df_error, ALPHA / max(1, len(analysis.effects))
    )
    if verdict == "undecided" and least is not None:
        reason += (
            f"; {counted(analysis.blocks, 'block')} find a partial eta squared of {least:.3f} "
            "in four of five runs"
        )
    if alone and observations.scale == "log":
        pairs = contrasts(observations, effect.term[0])
        if all(each.verdict == "equal" for each in pairs):
            verdict = "not held"
            reason = f"on average all levels lie inside +-{MARGIN * 100:.0f} % of each other"
    return Takeaway(
        _effect_statement(effect.term, observations.metric),
        observations.metric,
        effect.term,
        "Freedman-Lane permutation within blocks",
        verdict,
        reason + caveats(observations),
        p=effect.p_holm,
        measure="partial eta squared",
        effect=effect.partial_eta2,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        compared=" x ".join(effect.term),
        detectable=least,
    )


def _effect_statement(term: Sequence[str], metric: str) -> str:
    if len(term) == 1:
        return f"{metric} depends on {term[0]}, on average over the other factors"
    *others, last = term
    whose = "effect" if len(others) == 1 else "joint effect"
    return f"the {whose} of {' and '.join(others)} on {metric} depends on {last}"


def trends_found(
    trends: Sequence[Trend], metric: str, over: Sequence[str] | None = None
) -> list[Takeaway]:
    """Return a statement for each trend, Holm's correction over all of them.

    `over`: the variable of each trend, in words, such as `the number of network tenants`.
    """
    words = over or [f"{each.factor}{place_words(each.within)}" for each in trends]
    adjusted = iter(stats.holm([each.found.p for each in trends if each.found]))
    return [
        _trend(each, next(adjusted) if each.found else None, metric, with_what)
        for each, with_what in zip(trends, words, strict=True)
    ]


def _trend(trend: Trend, p_holm: float | None, metric: str, over: str) -> Takeaway:
    ends = f"{trend.levels[-1]} against {trend.levels[0]}{place_words(trend.within)}"
    about = (trend.factor, *(name for name, _ in trend.within))
    test = "Page's test in blocks, two-sided"
    if trend.found is None or p_holm is None:
        few = len(trend.levels) < 3
        reason = "a trend takes three levels" if few else "no block has values of every level"
        statement = f"{metric} changes with {over}"
        return Takeaway(statement, metric, about, test, "undecided", reason)
    verdict: Answer = "undecided"
    word = "changes"
    told = f"p {p_holm:.4f}" if p_holm >= _LEAST_TOLD else f"p below {_LEAST_TOLD:.4f}"
    reason = f"{told}, {counted(trend.blocks, 'block')}"
    if trend.flat:
        verdict = "not held"
        reason = f"every level lies inside +-{MARGIN * 100:.0f} % of the first"
    elif p_holm < ALPHA and not (trend.ends and inside_margin(trend.ends)):
        verdict = "held"
        word = "rises" if trend.found.statistic > trend.found.mean else "falls"
    if verdict == "undecided" and trend.ends and inside_margin(trend.ends):
        reason += (
            f"; the last level lies inside +-{MARGIN * 100:.0f} % of the first, and one between "
            "is not shown to"
        )
    elif verdict == "undecided" and trend.blocks < MIN_COUNT:
        reason += f", of which {MIN_COUNT} or more are needed"
    elif verdict == "undecided" and trend.detectable is None:
        reason += "; how much the runs spread is not known"
    elif verdict == "undecided":
        words = difference_words(trend.detectable, trend.ends is not None)
        reason += f"; {words} between the ends is found in four of five runs"
    found = trend.ends or trend.shift
    effect, low, high = estimate(found)
    return Takeaway(
        f"{metric} {word} with {over}",
        metric,
        about,
        test,
        verdict,
        reason,
        p=p_holm,
        measure="difference" if trend.shift else "ratio",
        effect=effect,
        low=low,
        high=high,
        compared=f"{trend.factor} {ends}" if found else "",
        detectable=trend.detectable,
        cliffs_delta=delta_of(found),
    )
