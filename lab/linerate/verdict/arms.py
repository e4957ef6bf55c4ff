# SPDX-License-Identifier: BSD-3-Clause
"""Compute an arm's figures from its trials: quartiles, the flood's table, the lower loads."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from linerate.records.cells import Arm
from linerate.records.summary import ArmSummary
from linerate.records.summary_figures import InvalidReason, LowerLoad, Quartiles
from linerate.records.trial import DISTURBED, NAMED_SHARE, InvalidCode, Trial
from linerate.verdict.programs import program_of
from linerate.verdict.stats import ALPHA, MIN_COUNT

# The most users of the CPUs that are named for invalid windows.
MOST_NAMED = 3


def quartiles(values: Iterable[float | None]) -> Quartiles | None:
    """Return quartiles and the median's interval by order statistics; None without values."""
    data = sorted(value for value in values if value is not None)
    if not data:
        return None
    if len(data) == 1:
        value = data[0]
        return Quartiles(n=1, median=value, q1=value, q3=value)
    q1, median, q3 = statistics.quantiles(data, n=4, method="inclusive")
    found = Quartiles(n=len(data), median=median, q1=q1, q3=q3)
    if len(data) >= MIN_COUNT:
        cut = median_cut(len(data))
        found.low, found.high = data[cut], data[-1 - cut]
    return found


def median_cut(count: int) -> int:
    """Return how many observations to leave out at each end for the interval of the median (sign
    test).
    """
    tail, cut = 0.0, 0
    for k in range(count):
        tail += math.comb(count, k) * 0.5**count
        if tail > ALPHA / 2:
            break
        cut = k
    return cut


def _share(part: int | None, whole: int | None) -> float | None:
    return part / whole if part is not None and whole else None


def median_of(values: Iterable[float | None]) -> float | None:
    data = [value for value in values if value is not None]
    return statistics.median(data) if data else None


def arm_of(arm: Arm, trials: list[Trial], **figures: Any) -> ArmSummary:
    """Return an arm's program and number of trials, with these figures."""
    program = program_of(trials, arm.forwarder)
    return ArmSummary(
        arm=arm.label,
        forwarder=arm.forwarder,
        language=program.language,
        kind=program.kind,
        trials=len(trials),
        invalid=sum(not trial.valid for trial in trials),
        **figures,
    )


def summarise_arm(label: str, trials: list[Trial], probed: list[Trial]) -> ArmSummary:
    """Summarise an arm. `probed`: trials of the same program with the probe in it, for the figures
    of its polls.
    """
    valid = [trial for trial in trials if trial.valid]
    polls = [trial for trial in probed if trial.valid]
    frames = {}
    for name in (
        "attempted",
        "refused",
        "accepted",
        "lost_at_ingress",
        "forwarder_rx",
        "forwarder_tx",
        "forwarder_drops",
        "received",
        "unattributed",
    ):
        counts = [count for trial in valid if (count := getattr(trial.frames, name)) is not None]
        if counts:
            frames[name] = sum(counts)

    def rate(name: str) -> float | None:
        return median_of(
            getattr(trial.frames, name) / trial.frames.duration_s / 1e6
            for trial in valid
            if getattr(trial.frames, name) is not None and trial.frames.duration_s
        )

    def lost_before(trial: Trial) -> float | None:
        accepted, taken = trial.frames.accepted, trial.frames.forwarder_rx
        return None if accepted is None or taken is None else _share(accepted - taken, accepted)

    return arm_of(
        Arm(label, trials[0].forwarder),
        trials,
        mpps=quartiles(mega(trial.frames.forwarder_rx_pps) for trial in valid),
        received_mpps=quartiles(mega(trial.frames.received_pps) for trial in valid),
        cycles_per_packet=quartiles(
            trial.window_cycles_per_packet for trial in valid if trial.request.load == "self-driven"
        ),
        probed_trials=len(probed),
        busy_cycles_per_packet=quartiles(trial.frames.busy_cycles_per_packet for trial in polls),
        average_rx_burst=quartiles(trial.frames.average_rx_burst for trial in polls),
        average_nonempty_rx_burst=quartiles(t.frames.average_nonempty_rx_burst for t in polls),
        generator_tx_mpps=rate("accepted"),
        forwarder_tx_mpps=rate("forwarder_tx"),
        dropped_share=median_of(
            _share(trial.frames.forwarder_drops, trial.frames.forwarder_rx) for trial in valid
        ),
        refused_share=median_of(
            _share(trial.frames.refused, trial.frames.attempted) for trial in valid
        ),
        lost_before_share=median_of(lost_before(trial) for trial in valid),
        frames=frames,
    )


