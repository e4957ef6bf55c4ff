# SPDX-License-Identifier: BSD-3-Clause
"""Core use at fixed loads: windows at shares of 100 %, the same for every forwarder; then one more
at the forwarder's own throughput.

Cycles per packet are comparable at an equal load only: a core with a higher load finds fuller
bursts. The last window is for the burst at RFC 2544's rate, as published, and is not compared
between forwarders. No RFC requires this. The windows' records have the core's figures, from the
device's probe; this module chooses the loads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linerate.host.errors import DisturbedError, TrialError, UsageError
from linerate.trial.search.device import Device
from linerate.trial.search.procedure import ATTEMPTS, Invalid, Result, Trials, invalid, positive

# Shares of 100 %, close enough that slow forwarders have some in common. None is the low load
# (verdict.LOW_LOAD): its windows are without the probe.
LOADS = (0.1, 0.2, 0.35, 0.5, 0.75, 0.9)


@dataclass(frozen=True, kw_only=True)
class CoreUse(Result):
    """Whether all windows were sent; their records have the figures."""


def share_of(pps: float, max_pps: float) -> float:
    """Return the share of 100 %, rounded as in records."""
    return round(pps / max_pps, 9)


def core_use(
    device: Device,
    throughput_pps: float,
    *,
    seconds: float,
    loads: Sequence[float] = LOADS,
    attempts: int = ATTEMPTS,
    bounds: bool = False,
) -> CoreUse:
    """Send the windows. `bounds`: a load that could not be tried is left out. `throughput_pps`: of
    the same frame size; above it a core only shows that it is full.

    Raises `UsageError` for loads that are not within 0 and 1.
    """
    positive(throughput_pps=throughput_pps, seconds=seconds)
    if not all(0 < share <= 1 for share in loads):
        raise UsageError(
            f"loads: {', '.join(f'{share:g}' for share in loads)}",
            "give shares of the greatest rate, above 0 and up to 1",
        )
    trials = Trials(device, attempts, bounds=bounds)
    reason: Invalid | None = None
    own = share_of(throughput_pps, device.max_pps)
    # A throughput that is one of the loads is measured once.
    for share in [*(share for share in sorted(loads) if share < own), own]:
        try:
            trials.send(throughput_pps if share == own else share * device.max_pps, seconds)
        except TrialError as error:
            reason = reason or invalid(error)
            if not (bounds and isinstance(error, DisturbedError)):
                break
    return CoreUse(invalid=reason, effort=trials.effort())
