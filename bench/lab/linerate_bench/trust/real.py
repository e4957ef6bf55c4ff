# SPDX-License-Identifier: BSD-3-Clause
"""Comparisons on this machine: the overload experiment's trials, in its order.

A comparison ends when its preset has no more blocks, or when another block would not fit into its
time. It never ends because of its rates.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from linerate.forwarders import forwarder
from linerate.host import machine
from linerate.host.cores import cpus
from linerate.host.cores.leases import leased
from linerate.host.errors import LabError
from linerate.host.places import rust_binary
from linerate.host.process import RunDirectory, checkpoint
from linerate.links import LinkContext, Wire, link
from linerate.links.eal import Memory
from linerate.records.cells import Arm, Cell
from linerate.records.run_file import Session
from linerate.records.summary import Comparison
from linerate.records.trial import Load, Trial
from linerate.runs.plans.block_plan import MAX_FAILURES
from linerate.runs.plans.blocks import order
from linerate.runs.provenance import described, now, programs, versions
from linerate.runs.session import pinned
from linerate.traffic.generator import Generator
from linerate.trial.link_setup import LinkSetup
from linerate.trial.trial import Bench, Plan, run_trial
from linerate_bench.trust.comparison import QUICK, SCREEN, SIZE, Extent, arms, judged
from linerate_bench.trust.kept import Kept


@dataclass(frozen=True)
class Kind:
    """Which program is compared with which, and the least share by which it is slower.

    Long comparisons take part in one round of `one_in`.
    """

    link: str
    baseline: str
    tested: str
    slow_down: float
    extent: Extent
    one_in: int = 1


KINDS = (
    Kind("null", "c-l2fwd", "c-l2fwd", 0.0, QUICK),
    Kind("memif", "c-l2fwd", "c-l2fwd", 0.0, QUICK),
    Kind("null", "slowed-0", "slowed-2", 0.02, SCREEN, one_in=2),
    Kind("null", "slowed-0", "slowed-5", 0.05, SCREEN, one_in=2),
    Kind("null", "slowed-0", "slowed-10", 0.10, SCREEN, one_in=2),
)


@contextmanager
def laboratory() -> Iterator[Bench]:
    """Check that nothing is missing, lease CPUs, and keep the lab off the forwarder's core."""
    for kind in KINDS:
        link(kind.link).prepare()
        for name in (kind.baseline, kind.tested):
            forwarder(name).prepare()
        if link(kind.link).has_generator:
            rust_binary("generator")
    with leased(), RunDirectory() as run:
        cores = cpus.Cores.choose()
        with pinned(cores.control):
            if warning := cpus.await_free(cores.forwarder):
                print(f"bench-trust: {warning}", file=sys.stderr)
            window_s = QUICK.preset.window_s
            yield Bench(run, cores, Memory.choose(), "trust", seed=0, window_s=window_s)


def session_of(bench: Bench) -> Session:
    """Return machine and programs, after `laboratory` prepared them."""
    names = [name for kind in KINDS for name in (kind.baseline, kind.tested)]
    return Session(
        session=1,
        command="make bench-trust",
        started_at=now(),
        machine=machine.facts(),
        versions=versions(),
        programs=programs(names, generator=True, probe=False),
        forwarders=described(names),
        memory="hugepages" if bench.memory.hugepages else "no-huge",
    )


def compare_once(
    bench: Bench, kind: Kind, seed: int, records: Kept | None
) -> tuple[Comparison, int]:
    """Make one comparison, or return the recorded one; return also its number of blocks."""
    if records and (found := records.found(seed, kind.link, kind.tested)):
        blocks = 1 + max(trial.block for trial in found)
        both = arms(kind.baseline, kind.tested)
        return judged(Cell(kind.link, SIZE, blocks), both, found), blocks
    bench = replace(bench, seed=seed, window_s=kind.extent.preset.window_s)
    both = arms(kind.baseline, kind.tested)
    cell = Cell(kind.link, SIZE, kind.extent.preset.blocks)
    budget_s = math.inf if kind.extent.budget_s is None else kind.extent.budget_s
    began = time.monotonic()
    trials: list[Trial] = []
    longest, blocks = 0.0, 0
    for block, shuffled in enumerate(order(both, cell, seed)):
        started = time.monotonic()
        if started - began + longest > budget_s:
            break
        for trial in _block(bench, cell, shuffled, block, len(trials)):
            trials.append(trial)
            if records:
                records.append(trial)
            if len(trials) >= MAX_FAILURES and all(t.invalid for t in trials[-MAX_FAILURES:]):
                raise LabError(
                    f"{MAX_FAILURES} trials in a row were invalid, the last because: "
                    f"{trial.invalid}",
                    "linerate doctor",
                )
        longest = max(longest, time.monotonic() - started)
        blocks += 1
    return judged(replace(cell, blocks=blocks), both, trials), blocks


def _block(
    bench: Bench, cell: Cell, shuffled: list[Arm], block: int, position: int
) -> Iterator[Trial]:
    def start(wire: Wire) -> Generator:
        return Generator(bench.run, bench.cores.control, bench.memory, wire, flood=True)

    chosen = link(cell.link)
    context = LinkContext(bench.run.path, cell.size, bench.memory.hugepages, bench.cores)
    with LinkSetup(chosen, context, start if chosen.has_generator else None) as setup:
        for place, arm in enumerate(shuffled):
            checkpoint()
            load: Load = "flood" if chosen.has_generator else "self-driven"
            yield run_trial(bench, Plan(arm, load, block, position + place), setup)
