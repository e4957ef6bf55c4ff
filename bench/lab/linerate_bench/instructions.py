# SPDX-License-Identifier: BSD-3-Clause
"""Counts the instructions per packet of the lab's forwarders, and prints one table for all.

    python -m linerate_bench.instructions FORWARDER...

Each is counted once (`linerate.experiments.instructions`), on two net_nearfree ports, with frames
to route if it routes. What DPDK's libraries execute for it counts as its own. `linerate
instructions A B` says more about two of them. The exit status is 4 if one of them cannot be
counted.
"""

from __future__ import annotations

import sys

from linerate.experiments.instructions.callgrind import Counting, require_valgrind
from linerate.experiments.instructions.explain import PACKETS
from linerate.experiments.instructions.functions import Names
from linerate.forwarders import forwarder
from linerate.host.cores.cpus import Cores
from linerate.host.cores.leases import leased
from linerate.host.errors import LabError
from linerate.host.exit_status import fail
from linerate.host.process import RunDirectory, interruptible
from linerate.links import LinkContext, link

LINK, ROUTED_LINK = "nearfree2", "nearfree2-ip"
SIZE = 64


def line(name: str, run: RunDirectory, cores: Cores) -> str:
    """Count a forwarder; raises `LabError` if it cannot be."""
    program = forwarder(name)
    program.prepare()
    place = link(ROUTED_LINK if program.routes else LINK)
    place.prepare()
    with place.open(LinkContext(run.path, SIZE, cores=cores)) as wire:
        # Caches and branches are not in the table.
        counted = Counting(run, cores, PACKETS, simulated=False).count(program, 0, wire)
    found = Names(place.driver, [counted]).by_owner(counted)
    own = found["program"] + found["dpdk"]
    return f"{name:22} {own:8.1f} {found['driver']:8.1f} {found['system']:8.1f}"


def main() -> None:
    absent = []
    try:
        require_valgrind()
        with interruptible(), leased(), RunDirectory() as run:
            cores = Cores.choose()
            print("Instructions per packet on two net_nearfree ports (callgrind):")
            print(f"{'forwarder':22} {'its own':>8} {'driver':>8} {'others':>8}", flush=True)
            for name in sys.argv[1:]:
                try:
                    print(line(name, run, cores), flush=True)
                except LabError as error:
                    absent.append(name)
                    print(f"{name:22} absent: {error}", flush=True)
    except LabError as error:
        fail(f"instructions per packet: {error}")
    if absent:
        fail(f"instructions per packet: not counted: {', '.join(absent)}")


if __name__ == "__main__":
    main()
