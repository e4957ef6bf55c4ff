# SPDX-License-Identifier: BSD-3-Clause
"""Run a program once under callgrind: the cost per packet of each function.

When telemetry answers `/ethdev/stats`, it calls `rte_eth_stats_get`. Callgrind is configured to
write its counts whenever that function is entered. Valgrind runs one thread at a time, so the
forwarding thread does not run meanwhile: counts and packets belong to exactly the same moment.

The cost of answering is counted as well, and is subtracted: two rounds of questions in immediate
succession cost the same, and the packets in between are known, too.

Lifecycle: the program, and the files of callgrind, end with `count`, in all cases.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import stat
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from linerate.experiments.instructions import profile
from linerate.experiments.instructions.profile import INSTRUCTIONS, Costs, Place
from linerate.forwarders import Forwarder
from linerate.host.cores.cpus import Cores
from linerate.host.errors import LabError, LinkError, MissingError, TelemetryError, TrialError
from linerate.host.host import LOCAL
from linerate.host.process import Command, RunDirectory, pause
from linerate.links import Wire
from linerate.links.eal import Memory
from linerate.trial.running import begun
from linerate.trial.starts.faults import refuse
from linerate.trial.starts.start import Start, refuse_shared
from linerate.trial.starts.window import Slice, Window

VALGRIND = "valgrind"
_INSTALL = "as root: apt-get install --no-install-recommends valgrind"
# In bits: valgrind does not know AVX-512 and SVE.
SIMD = {"x86_64": 256, "aarch64": 128}
_ENTERED = "rte_eth_stats_get"
# The slowdown under callgrind, for a program that starts in seconds.
_SLOWER = 10
_START_S = 60.0
_FIRST_PACKET_S = 30.0
# The time for all counted packets: on a busy machine it may take long.
_COUNT_S = 300.0
_LOOK_S, _CHECK_S = 0.05, 0.2
# The longest time from the end of a program's telemetry to the end of its process.
_END_S = 1.0
# Packets until the simulated caches have seen all mbufs of a usual pool.
_WARM_UP = 50_000
# EVEX, with which instructions of AVX-512 begin.
_EVEX = "0x62"
_UNKNOWN = re.compile(r"unhandled instruction bytes: ((?:0x[0-9A-F]{1,2} ?)+)", re.I)
_RIGHTS = "setuid, setgid or has file capabilities: valgrind does not run such programs"
_COPY = "count a copy of it (cp keeps none of these), as root if it needs the rights"
_REFUSED = re.compile(r"Can't execute setuid/setgid/setcap executable: (\S+)")


class UncountableError(LabError):
    """A program that does not run under callgrind, or whose packets cannot be counted there."""


def require_valgrind() -> None:
    """Raise `MissingError` if valgrind is missing."""
    if LOCAL.which(VALGRIND) is None:
        raise MissingError("valgrind is missing, which counts instructions", _INSTALL)


def require_plain(path: Path | None, name: str) -> None:
    """Raise `UncountableError` for a program with special privileges, which valgrind cannot run."""
    if path is None or not path.is_file():
        return
    special = path.stat().st_mode & (stat.S_ISUID | stat.S_ISGID)
    with contextlib.suppress(OSError):
        special = special or len(os.getxattr(path, "security.capability"))
    if special:
        raise UncountableError(f"{name}: {path} is {_RIGHTS}", _COPY)


@dataclass(frozen=True)
class Counted:
    """Costs per packet, by function and event. `packets`: over which they were counted. `window`:
    packets received and sent in the meantime. `ns`: the time per packet, in this slow run.
    """

    costs: dict[Place, dict[str, float]]
    packets: int
    window: Window
    ns: float

    def total(self, event: str = INSTRUCTIONS) -> float:
        return sum(cost.get(event, 0.0) for cost in self.costs.values())


@dataclass(frozen=True)
class Mark:
    """Counters of a port when they were read. `part`: the last file that callgrind had written
    then.
    """

    received: int
    sent: int
    part: int
    ns: int


Round = list[Mark]


def narrowed(wire: Wire) -> Wire:
    """Return the same wire, for a program whose EAL must not use instructions that valgrind does
    not know.
    """
    bits = SIMD.get(platform.machine())
    if bits is None:
        return wire
    return replace(wire, eal_options=(*wire.eal_options, f"--force-max-simd-bitwidth={bits}"))


@dataclass(frozen=True)
class Counting:
    """Parameters of counting. `simulated`: with caches and branches, which takes longer."""

    run: RunDirectory
    cores: Cores
    packets: int
    simulated: bool = True

    def count(self, program: Forwarder, arm: int, wire: Wire) -> Counted:
        """Count a prepared program. Raises `UncountableError`, or `FaultError` if it does not
        forward; the messages do not name it.
        """
        with tempfile.TemporaryDirectory(prefix="callgrind-", dir=self.run.path) as made:
            folder = Path(made)
            try:
                with self._started(program, arm, wire, folder) as start:
                    counted = _Session(start, wire.ports, folder).count(self.packets)
                refuse([counted.window])
                return counted
            except TrialError as error:
                if why := _said_by_valgrind(folder):
                    raise why from error
                raise

    @contextmanager
    def _started(self, program: Forwarder, arm: int, wire: Wire, folder: Path) -> Iterator[Start]:
        launching = begun(
            program, self.run, self.cores, Memory(hugepages=False), narrowed(wire),
            told=lambda plain: self.under_valgrind(plain, folder),
        )  # fmt: skip
        with launching as beginning:
            running = beginning.running(max(_START_S, _SLOWER * program.ready.within_s))
            start = Start(arm, running, "time")
            refuse_shared(start)
            yield start

    def under_valgrind(self, plain: Command, folder: Path) -> Command:
        """Return a program's command, counted into files of this folder."""
        simulated = "yes" if self.simulated else "no"
        options = (
            "--tool=callgrind", "--vgdb=no", "--trace-children=yes", "--fair-sched=try",
            f"--log-file={folder}/log.%p", f"--callgrind-out-file={folder}/out.%p",
            # Each file is complete on its own.
            "--compress-strings=no", f"--dump-before={_ENTERED}",
            f"--cache-sim={simulated}", f"--branch-sim={simulated}",
        )  # fmt: skip
        return replace(plain, argv=(VALGRIND, *options, *plain.argv))


