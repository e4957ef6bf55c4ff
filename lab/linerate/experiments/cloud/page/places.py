# SPDX-License-Identifier: BSD-3-Clause
"""The places of charts in the report: takeaways link to them, and the page defines them."""

from __future__ import annotations

from collections.abc import Sequence

from linerate.experiments.cloud.design.levels import FACTORS
from linerate.records.output import REPORT


def anchor(metric: str, about: Sequence[str]) -> str:
    """Return the name of the place of the chart of a metric over some factors, in any order.

    `metric`: one of `observations.METRICS`, such as `latency_p99_us`.
    """
    factors = sorted(set(about), key=FACTORS.index)
    return "-".join([metric.replace("_", "-"), *factors])


def link_to(metric: str, about: Sequence[str]) -> str:
    return f"{REPORT}#{anchor(metric, about)}"
