# SPDX-License-Identifier: BSD-3-Clause
"""Starts and stops each program, and kills it: nothing may be left."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

from linerate.host.errors import LabError
from linerate.host.host import Host
from linerate_bench.soak.bench import Bench, Looks, Started, Until, started, wrong_end
from linerate_bench.soak.plan import Row
from linerate_bench.soak.programs import (
    PROGRAMS,
    Program,
    await_handler,
    await_moment,
    await_traffic,
    surroundings,
)
from linerate_bench.soak.records import Counted
from linerate_bench.soak.wires import Wires

KILLS = 500
PATIENCE_S = 2.0
ENDINGS = (signal.SIGTERM, signal.SIGINT)
# Runs a program once and returns the faults (`stopped`, `killed`).
Once = Callable[[Bench, Program, Host], list[str]]


def stopped(bench: Bench, program: Program, host: Host) -> list[str]:
    """Start a program and stop it at a random moment; return the faults."""
    number = bench.source.choice(ENDINGS)
    prefix = bench.run.new_prefix("soak")
    with started(bench, program.argv(bench, prefix), prefix, host) as running:
        try:
            moment = await_moment(bench, program, running)
        except LabError as error:
            return [f"start: {error}"]
        return _ended(running, number, program, moment)


def _ended(running: Started, number: signal.Signals, program: Program, moment: str) -> list[str]:
    heard = running.hears(number)
    code, said = running.end(number)
    wrong = wrong_end(code, number, heard, program.after(number))
    return [f"{wrong} ({moment}): {said}"] if wrong else []


def killed(bench: Bench, program: Program, host: Host) -> list[str]:
    """Kill a program (SIGKILL) at a random moment and start it again with the same names; return
    the faults. The second one has to remove what was left, run, and end in order.
    """
    prefix = bench.run.new_prefix("soak")
    argv = program.argv(bench, prefix)
    with started(bench, argv, prefix, host) as running:
        try:
            await_moment(bench, program, running)
        except LabError as error:
            return [f"start: {error}"]
        running.end(signal.SIGKILL)
    with started(bench, argv, prefix, host) as running:
        try:
            if program.forwards:
                await_traffic(running)
            else:
                await_moment(bench, program, running)
                await_handler(running)
        except LabError as error:
            return [f"start after a kill: {error}"]
        return _ended(running, signal.SIGTERM, program, "after a kill")


def counted(
    bench: Bench, program: Program, once: Once, until: Until, patience_s: float = 10.0
) -> Counted:
    """So many as there is time for, each with a look at what is left."""
    with until.going_on(), surroundings(program) as (host, made):
        while until.on:
            looks = Looks(bench, patience_s)
            until.faults += once(bench, program, host)
            until.faults += looks.left() + _on(made)
            until.number += 1
    return Counted(until.number, tuple(until.faults))


def _on(made: Wires | None) -> list[str]:
    """Describe what is left on interfaces. The kernel detaches XDP programs some time after their
    owner has ended.
    """
    deadline = time.monotonic() + PATIENCE_S
    while made is not None and (found := made.changed()):
        if time.monotonic() >= deadline:
            return found
        time.sleep(0.05)
    return []


def rows() -> list[Row]:
    """Return the rows of both parts."""

    def row(part: str, unit: str, program: Program, goal: int, once: Once) -> Row:
        def count(bench: Bench, seconds: float, wanted: int) -> Counted:
            return counted(bench, program, once, Until(seconds, wanted))

        return Row(part, program.name, unit, goal, count)

    return [
        *(row("starts", "starts and stops", each, each.goal, stopped) for each in PROGRAMS),
        *(row("kills", "SIGKILLs", each, KILLS, killed) for each in PROGRAMS),
    ]
