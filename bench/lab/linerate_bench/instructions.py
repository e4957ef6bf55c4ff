# SPDX-License-Identifier: BSD-3-Clause
"""Instructions per packet, counted by callgrind, which no other program disturbs.

    python -m linerate_bench.instructions FORWARDER...

Each program runs twice on two net_nearfree ports (with frames to route, if it routes), a short and
a longer time. Start and end cancel
in the difference of the two, and nearly so what runs between the last look at the packet counters
and the end, so that figures of two calls differ by about a hundredth. Libraries other than the
driver and those of DPDK's graph (libc, DPDK's others) are not counted.
"""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from linerate.forwarders import forwarder
from linerate.host.cpus import Cores
from linerate.host.errors import LabError
from linerate.host.exit_status import fail
from linerate.host.leases import leased
from linerate.host.process import Child, Command, RunDirectory
from linerate.links import link
from linerate.links.base import LinkContext
from linerate.links.eal import Memory
from linerate.telemetry.client import connect, socket_path

LINK, ROUTED_LINK = "nearfree2", "nearfree2-ip"
SHORT_S, LONG_S = 1.0, 4.0
START_TIMEOUT_S = 60.0
# DPDK's libraries that nodes of its graphs are in and call, whoever's program it is.
_NODES = re.compile(r"/librte_(graph|node|acl|lpm)\.so")
_OBJECT = re.compile(r"ob=\((\d+)\)(?: (.*))?$")
_CALLED_OBJECT = re.compile(r"cob=\((\d+)\)(?: (.*))?$")


def costs(profile: Path) -> Counter[str]:
    """Instructions by object file (callgrind's output format, cost lines of one event)."""
    names: dict[str, str] = {}
    found: Counter[str] = Counter()
    current = ""
    called = False
    for line in profile.read_text().splitlines():
        if match := _OBJECT.match(line):
            current = names.setdefault(match[1], match[2] or "")
        elif match := _CALLED_OBJECT.match(line):
            names.setdefault(match[1], match[2] or "")
        elif line.startswith("calls="):
            # The next line tells what the call cost in all, which is counted where it arose.
            called = True
        elif line[:1] in tuple("0123456789+-*"):
            if not called:
                found[current] += int(line.split()[1])
            called = False
    return found


@dataclass(frozen=True)
class Count:
    """What one run executed, and the packets that it received."""

    program: int
    driver: int
    packets: int


def run(name: str, seconds: float, directory: RunDirectory, cores: Cores) -> Count:
    """Run a forwarder under callgrind for some time after its first packet."""
    program = forwarder(name)
    program.prepare()
    profile = directory.path / f"callgrind-{name}-{seconds:g}"
    prefix = directory.new_prefix("callgrind")
    place = link(ROUTED_LINK if program.routes else LINK)
    ports = place.ports
    with place.open(LinkContext(directory.path, 64)) as wire:
        command = program.command(cores, Memory(hugepages=False), prefix, wire)
        assert command is not None  # on this link only programs forward
        valgrind = ("valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}")
        command = replace(command, argv=(*valgrind, *command.argv))
        packets = _packets(command, directory, prefix, ports, seconds)
    found = costs(profile)
    driver = sum(n for path, n in found.items() if "nearfree" in path)
    own = Path(command.argv[len(valgrind)]).resolve()
    executed = sum(n for path, n in found.items() if Path(path) == own or _NODES.search(path))
    return Count(executed, driver, packets)


def _packets(
    command: Command, directory: RunDirectory, prefix: str, ports: int, seconds: float
) -> int:
    with Child(command, directory) as child:
        path = socket_path(directory.path, prefix)
        with connect(path, START_TIMEOUT_S, child.check) as telemetry:

            def received() -> int:
                return sum(
                    int(telemetry.ask(f"/ethdev/stats,{n}")["ipackets"]) for n in range(ports)
                )

            child.wait_until(lambda: received() > 0, START_TIMEOUT_S, "forwarded nothing")
            time.sleep(seconds)
            count = received()
        child.stop()
    return count


def compare(directory: RunDirectory, cores: Cores) -> None:
    """Print a line for each forwarder that was named."""
    print("Instructions per packet on two net_nearfree ports (callgrind):")
    print(f"{'forwarder':22} {'its own':>8} {'driver':>8}")
    for name in sys.argv[1:]:
        try:
            short, long = (run(name, s, directory, cores) for s in (SHORT_S, LONG_S))
        except (LabError, OSError) as error:
            print(f"{name:22} absent: {error}")
            continue
        packets = long.packets - short.packets
        if packets <= 0:
            print(f"{name:22} absent: the longer run forwarded no more")
            continue
        own, driver = long.program - short.program, long.driver - short.driver
        print(f"{name:22} {own / packets:8.1f} {driver / packets:8.1f}")


def main() -> None:
    try:
        # They are slow under callgrind, and would be in the way of whatever is timed.
        with leased(), RunDirectory() as directory:
            compare(directory, Cores.choose())
    except LabError as error:
        fail(f"instructions per packet: {error}")


if __name__ == "__main__":
    main()
