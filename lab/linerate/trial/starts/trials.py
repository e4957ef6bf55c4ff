# SPDX-License-Identifier: BSD-3-Clause
"""Trials of programs that are started together on one core, on a link without a generator.

They run side by side, or in turns while the others are stopped. A trial counts packets over the CPU
time of its program's process (docs/how-it-measures.md#standing-programs).
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
from linerate.records.trial import InvalidCode, Method, Role, Trial
from linerate.trial.activity import Watch
from linerate.trial.link_setup import LinkSetup
from linerate.trial.starts.alone import by_itself
from linerate.trial.starts.faults import FaultError, Kind, refuse
from linerate.trial.starts.standing import standing, together
from linerate.trial.starts.window import Window
from linerate.trial.trial import Bench, Plan, ProgramStart, new_record, stolen

# Readings in each window: time taken by the hypervisor lies in few of the slices.
SLICES = 5
# The least time of a turn: a reading of the counters is uncertain by 0.1 ms.
_TURN_S = 0.05
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
    bench: Bench,
    setup: LinkSetup,
    items: Sequence[tuple[Role, Arm]],
    block: int,
    method: Method = "standing",
) -> list[Trial]:
    """Run one trial of each, in this order. If one is at fault it is removed, and the others are
    measured again. `method`: "standing", or "turns".
    """
    trials = []
    for role, arm in items:
        trial = new_record(bench, Plan(arm, "self-driven", block, 0, role), setup)
        trial.method = method
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
        source = random.Random(trials[0].block)
        in_turns = trials[0].method == "turns"
        if in_turns:
            windows = by_itself(starts, source, max(bench.window_s / SLICES, _TURN_S), SLICES)
        else:
            windows = together(starts, bench.window_s * len(starts), SLICES)
        for watch in watches:
            watch.enter(others_wanted=True)
        refuse(windows)
        singles = [] if in_turns else by_itself(starts, source)
    for number, (trial, window) in enumerate(zip(trials, windows, strict=True)):
        trial.outcome = _frames(window)
        if singles:
            trial.outcome.alone_pps = singles[number].pps


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
