# SPDX-License-Identifier: BSD-3-Clause
"""Observations: one value for each block and cell of crossed factors, some missing.

`Observations.values` has the blocks along its first axis and the levels of each factor along one
more, in the order of `factors`. NaN is a missing value; it is listed and never replaced.

Rates are compared as ratios, so they are on the log scale (`"log"`), on which a 0 is missing, too,
and counted separately. Loss, of which many values are 0, is used directly (`"linear"`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from linerate.host.errors import DesignError
from linerate.verdict.stats import Floats

Scale = Literal["log", "linear"]
# A block, the level of every factor, and the value; None: the run was invalid.
Row = tuple[str, Mapping[str, str], float | None]


@dataclass(frozen=True)
class Factor:
    """A factor. `ordered`: the levels are given from the least to the most."""

    name: str
    levels: tuple[str, ...]
    ordered: bool = False

    def __post_init__(self) -> None:
        if not self.levels or len(set(self.levels)) < len(self.levels):
            raise DesignError(
                f"factor {self.name}: its levels are {list(self.levels)}",
                "give at least one level, and each once",
            )

    def index(self, level: str) -> int:
        """Return the index of a level. Raises DesignError for a level that the factor does not
        have.
        """
        try:
            return self.levels.index(level)
        except ValueError:
            raise DesignError(
                f"factor {self.name} has no level {level}", f"it has: {', '.join(self.levels)}"
            ) from None


@dataclass(frozen=True)
class Missing:
    """A missing value; `zero`: it is 0, which has no logarithm."""

    block: str
    levels: tuple[str, ...]
    zero: bool = False


@dataclass(frozen=True)
class Dropped:
    """A level that was left out because cells of it have no value in any block."""

    factor: str
    level: str


@dataclass(frozen=True, eq=False)
class Observations:
    """The data. `values`: shape (blocks, levels of the first factor, of the second, ...), in
    `unit`.
    """

    metric: str
    factors: tuple[Factor, ...]
    blocks: tuple[str, ...]
    values: Floats
    scale: Scale = "log"
    unit: str = ""
    dropped: tuple[Dropped, ...] = ()

    def __post_init__(self) -> None:
        names = [factor.name for factor in self.factors]
        if not names or len(set(names)) < len(names):
            raise DesignError(f"the factors are {names}", "give at least one, and each once")
        if len(set(self.blocks)) < len(self.blocks):
            raise DesignError("two blocks have the same name", "number the blocks")
        shape = (len(self.blocks), *self.shape)
        if self.values.shape != shape:
            raise DesignError(
                f"{self.metric}: values of shape {self.values.shape} for a design of {shape}",
                "give one value for each block and cell, NaN where it is missing",
            )
        if np.isinf(self.values).any() or (self.values < 0).any():
            raise DesignError(
                f"{self.metric}: a value is negative or infinite",
                "rates and losses are neither; mark what was not measured as missing",
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of levels."""
        return tuple(len(factor.levels) for factor in self.factors)

    @property
    def scaled(self) -> Floats:
        """The values on the scale of the analysis, of the shape of `values`."""
        if self.scale == "linear":
            return self.values
        return np.log(np.where(self.values > 0, self.values, np.nan))

    @property
    def zeros(self) -> int:
        """The number of values that are 0."""
        return int(np.count_nonzero(self.values == 0))

    @property
    def missing(self) -> tuple[Missing, ...]:
        """Every value that the analysis lacks, by block and cell."""
        found = []
        for place in np.argwhere(~np.isfinite(self.scaled)):
            block, *levels = (int(index) for index in place)
            names = (f.levels[i] for f, i in zip(self.factors, levels, strict=True))
            zero = bool(self.values[tuple(place)] == 0)
            found.append(Missing(self.blocks[block], tuple(names), zero))
        return tuple(found)

    @property
    def empty(self) -> NDArray[np.bool_]:
        """True for each cell without a value in any block; of shape `shape`."""
        return np.asarray(~np.isfinite(self.scaled).any(axis=0))

    def axis(self, name: str) -> int:
        """Return the axis of `values` of a factor. Raises DesignError if there is no such
        factor.
        """
        for place, factor in enumerate(self.factors, start=1):
            if factor.name == name:
                return place
        named = ", ".join(factor.name for factor in self.factors)
        raise DesignError(f"no factor is called {name}", f"there are: {named}")

    def factor(self, name: str) -> Factor:
        return self.factors[self.axis(name) - 1]

    def has(self, name: str, *levels: str) -> bool:
        """Return True if there is a factor of that name with all these levels."""
        found = next((factor for factor in self.factors if factor.name == name), None)
        return found is not None and set(levels) <= set(found.levels)

    def keeping(self, name: str, levels: Sequence[str]) -> Observations:
        """Return the observations at some levels of a factor, in the order given."""
        axis, factor = self.axis(name), self.factor(name)
        factors = list(self.factors)
        factors[axis - 1] = replace(factor, levels=tuple(levels))
        values = np.take(self.values, [factor.index(level) for level in levels], axis=axis)
        return replace(self, factors=tuple(factors), values=values)

    def at(self, levels: Mapping[str, str]) -> Observations:
        """Return the observations at one level of each factor named."""
        found = self
        for name, level in levels.items():
            found = found.keeping(name, [level])
        return found


