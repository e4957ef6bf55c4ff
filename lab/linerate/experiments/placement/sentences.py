# SPDX-License-Identifier: BSD-3-Clause
"""Advice in sentences; decides nothing."""

from __future__ import annotations

from collections.abc import Sequence

from linerate.experiments.placement.question import LatencyLimit, Question
from linerate.experiments.placement.record import (
    Answer,
    CarriedRate,
    MeasuredDelay,
    Placement,
    SettingAnswer,
)
from linerate.experiments.placement.words import loads_words, percent, rate
from linerate.host.text import counted
from linerate.runs.compare import LOADS_ALIKE
from linerate.verdict.stats import MIN_COUNT


def question_words(asked: Question) -> str:
    """Return the question in words: `2 Mpps of 64 B, nothing lost, p99 up to 50 us`."""
    lost = f"up to {percent(asked.loss_ratio)} lost" if asked.loss_ratio else "nothing lost"
    limits = "".join(f", {each.name} up to {each.us:g} us" for each in asked.latency)
    return f"{rate(asked.pps)} of {asked.size} B, {lost}{limits}"


def cores_words(cores: int | None) -> str:
    return "an unknown number of cores" if cores is None else counted(cores, "core")


def setting_sentence(found: SettingAnswer) -> str:
    """Return the answer of a setting as a whole."""
    if found.answer == "yes":
        fewest = [each for each in _with(found, "yes") if each.cores == found.cores]
        return f"Yes, on {cores_words(found.cores)}: {_names(fewest)}."
    if found.answer == "no":
        if len(found.placements) == 1:
            return f"No: {_names(found.placements)} does not, and nothing else was measured."
        return f"No: none of the {len(found.placements)} programs that were measured does."
    unclear = _with(found, "undecided")
    if unclear:
        return f"Undecided: the records cannot tell of {_names(unclear)}."
    return f"Not measured: the records do not say it of {_names(_with(found, 'not measured'))}."


def _with(found: SettingAnswer, answer: Answer) -> list[Placement]:
    return [each for each in found.placements if each.answer == answer]


def _names(placements: Sequence[Placement]) -> str:
    return ", ".join(dict.fromkeys(each.forwarder for each in placements))


def placement_sentence(found: Placement, asked: Question) -> str:
    """Return the facts about one program, with the numbers of the runs that have them."""
    rates = telling_rates(found)
    parts = [_rate(each, asked.pps) for each in rates]
    # For a program that does not carry the rate, delays at other loads do not matter.
    for limit in asked.latency if {each.answer for each in rates} != {"no"} else ():
        parts += [_delay(each, limit) for each in telling_delays(found, limit.quantile)]
    return f"{found.forwarder} on {cores_words(found.cores)} {'; '.join(parts)}."


def telling_rates(found: Placement) -> list[CarriedRate]:
    """Return the run with the greatest rate of those that say yes, or the first that says no; both
    if they contradict each other. Without any, those that measured most of it.
    """
    good = sorted((r for r in found.rates if r.answer == "yes"), key=shown_pps, reverse=True)
    bad = [each for each in found.rates if each.answer == "no"]
    order: tuple[Answer, ...] = ("undecided", "not measured")
    rest = ([r for r in found.rates if r.answer == answer] for answer in order)
    return [*good[:1], *bad[:1]] or next((each for each in rest if each), [])


def shown_pps(found: CarriedRate) -> float:
    """Return the lower end of the interval of the carried rate, or the median if there is none."""
    pps = found.reached_pps
    if pps is None:
        return 0.0
    return pps.median if pps.low is None else pps.low


def telling_delays(found: Placement, quantile: str) -> list[MeasuredDelay]:
    """Return the same for one percentile. If nothing is known near the rate, one run is enough."""
    mine = [each for each in found.delays if each.quantile == quantile]
    decided = [each for each in mine if each.answer in ("yes", "no")]
    unclear = [each for each in mine if each.answer == "undecided"]
    elsewhere = [each for each in mine if each.least_pps is not None]
    return decided or unclear or elsewhere[:1] or mine[:1]


def _rate(found: CarriedRate, pps: float) -> str:
    source = f"{found.source}, run {found.run}"
    if found.answer == "not measured":
        return f"is not known to carry {rate(pps)}: {found.reason} ({source})"
    verb = f"did not carry {rate(pps)}:" if found.answer == "no" else f"carried {rate(pps)}"
    void = found.begun - found.blocks
    lacking = f"; {counted(void, 'block')} without a valid result" if void else ""
    return f"{verb} {found.reason} ({source}{lacking}{_interval_needs(found.blocks)})"


def _interval_needs(blocks: int) -> str:
    return f"; an interval needs {MIN_COUNT} blocks" if blocks < MIN_COUNT else ""


def _delay(found: MeasuredDelay, limit: LatencyLimit) -> str:
    if found.answer == "not measured":
        near = f"that rate or up to {percent(LOADS_ALIKE)} above"
        return f"{limit.name} was not measured at {near}: {found.reason} (run {found.run})"
    return (
        f"{limit.name} was within {limit.us:g} us {found.reason}, at {loads_words(found)} "
        f"(run {found.run}{_interval_needs(found.blocks)})"
    )