def mega(value: float | None) -> float | None:
    return None if value is None else value / 1e6


def invalid_reasons(trials: list[Trial]) -> list[InvalidReason]:
    """Return the reasons of invalid trials, most frequent first."""
    found: dict[InvalidCode, InvalidReason] = {}
    others: dict[InvalidCode, Counter[str]] = {}
    for trial in trials:
        if void := trial.invalid:
            entry = found.setdefault(
                void.code, InvalidReason(code=void.code, count=0, example=void.why)
            )
            entry.count += 1
            for shares in (trial.others or {}).values() if void.code in DISTURBED else ():
                others.setdefault(void.code, Counter()).update(shares)
    for code, sums in others.items():
        shares = {name: total / found[code].count for name, total in sums.most_common(MOST_NAMED)}
        found[code].others = {
            n: share for n, share in shares.items() if share >= NAMED_SHARE
        } or None
    return sorted(found.values(), key=lambda reason: -reason.count)


def last_windows(trials: list[Trial]) -> list[Trial]:
    """Return one window of each trial: the one that counts, or the last void one."""
    found: dict[tuple[object, ...], Trial] = {}
    for trial in trials:
        asked_for = (trial.arm, trial.block, trial.request.test, trial.request.load_share)
        if asked_for not in found or not found[asked_for].valid:
            found[asked_for] = trial
    return list(found.values())


def summarise_lower_load(every: list[Trial]) -> list[LowerLoad]:
    """Return figures by load and arm; a trial whose windows were repeated counts once."""
    trials = last_windows(every)
    keys = sorted({(trial.request.load_share or 0.0, trial.arm) for trial in trials})
    return [
        lower_load(
            arm, share, [t for t in trials if t.arm == arm and t.request.load_share == share]
        )
        for share, arm in keys
    ]


def lower_load(arm: str, share: float, trials: list[Trial]) -> LowerLoad:
    """Return the figures of these trials together."""
    valid = [t for t in trials if t.valid]
    return LowerLoad(
        arm=arm,
        load_share=share,
        offered_mpps=median_of(
            t.frames.attempted / t.frames.duration_s / 1e6
            for t in valid
            if t.frames.attempted is not None and t.frames.duration_s
        ),
        trials=len(trials),
        invalid=len(trials) - len(valid),
        invalid_reasons=invalid_reasons(trials),
        loss_share=_loss(valid),
        busy_cycles_per_packet=quartiles(t.frames.busy_cycles_per_packet for t in valid),
        average_rx_burst=quartiles(t.frames.average_rx_burst for t in valid),
        average_nonempty_rx_burst=quartiles(t.frames.average_nonempty_rx_burst for t in valid),
        busy_share=quartiles(t.frames.busy_share for t in valid),
        full_share=quartiles(t.frames.full_share for t in valid),
        rx_spin=quartiles(t.frames.rx_spin for t in valid),
    )


def typical_loss(trials: Sequence[Trial]) -> float | None:
    """Return the share of frames that the median trial lost: a few disturbed trials do not decide
    whether a program carries a load.
    """
    return median_of(_loss([trial]) for trial in trials if trial.valid)


def _loss(trials: list[Trial]) -> float | None:
    """Return the loss over all trials together: neither one gap of the machine nor their number
    decides.
    """
    counted = [
        (frames.attempted - (frames.disturbed_frames or 0),
         frames.attempted - frames.received - (frames.disturbed_lost or 0))
        for frames in (trial.frames for trial in trials)
        if frames.attempted is not None and frames.received is not None
    ]  # fmt: skip
    sent, lost = (sum(each[part] for each in counted) for part in (0, 1))
    return _share(lost, sent)
