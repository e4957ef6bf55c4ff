# SPDX-License-Identifier: BSD-3-Clause
"""Steps with forwarders that are started together: they share a core, or take turns."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from linerate.forwarders import forwarder
from linerate.links import Link
from linerate.links.eal import Memory
from linerate.records.cells import Arm
from linerate.records.trial import Role
from linerate.runs.engine.ledger import Ledger, place_of
from linerate.runs.engine.setups import setup_of
from linerate.runs.engine.started import StartedDevice, device_of
from linerate.runs.plans.steps import SessionPlan, Standing, Turns
from linerate.trial.starts.taking_turns import TakingTurns
from linerate.trial.starts.trials import stand
from linerate.trial.starts.ways import room

Items = Sequence[tuple[Role, Arm]]


def share_core(plan: SessionPlan, ledger: Ledger, step: Standing) -> None:
    """Run one trial of each, except those on record."""
    setup, left = step.setup, list(step.items)
    while left:
        role, arm = left[0]
        place = place_of(setup, arm, step.block, role)
        passed = ledger.journal.replay(**place, load="self-driven")
        if passed is None:
            break
        ledger.passed(passed, counts=True)
        left.pop(0)
    for items in _groups(left, plan.bench.memory, setup.link):
        ledger.may_begin()
        for trial in stand(plan.bench, setup, items, step.block, step.method):
            ledger.record(trial)
            ledger.ran(trial, counts=True)
            ledger.count(trial.invalid_why, trial)


def take_turns(plan: SessionPlan, ledger: Ledger, step: Turns) -> None:
    """Run the procedure; the forwarder that it asks runs."""
    # Places in the block are those of its starts, whatever link each is on.
    slots = itertools.count()
    for items in _groups(step.items, plan.bench.memory, plan.link(step.cell.link)):
        ledger.may_begin(begun=ledger.replaying)
        with ExitStack() as stack:
            turns, started = TakingTurns(), []
            for number, (role, arm) in enumerate(items):
                setup = stack.enter_context(
                    setup_of(plan, step.cell, flood=step.flood, number=number)
                )
                setup.slots = slots
                device = stack.enter_context(
                    device_of(
                        plan.bench,
                        setup,
                        step,
                        arm,
                        role,
                        ledger.record,
                        max_pps=step.max_pps.get(arm.label, 0.0),
                        method="turns",
                    )
                )
                device.test = step.test
                stack.enter_context(turns.taking(device))
                place = place_of(setup, arm, step.block, role)
                started.append(
                    StartedDevice(ledger, device, arm, place, each_fails=step.each_fails)
                )
            step.procedure(started)
            if not step.each_fails:
                _count(ledger, started)


def _count(ledger: Ledger, started: Sequence[StartedDevice]) -> None:
    """Count a start as failed if no trial of it is valid."""
    for each in started:
        if trials := each.trials:
            last, some = trials[-1], any(trial.valid for trial in trials)
            fresh = last.session == ledger.journal.session
            why = last.invalid_why or "no trial counts"
            # Results of earlier sessions stand, and do not end this one.
            ledger.count(why if fresh and not some else None, last)


def _groups(items: Items, memory: Memory, link: Link) -> Iterator[Items]:
    """Split the items into groups of about the same size that fit into memory."""
    if not items:
        return
    programs = [forwarder(arm.forwarder) for _, arm in items]
    groups = math.ceil(len(items) / max(room(memory, programs, link), 1))
    for group in range(groups):
        yield items[group * len(items) // groups : (group + 1) * len(items) // groups]
