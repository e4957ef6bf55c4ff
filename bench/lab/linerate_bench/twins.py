# SPDX-License-Identifier: BSD-3-Clause
"""Compares applications in Rust with their twins in C, by duels on frames from memory.

    python -m linerate_bench.twins [SECONDS]

SECONDS: of each duel, 60 unless given. The twins are built by gcc and clang, for any processor and
for this one; the application is the release build, for any processor. Each build of the twin is in
a duel with the application, on each kind of traffic, with small pages and, where there are enough,
with huge pages. The goal: the application is not slower, as the duel shows it at 99 %, than any of
the builds. Below the ratios are instructions per packet by callgrind, of gcc's build for any
processor and of the application: the programs' own and those of DPDK's and other libraries, without
the driver's.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from linerate.experiments.duel.record import DuelRecord
from linerate.experiments.duel.reports.report import figures
from linerate.experiments.instructions.record import InstructionsRecord
from linerate.host.builds.bench_programs import built_library
from linerate.host.builds.compilers import NATIVE, clang
from linerate.host.errors import LabError
from linerate.host.exit_status import fail
from linerate.host.places import project_root, rust_binary
from linerate.host.process import RunDirectory, interruptible
from linerate.links.flows import capture
from linerate_bench.arguments import number

SECONDS, GOAL = 60, 1.0
MOST_INSTRUCTIONS = 1.1
FLOWS = 4096
_TCP, _UDP = 6, 17
_FRAME = 60
# A duel needs a margin; the goal has none.
_MARGIN = "0.5%"


@dataclass(frozen=True)
class Application:
    """An application and its twin. `product`: the program that the Makefile in `folder` builds."""

    binary: str
    folder: str
    product: str
    arguments: str
    # VIPs or other ends of flows: address, port and protocol.
    destinations: dict[str, list[tuple[str, int, int]]]


L4LB = Application(
    "l4lb",
    "l4lb",
    "l4lb-c",
    "--config {project}/apps/l4lb/l4lb.conf",
    {
        "IPIP": [("198.51.100.10", 80, _TCP)],
        "all VIPs": [
            ("198.51.100.10", 80, _TCP), ("198.51.100.11", 53, _UDP),
            ("198.51.100.12", 9000, _UDP), ("2001:db8:1::10", 443, _TCP),
            ("2001:db8:1::12", 443, _TCP), ("2001:db8:1::11", 53, _UDP),
        ],
    },
)  # fmt: skip


def frame(flow: int, address: str, port: int, protocol: int) -> bytes:
    """Return the frame of a flow to an end; its client's address and port differ from those of
    other flows.
    """
    destination = ip_address(address)
    transport = (1024 + flow % 1000).to_bytes(2, "big") + port.to_bytes(2, "big")
    if protocol == _TCP:
        transport += bytes([0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0, 0, 0, 0, 0, 0, 0])
    else:
        transport += bytes([0, 16, 0, 0]) + bytes(8)
    if destination.version == 4:
        source = (0x0A010000 + flow).to_bytes(4, "big")
        length = (20 + len(transport)).to_bytes(2, "big")
        header = bytes([0x45, 0]) + length + bytes([0, 0, 0x40, 0, 64, protocol, 0, 0])
    else:
        source = bytes.fromhex("20010db800070000000000000000") + flow.to_bytes(2, "big")
        length = len(transport).to_bytes(2, "big")
        header = bytes([0x60, 0, 0, 0]) + length + bytes([protocol, 64])
    ether_type = b"\x08\x00" if destination.version == 4 else b"\x86\xdd"
    macs = bytes([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2])
    return (macs + ether_type + header + source + destination.packed + transport).ljust(
        _FRAME, b"\0"
    )


def frames(destinations: Sequence[tuple[str, int, int]]) -> Iterator[bytes]:
    for flow in range(FLOWS):
        yield frame(flow, *destinations[flow % len(destinations)])


def builds(application: Application) -> dict[str, Path]:
    """Build the twin by each compiler that is here."""
    place = application.folder, application.product
    compilers = {"gcc": shutil.which("gcc"), "clang": clang()}
    return {
        f"{name}{suffix}": built_library(*place, compiler, flags)
        for name, compiler in compilers.items()
        if compiler
        for suffix, flags in (("", ""), ("-native", NATIVE))
    }


def lab_answer(command: str, twin: Path, ours: Path, arguments: str, *options: str) -> Any:
    """Return what the lab's command prints about the two; a text is why it prints nothing."""
    words = arguments.format(project=project_root())
    programs = [f"{program} {{eal}} -- {words}" for program in (twin, ours)]
    done = subprocess.run(
        [sys.executable, "-m", "linerate", command, *programs, "--link", "frames", "--json",
         *options],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.stdout:
        return json.loads(done.stdout)
    lines = done.stderr.strip().splitlines()
    return lines[0] if lines else f"status {done.returncode}"


def goal_line(record: DuelRecord) -> str:
    """Return the ratio, and whether the goal is reached: the duel shows that Rust is faster, or the
    interval lies above `GOAL`.
    """
    found = figures(record, ("C", "Rust"))
    if record.fault or found is None:
        return record.sentence
    low, high = found.between
    state = "not shown"
    if record.direction == "faster" or (record.direction is None and low >= GOAL):
        state = "reached"
    elif record.direction == "slower":
        state = "not reached"
    between = f"{low:.3f} to {high:.3f} ({found.how})"
    return f"{found.ratio:6.3f}  {between:40} {len(record.rounds):3} rounds  {state}"


def counted(twin: Path, ours: Path, arguments: str, traffic: Path) -> str:
    """Count the instructions per packet of both, without the driver's."""
    found = lab_answer("instructions", twin, ours, arguments, "--traffic", str(traffic))
    if isinstance(found, str):
        return found
    record = InstructionsRecord.model_validate(found).explanation
    if record.b is None:
        return "only one program was counted"
    one, other = (each.program + each.dpdk + each.system for each in (record.a, record.b))
    state = "reached" if other <= MOST_INSTRUCTIONS * one else "not reached"
    return f"C {one:.1f}, Rust {other:.1f}: {other / one:.3f}, at most {MOST_INSTRUCTIONS}: {state}"


def compare(application: Application, seconds: int, run: RunDirectory) -> None:
    ours, twins = rust_binary(application.binary), builds(application)
    arguments = application.arguments
    for name, destinations in application.destinations.items():
        traffic = run.path / f"{application.binary} {name}.pcap"
        traffic.write_bytes(capture(frames(destinations)))
        for pages in ("no", "yes"):
            for build, twin in twins.items():
                found = lab_answer(
                    "duel", twin, ours, arguments, "--traffic", str(traffic), "--hugepages", pages,
                    "--within", f"{seconds}s", "--margin", _MARGIN, "--even-if-same",
                )  # fmt: skip
                line = (
                    found if isinstance(found, str) else goal_line(DuelRecord.model_validate(found))
                )
                cell = (
                    f"{application.binary}, {name}, {'huge' if pages == 'yes' else 'small'} pages"
                )
                print(f"{cell:32} over c/{build:14} {line}", flush=True)
        if twin_of_gcc := twins.get("gcc"):
            line = counted(twin_of_gcc, ours, arguments, traffic)
            print(f"{application.binary}, {name}: instructions per packet: {line}", flush=True)


def main() -> None:
    seconds = number("twins [SECONDS, 10 or more]", SECONDS, least=10)
    print(f"applications in Rust over their twins in C, duels of {seconds} s, goal {GOAL}:")
    try:
        with interruptible(), RunDirectory() as run:
            compare(L4LB, seconds, run)
    except LabError as error:
        fail(f"applications and their twins: {error}")


if __name__ == "__main__":
    main()
