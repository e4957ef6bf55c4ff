# SPDX-License-Identifier: BSD-3-Clause
"""Decide if a program carries a rate, from its records in one run: all rules are here.

Each block is one value. A block carries a rate if it carried a load at least as great, below the
least one that lost too much; it does not if a load no greater lost too much. The only assumption is
that a program also carries every rate below one that it carried, as in RFC 2544; for delays this is
not assumed, and nothing is interpolated between two loads. The answer is yes or no if the 95 %
interval of the median over blocks (by order statistics) lies on one side of the question, which
needs 6 blocks.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from linerate.experiments.placement.measured import Group, Window
from linerate.experiments.placement.question import LatencyLimit, Question
from linerate.experiments.placement.record import Answer, CarriedRate, MeasuredDelay, Source
from linerate.experiments.placement.words import loads_words, percent, rate
from linerate.host.text import counted
from linerate.runs.compare import LOADS_ALIKE
from linerate.verdict.arms import median_cut, quartiles
from linerate.verdict.judgement import too_few
from linerate.verdict.stats import MIN_COUNT

# A load that was asked for as a share of a rate comes back with its last digits changed.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class _Block:
    """The result of a block. `missed_pps`: None if no load lost too much."""

    reached_pps: float
    missed_pps: float | None

    def carries(self, pps: float) -> bool:
        return self.reached_pps >= pps * (1 - _ROUNDING)

    def loses(self, pps: float) -> bool:
        return self.missed_pps is not None and self.missed_pps <= pps * (1 + _ROUNDING)


def by_votes(count: int, yes: int, no: int) -> Answer | None:
    """Return the answer of `count` blocks; None if neither side has enough."""
    if count < MIN_COUNT:
        return None
    cut = median_cut(count)
    if count - yes <= cut:
        return "yes"
    return "no" if count - no <= cut else None


# -- rates ---------------------------------------------------------------------------------------


def carried_rate(group: Group, number: int, asked: Question) -> CarriedRate:
    """Return a run's answer for the required rate, from the first source that decides. `number`:
    the run's.
    """
    paced = [each for each in group.windows if each.paced]
    floods = [each for each in group.windows if not each.paced]
    sources: list[tuple[Source, list[_Block], int]] = [
        ("searches", _searches(group, asked.loss_ratio), group.begun.searches),
        # A search's other windows are at loads chosen from its own results.
        (
            "fixed loads",
            [] if group.searched else _blocks(paced, asked.loss_ratio),
            group.begun.paced,
        ),
        ("floods", _blocks(floods, asked.loss_ratio), group.begun.floods),
    ]
    found = [
        _carried(number, source, blocks, begun, group, asked)
        for source, blocks, begun in sources
        if blocks
    ]
    decided = [each for each in found if each.answer in ("yes", "no")]
    held_back = [each for each in found if each.limited_by]
    unclear = [each for each in found if each.answer == "undecided"]
    return [*decided, *unclear, *held_back, *found][0]


def _searches(group: Group, loss_ratio: float) -> list[_Block]:
    """Return the blocks of searches: a goal that allows less loss shows carried loads, one that
    allows more shows those that were not.
    """
    found = []
    for block in dict.fromkeys(each.block for each in group.searched):
        mine = [each for each in group.searched if each.block == block]
        strict = [each.reached_pps for each in mine if each.loss_ratio <= loss_ratio]
        lax = [each.missed_pps for each in mine if each.loss_ratio >= loss_ratio]
        missed = [each for each in lax if each is not None]
        found.append(_Block(max(strict, default=0.0), min(missed, default=None)))
    return found


def _blocks(windows: Sequence[Window], loss_ratio: float) -> list[_Block]:
    found = []
    for block in dict.fromkeys(each.block for each in windows):
        mine = [each for each in windows if each.block == block]
        missed = min((w.most_pps for w in mine if w.loss_ratio > loss_ratio), default=None)
        reached = [
            w.least_pps
            for w in mine
            if w.loss_ratio <= loss_ratio and (missed is None or w.least_pps < missed)
        ]
        found.append(_Block(max(reached, default=0.0), missed))
    return found


def _carried(  # noqa: PLR0917 - what a figure is made of
    number: int,
    source: Source,
    blocks: list[_Block],
    begun: int,
    group: Group,
    asked: Question,
) -> CarriedRate:
    yes = sum(each.carries(asked.pps) for each in blocks)
    no = sum(each.loses(asked.pps) for each in blocks)
    missed = [each.missed_pps for each in blocks if each.missed_pps is not None]
    losses = [w.loss_ratio for w in group.windows if not w.paced] if source == "floods" else []
    # Fixed loads lie below the limit.
    limited_by = None if source == "fixed loads" else group.limited_by
    found = CarriedRate(
        run=number,
        answer="undecided",
        reason="",
        source=source,
        blocks=len(blocks),
        begun=begun,
        carried=yes,
        lost=no,
        reached_pps=quartiles(each.reached_pps for each in blocks),
        at_least=limited_by is not None or 2 * len(missed) < len(blocks),
        limited_by=limited_by,
        missed_pps=statistics.median(missed) if 2 * len(missed) >= len(blocks) else None,
        loss_ratio=statistics.median(losses) if losses else None,
        core_share=quartiles(
            _each_block((w.block, w.core_share) for w in _near(group, asked.pps)).values()
        ),
    )
    found.answer, found.reason = _judged(found, asked)
    return found


def _judged(found: CarriedRate, asked: Question) -> tuple[Answer, str]:
    """Apply the rules; those that decide come first."""
    blocks = counted(found.blocks, "block")
    told = by_votes(found.blocks, found.carried, found.lost)
    unknown = found.blocks - found.carried - found.lost
    sound = too_few(found.blocks, found.begun, 0) is None
    if told == "yes" and sound:
        return told, f"in {found.carried} of {blocks}"
    if found.limited_by and 2 * found.carried <= found.blocks:
        return "not measured", _held_back(found)
    if told == "no" and sound:
        return told, f"{_missed(found, asked)} in {found.lost} of {blocks}"
    if 2 * unknown > found.blocks:
        return "not measured", _beyond(found, asked)
    not_in = f", and did not in {found.lost}" if found.lost else ""
    return "undecided", f"in {found.carried} of {blocks}{not_in}"


def _held_back(found: CarriedRate) -> str:
    most = found.reached_pps.median if found.reached_pps else 0.0
    return f"the {found.limited_by} was the limit" + (f", at {rate(most)}" if most else "")


def _missed(found: CarriedRate, asked: Question) -> str:
    """Describe the loss and its load."""
    lost = f"more than {percent(asked.loss_ratio)}" if asked.loss_ratio else "frames"
    if found.source == "floods" and found.loss_ratio is not None:
        lost = percent(found.loss_ratio)
    at = f" of {rate(found.missed_pps)}" if found.missed_pps else ""
    return f"{_LOADS[found.source]}{at} lost {lost}"


_LOADS: dict[Source, str] = {"searches": "loads", "fixed loads": "loads", "floods": "floods"}


def _beyond(found: CarriedRate, asked: Question) -> str:
    """Return why most blocks do not say if the rate is carried."""
    most = found.reached_pps.median if found.reached_pps else 0.0
    if found.missed_pps is None and not most:
        return "the link held floods back, so that no load was offered at a pace"
    if found.missed_pps is None:
        return {
            "searches": f"all that link and generator could offer was carried, {rate(most)}",
            "fixed loads": f"the greatest load that was offered, {rate(most)}, was carried",
            "floods": f"all that floods offered, {rate(most)}, was carried",
        }[found.source]
    missed = _missed(found, asked)
    if most:
        return f"{rate(most)} was carried, {missed}, and nothing between was offered"
    if found.source == "floods":
        return f"{missed}, which says nothing about lower loads"
    return f"{missed}, and no lower load was carried"


# -- delays --------------------------------------------------------------------------------------


def measured_delay(
    group: Group, number: int, asked: Question, limit: LatencyLimit
) -> MeasuredDelay:
    """Return a run's answer for a delay, from the loads near the required rate."""
    stamped = [each for each in group.windows if each.quantiles_us is not None]
    near = [each for each in _near(group, asked.pps) if each.quantiles_us is not None]
    values = _each_block(
        (each.block, (each.quantiles_us or {}).get(limit.quantile)) for each in near
    )
    loads = [each.least_pps for each in near or stamped]
    found = MeasuredDelay(
        run=number,
        quantile=limit.quantile,
        limit_us=limit.us,
        answer="not measured",
        reason="",
        blocks=len(values),
        within=sum(value <= limit.us for value in values.values()),
        us=quartiles(values.values()),
        least_pps=min(loads, default=None),
        most_pps=max(loads, default=None),
    )
    if not stamped:
        found.reason = "no delays were measured"
    elif not near:
        found.reason = f"delays were measured at {loads_words(found)}"
    elif not values:
        found.reason = f"windows there have no {limit.name}, or too few frames for it"
    else:
        found.answer = (
            by_votes(len(values), found.within, len(values) - found.within) or "undecided"
        )
        found.reason = f"in {found.within} of {counted(len(values), 'block')}"
    return found


def _near(group: Group, pps: float) -> list[Window]:
    """Return paced windows at the required rate, or so little above it that delays and cost are the
    same. A lower load could be too good if a queue begins to fill.
    """
    least, most = pps * (1 - _ROUNDING), pps * (1 + LOADS_ALIKE)
    return [each for each in group.windows if each.paced and least <= each.least_pps <= most]


def _each_block(
    values: Iterable[tuple[tuple[int, int], float | None]],
) -> dict[tuple[int, int], float]:
    """Return the median of each block; none if a window lacks its value, because the others could
    be the better or the worse ones.
    """
    blocks: dict[tuple[int, int], list[float]] = {}
    for block, value in values:
        if value is None:
            return {}
        blocks.setdefault(block, []).append(value)
    return {block: statistics.median(each) for block, each in blocks.items()}
