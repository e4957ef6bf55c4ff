# SPDX-License-Identifier: BSD-3-Clause
"""Measures what lookups, pools, rings and changes of packets cost through the safe API, and in the
same loops in C.

    python -m linerate_bench.lookups [BLOCKS]

BLOCKS: 40 unless given. `lookup-bench` (`bench/lookup`) has the tables and both kinds of loops. gcc
and clang build those in C here as libraries, for any processor and for this one; there is a second
build of `lookup-bench` for this processor (`make native-graph`). A block starts each program anew,
because the place of the tables in memory differs from start to start and decides a few per cent.
All loops of a process use the same tables and run in an order drawn anew, for some milliseconds,
eight times. A loop's time is that of the fastest run, in which nobody else on the host was in its
way.

The best C build of a cell is chosen in every second block and judged in the others, in the same
process: for the program for any processor among the builds for any processor, for the one for this
processor (the cells `native`) among all. gcc's build runs twice (the control). Ratios are of
operations in equal time; `goal_table` says when the goal is reached, and when there is no verdict.
Beside the ratios are instructions per operation by callgrind, if valgrind is installed, of the
builds for any processor (valgrind does not know all others).
"""

from __future__ import annotations

import json
import random
import shutil
import statistics
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from linerate.experiments.instructions import profile
from linerate.host.builds.bench_programs import built_library
from linerate.host.builds.compilers import NATIVE, clang
from linerate.host.cores.cpus import Cores
from linerate.host.cores.leases import leased
from linerate.host.errors import LabError, ProcessError, TrialError
from linerate.host.exit_status import fail
from linerate.host.places import project_root, rust_binary
from linerate.host.process import Child, Command, RunDirectory
from linerate.links import Wire, eal
from linerate.links.eal import Memory
from linerate.records.cells import AA_SUFFIX
from linerate.verdict import stats
from linerate_bench.arguments import number
from linerate_bench.goal_table import Row, gated, lines

BLOCKS, TIMES, WINDOW_MS, TIMEOUT_S = 40, 8, 3, 60.0
GOAL = 0.97
PROGRAM = "lookup-bench"
RUST = "rust"
# The end of the names of cells of the program for this processor.
NATIVE_CELL = " native"
# The arm that runs twice.
CONTROL = "c/gcc"
_MEMORY_MIB = 512
# Rounds under valgrind, which is some fifty times slower: of lookups, and of 32 packets.
_COUNTED_LOOKUPS, _COUNTED = 3, 200
_LOOKUPS = ("lpm", "lpm-x4", "hash", "flows", "acl")

# The cycles per operation of a block, by cell and arm.
Block = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Programs:
    """The programs that exist here. `left_out`: those that do not."""

    rust: Path
    native: Path | None
    libraries: dict[str, Path]
    left_out: list[str]


def find() -> Programs:
    """Build the missing loops in C; raises `MissingError` without the program."""
    gcc = shutil.which("gcc")
    builds = [
        ("gcc", gcc, ""),
        ("clang", clang(), ""),
        ("gcc-native", gcc, NATIVE),
        ("clang-native", clang(), NATIVE),
    ]
    libraries: dict[str, Path] = {}
    left_out = []
    for name, compiler, flags in builds:
        if compiler is None:
            left_out.append(f"c/{name} is left out: there is no {name.partition('-')[0]} here")
            continue
        libraries[name] = built_library("lookup/c", "liblookup_c.so", compiler, flags)
    native = project_root() / "target" / "native" / "release" / PROGRAM
    if not native.is_file():
        left_out.append(f"cells{NATIVE_CELL} are left out: make native-graph builds their program")
    found = native if native.is_file() else None
    return Programs(rust_binary(PROGRAM), found, libraries, left_out)


@dataclass
class Bench:
    """A process that runs loops on request. `suffix`: the end of the names of its cells."""

    child: Child
    suffix: str = ""
    operations: dict[str, int] = field(default_factory=dict)
    arms: list[str] = field(default_factory=list)

    def ask(self, **request: Any) -> dict[str, Any]:
        self.child.tell(json.dumps(request))
        line = self.child.answer(TIMEOUT_S)
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise ProcessError(f"{PROGRAM} answered {line[:80]!r}, which is not JSON")
        if "error" in answer:
            raise TrialError(f"{PROGRAM}: {answer['error']}")
        return answer

    def offers(self) -> None:
        """Ask for cells and arms."""
        told = self.ask(do="cells")
        self.operations = {each["cell"]: each["operations"] for each in told["cells"]}
        self.arms = told["arms"]

    def run(self, cell: str, arm: str, **length: int) -> tuple[float, str]:
        """Return the cycles per operation, and what was found."""
        told = self.ask(do="run", cell=cell, arm=arm.removesuffix(AA_SUFFIX), **length)
        return told["tsc_cycles"] / told["operations"], told["work"]


def command(
    programs: Programs, run: RunDirectory, cpu: int, memory: Memory, native: bool
) -> Command:
    """Return the command of one of the two programs, with the loops in C."""
    program = programs.native if native and programs.native else programs.rust
    options = eal.options(
        eal.lcores(cpu), memory, run.new_prefix("lookup"), Wire(), mib=_MEMORY_MIB
    )
    argv = [str(program), *options, "--"]
    for name, path in programs.libraries.items():
        argv += ["--library", f"{name}={path}"]
    return Command(PROGRAM, tuple(argv), (cpu,), hold_stdin=True, answers=True)


