# SPDX-License-Identifier: BSD-3-Clause
"""Effect sizes, from the F of the test: shares of the variance that others do not explain.

Sources: Cohen, Statistical Power Analysis for the Behavioral Sciences, 2nd ed., section 8.2
(partial eta squared); Olejnik and Algina, Psychological Methods 8(4), 2003 (partial omega squared);
Steiger, Psychological Methods 9(2), 2004 (interval by the noncentral F distribution).
"""

from __future__ import annotations

import math
from functools import cache

from scipy import optimize, special

from linerate.verdict.stats import ALPHA, POWER, Interval

# Beyond this noncentrality the distribution is not computed: the share is close to 1.
_LARGEST = 1e5


def partial_eta2(f: float, df: int, df_error: int) -> float:
    """Return SS(effect) / (SS(effect) + SS(error)), 0 to 1."""
    return 1.0 if math.isinf(f) else f * df / (f * df + df_error)


def partial_omega2(f: float, df: int, n: int) -> float:
    """Return the same less the expected share of chance; 0 if the estimate is below it."""
    return 1.0 if math.isinf(f) else max(0.0, df * (f - 1) / (df * (f - 1) + n))


def share_interval(f: float, df: int, df_error: int, level: float = 1 - ALPHA) -> Interval | None:
    """Return the interval of the share in the population: the noncentralities for which F is in
    neither tail.

    Assumes normal errors. None if F is too large to say.
    """
    if not math.isfinite(f):
        return None
    low = _noncentrality(f, df, df_error, (1 + level) / 2)
    high = _noncentrality(f, df, df_error, (1 - level) / 2)
    if low is None or high is None:
        return None
    n = df + df_error + 1
    return Interval(low / (low + n), high / (high + n), level)


@cache
def detectable_share(df: int, df_error: int, alpha: float = ALPHA) -> float | None:
    """Return the share of variance that the F test at this level finds with `POWER`; None if that
    is nearly all of it.
    """
    critical = float(special.fdtri(df, df_error, 1 - alpha))
    needed = _noncentrality(critical, df, df_error, 1 - POWER)
    return None if needed is None else needed / (needed + df + df_error + 1)


def _noncentrality(f: float, df: int, df_error: int, below: float) -> float | None:
    """Return the noncentrality at which F and less has that probability; 0 if not even at 0."""

    def excess(noncentrality: float) -> float:
        if noncentrality == 0:
            return float(special.fdtr(df, df_error, f)) - below
        return float(special.ncfdtr(df, df_error, noncentrality, f)) - below

    if excess(0.0) <= 0:
        return 0.0
    beyond = 1.0
    while excess(beyond) > 0:
        beyond *= 2
        if beyond > _LARGEST:
            return None
    found = optimize.brentq(excess, 0.0, beyond, xtol=1e-9)
    return float(found) if math.isfinite(excess(beyond)) else None
