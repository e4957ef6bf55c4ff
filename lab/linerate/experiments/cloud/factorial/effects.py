# SPDX-License-Identifier: BSD-3-Clause
"""Main effects and interactions, by permutation and by aligned ranks.

The main test is that of Freedman and Lane: the residuals of the model without the term are permuted
within blocks, and its F is compared with those of the permutations. It assumes that they are
exchangeable: errors of one spread, of any distribution. The second test, the aligned rank transform
(`ranks`), shows whether a few extreme values decided.

Sources: Freedman and Lane, J. Bus. Econ. Stat. 1(4), 1983; Anderson and ter Braak, J. Stat. Comput.
Simul. 73(2), 2003 (interactions, and permutation within blocks).
"""

from __future__ import annotations

from dataclasses import dataclass

from linerate.experiments.cloud.factorial import sizes
from linerate.experiments.cloud.factorial.design import Dropped, Missing, Observations, crossed
from linerate.experiments.cloud.factorial.fratio import FRatio
from linerate.experiments.cloud.factorial.permute import orders, p_value, reached
from linerate.experiments.cloud.factorial.ranks import Ranked, aligned, ranked
from linerate.experiments.cloud.factorial.space import Space, Term, terms
from linerate.host.errors import DesignError
from linerate.verdict import stats
from linerate.verdict.stats import Interval

ORDER = 3
PERMUTATIONS = 1999


@dataclass(frozen=True)
class Effect:
    """A main effect or interaction: `term` names its factors.

    `p` is that of the permutations, `p_holm` the same with all effects of the analysis corrected
    together. `ranked` is None for values on the linear scale.
    """

    term: Term
    df: int
    df_error: int
    n: int
    f: float
    p: float
    p_holm: float
    ranked: Ranked | None

    @property
    def partial_eta2(self) -> float:
        return sizes.partial_eta2(self.f, self.df, self.df_error)

    @property
    def partial_omega2(self) -> float:
        return sizes.partial_omega2(self.f, self.df, self.n)

    def interval(self) -> Interval | None:
        """The 95 % interval of the share of variance that `partial_eta2` estimates."""
        return sizes.share_interval(self.f, self.df, self.df_error)


@dataclass(frozen=True)
class Analysis:
    """All effects. `least_p`: the smallest p that this number of permutations can give. `zeros` are
    among `missing` on the log scale.
    """

    metric: str
    effects: tuple[Effect, ...]
    blocks: int
    cells: int
    permutations: int
    least_p: float
    seed: int
    missing: tuple[Missing, ...]
    zeros: int
    dropped: tuple[Dropped, ...]

    def effect(self, *term: str) -> Effect:
        """Return the effect of these factors, named in any order. Raises DesignError if not
        tested.
        """
        for each in self.effects:
            if set(each.term) == set(term):
                return each
        raise DesignError(
            f"{self.metric}: no effect of {' x '.join(term)} was tested",
            f"tested: {', '.join(' x '.join(each.term) for each in self.effects)}",
        )


def analyse(
    observations: Observations,
    *,
    order: int = ORDER,
    permutations: int = PERMUTATIONS,
    seed: int = 1,
) -> Analysis:
    """Test all effects of up to `order` factors; those of more are in the model, untested.

    Levels without values are left out first (`crossed`). Raises DesignError if nothing is left to
    test, or to estimate the error from.
    """
    found = crossed(observations)
    tested = terms(found, order)
    if not tested:
        raise DesignError(
            f"{found.metric}: no factor has two levels with values", "measure at least two"
        )
    space = Space(found)
    directions = {term: space.term(term) for term in tested}
    directions = {term: each for term, each in directions.items() if each.shape[1]}
    ratios = [FRatio(space, each, aligned(space, each)) for each in directions.values()]
    counts = [0] * len(ratios)
    for piece in orders(space.block, permutations, seed):
        for place, ratio in enumerate(ratios):
            counts[place] += reached(ratio.permuted(piece), ratio.observed)
    p_values = [p_value(count, permutations) for count in counts]
    effects = [
        Effect(
            term,
            ratio.df,
            space.df_error,
            space.values.size,
            ratio.observed,
            p,
            p_holm,
            ranked(space, term, directions) if found.scale == "log" else None,
        )
        for term, ratio, p, p_holm in zip(
            directions, ratios, p_values, stats.holm(p_values), strict=True
        )
    ]
    return Analysis(
        metric=found.metric,
        effects=tuple(effects),
        blocks=space.blocks,
        cells=space.cells,
        permutations=permutations,
        least_p=p_value(0, permutations),
        seed=seed,
        missing=found.missing,
        zeros=found.zeros,
        dropped=found.dropped,
    )