@dataclass
class _Session:
    """A running program, and the files that callgrind writes."""

    start: Start
    ports: int
    folder: Path
    _parts: dict[int, Costs] = field(default_factory=dict)

    def count(self, wanted: int) -> Counted:
        """Count over at least `wanted` packets."""
        self._await(1, _FIRST_PACKET_S, "it received no packet")
        self._await(self._received() + _WARM_UP, _COUNT_S, "it received too few packets")
        rounds = [self._round(), self._round()]
        until = time.monotonic() + _COUNT_S
        while (rest := wanted - _without_asking(rounds)) > 0:
            if time.monotonic() > until:
                raise LinkError(f"it received {wanted - rest} packets in {_COUNT_S:g} s")
            spent = (rounds[-1][0].ns - rounds[0][0].ns) / 1e9
            rate = _received(rounds[0], rounds[-1]) / spent
            # A little more, so that one round is enough as a rule.
            self._pause(min(1.05 * rest / rate, _COUNT_S) if rate else 1.0)
            rounds.append(self._round())
        return self._counted(rounds)

    # -- asking --------------------------------------------------------------------------------

    def _mark(self, port: int) -> Mark:
        telemetry = self.start.running.telemetry
        assert telemetry is not None
        try:
            told = telemetry.port_stats(port).value
        except TelemetryError:
            # A program that closes its telemetry has ended, or will soon: its end is the better
            # message.
            for child in self.start.running.children:
                child.wait(_END_S)
            self.start.running.check()
            raise
        written = [int(path.suffix[1:]) for path in self.folder.glob(f"out.{self.start.pid}.*")]
        if not written:
            raise UncountableError(
                f"callgrind does not find {_ENTERED} in it, at which packets are counted",
                "with DPDK linked statically a program must keep its symbols: do not strip it",
            )
        return Mark(told["ipackets"], told["opackets"], max(written), time.monotonic_ns())

    def _round(self) -> Round:
        """Read all ports, one after the other."""
        return [self._mark(port) for port in range(self.ports)]

    def _received(self) -> int:
        return sum(mark.received for mark in self._round())

    def _await(self, packets: int, timeout_s: float, otherwise: str) -> None:
        until = time.monotonic() + timeout_s
        while self._received() < packets:
            if time.monotonic() > until:
                raise LinkError(f"{otherwise} in {timeout_s:g} s")
            self._pause(_LOOK_S)

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (rest := until - time.monotonic()) > 0:
            self.start.running.check()
            pause(min(rest, _CHECK_S))

    # -- counting ------------------------------------------------------------------------------

    def _counted(self, rounds: Sequence[Round]) -> Counted:
        """Return the counts from the second round to the last, less the cost of asking: that from
        the first to the second, for each round.

        Each port has a window of its own, from one of its marks to another. Their packets per
        instruction are added.
        """
        short = [self._between(*marks) for marks in zip(rounds[0], rounds[1], strict=True)]
        long = [self._between(*marks) for marks in zip(rounds[1], rounds[-1], strict=True)]
        times = len(rounds) - 2
        executed = [
            profile.total(most) - times * profile.total(few)
            for most, few in zip(long, short, strict=True)
        ]
        received = [
            (last.received - middle.received) - times * (middle.received - first.received)
            for first, middle, last in zip(rounds[0], rounds[1], rounds[-1], strict=True)
        ]
        if min(executed) <= 0 or sum(received) <= 0:
            raise LinkError("it forwarded less than in the time of a question")
        per_instruction = sum(n / i for n, i in zip(received, executed, strict=True))
        packets = per_instruction * executed[0]
        costs = {}
        for place in long[0].keys() | short[0].keys():
            most, few = long[0].get(place, Counter()), short[0].get(place, Counter())
            costs[place] = {
                event: (most[event] - times * few[event]) / packets
                for event in most.keys() | few.keys()
            }
        took = rounds[-1][0].ns - rounds[1][0].ns
        return Counted(
            costs,
            sum(received),
            Window(self.start.arm, (_slice(rounds[1], rounds[-1], took),)),
            took / _received(rounds[1], rounds[-1]),
        )

    def _between(self, first: Mark, last: Mark) -> Costs:
        numbers = range(first.part + 1, last.part + 1)
        return profile.added(self._part(number) for number in numbers)

    def _part(self, number: int) -> Costs:
        if number not in self._parts:
            self._parts[number] = profile.read(self.folder / f"out.{self.start.pid}.{number}")
        return self._parts[number]


