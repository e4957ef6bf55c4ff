# SPDX-License-Identifier: BSD-3-Clause
"""How fast xdp-fwd is beside xdp-bench, on the same interfaces.

    python -m linerate.xdp_bench [ROUNDS]

ROUNDS: 40 unless given. It takes `xdp-bench` and `xdp-trafficgen` of xdp-tools from the PATH; those
of 1.3 and 1.5 do not load on Linux 6.18, for a tracepoint is gone, 1.6 does.

Two veth pairs as of `--link veth`: the kernel's thread that receives for the forwarder has a CPU of
its own and does all of a forwarder's work, for XDP programs run in it. On the other CPU
`xdp-trafficgen` floods the first pair all the time with the shortest frames that it makes (66
bytes), and `xdp-bench drop` takes what comes back; a veth sends by XDP_TX only to an end with a
program. In each round every forwarder is attached once, in an order drawn anew, and frames that
come back are counted in a window, by the generator's interface. A rate is per second for which that
thread ran (`schedstat`), so that a sender that is slower than the forwarder, or others on its CPU,
make none slower. Ratios are paired within rounds. A goal is about the interval's lower end;
printed, never asserted.
"""

from __future__ import annotations

import functools
import json
import random
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from linerate import link_drops, netns, stats
from linerate.arguments import number
from linerate.cpus import Cores
from linerate.errors import LabError, LinkError, MissingError, TrialError
from linerate.exit_status import fail
from linerate.goal_table import state
from linerate.links import KernelThread, LinkContext, Wire, link
from linerate.netns import Interface, ip
from linerate.places import rust_binary
from linerate.process import (
    Child,
    Command,
    RunDirectory,
    activity_of,
    interruptible,
    pause,
    wait_until,
)

ROUNDS = 40
# The link takes any.
SIZE = 64
SETTLE_S, WINDOW_S, TIMEOUT_S = 0.2, 0.5, 10.0
GOAL = 0.97
TOOLS = ("xdp-bench", "xdp-trafficgen")
# Programs print nothing meanwhile.
_NEVER_S = "3600"
_QUIET = ("-i", _NEVER_S)

OURS = "xdp-fwd --action"


@dataclass(frozen=True)
class Program:
    """What is attached to the first interface, or both, of these names."""

    name: str
    argv: Callable[[Sequence[str]], tuple[str, ...]]


@dataclass(frozen=True)
class Way:
    """Programs that do the same; the first is compared with itself and with the others.

    `back`: the number of the generator's port where frames come back.
    """

    name: str
    back: int
    programs: tuple[Program, ...]


def _ours(action: str, ports: int) -> Callable[[Sequence[str]], tuple[str, ...]]:
    def argv(names: Sequence[str]) -> tuple[str, ...]:
        vdevs = [
            word
            for number, name in enumerate(names[:ports])
            for word in ("--vdev", f"net_xdp{number},iface={name}")
        ]
        mask = f"{(1 << ports) - 1:x}"
        program = str(rust_binary("xdp-fwd"))
        return (program, *vdevs, "--", "-p", mask, "-T", "0", "--action", action)

    return argv


def _theirs(command: str, ports: int) -> Callable[[Sequence[str]], tuple[str, ...]]:
    return lambda names: ("xdp-bench", command, *names[:ports], *_QUIET)


WAYS = (
    Way(
        "XDP_REDIRECT",
        1,
        (
            Program(f"{OURS} redirect", _ours("redirect", 2)),
            Program(f"{OURS} redirect, again", _ours("redirect", 2)),
            Program("xdp-bench redirect", _theirs("redirect", 2)),
            Program("xdp-bench redirect-map", _theirs("redirect-map", 2)),
        ),
    ),
    Way(
        "XDP_TX",
        0,
        (
            Program(f"{OURS} tx", _ours("tx", 1)),
            Program(f"{OURS} tx, again", _ours("tx", 1)),
            Program("xdp-bench tx", _theirs("tx", 1)),
        ),
    ),
)


@dataclass(frozen=True)
class Rate:
    """Frames that came back: per second for which the kernel's thread ran, and per second."""

    per_busy_s: float
    per_s: float


# By the program's name; one that failed is absent.
Round = dict[str, Rate]


def prepare() -> None:
    netns.prepare()
    rust_binary("xdp-fwd")
    for tool in TOOLS:
        if shutil.which(tool) is None:
            raise MissingError(f"there is no {tool} on the PATH", "Debian: apt install xdp-tools")


