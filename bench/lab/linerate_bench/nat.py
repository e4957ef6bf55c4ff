# SPDX-License-Identifier: BSD-3-Clause
"""Measures what header views cost: address translation in place, ours and other libraries'.

    python -m linerate_bench.nat [BLOCKS]

BLOCKS: 40 unless given. `nat-bench` (bench/nat) translates the same frames with every library in
one process, in blocks of an order drawn anew, and compares the bytes. The peers are smoltcp, pnet
and etherparse as their documentation shows them; and, as another kind, the accessors of smoltcp and
pnet with the incremental checksum of RFC 1624 written by hand. The best peer of either kind is
chosen in every second block and judged in the others. `goal_table` says when the goal is reached.
"""

from __future__ import annotations

import json
import re
import shutil
import statistics
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from linerate.host.cores.leases import leased
from linerate.host.errors import LabError, MissingError, TrialError
from linerate.host.exit_status import fail
from linerate.host.places import rust_binary
from linerate.records.cells import AA_SUFFIX
from linerate.verdict import stats
from linerate_bench.arguments import number
from linerate_bench.goal_table import Row, gated, lines

BLOCKS, GOAL, TIMEOUT_S = 40, 1.0, 600.0
OURS = "linerate"
BY_HAND = ", RFC 1624 by hand"
# Sweeps of the two runs; the difference of their callgrind counts is used.
_SWEEPS = (4, 24)


@dataclass(frozen=True)
class Timed:
    """Frames per second of an arm in a block of a cell."""

    cell: str
    arm: str
    block: int
    rate: float


def read(text: str) -> list[Timed]:
    """Read the program's output."""
    return [Timed(**json.loads(line)) for line in text.splitlines()]


def rates(timed: Sequence[Timed], cell: str, arm: str, parity: int | None = None) -> list[float]:
    """Return the rates by block: of all blocks, or of the even or odd ones."""
    mine = [
        each
        for each in timed
        if (each.cell, each.arm) == (cell, arm) and parity in {None, each.block % 2}
    ]
    return [each.rate for each in sorted(mine, key=lambda each: each.block)]


def best(timed: Sequence[Timed], cell: str, arms: Sequence[str]) -> str:
    """Return the fastest arm by the median over the even blocks."""
    return max(arms, key=lambda arm: statistics.median(rates(timed, cell, arm, 0)))


def table(timed: Sequence[Timed]) -> tuple[list[Row], list[str]]:
    """Compare ours with the best peer of either kind in every cell, and the control of the first;
    return also why there is no verdict.
    """
    every: list[Row] = []
    reasons: list[str] = []
    for cell in dict.fromkeys(each.cell for each in timed):
        arms = dict.fromkeys(each.arm for each in timed if each.cell == cell)
        peers = [arm for arm in arms if not arm.endswith(AA_SUFFIX) and arm != OURS]

        def row(arm: str, baseline: str, goal: float | None, cell: str = cell) -> Row:
            found = stats.compare(rates(timed, cell, arm, 1), rates(timed, cell, baseline, 1))
            return Row(cell, arm, baseline, found, goal)

        for kind in (
            [arm for arm in peers if not arm.endswith(BY_HAND)],
            [arm for arm in peers if arm.endswith(BY_HAND)],
        ):
            baseline = best(timed, cell, kind)
            control = row(baseline + AA_SUFFIX, baseline, None)
            rows, why = gated(cell, control, [row(OURS, baseline, GOAL)])
            every += rows
            reasons += why
    return every, reasons


def cost_lines(timed: Sequence[Timed], instructions: dict[tuple[str, str], float]) -> list[str]:
    """Return the median time of each arm in each cell, and its instructions if counted."""
    told = [f"{'':58}{'ns/frame':>10}{'instructions':>14}"]
    for cell, arm in dict.fromkeys((each.cell, each.arm) for each in timed):
        if arm.endswith(AA_SUFFIX):
            continue
        ns = 1e9 / statistics.median(rates(timed, cell, arm))
        counted = instructions.get((cell, arm))
        words = "-" if counted is None else f"{counted:.1f}"
        told.append(f"{cell:30}{arm:28}{ns:10.2f}{words:>14}")
    return told


def run(
    program: Path, *arguments: str, under: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    try:
        done = subprocess.run(
            [*under, str(program), *arguments],
            capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise TrialError(f"nat-bench: no end within {TIMEOUT_S:g} s", "try fewer BLOCKS") from error
    if done.returncode != 0:
        raise TrialError(f"nat-bench: {done.stderr[-300:].strip()}")
    return done


def collected(stderr: str) -> int:
    """Return the instructions that callgrind counted."""
    found = re.search(r"Collected : (\d+)", stderr)
    if found is None:
        raise TrialError(f"callgrind told no count: {stderr[-300:].strip()}")
    return int(found[1])


def count(program: Path) -> dict[tuple[str, str], float]:
    """Count instructions per frame by cell and arm: starts and ends cancel out in the difference of
    two runs.
    """
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise MissingError("valgrind is missing; instructions are not counted", "make bench")
    under = [valgrind, "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    found = {}
    for line in run(program, "list").stdout.splitlines():
        each = json.loads(line)
        ran = [
            collected(run(program, "count", each["arm"], each["cell"], str(n), under=under).stderr)
            for n in _SWEEPS
        ]
        frames = (_SWEEPS[1] - _SWEEPS[0]) * each["frames"]
        found[each["cell"], each["arm"]] = (ran[1] - ran[0]) / frames
    return found


def main() -> None:
    blocks = number("nat [BLOCKS, 2 or more]", BLOCKS, least=2)
    try:
        program = rust_binary("nat-bench")
        with leased():
            timed = read(run(program, str(blocks), "1").stdout)
            try:
                instructions = count(program)
            except MissingError as error:
                print(error)
                instructions = {}
    except LabError as error:
        fail(f"address translation: {error}")
    print(f"address translation in place, {blocks} blocks; best peers chosen in half of them:")
    for line in [*cost_lines(timed, instructions), *lines(*table(timed))]:
        print(line)


if __name__ == "__main__":
    main()
