# SPDX-License-Identifier: BSD-3-Clause
"""The F ratio of a term, for one vector or for thousands of its permutations."""

from __future__ import annotations

import numpy as np

from linerate.experiments.cloud.factorial.space import Integers, Space
from linerate.verdict.stats import Floats

# An error below this share of the sum of squares is rounding.
_NOTHING = 1e-12


class FRatio:
    """Mean square of a term over that of the error of the full model.

    `directions`: the term's, from `Space.term` or `Space.whole`. `values`: of shape (n,). F is
    infinite if there is an effect and no error, and 0 if there is neither.
    """

    def __init__(self, space: Space, directions: Floats, values: Floats) -> None:
        self.df = directions.shape[1]
        self._space, self._directions, self._values = space, directions, values
        self._total = float(values @ values)
        self._blocks = space.sums(values)[: space.blocks]
        self.observed = float(self._of(space.sums(values)))

    def permuted(self, orders: Integers) -> Floats:
        """Return F of each order, (m, n) to (m,). The orders must move values within blocks
        only.
        """
        return self._of(self._space.permuted_sums(self._blocks, self._values[orders]))

    def _of(self, sums: Floats) -> Floats:
        effect = np.square(sums @ self._directions).sum(axis=-1)
        error = self._total - self._space.explained(sums)
        nothing = _NOTHING * self._total
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = (effect / self.df) / (error / self._space.df_error)
        without_error = np.where(effect > nothing, np.inf, 0.0)
        return np.asarray(np.where(error > nothing, ratio, without_error))
