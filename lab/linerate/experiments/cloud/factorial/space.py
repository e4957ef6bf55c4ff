# SPDX-License-Identifier: BSD-3-Clause
"""The linear model of a blocked factorial, by sums over blocks and cells.

The full model has an effect of each block and one of each cell (B blocks, C cells, n values): every
interaction of factors is in it, and its error is the rest that blocks and cells do not explain. A
term (a main effect or an interaction) is a space of contrasts of cells; it is tested given all
others (sums of squares of type III, with effects that sum to 0), which are orthogonal to it when
nothing is missing.

All projections depend on the n values only by their B + C sums over blocks and cells, because every
column of the model is a combination of their indicators. A vector of coefficients of these is of
shape (B + C,), blocks first. So thousands of permutations cost no more than their sums.

Sources: Seber and Lee, Linear Regression Analysis, 2nd ed., sections 3.5, 8.5 and 8.6; scipy's
`helmert` for orthonormal contrasts.
"""

from __future__ import annotations

import itertools
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from linerate.experiments.cloud.factorial.design import Observations
from linerate.host.errors import DesignError
from linerate.verdict.stats import Floats

Integers = NDArray[np.intp]
# Names of factors, in the order of the design.
Term = tuple[str, ...]

# An eigenvalue below this share of the largest counts as 0.
_RANK = 1e-9


def terms(observations: Observations, order: int) -> list[Term]:
    """Return main effects, then interactions up to `order` factors, of factors with two levels or
    more.
    """
    names = [factor.name for factor in observations.factors if len(factor.levels) > 1]
    sizes = range(1, min(order, len(names)) + 1)
    return [term for size in sizes for term in itertools.combinations(names, size)]


@cache
def _contrasts(shape: tuple[int, ...], varied: frozenset[int], free: frozenset[int]) -> Floats:
    """Return orthonormal contrasts of cells, shape (C, df): over the axes in `varied` they sum to
    0, along those in `free` they are arbitrary, along the others they are constant.
    """
    parts = []
    for axis, count in enumerate(shape):
        if axis in varied:
            parts.append(np.asarray(linalg.helmert(count)).T)
        elif axis in free:
            parts.append(np.eye(count))
        else:
            parts.append(np.full((count, 1), count**-0.5))
    found = np.ones((1, 1))
    for part in parts:
        found = np.asarray(np.kron(found, part), dtype=np.float64)
    found.setflags(write=False)
    return found


class Space:
    """The model for the existing values, and their positions.

    `values`, `block` and `cell` have shape (n,), sorted by cell. Raises DesignError if nothing is
    left to estimate the error from.
    """

    def __init__(self, observations: Observations) -> None:
        self.observations = observations
        by_cell = observations.scaled.reshape(len(observations.blocks), -1).T
        there = np.isfinite(by_cell)
        if not there.any(axis=1).all():
            raise DesignError(
                f"{observations.metric}: a cell has no value in any block",
                "leave levels out until every cell has some (crossed)",
            )
        self.cell, self.block = np.nonzero(there)
        self.values = by_cell[there]
        self.blocks, self.cells = len(observations.blocks), by_cell.shape[0]
        self.complete = bool(there.all())
        self._starts = np.searchsorted(self.cell, np.arange(self.cells))
        self._gram = self._gram_matrix(there.T.astype(np.float64))
        eigenvalues, vectors = np.linalg.eigh(self._gram)
        kept = eigenvalues > _RANK * eigenvalues[-1]
        # Shape (B + C, rank): maps sums to coordinates in the full model's space.
        self._root = vectors[:, kept] / np.sqrt(eigenvalues[kept])
        self.df_error = self.values.size - int(kept.sum())
        if self.df_error < 1:
            raise DesignError(
                f"{observations.metric}: {self.values.size} values leave nothing to estimate the "
                "error from",
                "measure at least two blocks of at least two cells",
            )

    @staticmethod
    def _gram_matrix(counts: Floats) -> Floats:
        return np.block(
            [[np.diag(counts.sum(axis=1)), counts], [counts.T, np.diag(counts.sum(axis=0))]]
        )

    def sums(self, values: Floats) -> Floats:
        """Return sums over blocks and cells: (..., n) to (..., B + C)."""
        by_cell = np.add.reduceat(values, self._starts, axis=-1)
        by_block = values @ self._of_block
        return np.concatenate([by_block, by_cell], axis=-1)

    @cached_property
    def _of_block(self) -> Floats:
        return np.asarray(self.block[:, None] == np.arange(self.blocks), dtype=np.float64)

    def permuted_sums(self, blocks: Floats, values: Floats) -> Floats:
        """Return `sums` of values, (m, n), that moved within blocks: their sums over these are
        known.
        """
        by_cell = np.add.reduceat(values, self._starts, axis=1)
        by_block = np.broadcast_to(blocks, (values.shape[0], self.blocks))
        return np.concatenate([by_block, by_cell], axis=1)

    def explained(self, sums: Floats) -> Floats:
        """Return the sum of squares of the full model, (..., B + C) to (...)."""
        return np.asarray(np.square(sums @ self._root).sum(axis=-1))

    def spread_out(self, coefficients: Floats) -> Floats:
        """Return the vector of those coefficients, (B + C,) to (n,)."""
        return np.asarray(
            coefficients[: self.blocks][self.block] + coefficients[self.blocks :][self.cell]
        )

    @cached_property
    def residuals(self) -> Floats:
        """The residuals of the full model, (n,)."""
        centred = self.values - self.values.mean()
        coefficients = self._root @ (self._root.T @ self.sums(centred))
        return np.asarray(centred - self.spread_out(coefficients))

    def term(self, term: Term) -> Floats:
        """Return orthonormal directions of a term given all others, as coefficients: (B + C,
        df).
        """
        return self._given_others(
            _contrasts(self.observations.shape, self._axes(term), frozenset())
        )

    def whole(self, factor: str) -> Floats:
        """Return the same for a factor's main effect and all of its interactions together."""
        varied = self._axes((factor,))
        free = frozenset(range(len(self.observations.shape))) - varied
        return self._given_others(_contrasts(self.observations.shape, varied, free))

    def _axes(self, term: Term) -> frozenset[int]:
        return frozenset(self.observations.axis(name) - 1 for name in term)

    def _given_others(self, contrasts: Floats) -> Floats:
        if self.complete:
            padding = np.zeros((self.blocks, contrasts.shape[1]))
            return np.concatenate([padding, contrasts / np.sqrt(self.blocks)])
        others = linalg.block_diag(np.eye(self.blocks), linalg.null_space(contrasts.T))
        mine = np.concatenate([np.zeros((self.blocks, contrasts.shape[1])), contrasts])
        explained = linalg.pinvh(others.T @ self._gram @ others) @ (others.T @ self._gram @ mine)
        left = mine - others @ explained
        eigenvalues, vectors = np.linalg.eigh(left.T @ self._gram @ left)
        kept = eigenvalues > _RANK * float(self._gram.max())
        return np.asarray(left @ (vectors[:, kept] / np.sqrt(eigenvalues[kept])))
