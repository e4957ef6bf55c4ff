# SPDX-License-Identifier: BSD-3-Clause
"""Random permutations within groups, and their p value."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from linerate.experiments.cloud.factorial.space import Integers
from linerate.verdict.stats import Floats

# The number of values permuted at a time.
_AT_A_TIME = 2_000_000
# Statistics that differ by less than this share are the same.
_TIED = 1e-9


def orders(groups: Integers, count: int, seed: int) -> Iterator[Integers]:
    """Yield `count` orders of shape (n,), in pieces of shape (m, n): `values[order]` moves each
    value within its group only. `groups`: of shape (n,), numbers from 0.
    """
    source = np.random.default_rng(seed)
    sorted_places = np.argsort(groups, kind="stable")
    sorted_groups = groups[sorted_places]
    piece = max(1, _AT_A_TIME // groups.size)
    for begin in range(0, count, piece):
        keys = source.random((min(piece, count - begin), groups.size)) + sorted_groups
        found = np.empty(keys.shape, dtype=np.intp)
        found[:, sorted_places] = sorted_places[np.argsort(keys, axis=1)]
        yield found


def reached(statistics: Floats, observed: float) -> int:
    """Return how many statistics are at least as large as the observed one."""
    return int(np.count_nonzero(statistics >= observed * (1 - _TIED)))


def p_value(reached_by: int, count: int) -> float:
    """Return the p value, which is never 0: the observation is one of the permutations (Phipson and
    Smyth, Stat. Appl. Genet. Mol. Biol. 9(1), 2010).
    """
    return (reached_by + 1) / (count + 1)
