# SPDX-License-Identifier: BSD-3-Clause
"""What the probe costs the C l2fwd between two net_null ports.

    python -m linerate.probe_cost [PROCESSES]

One start of a program differs from the next by more than the probe costs. So the probe is switched
inside each process (`/linerate/probe,polling=off` takes its callbacks off): every round measures
the rate without it, twice, with polling figures, and with latency of one burst in 64 too, in an
order drawn anew. A process gives the median of its rounds' ratios; the processes are the units of
the interval. A goal is about the interval's upper end; printed, never asserted.
"""

from __future__ import annotations

import math
import random
import statistics
import sys
import time
from dataclasses import dataclass

from linerate import stats
from linerate.cpus import Cores
from linerate.eal import Memory
from linerate.errors import LabError, ProcessError
from linerate.forwarders import forwarder
from linerate.links import LinkContext, link
from linerate.process import Child, RunDirectory
from linerate.stats import Paired
from linerate.telemetry import Telemetry, connect, socket_path

FORWARDER, LINK, SIZE = "c-l2fwd", "null2", 64
PROCESSES = 40
ROUNDS, WINDOW_S = 12, 0.025
START_TIMEOUT_S = 10.0

# What each way of measuring asks of the probe, in this order.
MODES: dict[str, tuple[str, ...]] = {
    "off": ("polling=off",),
    "off again": ("polling=off",),
    "polling": ("one_in=0", "polling=on"),
    "latency": ("one_in=64", "polling=on"),
}


@dataclass(frozen=True)
class Question:
    """The cost of one mode over another, and the largest cost that is the goal."""

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

Rates = dict[str, float]


def cost(found: Paired) -> tuple[float, float | None, float | None]:
    """A cost is how much longer a packet takes: from a ratio of rates, and from its interval."""
    low = None if found.ci_high is None else 1 / found.ci_high - 1
    high = None if found.ci_low is None else 1 / found.ci_low - 1
    return 1 / found.ratio - 1, low, high


def compare(processes: list[list[Rates]], question: Question) -> Paired:
    """One ratio for each process, the median over its rounds, against 1."""
    ratios = [
        math.exp(
            statistics.median(
                math.log(rates[question.mode] / rates[question.over]) for rates in rounds
            )
        )
        for rounds in processes
    ]
    return stats.compare(ratios, [1.0] * len(ratios))


def _rate(telemetry: Telemetry, ports: int) -> float:
    """Packets received per second over a window."""

    def read() -> tuple[int, float]:
        readings = [telemetry.read_tight(f"/ethdev/stats,{port}") for port in range(ports)]
        packets = sum(int(reading.value["ipackets"]) for reading in readings)
        return packets, statistics.mean(reading.at_ns for reading in readings)

    before, began = read()
    time.sleep(WINDOW_S)
    after, ended = read()
    return (after - before) / (ended - began) * 1e9


def measure(run: RunDirectory, cores: Cores, memory: Memory, source: random.Random) -> list[Rates]:
    """The rounds of one process."""
    program, chosen = forwarder(FORWARDER), link(LINK)
    prefix = run.new_prefix("forwarder")
    with chosen.open(LinkContext(run.path, SIZE)) as wire:
        command = program.command(cores.forwarder, memory, prefix, wire, probed=True)
        with (
            Child(command, run) as child,
            connect(socket_path(run.path, prefix), START_TIMEOUT_S, child.check) as telemetry,
        ):
            deadline = time.monotonic() + START_TIMEOUT_S
            while telemetry.ask(f"/ethdev/stats,{chosen.ports - 1}")["opackets"] == 0:
                child.check()
                if time.monotonic() >= deadline:
                    raise ProcessError(f"forwarded nothing within {START_TIMEOUT_S:g} s")
                time.sleep(0.01)
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
                    rounds.append(rates)
            return rounds


def table(processes: list[list[Rates]]) -> list[str]:
    lines = [f"{'cost of':32} {'cost':>8}  {'95 % interval':18} {'goal':>8}"]
    for question in QUESTIONS:
        middle, low, high = cost(compare(processes, question))
        interval = "-" if low is None or high is None else f"{low:+.2%} to {high:+.2%}"
        line = f"{question.words:32} {middle:+8.2%}  {interval:18}"
        if question.goal is not None:
            reached = high is not None and high <= question.goal
            line += f" {f'<= {question.goal:.0%}':>8}  {'reached' if reached else 'not reached'}"
        lines.append(line.rstrip())
    return lines


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else PROCESSES
    cores, memory = Cores.choose(), Memory.choose()
    source = random.Random(1)
    forwarder(FORWARDER).prepare()
    try:
        with RunDirectory() as run:
            processes = [measure(run, cores, memory, source) for _ in range(count)]
    except LabError as error:
        sys.exit(f"the probe's cost: {error}")
    print(f"What the probe costs {FORWARDER} on {LINK}, {count} processes of {ROUNDS} rounds:")
    for line in table([rounds for rounds in processes if rounds]):
        print(line)


if __name__ == "__main__":
    main()
