# SPDX-License-Identifier: BSD-3-Clause
"""Runs `make bench-trust` and prints its results.

    python -m linerate_bench.trust [--simulated-only] [--real N] [--json FILE] [--records FILE]

It prints every verdict that was given, by kind of comparison, then the goals with PASS or FAIL. The
exit status is 1 if a goal fails. Lines appear when their comparisons end, and an interrupted run
prints what it has.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from linerate.host.errors import Interrupted, LabError
from linerate.host.exit_status import ExitStatus
from linerate.host.process import interruptible
from linerate.trial.trial import Bench
from linerate_bench.trust import machine, real, searches
from linerate_bench.trust.comparison import QUICK, SCREEN, Extent, arms, judged
from linerate_bench.trust.kept import Kept
from linerate_bench.trust.tally import HEADING, LINE_HEADING, Tally, all_lines

SIMULATED, REAL = 200, 40
EXTENTS = (QUICK, SCREEN)
SLOW_DOWNS = (0.0, 0.02, 0.05, 0.10)
# A ratio of 1.7, for machines with wide noise.
WIDE_SLOW_DOWN = 1 - 1 / 1.7
# The fault that the A/A arm has to find: a measurement that slows one label of the baseline down.
BIAS = 0.05


def simulated(
    profile: machine.Profile,
    extent: Extent,
    slow_down: float,
    count: int,
    *,
    held_back: float = 0.0,
) -> Tally:
    """Make many comparisons on the simulated machine; the seeds are 0, 1, ..."""
    tally = Tally("simulated", profile.name, extent, slow_down, held_back, wide=profile.wide)
    both, cell = arms(machine.PROGRAM, machine.PROGRAM), profile.cell(extent)
    for seed in range(count):
        trials = machine.simulate(profile, extent, slow_down, seed, held_back=held_back)
        tally.add(judged(cell, both, trials).verdict, cell.blocks)
    return tally


def searched(kind: searches.Searches, slow_down: float, count: int) -> Tally:
    """Make many runs of rfc2544 on simulated forwarders; the seeds are 0, 1, ..."""
    tally = Tally("simulated", searches.LINK, kind, slow_down)
    for seed in range(count):
        found = searches.judged(kind, searches.simulate(kind, slow_down, seed))
        tally.add(found.verdict, kind.blocks)
    return tally


@contextmanager
def kept(file: Path | None, bench: Bench) -> Iterator[Kept | None]:
    """Open the file of records, if one is named; raises `RunError` if its records are of other
    programs or another machine.
    """
    records = Kept(file, real.session_of(bench)) if file else None
    try:
        yield records
    finally:
        if records:
            records.close()


def on_this_machine(tallies: list[Tally], count: int, file: Path | None) -> None:
    """Make `count` rounds of all kinds in turn, so that changes of the machine affect all kinds
    alike.
    """
    with real.laboratory() as bench, kept(file, bench) as records:
        every = [Tally("real", kind.link, kind.extent, kind.slow_down) for kind in real.KINDS]
        tallies += every
        for seed in range(count):
            for kind, tally in zip(real.KINDS, every, strict=True):
                if seed % kind.one_in:
                    continue
                found, blocks = real.compare_once(bench, kind, seed, records)
                tally.add(found.verdict, blocks)
                print(f"{seed + 1} of {count}: {tally.name}: {found.verdict}", file=sys.stderr)


def options(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m linerate_bench.trust", description=__doc__)
    parser.add_argument("--simulated-only", action="store_true", help="run no program")
    parser.add_argument(
        "--real", type=int, default=REAL, metavar="N", help=f"rounds of real comparisons ({REAL})"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument(
        "--records",
        type=Path,
        metavar="FILE",
        help="keep the real trials there; what is there is not made again",
    )
    chosen = parser.parse_args(argv)
    if chosen.real < 1:
        parser.error(f"--real {chosen.real}: at least 1; without any: --simulated-only")
    return chosen


def report(tallies: list[Tally], file: Path | None) -> bool:
    """Print the tables and write the file; return True if every goal is reached."""
    found = all_lines(tallies)
    for line in [HEADING, *filter(lambda tally: tally.n, tallies), "", LINE_HEADING, *found]:
        print(line)
    if file:
        document = {
            "tallies": [tally.facts() for tally in tallies],
            "lines": [asdict(line) for line in found],
        }
        file.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return all(line.passed is not False for line in found)


def main(argv: list[str] | None = None) -> int:
    chosen = options(argv)
    tallies = [
        simulated(profile, extent, slow_down, SIMULATED)
        for profile in machine.PROFILES
        for extent in EXTENTS
        for slow_down in SLOW_DOWNS
    ]
    tallies += [
        simulated(profile, SCREEN, 0.0, SIMULATED, held_back=BIAS) for profile in machine.PROFILES
    ]
    tallies += [
        simulated(profile, SCREEN, slow_down, SIMULATED)
        for profile in machine.WIDE_PROFILES
        for slow_down in (0.0, WIDE_SLOW_DOWN)
    ]
    tallies += [searched(searches.QUICK_SEARCHES, slow_down, SIMULATED) for slow_down in SLOW_DOWNS]
    status: int = ExitStatus.DONE
    if not chosen.simulated_only:
        try:
            with interruptible():
                on_this_machine(tallies, chosen.real, chosen.records)
        except Interrupted as stop:
            status = stop.exit_code
        except LabError as error:
            print(f"bench-trust: {error}", file=sys.stderr)
            status = error.exit_code
    passed = report(tallies, chosen.json)
    return status or (ExitStatus.DONE if passed else ExitStatus.UNDECIDED)


if __name__ == "__main__":
    sys.exit(main())
