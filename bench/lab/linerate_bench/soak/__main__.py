# SPDX-License-Identifier: BSD-3-Clause
"""`make soak`: counts promises for some hours, in turns, and prints what is counted so far.

    python -m linerate_bench.soak --records FILE --hours H [--only PART[:SUBJECT]]... [--no-lease]

FILE grows by a line for each turn; the same FILE goes on where it stopped. Each turn leases the
machine's CPUs as labs do, so that no measurement is disturbed; waiting for them is not counted.
Exit status: 0, or 1 when a fault is in FILE.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path

from linerate.host import machine
from linerate.host.cores.leases import leased
from linerate.host.errors import Interrupted, LabError, MachineError, MissingError
from linerate.host.exit_status import ExitStatus, fail
from linerate.host.places import project_root
from linerate.host.process import RunDirectory, interruptible
from linerate.links.eal import Memory
from linerate_bench.soak import exchanges, frames, fuzz, generator, labs, starts
from linerate_bench.soak.bench import Bench
from linerate_bench.soak.plan import Plan, Row, chosen, table
from linerate_bench.soak.records import Counted, Turn, append, read

# A turn that counts nothing for so short a time has no second one.
AT_ONCE_S = 1.0


def rows() -> list[Row]:
    """All promises that are counted, in the table's order."""
    return [
        *frames.rows(), *starts.rows(), *labs.rows(), *exchanges.rows(), *fuzz.rows(),
        *generator.rows(),
    ]  # fmt: skip


def commit() -> str:
    """Return the checkout's commit, with `+` if files were changed."""
    known = machine.first_line("git", "-C", str(project_root()), "rev-parse", "--short=12", "HEAD")
    changed = machine.first_line(
        "git", "-C", str(project_root()), "status", "--porcelain", "--untracked-files=no"
    )
    return f"{known or 'unknown'}{'+' if changed else ''}"


def this_machine() -> dict[str, str]:
    facts = machine.facts()
    found = {"cpu": facts.cpu_model, "kernel": facts.kernel, "dpdk": facts.dpdk_version}
    return {name: value for name, value in found.items() if value}


def turn(bench: Bench, plan: Plan, row: Row, seconds: float) -> Turn:
    """Take one turn of a row. An error is a fault; parts that count step by step keep what they had
    counted until then (`Until.going_on`). Raises an error that says that the row cannot run here:
    `MissingError`, `MachineError`.
    """
    began, at = datetime.now(UTC), time.monotonic()
    try:
        found = row.count(bench, seconds, row.left(plan.turns))
    except (MissingError, MachineError):
        raise
    except LabError as error:
        found = Counted(0, (str(error),))
    return Turn(
        row.part, row.subject, row.unit, found.number, round(time.monotonic() - at, 3),
        found.faults, began.isoformat(timespec="seconds"), commit(), this_machine(),
    )  # fmt: skip


def soak(bench: Bench, plan: Plan, hours: float, *, lease: bool) -> None:
    """Take turns until the time is over, or each row has reached its goal."""
    rest = hours * 3600
    while rest > 0 and (row := plan.next()) is not None:
        with leased() if lease and row.leases else nullcontext():
            try:
                made = turn(bench, plan, row, plan.turn_s(row, rest))
            except (MissingError, MachineError) as error:
                plan.absent[row.name] = str(error)
                print(f"{row.name}: not here: {error}", flush=True)
                continue
        plan.turns.append(made)
        append(bench.records, made)
        if made.seconds < AT_ONCE_S and not made.number:
            # It would fail over and over.
            plan.absent[row.name] = made.faults[0] if made.faults else "it counted nothing"
        rest -= made.seconds
        print(
            f"{row.name}: {made.number:,} {row.unit} in {made.seconds:.0f} s", *made.faults,
            sep="\n  fault: ", flush=True,
        )  # fmt: skip


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m linerate_bench.soak")
    parser.add_argument("--records", type=Path, required=True, help="grows; goes on if it is there")
    parser.add_argument("--hours", type=float, required=True, help="for all parts; 0: the table")
    parser.add_argument("--only", action="append", default=[], metavar="PART[:SUBJECT]")
    parser.add_argument("--no-lease", action="store_true", help="run beside measurements")
    parser.add_argument("--seed", type=int, help="of random moments (default: drawn)")
    given = parser.parse_args(words)
    if not given.hours >= 0:
        parser.error("--hours: 0 or more")
    try:
        plan = Plan(chosen(rows(), given.only), read(given.records))
    except ValueError as error:
        parser.error(f"--only: {error}")
    except LabError as error:
        fail(error, ExitStatus.USAGE)
    try:
        with interruptible(), RunDirectory() as run:
            memory = Memory.choose()
            bench = Bench(run, random.Random(given.seed), given.records, memory)
            soak(bench, plan, given.hours, lease=not given.no_lease)
    except LabError as error:
        fail(f"soak: {error}")
    except Interrupted as ended:
        print()
        print(*table(plan), sep="\n")
        return 128 + ended.signum
    print()
    print(*table(plan), sep="\n")
    names = {row.name for row in plan.rows}
    return int(any(each.faults for each in plan.turns if f"{each.part}:{each.subject}" in names))


if __name__ == "__main__":
    raise SystemExit(main())