@dataclass(frozen=True)
class Bed:
    """An open link with a sender and receivers on it."""

    wire: Wire
    run: RunDirectory
    cores: Cores
    children: tuple[Child, ...]

    def _came_back(self, port: int) -> int:
        (count,) = link_drops.read([self.wire.of(Interface.GENERATOR)[port]]).values()
        return count.received

    def _ran_s(self) -> float:
        threads = self.wire.threads
        own = [each.pid for each in threads if each.role == KernelThread.FORWARDER]
        return sum(activity_of(pid).ran_s for pid in own)

    def measure(self, way: Way, program: Program) -> Rate:
        """Attach a program, and count in a window."""
        ports = self.wire.of(Interface.FORWARDER)
        argv = program.argv([port.name for port in ports])
        command = Command("forwarder", argv, (self.cores.control,), namespace=ports[0].namespace)
        with Child(command, self.run) as child:
            child.wait_until(lambda: _has_program(ports[0]), TIMEOUT_S, f"{program.name} is not up")
            pause(SETTLE_S)
            frames, ran, began = self._came_back(way.back), self._ran_s(), time.monotonic()
            pause(WINDOW_S)
            frames = self._came_back(way.back) - frames
            ran, took = self._ran_s() - ran, time.monotonic() - began
            for each in (child, *self.children):
                each.check()
        wait_until(lambda: not _has_program(ports[0]), lambda: None, TIMEOUT_S, "it stays attached")
        if frames <= 0 or ran <= 0:
            raise TrialError(f"{program.name}: {frames} frames came back in {ran:.3f} s")
        return Rate(frames / ran, frames / took)


def _has_program(port: Interface) -> bool:
    told = json.loads(ip("-n", port.namespace, "-json", "link", "show", "dev", port.name))
    return "xdp" in told[0]


@contextmanager
def opened(run: RunDirectory, cores: Cores) -> Iterator[Bed]:
    """The link, with frames on their way."""
    with ExitStack() as stack:
        wire = stack.enter_context(link("veth").open(LinkContext(run.path, SIZE, cores=cores)))
        ends, first = wire.of(Interface.GENERATOR), wire.of(Interface.FORWARDER)[0]
        mac = netns.mac(first.namespace, first.name)
        sinks = [("xdp-bench", "drop", end.name, *_QUIET) for end in ends]
        sender = (
            "xdp-trafficgen", "udp", ends[0].name, "--dst-mac", mac, "--interval", _NEVER_S,
        )  # fmt: skip
        children = []
        for role, argv in (*(("sink", each) for each in sinks), ("sender", sender)):
            command = Command(role, argv, (cores.control,), namespace=wire.sender_namespace)
            children.append(stack.enter_context(Child(command, run)))
        for child, end in zip(children, ends, strict=False):
            ready = functools.partial(_has_program, end)
            child.wait_until(ready, TIMEOUT_S, "xdp-bench drop is not up")
        yield Bed(wire, run, cores, tuple(children))


def measure(bed: Bed, source: random.Random) -> Round:
    """One round."""
    found: Round = {}
    trials = [(way, program) for way in WAYS for program in way.programs]
    source.shuffle(trials)
    for way, program in trials:
        try:
            found[program.name] = bed.measure(way, program)
        except (TrialError, LinkError) as error:
            print(f"{program.name}: {error}", file=sys.stderr)
    return found


def table(rounds: Sequence[Round]) -> list[str]:
    """Medians, and our ratios to the others."""
    lines = [f"{'':28} {'Mpps':>7} {'ns/frame':>9}   {'xdp-fwd to it, 95 % interval'}"]
    for way in WAYS:
        ours, *others = way.programs
        for program in way.programs:
            rates = [each[program.name] for each in rounds if program.name in each]
            if not rates:
                lines.append(f"{program.name:28} absent: it never forwarded")
                continue
            mpps = statistics.median(rate.per_s for rate in rates) / 1e6
            ns = 1e9 / statistics.median(rate.per_busy_s for rate in rates)
            line = f"{program.name:28} {mpps:7.3f} {ns:9.1f}"
            if program in others:
                line += f"   {_ratio(rounds, ours.name, program.name)}"
            lines.append(line)
    return lines


def _ratio(rounds: Sequence[Round], ours: str, other: str) -> str:
    both = [each for each in rounds if ours in each and other in each]
    if not both:
        return "absent"
    found = stats.compare(
        [each[ours].per_busy_s for each in both], [each[other].per_busy_s for each in both]
    )
    if found.ci_low is None or found.ci_high is None:
        return f"{found.ratio:.3f}, {found.n} rounds are too few for an interval"
    told = f"{found.ratio:.3f} ({found.ci_low:.3f} to {found.ci_high:.3f}, n = {found.n})"
    if other.startswith(OURS):
        return told
    return f"{told}, goal >= {GOAL}: {state(found, GOAL)}"


def main() -> None:
    count = number("xdp_bench [ROUNDS]", ROUNDS)
    source = random.Random(1)
    try:
        with interruptible():
            prepare()
            with RunDirectory() as run, opened(run, Cores.choose()) as bed:
                rounds = [measure(bed, source) for _ in range(count)]
    except LabError as error:
        fail(f"xdp-fwd beside xdp-bench: {error}")
    for line in table(rounds):
        print(line)


if __name__ == "__main__":
    main()
