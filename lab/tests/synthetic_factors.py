# SPDX-License-Identifier: BSD-3-Clause
"""Data with known effects, to see what the analysis finds and how often it is wrong.

A rate is base x exp(effects + block + noise): main effects and interactions on the log scale. The
size of an effect is its range over the cells. Loss is what exceeds 0 in the same sum, times a
scale: a share of the runs is loss-free, and more of them if the effects are low.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np

from linerate.experiments.cloud.factorial.design import Factor, Observations
from linerate.experiments.cloud.factorial.space import Term
from linerate.host.errors import DesignError
from linerate.verdict.stats import Floats


@dataclass(frozen=True)
class Truth:
    """The planted effects.

    `effects`: the size of each term, in spreads of the noise: the largest less the smallest value
    that it adds to any cell. Ordered factors rise evenly over their levels; of others, half the
    levels are above and half below. `spread` and `block_spread`: standard deviations of log values.
    `tails`: degrees of freedom of Student's t, with the same standard deviation (3 or more); None:
    normal. `missing`: the share of values that are lost by chance.
    """

    factors: tuple[Factor, ...]
    effects: Mapping[Term, float] = field(default_factory=dict)
    blocks: int = 10
    spread: float = 0.03
    block_spread: float = 0.1
    tails: int | None = None
    missing: float = 0.0


def shape_of(factors: tuple[Factor, ...], term: Term) -> Floats:
    """Return what a term of size 1 adds to each cell; the sum over each of its factors is 0."""
    unknown = set(term) - {factor.name for factor in factors}
    if unknown or not term:
        raise DesignError(
            f"no factor is called {', '.join(sorted(unknown))}", "name factors of the design"
        )
    if any(len(factor.levels) < 2 for factor in factors if factor.name in term):
        raise DesignError(f"{' x '.join(term)}: a factor has one level", "give it two or more")
    found = np.ones(1)
    for factor in factors:
        count = len(factor.levels)
        if factor.name not in term:
            found = np.multiply.outer(found, np.ones(count))
        elif factor.ordered:
            found = np.multiply.outer(found, np.linspace(-1, 1, count))
        else:
            # Alternately above and below; with an odd number the last is in the middle.
            ends = np.where(np.arange(count) % 2 == 0, -1.0, 1.0)
            if count % 2:
                ends[-1] = 0.0
            found = np.multiply.outer(found, ends)
    found = found[0]
    return np.asarray(found / (found.max() - found.min()))


def _noise(truth: Truth, shape: tuple[int, ...], source: np.random.Generator) -> Floats:
    """Draw noise of standard deviation 1."""
    if truth.tails is None:
        return source.normal(size=shape)
    return np.asarray(
        source.standard_t(truth.tails, size=shape) * ((truth.tails - 2) / truth.tails) ** 0.5
    )


def _logs(truth: Truth, source: np.random.Generator) -> Floats:
    """Return logarithms of shape (blocks, *levels), about 0; missing values are NaN."""
    cells = tuple(len(factor.levels) for factor in truth.factors)
    found = truth.spread * _noise(truth, (truth.blocks, *cells), source)
    for term, size in truth.effects.items():
        found = found + truth.spread * size * shape_of(truth.factors, term)
    blocks = source.normal(0, truth.block_spread, truth.blocks)
    found = found + blocks.reshape(-1, *[1] * len(cells))
    return np.where(source.random(found.shape) < truth.missing, np.nan, found)


def _named(truth: Truth) -> tuple[str, ...]:
    return tuple(str(block) for block in range(truth.blocks))


def rates(truth: Truth, seed: int, base: float = 10.0) -> Observations:
    """Return rates about `base`, in its unit."""
    values = base * np.exp(_logs(truth, np.random.default_rng(seed)))
    return Observations("throughput", truth.factors, _named(truth), values, "log", "Mpps")


def loss(truth: Truth, seed: int, free: float = 0.5, scale: float = 0.1) -> Observations:
    """Return shares of frames lost; without effects a run is loss-free with probability `free`.

    The sum of effects, block and noise is divided by the spread of blocks and noise together; what
    exceeds the quantile `free` of the normal distribution is loss, times `scale`, up to 1.
    """
    latent = _logs(truth, np.random.default_rng(seed))
    latent = latent / float(np.hypot(truth.spread, truth.block_spread))
    values = np.clip(scale * (latent - NormalDist().inv_cdf(free)), 0.0, 1.0)
    return Observations("loss", truth.factors, _named(truth), values, "linear", "share")
