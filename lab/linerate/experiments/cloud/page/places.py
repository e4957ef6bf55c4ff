# SPDX-License-Identifier: BSD-3-Clause
"""Where in the report something is drawn: takeaways link there, and the page has it there."""

from __future__ import annotations

from collections.abc import Sequence

from linerate.experiments.cloud.design.levels import FACTORS
from linerate.records.output import REPORT


def anchor(metric: str, about: Sequence[str]) -> str:
    """The name of the place of the chart of a metric over some factors, in any order.

    `metric`: one of `observations.METRICS`, such as `latency_p99_us`.
    """
    factors = sorted(set(about), key=FACTORS.index)
    return "-".join([metric.replace("_", "-"), *factors])


def link_to(metric: str, about: Sequence[str]) -> str:
    return f"{REPORT}#{anchor(metric, about)}"