def measure(benches: Sequence[Bench], rng: random.Random, found: dict[str, str]) -> Block:
    """Measure a block: the fastest of `TIMES` windows of each loop in each cell.

    `found`: what each cell's loops find, which is the same for all of them.
    """
    windows = [
        (bench, cell, arm)
        for bench in benches
        for cell in bench.operations
        for arm in [*bench.arms, *([CONTROL + AA_SUFFIX] if CONTROL in bench.arms else [])]
    ]
    # The order of the table.
    block: Block = {cell + bench.suffix: {} for bench, cell, _ in windows}
    for _ in range(TIMES):
        rng.shuffle(windows)
        for bench, cell, arm in windows:
            cycles, work = bench.run(cell, arm, ms=WINDOW_MS)
            if found.setdefault(cell, work) != work:
                raise TrialError(f"{cell}: {arm} found {work}, others {found[cell]}")
            least = block[cell + bench.suffix]
            least[arm] = min(cycles, least.get(arm, cycles))
    return block


def best_in_c(blocks: Sequence[Block], cell: str, *, native: bool) -> str:
    """Return the C build with the fewest cycles by the median: of all builds, or of those for any
    processor.
    """
    arms = [
        arm
        for arm in blocks[0][cell]
        if arm.startswith("c/") and not arm.endswith(AA_SUFFIX) and (native or "native" not in arm)
    ]
    return min(arms, key=lambda arm: statistics.median(block[cell][arm] for block in blocks))


def table(blocks: Sequence[Block]) -> tuple[list[Row], list[str]]:
    """Return how fast the safe API is in each cell, and why a cell has no verdict."""
    rows: list[Row] = []
    reasons: list[str] = []
    chosen, judged = blocks[::2], blocks[1::2]
    for cell in blocks[0]:

        def row(
            arm: str, against: str, of: Sequence[Block], goal: float | None, cell: str = cell
        ) -> Row:
            # Fewer cycles are more operations.
            found = stats.compare(
                [block[cell][against] for block in of], [block[cell][arm] for block in of]
            )
            return Row(cell, arm, against, found, goal)

        best = best_in_c(chosen, cell, native=cell.endswith(NATIVE_CELL))
        told, why = gated(
            cell, row(CONTROL + AA_SUFFIX, CONTROL, blocks, None), [row(RUST, best, judged, GOAL)]
        )
        rows += told
        reasons += why
    return rows, reasons


def cost_lines(blocks: Sequence[Block], counts: dict[str, dict[str, float]]) -> list[str]:
    """Return a line for each cell and arm: median and least cycles, and instructions."""
    told = [f"{'':18} {'':14} {'cycles':>8} {'least':>8} {'instructions':>13}"]
    for cell, arms in blocks[0].items():
        for arm in sorted(arms):
            cycles = [block[cell][arm] for block in blocks]
            counted = counts.get(cell, {}).get(arm)
            last = "-" if counted is None else f"{counted:.1f}"
            told.append(
                f"{cell:18} {arm:14} {statistics.median(cycles):8.2f} {min(cycles):8.2f} {last:>13}"
            )
    return told


def count(
    programs: Programs, run: RunDirectory, cpu: int, memory: Memory
) -> dict[str, dict[str, float]]:
    """Count instructions per operation by cell and arm, of the builds for any processor: the
    difference between a longer and a shorter run.
    """
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        return {}
    portable = {name: path for name, path in programs.libraries.items() if "native" not in name}
    portable_only = replace(programs, libraries=portable)

    def executed(cell: str, arm: str, rounds: int) -> int:
        plain = command(portable_only, run, cpu, memory, native=False)
        out = run.path / "callgrind"
        argv = (valgrind, "--tool=callgrind", f"--callgrind-out-file={out}", *plain.argv)
        with Child(replace(plain, argv=argv), run) as child:
            bench = Bench(child)
            bench.offers()
            operations.update(bench.operations)
            bench.run(cell, arm, rounds=rounds)
            child.stop()
        return profile.total(profile.read(out))

    operations: dict[str, int] = {}
    executed("pool", RUST, 1)  # Which cells there are.
    found: dict[str, dict[str, float]] = {}
    for cell, per_round in list(operations.items()):
        rounds = _COUNTED_LOOKUPS if cell in _LOOKUPS else _COUNTED
        for arm in [*(f"c/{name}" for name in portable), RUST]:
            more = executed(cell, arm, 2 * rounds) - executed(cell, arm, rounds)
            found.setdefault(cell, {})[arm] = more / (rounds * per_round)
    return found


def main() -> None:
    blocks_wanted = number("lookups [BLOCKS, 2 or more]", BLOCKS, least=2)
    rng = random.Random(1)
    found: dict[str, str] = {}
    try:
        programs = find()
        with leased(), RunDirectory() as run:
            cores, memory = Cores.choose(), Memory.choose()
            cpu = cores.forwarder
            counts = count(programs, run, cpu, memory)
            blocks = []
            for _ in range(blocks_wanted):
                with ExitStack() as started:
                    benches = []
                    for native in (False, True) if programs.native else (False,):
                        asked = command(programs, run, cpu, memory, native)
                        child = started.enter_context(Child(asked, run))
                        benches.append(Bench(child, NATIVE_CELL if native else ""))
                        benches[-1].offers()
                    blocks.append(measure(benches, rng, found))
    except LabError as error:
        fail(f"lookups beside C: {error}")
    print(f"Lookups, pools, rings and packets, {len(blocks)} blocks; cycles and instructions per")
    print("operation:")
    for line in [*cost_lines(blocks, counts), *programs.left_out, *lines(*table(blocks))]:
        print(line)


if __name__ == "__main__":
    main()
