# SPDX-License-Identifier: BSD-3-Clause
"""Counts how often `git bisect run linerate duel --bisect` finds the commit: `make bench-bisects`.

    python -m linerate_bench.trust.bisects --records FILE [--count N]

Each bisect has a repository of its own with 32 commits. One of them does not build. From another
one on, each burst is followed by dependent additions, which lower the program's rate by a tenth
when it is alone on its core. The seed draws which commits these are. Programs run on small pages,
and a compiler runs on each CPU. Each bisect is a line of FILE, and is not made again.

The commit that does not build is never the one right before the first slow one: git cannot say
which of these two is the first bad one.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter
from scipy import stats as scipy_stats

from linerate.host.cores import cpus
from linerate.host.cores.leases import leased
from linerate.host.errors import Interrupted
from linerate.host.process import RunDirectory, checkpoint, interruptible
from linerate.links import LinkContext, link
from linerate.links.eal import Memory
from linerate.runs.session import pinned
from linerate.trial.trial import Bench
from linerate_bench.trust.beside import attended
from linerate_bench.trust.duels import Costs, alone
from linerate_bench.trust.repository import PROGRAM, Repository

LINK = "null2"
COMMITS = 32
SLOWER = 0.10
COUNT = 20
# The number of bisects, of COUNT, that have to find the commit.
RIGHT = 19
# The exit status of `git bisect run` if skipped commits hide the first bad one.
ONLY_SKIPPED_LEFT = 2
CHAINS = (0, 96, 192, 384, 768)


@dataclass(frozen=True)
class Plan:
    """The numbers of commits of each kind, from 0. The first commit is good, the last is bad."""

    seed: int
    slow: int
    broken: int

    @classmethod
    def draw(cls, seed: int) -> Plan:
        source = random.Random(f"linerate:bisect:{seed}")
        slow = source.randrange(1, COMMITS)
        broken = source.choice(
            [each for each in range(1, COMMITS - 1) if each not in (slow, slow - 1)]
        )
        return cls(seed, slow, broken)


@dataclass(frozen=True)
class Bisected:
    """One bisect. `found`: the number of the commit that git named; None: it named none, or
    several. `wrong`: commits that a duel called good and that are bad, or the reverse; `skipped`:
    commits that build and were not decided. `planted`: the share by which the rate is lower.
    """

    seed: int
    slow: int
    broken: int
    planted: float
    found: int | None
    status: int
    tested: int
    wrong: int
    skipped: int
    took_s: float


def step(baseline: Path, *options: str) -> list[str]:
    """Return the command that git runs for each commit, with further options of `linerate duel`."""
    words = ["duel", "--bisect", "--build", "make", "--baseline", str(baseline), PROGRAM]
    return [
        sys.executable, "-m", "linerate_bench.trust.beside",
        sys.executable, "-m", "linerate", *words, "--link", LINK,
        "--hugepages", "no", *options,
    ]  # fmt: skip


def bisect(folder: Path, plan: Plan, chain: int, planted: float) -> Bisected:
    """Make the repository below a folder, and run git bisect in it."""
    repository = Repository.make(folder / "repository")
    commits = [
        repository.commit(
            f"commit {number}", chain if number >= plan.slow else 0, broken=number == plan.broken
        )
        for number in range(COMMITS)
    ]
    repository.git("checkout", "--quiet", commits[0])
    baseline = folder / "baseline.json"
    keeping = ["duel", "--keep-baseline", str(baseline), PROGRAM]
    for command in (["make"], [sys.executable, "-m", "linerate", *keeping]):
        if status := attended(command, repository.path):
            raise RuntimeError(f"{' '.join(command)}: ended with {status}")
    repository.git("bisect", "start", commits[-1], commits[0])
    began = time.monotonic()
    status = attended(["git", "bisect", "run", *step(baseline)], repository.path)
    took_s = time.monotonic() - began
    words = tested(repository.git("bisect", "log"), commits)
    found = commits.index(repository.git("rev-parse", "refs/bisect/bad"))
    return Bisected(
        plan.seed, plan.slow, plan.broken, planted,
        found if status == 0 else None, status, len(words),
        sum(_is_wrong(plan, number, word) for number, word in words.items()),
        sum(word == "skip" and number != plan.broken for number, word in words.items()),
        took_s,
    )  # fmt: skip


def _is_wrong(plan: Plan, number: int, word: str) -> bool:
    if number == plan.broken:
        return word != "skip"
    return word == ("good" if number >= plan.slow else "bad")


def tested(log: str, commits: Sequence[str]) -> dict[int, str]:
    """Return good, bad or skip by the number of the commit, from `git bisect log`, without the two
    ends, which git was given.
    """
    words = re.findall(r"^git bisect (good|bad|skip) ([0-9a-f]{40})$", log, re.MULTILINE)
    return {commits.index(commit): word for word, commit in words}


def read(path: Path) -> list[Bisected]:
    """Return the recorded bisects."""
    if not path.exists():
        return []
    reader = TypeAdapter(Bisected)
    return [reader.validate_json(line) for line in path.read_text().splitlines() if line]


def told(done: Sequence[Bisected]) -> str:
    """Return the line with the count."""
    n = len(done)
    if not n:
        return "no bisect was made"
    right = sum(each.found == each.slow for each in done)
    other = sum(each.found not in (each.slow, None) for each in done)
    interval = scipy_stats.binomtest(right, n).proportion_ci(0.95, "exact")
    seconds = sorted(each.took_s for each in done)[n // 2]
    mark = "PASS" if right * COUNT >= RIGHT * n else "FAIL"
    return (
        f"{n} of {COUNT} bisects: {right} right ({interval.low:.0%} to {interval.high:.0%}), "
        f"{other} another commit, {n - right - other} none; of {sum(e.tested for e in done)} "
        f"commits {sum(e.wrong for e in done)} told wrong, {sum(e.skipped for e in done)} not "
        f"decided; median {seconds:.0f} s; goal {RIGHT} of {COUNT} {mark}"
    )


def costs() -> Costs:
    """Measure what additions cost on this machine, alone on the core."""
    with leased(), RunDirectory() as run:
        cores = cpus.Cores.choose()
        bench = Bench(
            run=run, cores=cores, memory=Memory(hugepages=False), experiment="bisect", seed=1,
            window_s=1.0,
        )  # fmt: skip
        found_link = link(LINK)
        found_link.prepare()
        context = LinkContext(run.path, 64, hugepages=False, cores=cores)
        with pinned(cores.control), found_link.open(context) as wire:
            return Costs(CHAINS, tuple(alone(bench, wire, CHAINS)))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=Path, required=True)
    parser.add_argument("--count", type=int, default=COUNT)
    given = parser.parse_args()
    try:
        return make(given.records, given.count)
    except Interrupted as stop:
        return stop.exit_code


def make(records: Path, count: int) -> int:
    """Make the bisects that are not recorded yet, and print the count."""
    done = read(records)
    left = [seed for seed in range(count) if all(each.seed != seed for each in done)]
    with interruptible(), records.open("a") as out:
        if left:
            found = costs()
            chain = found.chain(SLOWER)
            print(f"alone, a burst: {found}; planted {found.slower(chain):.1%}", flush=True)
        for seed in left:
            checkpoint()
            folder = Path(tempfile.mkdtemp(prefix="linerate-bisect-"))
            try:
                made = bisect(folder, Plan.draw(seed), chain, found.slower(chain))
            finally:
                shutil.rmtree(folder)
            if made.status not in (0, ONLY_SKIPPED_LEFT):
                # It could not run here, which says nothing about bisects.
                print(f"bisect {seed} was ended with status {made.status}", file=sys.stderr)
                return 1
            done.append(made)
            out.write(json.dumps(asdict(made)) + "\n")
            out.flush()
            print(told(done), flush=True)
    print(told(done))
    return 0


if __name__ == "__main__":
    sys.exit(main())
