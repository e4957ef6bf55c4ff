# SPDX-License-Identifier: BSD-3-Clause
"""Frame loss rate (RFC 2544, 26.3): loss by offered load, from 100 % down."""

from __future__ import annotations

import math
from dataclasses import dataclass

from linerate.host.errors import DisturbedError, TrialError, UsageError
from linerate.trial.search.device import Device
from linerate.trial.search.goals import FINAL_S
from linerate.trial.search.procedure import (
    ATTEMPTS,
    Invalid,
    Result,
    Trials,
    invalid,
    positive,
    too_short,
)

# RFC 2544, 26.3: the coarsest step, and the number of trials in a row without loss that ends the
# test.
GREATEST_STEP = 0.1
CLEAN = 2


@dataclass(frozen=True)
class Point:
    """Loss at one load. `share` is of the greatest rate."""

    share: float
    pps: float
    intended: int
    received: int
    loss_ratio: float


@dataclass(frozen=True, kw_only=True)
class FrameLoss(Result):
    """Points by falling load. `clean`: the last two lost nothing; otherwise the steps ran out.

    If invalid, it keeps the points before the trial that failed; with `bounds` also those after
    loads that could not be tried.
    """

    points: tuple[Point, ...]
    clean: bool


def frame_loss(
    device: Device,
    *,
    seconds: float = FINAL_S,
    step: float = GREATEST_STEP,
    attempts: int = ATTEMPTS,
    bounds: bool = False,
) -> FrameLoss:
    """Run the procedure. `bounds`: a load that could not be tried is left out. Raises `UsageError`
    for a step above 10 %, which the RFC forbids.
    """
    positive(seconds=seconds)
    if not 0 < step <= GREATEST_STEP + 1e-12:
        raise UsageError(
            f"step: {step:g} is not above 0 and at most {GREATEST_STEP:g} of the greatest rate "
            "(RFC 2544, 26.3)",
            "give a smaller step",
        )
    trials = Trials(device, attempts, bounds=bounds)
    points: list[Point] = []
    clean = 0
    reason: Invalid | None = None
    # The last load is above 0, also when the step does not divide 100 %.
    for index in range(math.ceil(1 / step - 1e-9)):
        share = 1 - index * step
        pps = device.max_pps * share
        try:
            outcome = trials.send(pps, seconds)
        except TrialError as error:
            reason = reason or invalid(error)
            if not (bounds and isinstance(error, DisturbedError)):
                break
            # Two in a row are two loads that follow each other.
            clean = 0
            continue
        points.append(Point(share, pps, outcome.intended, outcome.received, outcome.loss_ratio))
        clean = 0 if outcome.lost else clean + 1
        if clean == CLEAN:
            break
    return FrameLoss(
        points=tuple(points),
        clean=clean == CLEAN,
        invalid=reason,
        effort=trials.effort(),
        deviations=too_short("trials of seconds:", seconds, FINAL_S, "RFC 2544, 24"),
    )
