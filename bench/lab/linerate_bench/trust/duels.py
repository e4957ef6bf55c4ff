# SPDX-License-Identifier: BSD-3-Clause
"""Counts how often `linerate duel` is right on this machine: `make bench-duels`.

    python -m linerate_bench.trust.duels --records FILE [--only NAME]... [--count N]

A program fights against itself, or against itself with a fixed number of dependent additions after
each burst; in some duels a compiler runs on both CPUs. The program is the plain forwarder, with a
buffer before each port as l2fwd has. First the cost of an addition is measured, in turns, by starts
that have the core to themselves. Each duel is a line of FILE and is not fought again, so that hours
of duels can be split into several calls.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter
from scipy import stats as scipy_stats

from linerate.experiments.duel.fight import fight
from linerate.experiments.duel.rounds import Asked
from linerate.experiments.duel.verdict import log_of_starts, log_ratio
from linerate.forwarders import Forwarder
from linerate.forwarders.definition import BenchBuild, Definition
from linerate.host.cores import cpus, weight
from linerate.host.cores.leases import leased
from linerate.host.process import RunDirectory, checkpoint, interruptible
from linerate.links import LinkContext, Wire, link
from linerate.links.eal import Memory
from linerate.runs.session import pinned
from linerate.trial.starts.alone import by_itself
from linerate.trial.starts.standing import standing
from linerate.trial.trial import Bench
from linerate_bench.trust.beside import compilers

LINK = "nearfree2"
BURST = 32
# Rounds, and the starts of every program in each that are measured alone on the core.
ROUNDS, STARTS = 12, 2
# The cost of a burst is measured with each of these numbers of additions, and a line is fitted.
CHAINS = (0, 5, 10, 20, 40)


@dataclass(frozen=True)
class Kind:
    """Duels of one kind. `slower`: the share by which the second program is slower; `found`: the
    number of duels out of `count` that must find this, or must find the programs equal if it is 0.
    """

    name: str
    slower: float
    beside: bool
    count: int
    found: int
    within_s: float
    margin: float = 0.02


KINDS = (
    Kind("A/A", 0.0, False, 50, 38, 60),
    Kind("A/A, compiler", 0.0, True, 50, 37, 60),
    Kind("5 %", 0.05, False, 20, 18, 30),
    Kind("2 %", 0.02, False, 20, 18, 90, margin=0.005),
    Kind("1 %", 0.01, False, 20, 14, 180, margin=0.005),
    Kind("10 %, compiler", 0.10, True, 20, 19, 30),
    Kind("5 %, compiler", 0.05, True, 20, 18, 60),
    Kind("2 %, compiler", 0.02, True, 20, 14, 180, margin=0.005),
)
# A direction may be found in at most this many of the duels of a program against itself.
MOST_WRONG = 3


@dataclass(frozen=True)
class Fought:
    """One duel. `planted`: the share by which the second program was slower, alone on its core,
    when the costs were measured; `alone`: the same for its own starts, each alone in each round,
    because the machine's state changes between the two. None: there were no such turns.
    """

    kind: str
    seed: int
    planted: float
    answer: str
    direction: str | None
    ratio: float | None
    took_s: float
    rounds: int
    fault: str | None = None
    alone: float | None = None


def program(chain: int) -> Forwarder:
    """Return the plain forwarder with `chain` additions after each burst."""
    return Forwarder(
        Definition(
            name=f"chained-{chain}",
            language="C",
            kind="dpdk",
            build=BenchBuild(recipe="bench", folder="plain", product="chained"),
            command=f"{{program}} {{eal}} -- -p {{portmask}} -q {{ports}} -T 0 --chain {chain}",
            polls="nothing",
            spans="nothing",
        )
    )


def alone(bench: Bench, wire: Wire, chains: Sequence[int]) -> list[float]:
    """Return the seconds that a burst takes with each of `chains`, alone on the core, in
    interleaved turns. In each round the first of `chains` is compared with the others, because the
    machine's state changes from round to round.
    """
    programs = [program(chain) for chain in chains]
    for each in programs:
        each.prepare()
    source = random.Random("linerate:trust:costs")
    first: list[float] = []
    times: list[list[float]] = [[] for _ in chains]
    for _ in range(ROUNDS):
        checkpoint()
        order = [*range(len(chains))] * STARTS
        source.shuffle(order)
        with standing(bench, wire, programs, order) as starts:
            windows = by_itself(starts, source)
        # A duel computes one figure from a program's starts in the same way.
        pps = [
            math.exp(log_of_starts(each.pps for each in windows if each.arm == arm))
            for arm in range(len(chains))
        ]
        first.append(BURST / pps[0])
        for found, mine in zip(times, pps, strict=True):
            found.append(pps[0] / mine)
    return [statistics.median(first) * statistics.median(each) for each in times]


@dataclass(frozen=True)
class Costs:
    """The seconds that a burst takes (`bursts_s`) with each number of additions (`chains`), and the
    straight line that fits them best.
    """

    chains: tuple[int, ...]
    bursts_s: tuple[float, ...]

    def slower(self, chain: int) -> float:
        """Return the share by which `chain` additions lower the rate."""
        each, none = np.polyfit(self.chains, self.bursts_s, 1)
        return 1 - float(none / (none + each * chain))

    def chain(self, slower: float) -> int:
        """Return the number of additions that lower the rate by about that share; 0 for none."""
        if slower == 0:
            return 0
        return min(
            range(1, self.chains[-1] + 1), key=lambda chain: abs(self.slower(chain) - slower)
        )

    def __str__(self) -> str:
        pairs = zip(self.chains, self.bursts_s, strict=True)
        return ", ".join(f"{chain} x {seconds * 1e9:.1f} ns" for chain, seconds in pairs)


def fought(bench: Bench, kind: Kind, seed: int, chain: int, planted: float) -> Fought:
    """Fight one duel of this kind."""
    found_link = link(LINK)
    programs = [program(0), program(chain)]
    for each in programs:
        each.prepare()
    # Only the figures may show that a program is as fast as itself.
    asked = Asked(margin=kind.margin, within_s=kind.within_s, seed=seed, code=False)
    both = {bench.cores.control, bench.cores.forwarder}
    # Compilers that began before have the normal weight.
    with compilers(bench.run, both if kind.beside else ()), weight.raised():
        duel = fight(bench, found_link, programs, asked)
    verdict = duel.verdict
    ratios = [log_ratio(each.alone) for each in duel.rounds if each.alone]
    return Fought(
        kind.name, seed, planted, duel.answer, verdict.direction, verdict.ratio, duel.took_s,
        len(duel.rounds), str(duel.fault.message) if duel.fault else None,
        1 - math.exp(statistics.median(ratios)) if ratios else None,
    )  # fmt: skip


def read(path: Path) -> list[Fought]:
    """Return the recorded duels."""
    if not path.exists():
        return []
    reader = TypeAdapter(Fought)
    return [reader.validate_json(line) for line in path.read_text().splitlines() if line]


def told(kind: Kind, duels: Sequence[Fought]) -> str:
    """Return a line of the table."""
    n = len(duels)
    if not n:
        return f"{kind.name:<18}   0 of {kind.count}"
    right = [each for each in duels if _right(kind, each)]
    wrong = [each for each in duels if _wrong(kind, each)]
    interval = scipy_stats.binomtest(len(right), n).proportion_ci(0.95, "exact")
    planted = statistics.median(each.planted for each in duels)
    own = [each.alone for each in duels if each.alone is not None]
    alone = f"{statistics.median(own):6.2%}" if own else "     -"
    seconds = statistics.median(each.took_s for each in duels)
    goal = math.ceil(kind.found * n / kind.count)
    mark = (
        "PASS"
        if len(right) >= goal and len(wrong) <= (MOST_WRONG if not kind.slower else 0)
        else "FAIL"
    )
    return (
        f"{kind.name:<18} {n:>3} of {kind.count:<3} planted {planted:6.2%} alone {alone}   "
        f"right {len(right):>3} ({interval.low:.0%} to {interval.high:.0%})   "
        f"wrong {len(wrong):>2}   median {seconds:5.1f} s   goal {goal:>3} {mark}"
    )


def _right(kind: Kind, duel: Fought) -> bool:
    return "slower" in _told(duel) if kind.slower else duel.answer == "equal"


def _wrong(kind: Kind, duel: Fought) -> bool:
    return "faster" in _told(duel) if kind.slower else bool(_told(duel) & {"slower", "faster"})


def _told(duel: Fought) -> set[str | None]:
    """Return the answer in words; beyond the margin also its direction."""
    return {duel.direction, duel.answer}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=Path, required=True)
    parser.add_argument("--only", action="append", choices=[each.name for each in KINDS])
    parser.add_argument("--count", type=int, help="of each kind, at most")
    given = parser.parse_args()
    kinds = [each for each in KINDS if not given.only or each.name in given.only]
    done = read(given.records)
    with interruptible(), leased(), RunDirectory() as run:
        cores = cpus.Cores.choose()
        bench = Bench(
            run=run, cores=cores, memory=Memory.choose(), experiment="duel", seed=1, window_s=1.0
        )
        found_link = link(LINK)
        found_link.prepare()
        with pinned(cores.control), given.records.open("a") as out:
            context = LinkContext(run.path, 64, bench.memory.hugepages, cores)
            with found_link.open(context) as wire:
                bursts = alone(bench, wire, CHAINS)
            costs = Costs(CHAINS, tuple(bursts))
            print(f"alone, a burst of {BURST}: {costs}", flush=True)
            for seed in range(max(each.count for each in kinds)):
                for kind in kinds:
                    most = min(kind.count, given.count or kind.count)
                    there = any((each.kind, each.seed) == (kind.name, seed) for each in done)
                    if seed >= most or there:
                        continue
                    chain = costs.chain(kind.slower)
                    found = fought(bench, kind, seed, chain, costs.slower(chain))
                    done.append(found)
                    out.write(json.dumps(asdict(found)) + "\n")
                    out.flush()
                    print(told(kind, [each for each in done if each.kind == kind.name]), flush=True)
    print()
    for kind in kinds:
        print(told(kind, [each for each in done if each.kind == kind.name]))


if __name__ == "__main__":
    main()
