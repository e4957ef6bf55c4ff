# SPDX-License-Identifier: BSD-3-Clause
"""Figures of cells over some factors, averaged over the others, for the charts of `cloud`.

A design is a union of parts: not every level of a factor was measured at all levels of the others.
An average may therefore compare only equal settings: of the settings of the other factors, those
with the same, largest, set of levels are used.

A cell without tenants has neither load nor kind. Over tenants it stands at 0 of every load and
kind; over load or kind at `none`, for every number of tenants.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from linerate.experiments.cloud.design.levels import (
    CPU,
    FACTORS,
    FRAMEWORK,
    KIND,
    LOAD,
    RATE,
    SIZE,
    TENANTS,
    in_order,
)
from linerate.experiments.cloud.design.settings import drawn, place_of
from linerate.records.cloud_summary import CloudCellFigures
from linerate.records.summary_figures import Quartiles

Levels = tuple[str, ...]
Read = Callable[[CloudCellFigures], Quartiles | None]
_BESIDE = (KIND, LOAD, TENANTS)


@dataclass(frozen=True)
class Point:
    """A point. `levels`: of the requested factors, in their order. `low`, `high`: the 95 % interval
    over blocks of its single cell, or the middle half of several cells.
    """

    levels: Levels
    value: float
    low: float | None
    high: float | None
    cells: int


@dataclass(frozen=True)
class Averaged:
    """The points. `settings`: of the other factors, for each point, by factor."""

    about: tuple[str, ...]
    points: list[Point]
    settings: list[dict[str, str]]

    def levels(self, factor: str) -> list[str]:
        """Return the levels that have points, in the factor's order."""
        at = self.about.index(factor)
        return in_order(factor, [point.levels[at] for point in self.points])


def averaged(cells: Sequence[CloudCellFigures], about: Sequence[str], read: Read) -> Averaged:
    """Return medians over the settings of the other factors."""
    factors = tuple(sorted(set(about), key=FACTORS.index))
    rest = [factor for factor in FACTORS if factor not in factors]
    beside = sorted(
        {tuple(str(getattr(cell, name)) for name in _BESIDE) for cell in cells if cell.tenants}
    )
    by_setting: dict[Levels, dict[Levels, Quartiles]] = defaultdict(dict)
    for cell in drawn(cells):
        if (figure := read(cell)) is None:
            continue
        for where in _wheres(cell, beside, factors):
            setting = tuple(where[factor] for factor in rest)
            by_setting[setting][tuple(where[factor] for factor in factors)] = figure
    kept = _alike(by_setting)
    settings = [dict(zip(rest, setting, strict=True)) for setting in kept]
    # The figures of cells that stand for many settings, once each.
    behind: dict[Levels, dict[int, Quartiles]] = defaultdict(dict)
    for found in kept.values():
        for levels, figure in found.items():
            behind[levels][id(figure)] = figure
    points = [_point(levels, list(figures.values())) for levels, figures in behind.items()]
    return Averaged(factors, points, settings)


def _wheres(
    cell: CloudCellFigures, beside: Sequence[Levels], about: Levels
) -> list[dict[str, str]]:
    """Return the positions of a cell: several for one without tenants, if they concern it.

    `beside`: the existing combinations of kind, load and number of tenants.
    """
    place = place_of(cell)
    own = {factor: place.level(factor) for factor in FACTORS}
    if cell.tenants or not set(_BESIDE) & set(about):
        return [own]
    real = {TENANTS} if TENANTS in about else {KIND, LOAD} & set(about)
    found = {
        tuple(own[n] if n in real else level for n, level in zip(_BESIDE, levels, strict=True))
        for levels in beside
    }
    return [own | dict(zip(_BESIDE, levels, strict=True)) for levels in sorted(found)] or [own]


def _alike(
    by_setting: dict[Levels, dict[Levels, Quartiles]],
) -> dict[Levels, dict[Levels, Quartiles]]:
    """Return the settings that share the set of levels with most to draw, reduced to these
    levels.
    """
    sets = dict.fromkeys(frozenset(found) for found in by_setting.values())

    def having(levels: frozenset[Levels]) -> dict[Levels, dict[Levels, Quartiles]]:
        return {name: found for name, found in by_setting.items() if levels <= found.keys()}

    if not sets:
        return {}
    # More levels first: a curve over seven rates says more than a mean over all at one rate.
    best = max(sets, key=lambda levels: (len(levels), len(having(levels))))
    return {
        name: {levels: found[levels] for levels in found if levels in best}
        for name, found in having(best).items()
    }


def _point(levels: Levels, figures: list[Quartiles]) -> Point:
    if len(figures) == 1:
        (only,) = figures
        return Point(levels, only.median, only.low, only.high, 1)
    values = [figure.median for figure in figures]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return Point(levels, statistics.median(values), low, high, len(values))


# Factors in the order of preference for an x axis: numbers first.
X_ORDER = (RATE, TENANTS, CPU, SIZE, LOAD, KIND, FRAMEWORK)
