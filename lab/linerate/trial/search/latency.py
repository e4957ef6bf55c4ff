# SPDX-License-Identifier: BSD-3-Clause
"""Latency (RFC 2544, 26.2) at the throughput rate, and at 10, 50 and 90 % of it.

RFC 2544 tags one frame in each of 20 runs; here every frame that the device can stamp counts, as in
RFC 8219. Quantiles belong to one run each: runs are compared, never pooled and never averaged.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from linerate.host.errors import DisturbedError, TrialError, UsageError
from linerate.trial.search.device import Device, Latency
from linerate.trial.search.procedure import (
    ATTEMPTS,
    Invalid,
    Result,
    Trials,
    invalid,
    positive,
    too_short,
)

SECONDS = 120.0
REPETITIONS = 20
# Shares of the throughput. The RFC's own is 1.
LOADS = (0.1, 0.5, 0.9, 1.0)
# Software hands over whole frames: a frame is in when it was received, and out when it was sent.
DEFINITION = "RFC 1242, 3.8: store and forward"
# The definition for another generator (OTG's cut_through).
CUT_THROUGH = "RFC 1242, 3.8: bit forwarding, as its generator measures cut_through"
# One-sided level at which the greatest value of a run lies above its quantile.
_LEVEL = 0.95


@dataclass(frozen=True)
class AtLoad:
    """Delays at one load. `mean` is RFC 2544's: the mean of the runs' means, with equal weights.

    `minimum` and `maximum` are over all runs, which have the quantiles that their count supports.
    """

    share: float
    pps: float
    runs: tuple[Latency, ...]
    minimum: float
    mean: float
    maximum: float


@dataclass(frozen=True, kw_only=True)
class LatencyResult(Result):
    """Delays by load, in the order requested; if invalid none, or with `bounds` the loads of which
    every repetition could be measured.
    """

    loads: tuple[AtLoad, ...] = ()


def latency(
    device: Device,
    throughput_pps: float,
    *,
    seconds: float = SECONDS,
    repetitions: int = REPETITIONS,
    loads: Sequence[float] = LOADS,
    attempts: int = ATTEMPTS,
    bounds: bool = False,
) -> LatencyResult:
    """Run the procedure. `throughput_pps`: of the same frame size, `loads`: shares of it.

    The loads take turns, so that a drift of the machine affects all of them.
    """
    positive(throughput_pps=throughput_pps, seconds=seconds, repetitions=repetitions)
    if not loads or not all(0 < share <= 1 for share in loads) or len(set(loads)) != len(loads):
        raise UsageError(
            f"loads: {', '.join(f'{share:g}' for share in loads) or 'none'}",
            "give different shares of the throughput, above 0 and up to 1",
        )
    trials = Trials(device, attempts, bounds=bounds)
    runs: dict[float, list[Latency]] = {share: [] for share in loads}
    reason: Invalid | None = None
    left = list(loads)
    try:
        for _ in range(repetitions):
            for share in tuple(left):
                try:
                    outcome = trials.send(throughput_pps * share, seconds, latency=True)
                except DisturbedError as error:
                    if not bounds:
                        raise
                    # The other repetitions alone would be those of quieter moments.
                    left.remove(share)
                    reason = reason or invalid(error)
                    continue
                assert outcome.latency is not None
                runs[share].append(_run(outcome.latency))
    except TrialError as error:
        left, reason = [], invalid(error)
    deviations = too_short("runs of seconds:", seconds, SECONDS, "RFC 2544, 26.2")
    deviations += too_short("repetitions:", repetitions, REPETITIONS, "RFC 2544, 26.2")
    if 1 not in loads:
        deviations += ("none at the throughput rate (RFC 2544, 26.2)",)
    return LatencyResult(
        loads=tuple(_at_load(share, throughput_pps * share, runs[share]) for share in left),
        invalid=reason,
        effort=trials.effort(),
        deviations=deviations,
    )


def supports(count: int, quantile: float) -> bool:
    """Return True if the greatest of `count` values lies above the quantile with probability 0.95.

    The probability that all lie below is quantile ** count: 2995 values for 0.999.
    """
    return count >= math.ceil(math.log(1 - _LEVEL) / math.log(quantile))


def _run(measured: Latency) -> Latency:
    """Return the delays with only the quantiles that this number of frames supports."""
    return replace(
        measured,
        quantiles=_supported(measured.quantiles, measured.count),
        # The first frame has no predecessor.
        ipdv=_supported(measured.ipdv, measured.count - 1),
    )


def _supported(quantiles: dict[float, float], count: int) -> dict[float, float]:
    return {
        quantile: value
        for quantile, value in quantiles.items()
        if 0 < quantile < 1 and supports(count, quantile)
    }


def _at_load(share: float, pps: float, runs: list[Latency]) -> AtLoad:
    return AtLoad(
        share=share,
        pps=pps,
        runs=tuple(runs),
        minimum=min(run.minimum for run in runs),
        mean=statistics.fmean(run.mean for run in runs),
        maximum=max(run.maximum for run in runs),
    )
