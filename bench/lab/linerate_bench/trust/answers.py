# SPDX-License-Identifier: BSD-3-Clause
"""How many questions the short presets answer, and how many wrongly: `make bench-answers`.

    python -m linerate_bench.trust.answers --records FILE [--only NAME]... [--count N]

Each run compares a program with a copy of itself and with a version that is worse on purpose: it
does more work for each burst, delays each frame, or drops one frame in 50. So the right answer of
each comparison is known. Runs are started as a user starts them,
alone and beside a compiler on each CPU. Each run is a line of FILE: those that are there are not
made again.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from linerate.host.exit_status import ExitStatus
from linerate.host.process import RunDirectory, interruptible
from linerate.records import run_file
from linerate.records.summary import SUMMARY, Comparison
from linerate_bench.trust.beside import attended, compilers

Truth = Literal["slower", "same"]
# A run is stopped after this time; the goal is ten minutes.
MOST_S = 1200
GOAL_S = 600
RUNS = 3
# Goals: the share of planted differences that are found, and of comparisons with a wrong answer.
ANSWERED, WRONG = 0.9, 0.01


@dataclass(frozen=True)
class Program:
    """A forwarder. `arguments`: on its command line, besides those for its ports."""

    name: str
    build: str
    arguments: str

    def definition(self) -> str:
        """As a file (TOML) has it."""
        return (
            f'name = "{self.name}"\nlanguage = "unknown"\nkind = "dpdk"\nbuild = {self.build}\n'
            f'command = "{{program}} {{eal}} -- -p {{portmask}} {self.arguments}"\n'
        )


def chained(name: str, additions: int) -> Program:
    """The plain forwarder in C, with so many additions after each burst, one waiting for the other:
    a cycle each.
    """
    build = '{ recipe = "bench", folder = "plain", product = "chained" }'
    return Program(name, build, f"-q {{ports}} -T 0 --chain {additions}")


def impaired(name: str, harm: str) -> Program:
    """The forwarder that does harm on purpose."""
    return Program(name, '{ recipe = "rust", binary = "impair" }', f"-P -T 0 {harm}".rstrip())


@dataclass(frozen=True)
class Planted:
    """A program that differs from the first by these metrics, at these loads (None: at any), and
    by what is not named here perhaps.
    """

    program: Program
    metrics: Sequence[str]
    loads: Sequence[float | None] = ()

    def asks(self, found: Comparison) -> bool:
        named = any(found.metric.startswith(metric) for metric in self.metrics)
        return named and (not self.loads or found.load_share in self.loads)


@dataclass(frozen=True)
class Study:
    """A run of an experiment by its short preset. `copy`: the first program, by another name."""

    name: str
    command: Sequence[str]
    first: Program
    copy: Program
    planted: Sequence[Planted]

    @property
    def programs(self) -> list[Program]:
        return [self.first, self.copy, *(each.program for each in self.planted)]

    def truth(self, found: Comparison) -> Truth | None:
        """None: nobody knows."""
        if found.arm == self.copy.name:
            return "same"
        for each in self.planted:
            if each.program.name == found.arm and each.asks(found):
                return "slower"
        return None


PLAIN, TWIN = chained("plain", 0), chained("plain-copy", 0)
HARMLESS, HARMLESS_TWIN = impaired("harmless", ""), impaired("harmless-copy", "")
# Some 30 cycles a packet in full bursts, and more in others.
ADDS = chained("adds-1000", 1000)
# A tenth of what a burst costs where nothing is sent.
ADDS_LESS = chained("adds-60", 60)
DELAYS = impaired("delays-20-us", "--delay 20")
DROPS = impaired("drops-1-in-50", "--drop 50")
ROUND_TRIPS = ("round_trip_udp_p50", "round_trip_arp_p50")
STUDIES = (
    Study(
        "overload",
        ("overload", "--preset", "quick", "--link", "memif"),
        PLAIN,
        TWIN,
        # Its rate is the generator's, nearly: the report says so and compares costs.
        [Planted(ADDS, ["busy_cycles_per_packet"])],
    ),
    Study(
        "overload null2",
        ("overload", "--preset", "quick", "--link", "null2"),
        PLAIN,
        TWIN,
        [Planted(ADDS_LESS, ["forwarder_rx_pps"])],
    ),
    Study(
        "latency",
        ("latency", "--preset", "quick", "--link", "memif", "--no-inside"),
        HARMLESS,
        HARMLESS_TWIN,
        # At higher loads each has a rate of its own, and the first one's queues are as long.
        [Planted(DELAYS, ROUND_TRIPS, (0.0, 0.1, 0.5))],
    ),
    Study(
        "paths",
        ("paths", "--preset", "quick", "--link", "veth"),
        HARMLESS,
        HARMLESS_TWIN,
        [Planted(DELAYS, ["common_latency_p50_us"])],
    ),
    Study(
        "rfc2544",
        ("rfc2544", "--preset", "quick", "--link", "memif", "--sizes", "64", "--tests",
         "throughput,latency,loss"),
        HARMLESS,
        HARMLESS_TWIN,
        [Planted(DROPS, ["pdr_pps"])],
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Answers:
    """What a run came to. `questions`: comparisons of known truth that were planted; `answered`: of
    these, rightly; `comparisons`: of known truth, copies too; `wrong`: which say what is not so.
    """

    study: str
    beside: bool
    seed: int
    status: int
    took_s: float
    questions: int = 0
    answered: int = 0
    comparisons: int = 0
    wrong: int = 0
    unanswered: tuple[str, ...] = ()


def judged(study: Study, comparisons: Sequence[Comparison]) -> dict[str, object]:
    """The counts of `Answers`."""
    known = [(each, truth) for each in comparisons if (truth := study.truth(each))]
    planted = [each for each, truth in known if truth == "slower"]
    right = [each for each in planted if each.verdict == "slower"]
    wrong = [
        each
        for each, truth in known
        if each.verdict in ({"faster", "equal"} if truth == "slower" else {"faster", "slower"})
    ]
    missing = [each for each in planted if each not in right]
    return {
        "questions": len(planted),
        "answered": len(right),
        "comparisons": len(known),
        "wrong": len(wrong),
        "unanswered": tuple(
            f"{each.metric} at {each.load_share}: {each.verdict}, {each.reason}" for each in missing
        ),
    }


def asked(study: Study, seed: int, beside: bool, run: RunDirectory, keep: Path) -> Answers:
    """One run, as a user starts it; what it found stays in `keep`."""
    directory = keep / f"{study.name}-{seed}-{'beside' if beside else 'alone'}"
    directory.mkdir(parents=True)
    files = []
    for program in study.programs:
        files.append(directory / f"{program.name}.toml")
        files[-1].write_text(program.definition(), encoding="utf-8")
    out = directory / "run"
    command = [
        sys.executable, "-m", "linerate", "run", *study.command, "--seed", str(seed),
        "--forwarders", ",".join(map(str, files)), "--out", str(out),
    ]  # fmt: skip
    with compilers(run, os.sched_getaffinity(0) if beside else ()):
        status = attended(["timeout", "--signal=INT", str(MOST_S), *command])
    found = out / SUMMARY
    counts: dict[str, object] = {}
    took_s = 0.0
    if found.exists():
        took_s = measured_s(out)
        reader = TypeAdapter(list[Comparison])
        counts = judged(study, reader.validate_python(json.loads(found.read_text())["comparisons"]))
    return TypeAdapter(Answers).validate_python(
        {"study": study.name, "beside": beside, "seed": seed, "status": status, "took_s": took_s}
        | counts
    )


def measured_s(run: Path) -> float:
    """Seconds from its start to its end: not those in which other labs had the CPUs."""
    return sum(
        (datetime.fromisoformat(each.ended_at) - datetime.fromisoformat(each.started_at))
        .total_seconds()
        for each in run_file.load(run).sessions
        if each.ended_at
    )  # fmt: skip


def read(path: Path) -> list[Answers]:
    """The runs that were made."""
    if not path.exists():
        return []
    reader = TypeAdapter(Answers)
    return [reader.validate_json(line) for line in path.read_text().splitlines() if line]


def told(study: str, runs: Sequence[Answers]) -> str:
    """A line of the table."""
    questions, answered = _sum(runs, "questions"), _sum(runs, "answered")
    comparisons, wrong = _sum(runs, "comparisons"), _sum(runs, "wrong")
    busy = sum(each.status == ExitStatus.BUSY for each in runs)
    longest = max(each.took_s for each in runs)
    reached = (
        questions > 0
        and answered >= ANSWERED * questions
        and wrong <= WRONG * comparisons
        and longest <= GOAL_S
    )
    return (
        f"{study:<20} {len(runs)} runs   answered {answered:>3} of {questions:<3}   wrong "
        f"{wrong:>2} of {comparisons:<3}   too busy {busy}   longest {longest / 60:4.1f} min   "
        f"{'PASS' if reached else 'FAIL'}"
    )


def _sum(runs: Sequence[Answers], name: str) -> int:
    return sum(getattr(each, name) for each in runs)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=Path, required=True)
    parser.add_argument("--only", action="append", choices=[each.name for each in STUDIES])
    parser.add_argument("--where", choices=["alone", "beside"], help="of the two, only this")
    parser.add_argument("--count", type=int, default=RUNS, help="of each study, alone and beside")
    given = parser.parse_args()
    studies = [each for each in STUDIES if not given.only or each.name in given.only]
    done = read(given.records)
    keep = given.records.parent / "answers"
    ways = [given.where == "beside"] if given.where else [False, True]
    with interruptible(), RunDirectory() as run, given.records.open("a") as out:
        for seed in range(1, given.count + 1):
            for study in studies:
                for beside in ways:
                    if any((each.study, each.seed, each.beside) == (study.name, seed, beside)
                           for each in done):  # fmt: skip
                        continue
                    found = asked(study, seed, beside, run, keep)
                    done.append(found)
                    out.write(json.dumps(asdict(found)) + "\n")
                    out.flush()
                    print(
                        told(*_of(done, study, beside)), *found.unanswered, sep="\n  ", flush=True
                    )
    print()
    for study in studies:
        for beside in ways:
            name, runs = _of(done, study, beside)
            if runs:
                print(told(name, runs))


def _of(done: Sequence[Answers], study: Study, beside: bool) -> tuple[str, list[Answers]]:
    runs = [each for each in done if (each.study, each.beside) == (study.name, beside)]
    return f"{study.name}{', compiler' if beside else ''}", runs


if __name__ == "__main__":
    main()
