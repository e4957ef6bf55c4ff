# SPDX-License-Identifier: BSD-3-Clause
"""Select the cells of a summary that are shown together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from linerate.experiments.cloud.design.levels import (
    CPU,
    FACTORS,
    FRAMEWORK,
    KIND,
    LOAD,
    RATE,
    SIZE,
    TENANTS,
    Place,
    in_order,
)
from linerate.experiments.cloud.window import CloudCell
from linerate.records.cells import AA_SUFFIX
from linerate.records.cloud_summary import CloudAnswers, CloudCellFigures


def place_of(cell: CloudCellFigures) -> Place:
    return Place(
        cell.framework,
        cell.size,
        CloudCell(
            kind=cell.kind, load=cell.load, tenants=cell.tenants, cpu=cell.cpu, rate=cell.rate
        ),
    )


def in_design_order(cloud: CloudAnswers) -> list[CloudCellFigures]:
    """Return cells in the order of the design's levels; they were measured in a random order.

    Frameworks are in the order of their own rates, each followed by its control.
    """
    names = [own.framework for own in cloud.own_rates]
    names += [cell.framework.removesuffix(AA_SUFFIX) for cell in cloud.cells]
    order = {factor: levels_of(cloud.cells, factor) for factor in FACTORS if factor != FRAMEWORK}
    frameworks = list(dict.fromkeys(names))

    def key(cell: CloudCellFigures) -> tuple[int, ...]:
        place = place_of(cell)
        label = cell.framework
        return (
            frameworks.index(label.removesuffix(AA_SUFFIX)),
            *(order[f].index(place.level(f)) for f in (SIZE, RATE, CPU, KIND, LOAD, TENANTS)),
            label.endswith(AA_SUFFIX),
        )

    return sorted(cloud.cells, key=key)


def drawn(cells: Iterable[CloudCellFigures]) -> list[CloudCellFigures]:
    """Return the cells without the control, which is shown only in tables."""
    return [cell for cell in cells if not cell.framework.endswith(AA_SUFFIX)]


def main_setting(cells: Sequence[CloudCellFigures]) -> list[CloudCellFigures]:
    """Return the cells at the rate and CPU share that most cells with tenants have."""
    there = drawn(cells)
    counts: dict[tuple[str, float], int] = defaultdict(int)
    for cell in there:
        counts[cell.cpu, cell.rate] += 1 if cell.tenants else 0
    if not counts:
        return []
    cpu, rate = max(counts, key=lambda setting: counts[setting])
    return [cell for cell in there if (cell.cpu, cell.rate) == (cpu, rate)]


def levels_of(cells: Sequence[CloudCellFigures], factor: str) -> list[str]:
    return in_order(factor, [place_of(cell).level(factor) for cell in cells])
