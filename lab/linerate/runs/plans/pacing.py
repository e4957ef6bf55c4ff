# SPDX-License-Identifier: BSD-3-Clause
"""The rate of which fixed loads are shares: one that the sender keeps.

A flood shows what a forwarder carries. The sender may be slower when it paces, stamps and looks at
what comes back, and its speed is another on each link that is opened.
"""

from __future__ import annotations

from functools import partial

from linerate.host.errors import TrialError
from linerate.records.cells import Arm, Cell
from linerate.runs.plans.steps import OnSetup, Start, Started, Steps
from linerate.trial.link_setup import LinkSetup
from linerate.trial.search.setup_device import Terms

# Shares of what came back of floods that are tried as 100 %, until the sender is on time.
PACED_SHARES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02)
PACED_S = 0.1
# A rate is kept if it is in so many starts on links of their own, and in each in so many trials.
# One lucky window of many is not enough: blocks ask for this rate again.
PACED_STARTS, PACED_TRIALS = 3, 3
_TERMS = Terms(windows=4)


def kept_rate(cell: Cell, arm: Arm, flooded_pps: float, load: float) -> Steps[float | None]:
    """The greatest share of `flooded_pps` of which the sender keeps `load`; None: not of the least.

    In frames per second over all directions.
    """
    for share in PACED_SHARES:
        for start in range(PACED_STARTS):
            if not (yield OnSetup(cell, partial(_keeps, arm, share * flooded_pps, load, start))):
                break
        else:
            return share * flooded_pps
    return None


def _keeps(arm: Arm, pps: float, load: float, start: int, setup: LinkSetup) -> Steps[bool]:
    """Whether the sender is on time in most windows. What comes back does not matter here."""

    def kept(started: Started) -> bool:
        try:
            for _ in range(PACED_TRIALS):
                started.device.send(pps * load, PACED_S)
        except TrialError:
            return False
        return 2 * sum(trial.valid for trial in started.trials) >= len(started.trials)

    found: bool = yield Start(
        setup=setup, arm=arm, block=start, role="self-test", max_pps=pps, terms=_TERMS,
        procedure=kept,
    )  # fmt: skip
    return found
