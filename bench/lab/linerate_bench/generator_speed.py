# SPDX-License-Identifier: BSD-3-Clause
"""Measures how fast our generator is compared with testpmd's, on one lcore.

    python -m linerate_bench.generator_speed [ROUNDS]

ROUNDS: 20 unless given. In each round every program sends on every link once, as a new process on
the same CPU, in an order drawn anew. Frames have 64 bytes with FCS, bursts 32 frames. Our generator
floods one flow whose IPv4 addresses and UDP ports count up, with right checksums, and with sequence
numbers and time stamps if frames come back. testpmd's flowgen counts up one address, and receives;
its txonly sends the same frame again and again, and never receives.

A rate is a difference of the driver's counters (`/ethdev/stats,0`) divided by the time for which
the program ran in the window (`schedstat` of its threads). All programs are read in the same way,
and all poll without sleeping: a program is not slower because others use its CPU, too; the share of
the CPU that was left is shown. Ratios are paired within rounds. A goal is about the interval's
lower end; it is printed, never asserted.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from linerate.forwarders import forwarder
from linerate.host.cores.cpus import Cores
from linerate.host.cores.leases import leased
from linerate.host.errors import LabError, TrialError
from linerate.host.exit_status import fail
from linerate.host.places import rust_binary
from linerate.host.process import Child, Command, RunDirectory, checkpoint, interruptible
from linerate.links import Wire, eal
from linerate.links.eal import Memory
from linerate.runs.session import pinned
from linerate.telemetry.client import Reading, Telemetry, connect, socket_path
from linerate.traffic.generator import Generator
from linerate.traffic.otg import Traffic
from linerate.verdict import stats
from linerate_bench.arguments import number
from linerate_bench.goal_table import state

SIZE = 64
FCS = 4
ROUNDS = 20
SETTLE_S, WINDOW_S = 0.2, 1.0
START_TIMEOUT_S = 15.0
# The greatest number of frames that are accepted and not yet received at the end: those in a ring
# and in the generator's queues.
UNDER_WAY = 8192
# The peer that sends instead of ours, and may receive.
PEER = "testpmd-io"

OURS, FLOWGEN, TXONLY = "generator", "flowgen", "txonly"


@dataclass(frozen=True)
class Bed:
    """A link: who sends on it, who receives there, and by how much ours is to be faster."""

    name: str
    vdev: str
    words: str
    goals: dict[str, float]
    receivers: frozenset[str]
    # Sent frames come back.
    echoes: bool = False

    @property
    def programs(self) -> tuple[str, ...]:
        return (OURS, *self.goals)


BEDS = (
    Bed(
        "null, no-rx",
        f"net_null0,size={SIZE - FCS},no-rx=1",
        "nobody receives",
        {FLOWGEN: 2.0, TXONLY: 1.0},
        frozenset(),
    ),
    Bed(
        "null",
        f"net_null0,size={SIZE - FCS}",
        "the driver makes up as many frames as are polled; txonly takes none",
        {FLOWGEN: 2.0, TXONLY: 1.0},
        frozenset({OURS, FLOWGEN}),
    ),
    Bed(
        "ring",
        "net_ring0",
        "what is sent comes back; ours looks into each frame",
        {FLOWGEN: 1.2},
        frozenset({OURS, FLOWGEN}),
        echoes=True,
    ),
)


@dataclass(frozen=True)
class Rate:
    """Frames per second of the time for which the program ran, and its share of the window."""

    sent: float
    received: float
    share: float = 1.0


# What each program did in one round; one that failed is absent.
Rates = dict[str, Rate]
# The rates on each link.
Round = dict[str, Rates]


def rate(
    telemetry: Telemetry,
    ran_s: Callable[[], float],
    window_s: float,
    sleep: Callable[[float], None] = time.sleep,
) -> Rate:
    """Measure the rate of port 0 over about that many seconds. `ran_s` returns for how long
    the program has run.
    """

    def read() -> tuple[Reading, float]:
        return telemetry.read_tight("/ethdev/stats,0"), ran_s()

    before, began = read()
    sleep(window_s)
    after, ended = read()
    ran = ended - began
    if ran <= 0:
        raise TrialError(f"the program did not run in a window of {window_s:g} s")

    def per_second(counter: str) -> float:
        return (int(after.value[counter]) - int(before.value[counter])) / ran

    share = ran / ((after.at_ns - before.at_ns) / 1e9)
    return Rate(per_second("opackets"), per_second("ipackets"), share)


def check(bed: Bed, program: str, found: Rate) -> Rate:
    """Raise an error if the program did not do the work that is compared."""
    if found.sent <= 0:
        raise TrialError(f"{program} sent nothing on {bed.name}")
    if (program in bed.receivers) != (found.received > 0):
        raise TrialError(f"{program} received {found.received:.0f} frames/s on {bed.name}")
    return found


def check_books(bed: Bed, accepted: int, received: int, counters: dict[str, Any]) -> None:
    """Check that the generator's own counts are the driver's, and that on an echo all frames came
    back.
    """
    if accepted != int(counters["opackets"]):
        raise TrialError(f"the generator counted {accepted} frames, the port {counters}")
    if bed.echoes and not accepted - UNDER_WAY <= received <= accepted:
        raise TrialError(f"{received} of {accepted} frames came back on {bed.name}")


@dataclass(frozen=True)
class Bench:
    """What all processes share."""

    run: RunDirectory
    cpu: int
    memory: Memory


def _window(bed: Bed, program: str, child: Child, telemetry: Telemetry) -> Rate:
    child.wait_until(
        lambda: telemetry.ask("/ethdev/stats,0")["opackets"] > 0,
        START_TIMEOUT_S,
        f"{program} sent nothing on {bed.name}",
    )
    time.sleep(SETTLE_S)
    found = rate(telemetry, lambda: child.activity().ran_s, WINDOW_S)
    child.check()
    return check(bed, program, found)


def ours(bench: Bench, bed: Bed) -> tuple[Rate, int]:
    """Measure the generator; return its rate and the frequency of the TSC."""
    sender = Generator(bench.run, bench.cpu, bench.memory, Wire(), flood=True)
    try:
        marked = bed.echoes
        sender.configure(
            Traffic((f"vdev:{bed.vdev}",), SIZE, seconds=60.0, numbered=marked, latency=marked)
        )
        sender.client.start()
        found = _window(bed, OURS, sender.child, sender.telemetry)
        sender.client.stop()
        counts = sender.sent()
        check_books(bed, counts.accepted, counts.received, sender.telemetry.ask("/ethdev/stats,0"))
        return found, sender.tsc_hz()
    finally:
        sender.close()


def peer_command(mode: str, bed: Bed, cpu: int, memory: Memory, prefix: str) -> Command:
    """Return the command of testpmd with one forwarding lcore on this CPU; its main lcore sleeps
    there.
    """
    options = eal.options(eal.idle_main(cpu), memory, prefix, Wire(vdevs=(bed.vdev,)))
    arguments = [
        f"--forward-mode={mode}",
        f"--txpkts={SIZE - FCS}",
        "--burst=32",
        "--auto-start",
        "--nb-cores=1",
        "--port-topology=loop",
        # Without huge pages testpmd's default does not fit.
        "--total-num-mbufs=16384",
        "--no-flush-rx",
    ]
    argv = (str(forwarder(PEER).program()), *options, "--", *arguments)
    return Command(f"testpmd {mode}", argv, (cpu,), hold_stdin=True)


def theirs(bench: Bench, bed: Bed, mode: str) -> Rate:
    """Measure testpmd; return its rate."""
    prefix = bench.run.new_prefix("testpmd")
    command = peer_command(mode, bed, bench.cpu, bench.memory, prefix)
    with (
        Child(command, bench.run) as child,
        connect(socket_path(bench.run.path, prefix), START_TIMEOUT_S, child.check) as telemetry,
    ):
        return _window(bed, mode, child, telemetry)


def measure(bench: Bench, source: random.Random) -> tuple[Round, int | None]:
    """Measure one round; return its rates and the frequency of the TSC. A failed trial is reported
    and left out.
    """
    order = [(bed, program) for bed in BEDS for program in bed.programs]
    source.shuffle(order)
    found: Round = {bed.name: {} for bed in BEDS}
    hz = None
    for bed, program in order:
        checkpoint()
        try:
            if program == OURS:
                found[bed.name][program], hz = ours(bench, bed)
            else:
                found[bed.name][program] = theirs(bench, bed, program)
        except TrialError as error:
            print(f"absent: {error}", file=sys.stderr)
    return found, hz


def _interval(found: stats.Paired) -> str:
    if found.ci_low is None or found.ci_high is None:
        return "no interval"
    return f"{found.ci_low:.3f} to {found.ci_high:.3f}"


def table(bed: Bed, rounds: list[Round], hz: int) -> list[str]:
    """Return the lines about one link's rounds."""
    lines = [f"{bed.name} ({bed.vdev}): {bed.words}"]
    lines.append(
        f"  {'':18} {'Mpps here':>10} {'cycles/frame':>13} {'RX/TX':>6} {'ran':>5} {'rounds':>7}"
    )
    every = [each[bed.name] for each in rounds]
    for program in bed.programs:
        rates = [rates[program] for rates in every if program in rates]
        if not rates:
            lines.append(f"  {program:18} {'absent':>10}")
            continue
        middle = statistics.median(rate.sent for rate in rates)
        received = statistics.median(rate.received / rate.sent for rate in rates)
        share = statistics.median(rate.share for rate in rates)
        figures = f"{middle / 1e6:10.2f} {hz / middle:13.1f} {received:6.2f} {share:5.0%}"
        lines.append(f"  {program:18} {figures} {len(rates):7}")
    for peer, goal in bed.goals.items():
        name = f"{OURS}/{peer}"
        both = [rates for rates in every if OURS in rates and peer in rates]
        if not both:
            lines.append(f"  {name:18} {'absent':>10}")
            continue
        found = stats.compare(
            [rates[OURS].sent for rates in both], [rates[peer].sent for rates in both]
        )
        lines.append(
            f"  {name:18} {found.ratio:10.3f}  95 %: {_interval(found)}  goal >= {goal:g}: "
            f"{state(found, goal)}"
        )
    return lines


def main() -> None:
    count = number("generator_speed [ROUNDS]", ROUNDS)
    try:
        rust_binary("generator")
        forwarder(PEER).prepare()
        source = random.Random(1)
        with leased(), interruptible(), RunDirectory() as run:
            cores = Cores.choose()
            with pinned(cores.control):
                bench = Bench(run, cores.forwarder, Memory.choose())
                found = [measure(bench, source) for _ in range(count)]
    except LabError as error:
        fail(f"the generator's speed: {error}")
    rates = [each for each, _ in found]
    hz = next((hz for _, hz in found if hz is not None), None)
    if hz is None:
        fail("the generator's speed: the generator was never measured")
    pages = "with huge pages" if bench.memory.hugepages else "without huge pages"
    print(
        f"Generator and dpdk-testpmd on one lcore of this machine, {SIZE} B, {pages}, "
        f"{count} rounds of {WINDOW_S:g} s:"
    )
    for bed in BEDS:
        print()
        for line in table(bed, rates, hz):
            print(line)


if __name__ == "__main__":
    main()
