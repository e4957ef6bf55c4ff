# SPDX-License-Identifier: BSD-3-Clause
"""Designs that the tests of the factorial analysis share, and the exact tests of its rates."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from scipy import stats as scipy_stats

from linerate.experiments.cloud.factorial.design import Factor, Observations
from linerate.verdict.stats import ALPHA, Floats

FRAMEWORK = Factor("framework", ("dpdk", "xdp"))
LOAD = Factor("load", ("cpu", "network"))
TENANTS = Factor("tenants", ("0", "2", "8"), ordered=True)
FACTORS = (FRAMEWORK, LOAD, TENANTS)
SEEDS = 200

# Cochran and Cox, Experimental Designs, 2nd ed., table 4.2: strength of cotton, three blocks, with
# potash of 144, 108, 72, 54 and 36 pounds an acre. An example of Hollander, Wolfe and Chicken's.
COTTON = np.asarray(
    [[7.46, 7.17, 7.76, 8.14, 7.62], [7.68, 7.57, 7.73, 8.15, 8.00], [7.21, 7.80, 7.74, 7.87, 7.93]]
)


def observations(
    values: Floats, factors: Iterable[Factor], scale: str = "log", metric: str = "throughput"
) -> Observations:
    blocks = tuple(f"b{index}" for index in range(values.shape[0]))
    assert scale in ("log", "linear")
    return Observations(
        metric, tuple(factors), blocks, values, "log" if scale == "log" else "linear", "Mpps"
    )


def drawn(seed: int, *shape: int) -> Floats:
    """Draw positive values with a block effect; the rest is noise."""
    source = np.random.default_rng(seed)
    logs = source.normal(0, 0.05, shape)
    logs += source.normal(0, 0.2, shape[0]).reshape(-1, *[1] * (len(shape) - 1))
    return np.asarray(np.exp(logs))


def seeds(scenario: int) -> range:
    """Return seeds that no other scenario has, because two scenarios with the same noise would fail
    together.
    """
    return range(1000 * scenario, 1000 * scenario + SEEDS)


def missed_p(count: int, rate: float = 0.9, of: int = SEEDS) -> float:
    """Return the exact p of so few found or fewer, if the true share is this."""
    return float(scipy_stats.binomtest(count, of, rate, "less").pvalue)


def false_p(count: int, rate: float = ALPHA, of: int = SEEDS) -> float:
    """Return the exact p of so many false ones or more, if the true share is this."""
    return float(scipy_stats.binomtest(count, of, rate, "greater").pvalue)
