# SPDX-License-Identifier: BSD-3-Clause
"""The rate of which fixed loads are shares: one that the sender keeps.

A flood shows a forwarder's capacity. The sender may be slower when it paces, stamps and checks
received frames, and its speed differs between links that are opened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from linerate.host.errors import DisturbedError, TrialError
from linerate.records.cells import Arm, Cell
from linerate.records.trial import Trial
from linerate.runs.plans.steps import OnSetup, Start, Started, Steps
from linerate.trial.link_setup import LinkSetup
from linerate.trial.search.setup_device import Terms
from linerate.verdict.arms import median_of

# Shares of a flood's received rate that are tried as 100 %, until the sender is on time.
PACED_SHARES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02)
PACED_S = 0.1
# A rate is kept if the sender keeps it in so many starts on links of their own, and in each in so
# many trials. One good window of many is not enough: blocks use this rate repeatedly.
PACED_STARTS, PACED_TRIALS = 3, 3
_TERMS = Terms(windows=4, patience_s=0.05)


@dataclass(frozen=True)
class Late:
    """A sender that does not keep a rate. `pps`: the greatest rate that is worth a trial now."""

    pps: float


# Tries a rate in one start of a forwarder, of this number, on this setup; None: it is kept.
Try = Callable[[float, int, LinkSetup], Steps[Late | None]]


def greatest_kept(
    cell: Cell, flooded_pps: float, attempt: Try, shares: Sequence[float] = PACED_SHARES
) -> Steps[float | None]:
    """Return the greatest of these shares of a flood that the sender keeps in each of several
    starts, each on a link of its own; None if not even the least. In frames per second over all
    directions.
    """
    most = flooded_pps
    for share in shares:
        pps = share * flooded_pps
        if pps > most:
            continue
        for start in range(PACED_STARTS):
            late: Late | None = yield OnSetup(cell, partial(attempt, pps, start))
            if late:
                most = min(most, late.pps)
                break
        else:
            return pps
    return None


def kept_rate(cell: Cell, arm: Arm, flooded_pps: float, load: float) -> Steps[float | None]:
    """Return the greatest share of `flooded_pps` at which the sender keeps `load`; None if not at
    the least.

    In frames per second over all directions. The speed of a late sender shows how fast it is while
    the machine is slow; higher rates are not tried afterwards.
    """
    return greatest_kept(cell, flooded_pps, partial(_late, arm, load))


def _late(arm: Arm, load: float, pps: float, start: int, setup: LinkSetup) -> Steps[Late | None]:
    """Return None if the sender is on time in most windows. Loss does not matter here, and a window
    that is void because the forwarder was off its CPU still shows that all was sent.
    """

    def sent(started: Started) -> Late | None:
        failed = False
        for _ in range(PACED_TRIALS):
            try:
                started.device.send(pps * load, PACED_S)
            except DisturbedError:
                pass
            except TrialError:
                failed = True
                break
        late = [trial for trial in started.trials if trial.invalid_code == "late"]
        if failed or 2 * len(late) > len(started.trials):
            return Late((_median_pps(late) or pps * load) / load)
        return None

    found: Late | None = yield Start(
        setup=setup, arm=arm, block=start, role="self-test", max_pps=pps, terms=_TERMS,
        procedure=sent,
    )  # fmt: skip
    return found


def _median_pps(trials: Sequence[Trial]) -> float | None:
    """Return the median rate at which these windows were sent."""
    return median_of(
        trial.frames.attempted / trial.frames.duration_s
        for trial in trials
        if trial.outcome and trial.frames.attempted and trial.frames.duration_s
    )  # fmt: skip


def hundred_percent(
    kept_pps: Mapping[str, float], flooded_pps: Mapping[str, float]
) -> dict[str, float]:
    """Return 100 % of each forwarder: the rate that the sender keeps with it and with every other
    one that carries at least half as much. So forwarders of about the same speed get the same
    loads, even if the machine was slow while the sender was tried with one of them.
    """
    return {
        name: min(
            pps
            for other, pps in kept_pps.items()
            if other == name or 2 * flooded_pps[other] >= flooded_pps[name]
        )
        for name in kept_pps
    }
