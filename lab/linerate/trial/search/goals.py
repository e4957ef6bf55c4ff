# SPDX-License-Identifier: BSD-3-Clause
"""The goals of a search for throughput, in MLRsearch's terms (RFC 9971).

A load reaches a goal if trials of `final_s`, together `sum_s` long, lost no more than `loss_ratio`;
a share `exceed_ratio` of that time may be of trials that lost more.
"""

from __future__ import annotations

from dataclasses import dataclass

from linerate.host.errors import UsageError
from linerate.trial.search.procedure import too_short

# RFC 2544, 24: how long the trials of a result last at least.
FINAL_S = 60.0


@dataclass(frozen=True)
class Goal:
    """A goal, in seconds and shares. Raises `UsageError` for an impossible one."""

    name: str
    loss_ratio: float
    exceed_ratio: float
    # The distance of the two bounds at which a search ends, as a share of the upper bound.
    width: float
    # The shortest trial, and the one that counts.
    initial_s: float
    final_s: float
    sum_s: float

    def __post_init__(self) -> None:
        self._demand(0 <= self.loss_ratio < 1, "the loss ratio must lie from 0 to below 1")
        self._demand(0 <= self.exceed_ratio < 1, "the exceed ratio must lie from 0 to below 1")
        self._demand(0 < self.width < 1, "the width must lie between 0 and 1")
        # RFC 9971 on performance variability: below it the conditional throughput of a goal that
        # allows more loss may come out smaller than that of one that allows less.
        self._demand(
            self.width >= self.loss_ratio,
            f"the width {self.width:g} is below the loss ratio {self.loss_ratio:g}",
        )
        self._demand(
            0 < self.initial_s <= self.final_s <= self.sum_s,
            "the first trials must be no longer than the final ones, and those no longer than "
            "their sum",
        )

    def _demand(self, holds: bool, what: str) -> None:
        if not holds:
            raise UsageError(f"goal {self.name}: {what}", "change the goal")

    @property
    def deviations(self) -> tuple[str, ...]:
        """Differences from the throughput of RFC 2544, 26.1."""
        deviations = too_short("final trials of seconds:", self.final_s, FINAL_S, "RFC 2544, 24")
        if self.loss_ratio:
            deviations += (f"loss up to {self.loss_ratio:g} instead of 0 (RFC 2544, 26.1)",)
        if self.exceed_ratio:
            deviations += (
                f"a share of {self.exceed_ratio:g} of the trials may lose more instead of none "
                "(RFC 2544, 26.1)",
            )
        return deviations
