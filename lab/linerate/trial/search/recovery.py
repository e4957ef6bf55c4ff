# SPDX-License-Identifier: BSD-3-Clause
"""System recovery (RFC 2544, 26.5): how long a device still loses frames after an overload.

The device gets 110 % of its throughput, or the maximum of the link, then without a pause half of
that rate. The recovery time is the time from this change to the last lost frame, on the sender's
clock (`Changed.last_lost`).
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Literal

from linerate.host.errors import TrialError
from linerate.trial.search.device import Changed, ChangingDevice
from linerate.trial.search.procedure import (
    ATTEMPTS,
    Invalid,
    Result,
    Trials,
    invalid,
    positive,
    sent,
    too_short,
)

OVERLOAD = 1.1
OVERLOAD_S = 60.0
# A share of the overload's rate, not of the throughput.
REDUCED = 0.5
# The RFC leaves these two open: it is to be repeated, and watched for as long as it takes.
REPETITIONS = 10
WATCHED_S = 30.0
# A device that lost a frame in this last share of the time may not have recovered.
END_SHARE = 0.1

# recovered: `seconds` says when. not_overloaded: nothing was lost before the change, so there was
# nothing to recover from. not_recovered: frames were lost in the last of the time.
State = Literal["recovered", "not_overloaded", "not_recovered"]


@dataclass(frozen=True)
class Recovered:
    """One repetition. `seconds` is 0 if no frame was lost after the change."""

    state: State
    seconds: float | None


@dataclass(frozen=True, kw_only=True)
class Recovery(Result):
    """The result; `mean` is in seconds, over all repetitions.

    It is None unless every repetition recovered: the mean of those that did would be too good.
    """

    overload_pps: float
    reduced_pps: float
    repetitions: tuple[Recovered, ...] = ()
    mean: float | None = None


def recovery(
    device: ChangingDevice,
    throughput_pps: float,
    *,
    overload_s: float = OVERLOAD_S,
    watched_s: float = WATCHED_S,
    repetitions: int = REPETITIONS,
    attempts: int = ATTEMPTS,
    bounds: bool = False,
) -> Recovery:
    """Run the procedure. `throughput_pps`: of the same frame size. `bounds`: as in `Trials`; a time
    of recovery has no lower bound.
    """
    positive(
        throughput_pps=throughput_pps,
        overload_s=overload_s,
        watched_s=watched_s,
        repetitions=repetitions,
    )
    trials = Trials(device, attempts, bounds=bounds)
    overload = min(throughput_pps * OVERLOAD, device.max_pps)
    reduced = overload * REDUCED

    def change() -> Changed:
        changed = device.change(overload, overload_s, reduced, watched_s)
        sent(changed.before)
        sent(changed.after)
        if changed.after.lost and changed.last_lost is None:
            raise TrialError("frames were lost after the change of rate, and not known when")
        return changed

    seen: list[Recovered] = []
    reason: Invalid | None = None
    what = f"{overload:.0f}, then {reduced:.0f} packets/s"
    try:
        for _ in range(repetitions):
            seen.append(_judged(trials.repeat(change, overload_s + watched_s, what), watched_s))
    except TrialError as error:
        seen, reason = [], invalid(error)
    deviations = too_short("an overload of seconds:", overload_s, OVERLOAD_S, "RFC 2544, 26.5")
    deviations += too_short("repetitions:", repetitions, 2, "RFC 2544, 26.5")
    times = [each.seconds for each in seen if each.seconds is not None]
    complete = bool(times) and len(times) == len(seen)
    return Recovery(
        overload_pps=overload,
        reduced_pps=reduced,
        repetitions=tuple(seen),
        mean=statistics.fmean(times) if complete else None,
        invalid=reason,
        effort=trials.effort(),
        deviations=deviations,
    )


def _judged(changed: Changed, watched_s: float) -> Recovered:
    last = changed.last_lost
    state: State = "recovered"
    if not changed.before.lost:
        state = "not_overloaded"
    # The middle of its slice: frames are whole, so that slices do not begin and end exactly at
    # their times.
    elif last is not None and last - changed.slice_s / 2 >= watched_s * (1 - END_SHARE):
        state = "not_recovered"
    return Recovered(
        state=state,
        seconds=(last or 0.0) if state == "recovered" else None,
    )
