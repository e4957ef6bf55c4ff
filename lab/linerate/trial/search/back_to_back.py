# SPDX-License-Identifier: BSD-3-Clause
"""Back-to-back frames (RFC 2544, 26.4, updated by RFC 9004): the longest burst without loss.

With the mean length B of the bursts, the greatest frame rate R and the measured throughput T, RFC
9004 has in its benchmark calculations

    implied buffer time   = B / R
    corrected buffer time = B / R * (1 - T / R)

because frames that were forwarded while the burst came in were never in the buffer at the same
time.

A burst with a gap is not a burst, and the longer it is, the likelier it has one. With `bounds` a
search that comes to a length at which every burst had gaps ends there: the longest that passed is a
lower bound.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace

from linerate.host.errors import DisturbedError, TrialError
from linerate.trial.search.device import Device
from linerate.trial.search.procedure import (
    ATTEMPTS,
    Invalid,
    Result,
    Trials,
    invalid,
    positive,
    too_short,
)

REPETITIONS = 50
# RFC 2544, 26.4: trials are this long at least, so bursts of that length must have been tried
# before one can say that every burst passes.
LONGEST_S = 2.0
# The first length of each search, in frames.
_START = 64


@dataclass(frozen=True, kw_only=True)
class BackToBack(Result):
    """The lengths in frames, exact to the resolution: a burst longer by that much lost frames.

    `at_limit` counts the repetitions in which the longest tried burst, `limit`, passed; `disturbed`
    those that ended at a length at which no burst was sent without a gap. Then lengths are "at
    least", and so is the implied time; there is no corrected one. A device as fast as the link has
    no longest burst (RFC 9004 leaves such frame sizes out).
    """

    lengths: tuple[int, ...] = ()
    limit: int
    at_limit: int = 0
    disturbed: int = 0
    mean: float | None = None
    implied_s: float | None = None
    corrected_s: float | None = None


def back_to_back(
    device: Device,
    throughput_pps: float | None = None,
    *,
    repetitions: int = REPETITIONS,
    longest_s: float = LONGEST_S,
    resolution: int = 1,
    attempts: int = ATTEMPTS,
    bounds: bool = False,
) -> BackToBack:
    """Run the procedure. `throughput_pps`: of the same frame size; without it there is no corrected
    time.
    """
    positive(repetitions=repetitions, longest_s=longest_s, resolution=resolution)
    trials = Trials(device, attempts, bounds=bounds)
    limit = max(round(device.max_pps * longest_s), 1)
    lengths: list[int] = []
    disturbed = 0
    reason: Invalid | None = None
    try:
        for _ in range(repetitions):
            length, whole = _longest(trials, limit, resolution, bounds=bounds)
            lengths.append(length)
            disturbed += not whole
    except TrialError as error:
        lengths, reason = [], invalid(error)
    deviations = too_short("repetitions:", repetitions, REPETITIONS, "RFC 2544, 26.4")
    deviations += too_short("bursts of up to seconds:", longest_s, LONGEST_S, "RFC 2544, 26.4")
    result = BackToBack(
        limit=limit,
        disturbed=disturbed,
        invalid=reason,
        effort=trials.effort(),
        deviations=deviations,
    )
    return _summed_up(result, lengths, device.max_pps, throughput_pps) if lengths else result


def _longest(trials: Trials, limit: int, resolution: int, *, bounds: bool) -> tuple[int, bool]:
    """Return the longest burst that passed, and True unless a longer one could not be tried because
    all of that length had gaps.

    Doubles or halves until a length passes and another does not, then bisects. Each repetition
    begins at the same length, so that repetitions are independent. Raises `TrialError` if even a
    single frame is lost: the result is then none, not a length of 0.
    """
    low = high = 0
    length = min(_START, limit)
    try:
        while not (low and high):
            if trials.burst(length).lost == 0:
                low = length
                if low == limit:
                    return limit, True
                length = min(2 * low, limit)
            else:
                high = length
                if high == 1:
                    raise TrialError("a single frame was lost, so there is no burst that passes")
                length = high // 2
        while high - low > resolution:
            middle = (low + high) // 2
            if trials.burst(middle).lost == 0:
                low = middle
            else:
                high = middle
    except DisturbedError:
        if not (bounds and low):
            raise
        return low, False
    return low, True


def _summed_up(
    result: BackToBack, lengths: list[int], max_pps: float, throughput_pps: float | None
) -> BackToBack:
    mean = statistics.fmean(lengths)
    at_limit = sum(length == result.limit for length in lengths)
    implied = mean / max_pps
    corrected = None
    if throughput_pps is not None and not at_limit and not result.disturbed:
        corrected = implied * (1 - min(throughput_pps / max_pps, 1.0))
    return replace(
        result,
        lengths=tuple(lengths),
        at_limit=at_limit,
        mean=mean,
        implied_s=implied,
        corrected_s=corrected,
    )