def _without_asking(rounds: Sequence[Round]) -> int:
    """Return the packets from the second round to the last, less those received while it was
    asked.
    """
    asked = (len(rounds) - 2) * _received(rounds[0], rounds[1])
    return _received(rounds[1], rounds[-1]) - asked


def _received(first: Round, last: Round) -> int:
    return sum(after.received - before.received for before, after in zip(first, last, strict=True))


def _slice(first: Round, last: Round, time_ns: int) -> Slice:
    pairs = list(zip(first, last, strict=True))
    return Slice(
        tuple(after.received - before.received for before, after in pairs),
        tuple(after.sent - before.sent for before, after in pairs),
        time_ns,
    )


def _said_by_valgrind(folder: Path) -> UncountableError | None:
    """Return why valgrind ended the program, from its logs; None if they do not say."""
    for log in sorted(folder.glob("log.*")):
        text = log.read_text(errors="replace")
        if match := _UNKNOWN.search(text):
            code = match[1].split()
            if code[0].lower() == _EVEX:
                return UncountableError(
                    "it executes instructions that valgrind does not know (AVX-512)",
                    "build it without: -mno-avx512f after -march=native, or -march=x86-64-v3",
                )
            return UncountableError(
                "it executes an instruction that valgrind does not know "
                f"({' '.join(code).lower()})",
                "build it for an older processor, for instance with -march=x86-64-v2",
            )
        if match := _REFUSED.search(text):
            return UncountableError(f"{match[1]} is {_RIGHTS}", _COPY)
    return None
