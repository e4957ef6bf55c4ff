# SPDX-License-Identifier: BSD-3-Clause
"""Programs that run with the probe, and traffic with a known number of packets for them."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from linerate.host.builds.plugins import probe_plugin
from linerate.host.process import Child, Command, RunDirectory
from linerate.telemetry.client import Telemetry, connect, socket_path

CPUS = sorted(os.sched_getaffinity(0))
MEMORY = ["--no-pci", "--no-huge", "--no-shconf", "-m", "256"]
TIMEOUT_S = 30
# Polls, empty polls, .. as one thread saw one queue.
Entry = dict[str, Any]


def whole(entry: Entry) -> Entry:
    """Check that the figures in an entry of the probe agree with each other."""
    histogram = entry["burst_histogram"]
    assert len(histogram) > entry["burst_limit"] or len(histogram) == 512
    assert entry["polls"] == sum(histogram)
    assert entry["empty_polls"] == histogram[0]
    counted = sum(size * polls for size, polls in enumerate(histogram))
    # The last counter is for all bursts of 511 and more.
    assert counted == entry["packets"] or (len(histogram) == 512 and counted < entry["packets"])
    assert 0 <= entry["busy_tsc"] <= entry["total_tsc"], (entry["busy_tsc"], entry["total_tsc"])
    return entry


class Program:
    """A running DPDK program and its telemetry."""

    def __init__(self, child: Child, telemetry: Telemetry) -> None:
        self.child = child
        self.ask = telemetry.ask

    def entries(self, command: str = "/linerate/probe/polling") -> list[Entry]:
        return [whole(entry) for entry in self.ask(command)]

    def polling(self, command: str = "/linerate/probe/polling") -> dict[tuple[int, int], Entry]:
        """Return the entries by port and queue, each of which is polled by one lcore."""
        entries = self.entries(command)
        found = {(entry["port"], entry["queue"]): entry for entry in entries}
        assert len(found) == len(entries), entries
        return found

    def packets(self) -> Counter[tuple[int, int]]:
        """Return what the probe counted on each port and queue, over all lcores."""
        counted: Counter[tuple[int, int]] = Counter()
        for entry in self.entries():
            counted[entry["port"], entry["queue"]] += entry["packets"]
        return counted

    def sent(self, port: int) -> int:
        """Return the stamped packets that the probe saw being sent on a port."""
        return sum(each["count"] for each in self.ask(f"/linerate/probe/latency,{port}"))

    def stats(self, port: int) -> dict[str, Any]:
        found: dict[str, Any] = self.ask(f"/ethdev/stats,{port}")
        return found

    def received(self, port: int) -> int:
        return int(self.stats(port)["ipackets"])

    def wait(self, what: str, condition: Callable[[], object]) -> None:
        self.child.wait_until(condition, TIMEOUT_S, f"{what}: not")

    def await_queues(self, rx: int) -> None:
        """Wait until the probe is on at least so many queues: net_ring has 16 before it is
        configured.
        """
        self.wait("queues with the probe", lambda: self.ask("/linerate/probe")["rx_queues"] >= rx)

    def await_polls(self, queues: int) -> None:
        self.wait("polling of every queue", lambda: len(self.polling()) == queues)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the whole program until the context ends."""
        tasks = Path(f"/proc/{self.child.pid}/task")
        try:
            os.kill(self.child.pid, signal.SIGSTOP)
            self.wait(
                "the program to pause",
                lambda: all(
                    (task / "stat").read_text().rpartition(") ")[2].startswith("T")
                    for task in tasks.iterdir()
                ),
            )
            yield
        finally:
            os.kill(self.child.pid, signal.SIGCONT)


def offsets(program: Program) -> list[tuple[int, int]]:
    """Return by how much each port's own counter is ahead: at least, and at most."""
    found = []
    for port in (0, 1):
        before = program.received(port)
        seen = program.packets()[port, 0]
        found.append((before - seen, program.received(port) - seen))
    return found


def one_offset(brackets: Sequence[tuple[int, int]], slack: int = 0) -> None:
    """Check that all offsets are equal: the probe missed what passed before it was there.

    `slack`: by how much offsets may differ, because the burst under way is counted in two places.
    """
    assert max(low for low, _ in brackets) <= min(high for _, high in brackets) + slack, brackets


