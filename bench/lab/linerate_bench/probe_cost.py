# SPDX-License-Identifier: BSD-3-Clause
"""Measures what the probe costs forwarders between two net_null ports.

    python -m linerate_bench.probe_cost [PROCESSES [FORWARDER...]]

PROCESSES: 40 unless given. FORWARDER: as for `linerate run --forwarders`; c-l2fwd unless given, the
only one that has goals.

Two starts of a program differ by more than the probe costs. So the probe is switched inside each
process (`/linerate/probe,polling=off` removes its callbacks): every round measures the rate without
it, twice, with polling figures, and with the latency of one burst in 64 as well, in an order drawn
anew. Each process gives the median of its rounds' ratios; the processes are the units of the
interval. A goal is about the interval's upper end; it is printed, never asserted.
"""

from __future__ import annotations

import math
import random
import statistics
import sys
import time
from dataclasses import dataclass

from linerate.forwarders import forwarder
from linerate.host.cores.cpus import Cores
from linerate.host.cores.leases import leased
from linerate.host.errors import LabError
from linerate.host.exit_status import fail
from linerate.host.process import Child, RunDirectory
from linerate.links import LinkContext, link
from linerate.links.eal import Memory
from linerate.telemetry.client import Telemetry, connect, socket_path
from linerate.verdict import stats
from linerate.verdict.stats import Paired
from linerate_bench.arguments import number

BASELINE, LINK, SIZE = "c-l2fwd", "null2", 64
PROCESSES = 40
ROUNDS, WINDOW_S = 12, 0.025
START_TIMEOUT_S = 10.0

# The probe's settings for each mode, in this order.
MODES: dict[str, tuple[str, ...]] = {
    "off": ("polling=off",),
    "off again": ("polling=off",),
    "polling": ("one_in=0", "polling=on"),
    "latency": ("one_in=64", "polling=on"),
}


@dataclass(frozen=True)
class Question:
    """The cost of one mode compared with another, and the largest cost that is the goal."""

    words: str
    mode: str
    over: str
    goal: float | None


QUESTIONS = (
    Question("nothing, against itself", "off again", "off", None),
    Question("polling figures", "polling", "off", 0.05),
    Question("latency, 1 in 64, beside them", "latency", "polling", 0.02),
    Question("both", "latency", "off", None),
)

# TSC cycles per packet of one round, by mode.
Cycles = dict[str, float]


def cost(found: Paired) -> tuple[float, float | None, float | None]:
    """Return how much longer a packet takes, from a ratio of cycles and its interval."""
    low = None if found.ci_low is None else found.ci_low - 1
    high = None if found.ci_high is None else found.ci_high - 1
    return found.ratio - 1, low, high


def compare(processes: list[list[Cycles]], question: Question) -> Paired:
    """Compare one ratio for each process, the median over its rounds, with 1."""
    ratios = [
        math.exp(
            statistics.median(
                math.log(cycles[question.mode] / cycles[question.over]) for cycles in rounds
            )
        )
        for rounds in processes
    ]
    return stats.compare(ratios, [1.0] * len(ratios))


def _rate(telemetry: Telemetry, ports: int) -> float:
    """Return the packets received per second over a window."""

    def read() -> tuple[int, float]:
        readings = [telemetry.read_tight(f"/ethdev/stats,{port}") for port in range(ports)]
        packets = sum(int(reading.value["ipackets"]) for reading in readings)
        return packets, statistics.mean(reading.at_ns for reading in readings)

    before, began = read()
    time.sleep(WINDOW_S)
    after, ended = read()
    return (after - before) / (ended - began) * 1e9


@dataclass(frozen=True)
class Bench:
    """What all processes share."""

    run: RunDirectory
    cores: Cores
    memory: Memory
    source: random.Random


def measure(bench: Bench, name: str) -> list[Cycles]:
    """Measure the rounds of one process."""
    run, source = bench.run, bench.source
    program, chosen = forwarder(name), link(LINK)
    prefix = run.new_prefix("forwarder")
    with chosen.open(LinkContext(run.path, SIZE)) as wire:
        command = program.command(bench.cores, bench.memory, prefix, wire, probed=True)
        assert command is not None  # on this link only programs forward
        with (
            Child(command, run) as child,
            connect(socket_path(run.path, prefix), START_TIMEOUT_S, child.check) as telemetry,
        ):
            last = f"/ethdev/stats,{chosen.ports - 1}"
            child.wait_until(
                lambda: telemetry.ask(last)["opackets"] > 0, START_TIMEOUT_S, "forwarded nothing"
            )
            hz = telemetry.ask("/linerate/probe/clock")["tsc_hz"]
            rounds = []
            for _ in range(ROUNDS):
                order = list(MODES)
                source.shuffle(order)
                rates = {}
                for mode in order:
                    for setting in MODES[mode]:
                        telemetry.ask(f"/linerate/probe,{setting}")
                    child.check()
                    rates[mode] = _rate(telemetry, chosen.ports)
                if min(rates.values()) > 0:
                    rounds.append({mode: hz / rate for mode, rate in rates.items()})
            return rounds


def table(processes: list[list[Cycles]], *, goals: bool) -> list[str]:
    """Return the lines of the costs; with `goals`, also whether they are within them."""
    heading = f"{'cost of':32} {'cost':>8}  {'95 % interval':18} {'goal' if goals else '':>8}"
    if not processes:
        return [heading.rstrip(), "absent: no process forwarded anything"]
    lines = [heading.rstrip()]
    for question in QUESTIONS:
        middle, low, high = cost(compare(processes, question))
        interval = "-" if low is None or high is None else f"{low:+.2%} to {high:+.2%}"
        line = f"{question.words:32} {middle:+8.2%}  {interval:18}"
        if goals and question.goal is not None:
            reached = high is not None and high <= question.goal
            line += f" {f'<= {question.goal:.0%}':>8}  {'reached' if reached else 'not reached'}"
        lines.append(line.rstrip())
    return lines


def medians(processes: list[list[Cycles]]) -> str:
    """Return the cycles per packet in each mode."""
    found = {
        mode: statistics.median(
            statistics.median(cycles[mode] for cycles in rounds) for rounds in processes
        )
        for mode in ("off", "polling", "latency")
    }
    return "cycles per packet: " + ", ".join(f"{mode} {value:.2f}" for mode, value in found.items())


def main() -> None:
    count = number("probe_cost [PROCESSES [FORWARDER...]]", PROCESSES)
    names = sys.argv[2:] or [BASELINE]
    try:
        for name in names:
            forwarder(name).prepare()
        with leased(), RunDirectory() as run:
            bench = Bench(run, Cores.choose(), Memory.choose(), random.Random(1))
            # One process of each in turn, so that changes of the machine affect all alike.
            every = [[measure(bench, name) for name in names] for _ in range(count)]
    except LabError as error:
        fail(f"the probe's cost: {error}")
    pages = "with huge pages" if bench.memory.hugepages else "without huge pages"
    for place, name in enumerate(names):
        processes = [each[place] for each in every if each[place]]
        print(f"What the probe costs {name} on {LINK}, {pages}, {count} times {ROUNDS} rounds:")
        for line in table(processes, goals=name == BASELINE):
            print(line)
        if processes:
            print(medians(processes))


if __name__ == "__main__":
    main()
