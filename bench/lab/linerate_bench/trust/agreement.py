# SPDX-License-Identifier: BSD-3-Clause
"""Checks that standing programs compare as they do alone: `make bench-agreement`.

    python -m linerate_bench.trust.agreement [--rounds N] [--only PAIR]...

Pairs of programs run together in rounds, and each start of a round also runs by itself for a moment
while all others are stopped, as in every duel. A row has the median ratio of both ways, and the
interval of the ratio of these ratios over all rounds (a bootstrap of their median), which has to
lie inside 2 %.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats as scipy_stats

from linerate.experiments.duel.verdict import log_ratio
from linerate.forwarders import Forwarder, forwarder
from linerate.host.cores import cpus
from linerate.host.cores.leases import leased
from linerate.host.process import RunDirectory, interruptible
from linerate.links import link
from linerate.links.eal import Memory
from linerate.runs.session import pinned
from linerate.trial.starts.alone import by_itself
from linerate.trial.starts.faults import FaultError, refuse
from linerate.trial.starts.standing import standing, together
from linerate.trial.trial import Bench
from linerate_bench.trust.duels import program

STARTS, WINDOW_S, SLICES = 4, 0.75, 3
TURN_S, TURNS = 0.05, 3
WITHIN = 0.02


@dataclass(frozen=True)
class Pair:
    """Two programs on a link."""

    name: str
    link: str
    programs: tuple[Forwarder, Forwarder]


def pairs() -> list[Pair]:
    def named(on: str, one: str, other: str) -> Pair:
        return Pair(f"{one}, {other}", on, (forwarder(one), forwarder(other)))

    return [
        named("null2", "c-l2fwd", "c-l2fwd-clang"),
        named("null2", "c-l2fwd", "rust-l2fwd"),
        named("null2", "c-l2fwd", "testpmd-mac"),
        named("nearfree2", "rust-l2fwd", "rust-l2fwd-burst"),
        named("nearfree2-ip", "c-l3fwd-lpm", "c-l3fwd-em"),
        Pair("chained 0, chained 20", "nearfree2", (program(0), program(20))),
    ]


def observed(bench: Bench, pair: Pair, rounds: int) -> list[tuple[float, float]]:
    """Return the logarithms of the ratio, standing and alone, for each round."""
    found_link = link(pair.link)
    found_link.prepare()
    for each in pair.programs:
        each.prepare()
    source = random.Random(f"linerate:agreement:{pair.name}")
    found = []
    with found_link.open(bench.context(64)) as wire:
        for _ in range(rounds):
            order = [0] * STARTS + [1] * STARTS
            source.shuffle(order)
            with standing(bench, wire, pair.programs, order) as starts:
                beside = together(starts, WINDOW_S, SLICES)
                single = by_itself(starts, source, TURN_S, TURNS)
            refuse(beside)
            found.append((log_ratio(beside), log_ratio(single)))
    return found


def row(pair: Pair, rounds: Sequence[tuple[float, float]]) -> str:
    beside, by_itself = (statistics.median(each) for each in zip(*rounds, strict=True))
    differences = np.array([one - other for one, other in rounds])
    interval = scipy_stats.bootstrap(
        (differences,), np.median, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    low, high = math.exp(interval.low), math.exp(interval.high)
    middle = math.exp(float(np.median(differences)))
    mark = "inside" if low > 1 - WITHIN and high < 1 + WITHIN else "not inside"
    return (
        f"{pair.name:<28} {pair.link:<13} standing {math.exp(beside):.3f}   alone "
        f"{math.exp(by_itself):.3f}   ratio of ratios {middle:.3f} "
        f"({low:.3f} to {high:.3f})   {mark} 2 %"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=16)
    parser.add_argument("--only", action="append", help="the name of a pair")
    given = parser.parse_args()
    with interruptible(), leased(), RunDirectory() as run:
        cores = cpus.Cores.choose()
        bench = Bench(
            run=run, cores=cores, memory=Memory.choose(), experiment="duel", seed=1, window_s=1.0
        )
        with pinned(cores.control):
            for pair in pairs():
                if given.only and pair.name not in given.only:
                    continue
                try:
                    print(row(pair, observed(bench, pair, given.rounds)), flush=True)
                except FaultError as fault:
                    print(f"{pair.name:<28} {pair.link:<13} {fault.message}", flush=True)


if __name__ == "__main__":
    main()
