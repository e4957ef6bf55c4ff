# SPDX-License-Identifier: BSD-3-Clause
"""Test if a factor matters at all: its main effect and every interaction it has, in one exact test.

If it does not matter, its levels are only names: within a block and a combination of the other
factors, values are exchangeable. Only such permutations are tried. The test is therefore exact for
any distributions, even if they differ between blocks and between levels of other factors, as those
of loss do, of which many values are 0.

Source: Anderson and ter Braak, J. Stat. Comput. Simul. 73(2), 2003 (restricted permutation).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linerate.experiments.cloud.factorial import sizes
from linerate.experiments.cloud.factorial.design import Observations, crossed
from linerate.experiments.cloud.factorial.effects import PERMUTATIONS
from linerate.experiments.cloud.factorial.fratio import FRatio
from linerate.experiments.cloud.factorial.permute import orders, p_value, reached
from linerate.experiments.cloud.factorial.space import Integers, Space
from linerate.host.errors import DesignError


@dataclass(frozen=True)
class Whole:
    """The result. `f` is of main effect and interactions together, `least_p` the smallest p
    possible here.
    """

    factor: str
    df: int
    df_error: int
    f: float
    p: float
    permutations: int
    least_p: float

    @property
    def partial_eta2(self) -> float:
        return sizes.partial_eta2(self.f, self.df, self.df_error)


def any_effect(
    observations: Observations, factor: str, *, permutations: int = PERMUTATIONS, seed: int = 1
) -> Whole:
    """Run the test. Raises DesignError if fewer than two levels of the factor have values, and as
    `Space`.
    """
    found = crossed(observations)
    if len(found.factor(factor).levels) < 2:
        raise DesignError(
            f"{found.metric}: {factor} has fewer than two levels with values", "measure more levels"
        )
    space = Space(found)
    ratio = FRatio(space, space.whole(factor), space.values - space.values.mean())
    reached_by = sum(
        reached(ratio.permuted(piece), ratio.observed)
        for piece in orders(_groups(space, factor), permutations, seed)
    )
    return Whole(
        factor,
        ratio.df,
        space.df_error,
        ratio.observed,
        p_value(reached_by, permutations),
        permutations,
        p_value(0, permutations),
    )


def _groups(space: Space, factor: str) -> Integers:
    """Return, for each value, the number of its block and its combination of levels of the other
    factors.
    """
    shape = space.observations.shape
    levels = list(np.unravel_index(space.cell, shape))
    del levels[space.observations.axis(factor) - 1]
    others = [count for place, count in enumerate(shape, 1)
              if place != space.observations.axis(factor)]  # fmt: skip
    combined = np.ravel_multi_index((space.block, *levels), (space.blocks, *others))
    return np.asarray(np.unique(combined, return_inverse=True)[1], dtype=np.intp)
