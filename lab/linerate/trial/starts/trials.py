# SPDX-License-Identifier: BSD-3-Clause
"""Trials of programs that run side by side on one core, on a link without a generator.

A trial counts packets over the CPU time of its program's process
(docs/how-it-measures.md#standing-programs).
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

from linerate.forwarders import forwarder
from linerate.host.errors import TrialError
from linerate.records.cells import Arm
from linerate.records.outcome import Frames
from linerate.records.outcome import Slice as RecordedSlice
from linerate.records.trial import InvalidCode, Role, Trial
from linerate.trial.activity import Watch
from linerate.trial.link_setup import LinkSetup
from linerate.trial.starts.alone import by_itself
from linerate.trial.starts.faults import FaultError, Kind, refuse
from linerate.trial.starts.standing import standing, together
from linerate.trial.starts.window import Window
from linerate.trial.trial import Bench, Plan, ProgramStart, new_record, stolen

# Readings in each window: time taken by the hypervisor lies in few of the slices.
SLICES = 5
_CODES: dict[Kind, InvalidCode] = {
    "start": "ended",
    "ended": "ended",
    "silent": "telemetry",
    "stuck": "idle",
    "counters": "unreadable",
    "drops": "kept",
    "ports": "idle",
    "shared": "error",
    "unsaturated": "error",
}


def stand(
    bench: Bench, setup: LinkSetup, items: Sequence[tuple[Role, Arm]], block: int
) -> list[Trial]:
    """Run one trial of each, in this order. If one is at fault it is removed, and the others are
    measured again.
    """
    trials = []
    for role, arm in items:
        trial = new_record(bench, Plan(arm, "self-driven", block, 0, role), setup)
        trial.method = "standing"
        trial.program.build = forwarder(arm.forwarder).build_facts()
        trials.append(trial)
    left = list(trials)
    while left:
        try:
            with stolen(bench, left, setup):
                _measure(bench, setup, left)
        except FaultError as fault:
            left.pop(fault.arm).reject(_CODES[fault.kind], str(fault.message))
        except TrialError as error:
            for trial in left:
                trial.reject("error", str(error.message))
            break
        else:
            break
    return trials


def _measure(bench: Bench, setup: LinkSetup, trials: Sequence[Trial]) -> None:
    wire, _ = setup.ready()
    programs = [forwarder(trial.forwarder) for trial in trials]
    for trial in trials:
        ProgramStart.next(bench, setup).enter(trial)
    with standing(bench, wire, programs, range(len(trials))) as starts:
        watches = [
            Watch(trial, bench.host, start.running.children, wire.threads)
            for trial, start in zip(trials, starts, strict=True)
        ]
        windows = together(starts, bench.window_s * len(starts), SLICES)
        for watch in watches:
            watch.enter(others_wanted=True)
        refuse(windows)
        singles = by_itself(starts, random.Random(trials[0].block))
    for trial, window, single in zip(trials, windows, singles, strict=True):
        trial.outcome = _frames(window)
        trial.outcome.alone_pps = single.pps


def _frames(window: Window) -> Frames:
    """Return the figures of the slice with the median rate, with all slices."""
    by_rate = sorted(window.slices, key=lambda each: each.pps)
    found = by_rate[(len(by_rate) - 1) // 2]
    ends = list(itertools.accumulate(each.time_ns for each in window.slices))
    return Frames(
        duration_s=found.time_ns / 1e9,
        forwarder_rx=sum(found.received),
        forwarder_tx=sum(found.sent),
        slices=[
            RecordedSlice(
                begin_ns=end - each.time_ns,
                end_ns=end,
                counts={"forwarder_rx": sum(each.received), "forwarder_tx": sum(each.sent)},
            )
            for each, end in zip(window.slices, ends, strict=True)
        ],
    )