def observe(
    metric: str,
    factors: Sequence[Factor],
    rows: Iterable[Row],
    *,
    scale: Scale = "log",
    unit: str = "",
) -> Observations:
    """Return observations from rows in any order; blocks are in the order of their first row.

    Raises DesignError for a level or factor that is not in the design, a second value for one block
    and cell, and values that are not finite or negative.
    """
    names = {factor.name for factor in factors}
    found: dict[tuple[str, tuple[int, ...]], float] = {}
    blocks: dict[str, int] = {}
    for block, levels, value in rows:
        if set(levels) != names:
            raise DesignError(
                f"{metric}, block {block}: a row has levels of {sorted(levels)}",
                f"the factors are: {', '.join(sorted(names))}",
            )
        place = tuple(factor.index(levels[factor.name]) for factor in factors)
        blocks.setdefault(block, len(blocks))
        if (block, place) in found:
            raise DesignError(
                f"{metric}, block {block}: two values for {dict(levels)}",
                "a block has one run of each cell; number the blocks apart",
            )
        if value is not None and not math.isfinite(value):
            raise DesignError(
                f"{metric}, block {block}: the value is {value}", "mark it as missing by None"
            )
        found[block, place] = math.nan if value is None else value
    shape = (len(blocks), *(len(factor.levels) for factor in factors))
    values = np.full(shape, np.nan)
    for (block, place), value in found.items():
        values[(blocks[block], *place)] = value
    return Observations(metric, tuple(factors), tuple(blocks), values, scale, unit)


def crossed(observations: Observations) -> Observations:
    """Remove the levels whose cells have no values, so that every remaining cell has some.

    The level with the largest share of empty cells is removed first, until there are none; among
    equal ones that of the factor with most levels, and of these the last. They are named in
    `dropped`. Blocks without any value are removed, too.
    """
    found = observations
    while found.empty.any():
        shares = list(_empty_shares(found))
        if not shares:
            raise DesignError(
                f"{found.metric}: no cells that are crossed have values",
                "measure more blocks, or fewer levels",
            )
        _, _, _, name, level = max(shares)
        kept = [each for each in found.factor(name).levels if each != level]
        dropped = (*found.dropped, Dropped(name, level))
        found = replace(found.keeping(name, kept), dropped=dropped)
    filled = np.flatnonzero(np.isfinite(found.scaled).reshape(len(found.blocks), -1).any(axis=1))
    blocks = tuple(found.blocks[place] for place in filled)
    return replace(found, blocks=blocks, values=found.values[filled])


def _empty_shares(found: Observations) -> Iterator[tuple[float, int, int, str, str]]:
    """Yield the share of empty cells of each level that may be removed, and the key that breaks
    ties between levels.
    """
    for place, factor in enumerate(found.factors):
        others = tuple(axis for axis in range(len(found.factors)) if axis != place)
        shares = found.empty.mean(axis=others)
        if len(factor.levels) > 1:
            for index, level in enumerate(factor.levels):
                yield float(shares[index]), len(factor.levels), index, factor.name, level


def relative_to(observations: Observations, name: str, level: str) -> Observations:
    """Return ratios to the value of the same block and cell at one level of a factor, which is left
    out.

    A ratio is missing if either value is. Raises DesignError on a linear scale.
    """
    if observations.scale != "log":
        raise DesignError(f"{observations.metric} has no ratios", "compare it by differences")
    axis = observations.axis(name)
    rest = [each for each in observations.factor(name).levels if each != level]
    baseline = np.exp(observations.keeping(name, [level]).scaled)
    kept = observations.keeping(name, rest)
    # A factor's axis of length 1 stretches over the levels that are left.
    assert baseline.shape[axis] == 1
    return replace(
        kept,
        values=np.exp(kept.scaled) / baseline,
        metric=f"{observations.metric} relative to {level} {name}",
        unit="",
    )


def pooled(
    observations: Observations, name: str, groups: Mapping[str, Sequence[str]]
) -> Observations:
    """Return the observations with groups of a factor's levels as its levels: means on the scale of
    the analysis.

    A value is missing if one of its group's is, because the mean of the others would be of
    something else. Raises DesignError for an empty group.
    """
    axis = observations.axis(name)
    parts = []
    for group, levels in groups.items():
        if not levels:
            raise DesignError(
                f"{observations.metric}: {name} {group} is empty", "name levels of it"
            )
        parts.append(observations.keeping(name, levels).scaled.mean(axis=axis))
    values = np.stack(parts, axis=axis)
    factors = list(observations.factors)
    factors[axis - 1] = Factor(name, tuple(groups))
    if observations.scale == "log":
        values = np.exp(values)
    return replace(observations, factors=tuple(factors), values=values)


def combinations(observations: Observations, names: Sequence[str]) -> Iterator[dict[str, str]]:
    """Return every combination of levels of some factors; for no factors, the single empty one."""
    levels = [observations.factor(name).levels for name in names]
    for chosen in itertools.product(*levels):
        yield dict(zip(names, chosen, strict=True))