@contextmanager
def running(
    run: RunDirectory,
    program: Path,
    ports: Sequence[str],
    options: Sequence[str] = (),
    *,
    lcores: int = 1,
    one_in: int | None = 64,
    hold_stdin: bool = False,
) -> Iterator[Program]:
    """Run a program on these virtual devices, with the probe unless `one_in` is None.

    A single lcore is on the last CPU. With two, the first, which only controls, is on the first
    CPU.
    """
    cpus = (CPUS[0], CPUS[-1])
    prefix = run.new_prefix("probed")
    argv = [str(program), *MEMORY, "--file-prefix", prefix]
    argv += ["--lcores", f"0@{cpus[1]}" if lcores == 1 else f"0@{cpus[0]},1@{cpus[1]}"]
    environment = {}
    if one_in is not None:
        argv += ["-d", str(probe_plugin())]
        environment["LINERATE_PROBE_ONE_IN"] = str(one_in)
    for port in ports:
        argv += ["--vdev", port]
    # What it prints is to be seen at once.
    command = Command(
        program.name, ("stdbuf", "-oL", *argv, "--", *options), cpus, environment, hold_stdin
    )
    with (
        Child(command, run) as child,
        connect(socket_path(run.path, prefix), 30, child.check) as telemetry,
    ):
        yield Program(child, telemetry)


class Testpmd:
    """dpdk-testpmd, controlled line by line."""

    __test__ = False

    def __init__(self, program: Program) -> None:
        self.program = program
        self._read = 0
        self.printed("testpmd> ")

    def printed(self, what: str) -> str:
        """Wait for `what`; return the output since the last call, including `what`."""
        log = self.program.child.log
        found = -1

        def there() -> bool:
            nonlocal found
            found = log.read_text(errors="replace").find(what, self._read)
            return found >= 0

        self.program.wait(what, there)
        text = log.read_text(errors="replace")[self._read : found + len(what)]
        self._read = found + len(what)
        return text

    def tell(self, line: str) -> str:
        """Type a line; return what the program printed until it was ready for the next."""
        self.program.child.tell(line)
        self.printed(line)
        return self.printed("testpmd> ")


@contextmanager
def commanded_testpmd(
    run: RunDirectory, ports: Sequence[str], options: Sequence[str] = (), one_in: int | None = 64
) -> Iterator[Testpmd]:
    found = shutil.which("dpdk-testpmd")
    assert found, "dpdk-testpmd is missing. Run: make setup"
    always = ["-i", "--disable-link-check", "--total-num-mbufs=32768"]
    with running(
        run, Path(found), ports, [*always, *options], lcores=2, one_in=one_in, hold_stdin=True
    ) as program:
        yield Testpmd(program)


class Feed:
    """Memif ports of a program under test, with testpmd at their far ends.

    Rings are longer than the number of packets that are sent at once, so that none is refused or
    dropped.
    """

    BURSTS = 300
    PACKETS = 32 * BURSTS

    def __init__(self, run: RunDirectory, ports: int = 2, returns: int = 1) -> None:
        """`returns`: the number of queues of each port on which the program sends."""
        wires = [f"id={n},socket={run.path}/m{n},socket-abstract=no,rsize=14" for n in range(ports)]
        self.far_ends = [f"net_memif{n},role=server,{wire}" for n, wire in enumerate(wires)]
        self.ends = [f"net_memif{n},role=client,{wire}" for n, wire in enumerate(wires)]
        self._run = run
        self._options = [f"--rxq={returns}", "--txq=1"]
        self._ports = range(ports)

    @contextmanager
    def started(self) -> Iterator[Feed]:
        """Start testpmd before the program under test, which looks for its links."""
        with commanded_testpmd(self._run, self.far_ends, self._options, one_in=None) as self._far:
            self._far.tell("set fwd rxonly")
            yield self

    def send(self, program: Program, *, at_once: bool = False) -> None:
        """Send `PACKETS` into every port of the program, which polls, and wait until they are
        received.

        `at_once`: all packets wait in the rings when the program comes to poll.
        """
        far = self._far.program
        before = [far.stats(port) for port in self._ports]
        goals = [received + self.PACKETS for received in self._received(program)]
        with program.paused() if at_once else nullcontext():
            self._far.tell(f"start tx_first {self.BURSTS}")
            self._far.tell("stop")
        for port in self._ports:
            assert far.stats(port)["opackets"] - before[port]["opackets"] == self.PACKETS
        program.wait("packets", lambda: all(map(int.__ge__, self._received(program), goals)))
        assert self._received(program) == goals

    def _received(self, program: Program) -> list[int]:
        return [program.received(port) for port in self._ports]

    def returned(self, port: int) -> int:
        """Return the number of all packets that came back, after fetching them from the link."""
        self._far.tell("start")
        self._far.tell("stop")
        return self._far.program.received(port)


def numbers(pattern: str, text: str) -> list[int]:
    """Return what the pattern's group matched, each time."""
    return [int(found) for found in re.findall(pattern, text)]
