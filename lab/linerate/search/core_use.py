# SPDX-License-Identifier: BSD-3-Clause
"""Core use at fixed loads: windows at shares of 100 %, the same for every forwarder.

Cycles per packet compare at an equal load only: a core that is offered more finds fuller bursts. No
RFC asks for this. What the core did is in the windows' records, as the device's probe saw it; here
is which loads are offered, and what was lost meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linerate.errors import TrialError, UsageError
from linerate.search.device import Device
from linerate.search.procedure import ATTEMPTS, Invalid, Result, Trials, invalid, positive

# Of 100 %.
LOADS = (0.1, 0.5, 0.9)


@dataclass(frozen=True)
class Window:
    """`share` is of the greatest rate."""

    share: float
    pps: float
    loss_ratio: float


@dataclass(frozen=True, kw_only=True)
class CoreUse(Result):
    """By rising load, without those above the throughput.

    Invalid, it keeps the windows before the one that failed.
    """

    windows: tuple[Window, ...] = ()


def core_use(
    device: Device,
    throughput_pps: float,
    *,
    seconds: float,
    loads: Sequence[float] = LOADS,
    attempts: int = ATTEMPTS,
) -> CoreUse:
    """`throughput_pps` is that of the same frame size: above it a core only shows that it is full.

    Raises `UsageError` for loads that are not within 0 and 1.
    """
    positive("throughput_pps", throughput_pps)
    positive("seconds", seconds)
    if not all(0 < share <= 1 for share in loads):
        raise UsageError(
            f"loads: {', '.join(f'{share:g}' for share in loads)}",
            "give shares of the greatest rate, above 0 and up to 1",
        )
    trials = Trials(device, attempts)
    windows: list[Window] = []
    reason: Invalid | None = None
    for share in sorted(loads):
        pps = share * device.max_pps
        if pps > throughput_pps:
            break
        try:
            outcome = trials.send(pps, seconds)
        except TrialError as error:
            reason = invalid(error)
            break
        windows.append(Window(share, pps, outcome.loss_ratio))
    return CoreUse(windows=tuple(windows), invalid=reason, effort=trials.effort())
