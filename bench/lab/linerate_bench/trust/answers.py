# SPDX-License-Identifier: BSD-3-Clause
"""Counts the questions that the short presets answer, and the wrong answers: `make bench-answers`.

    python -m linerate_bench.trust.answers --records FILE [--only NAME]... [--count N]

Most runs compare a program with a copy of itself and with a version that is worse on purpose: it
does more work for each burst or packet, delays each frame, or drops one frame in 50. So the right
answer of each comparison is known. `graph` takes no programs of users: there the plain loop has to
be faster than the graph, because it does the same work without one. `cloud` compares its reference
with itself.

Runs are started as a user starts them, alone and beside a compiler on each CPU. Each run is a line
of FILE, and is not made again. A run that somebody ended by a signal is no answer: it is not
recorded, and the next call makes it again. `cloud` needs root and `make cloud-packages`.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from linerate.experiments.cloud.design.levels import FRAMEWORK
from linerate.host.exit_status import ExitStatus
from linerate.host.process import RunDirectory, interruptible
from linerate.records import run_file
from linerate.records.cloud_summary import TakeawayEntry
from linerate.records.summary import SUMMARY, Comparison
from linerate_bench.trust.beside import attended, compilers

# differs: for two forwarders in `cloud`, because its statements have no direction.
Truth = Literal["slower", "faster", "differs", "same"]
# The right verdict, and the wrong ones; any other verdict leaves the question open.
RIGHT: dict[Truth, str] = {"slower": "slower", "faster": "faster", "differs": "held"}
WRONG_ANSWERS: dict[Truth, set[str]] = {
    "slower": {"faster", "equal"}, "faster": {"slower", "equal"}, "differs": {"not held"},
    "same": {"faster", "slower", "held"},
}  # fmt: skip
# A run is stopped after this time; the goal is ten minutes.
MOST_S = 1200
GOAL_S = 600
RUNS = 3
# Signals by which somebody ends a run. A run that crashed counts: it left its question open.
ENDINGS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGKILL)
# Goals: the share of planted differences that are found, and of comparisons with a wrong answer.
ANSWERED, WRONG = 0.9, 0.01


@dataclass(frozen=True)
class Program:
    """A forwarder. `arguments`: its command line without the options for its ports. `more`: further
    lines of its definition.
    """

    name: str
    build: str
    arguments: str
    more: str = ""

    def definition(self) -> str:
        """Return its definition, as a TOML file has it."""
        return (
            f'name = "{self.name}"\nlanguage = "unknown"\nkind = "dpdk"\nbuild = {self.build}\n'
            f'command = "{{program}} {{eal}} -- -p {{portmask}} {self.arguments}"\n'
            f"{self.more}"
        )


def chained(name: str, additions: int) -> Program:
    """Return the plain forwarder in C with `additions` dependent additions after each burst: one
    cycle each.
    """
    build = '{ recipe = "bench", folder = "plain", product = "chained" }'
    return Program(name, build, f"-q {{ports}} -T 0 --chain {additions}")


def impaired(name: str, harm: str) -> Program:
    """Return the forwarder that does harm on purpose."""
    return Program(name, '{ recipe = "rust", binary = "impair" }', f"-P -T 0 {harm}".rstrip())


def routing(name: str, rules: str = "") -> Program:
    """Return the graph that routes by a cell's tables, on librte_graph. `rules`: options
    that give it rules as well.
    """
    return Program(
        name,
        '{ recipe = "rust", binary = "l3fwd-graph" }',
        "-P --config {queues} --eth-dest={port},{peer} --routes_ipv4={table_ipv4} "
        f"--routes_ipv6={{table_ipv6}} {rules}".rstrip(),
        'lcores = "idle-main"\n'
        'routing = { lookup = "lpm", holds = ["routes", "routes-and-rules"], needs_addresses = '
        "true }\n",
    )


@dataclass(frozen=True)
class Planted:
    """An arm that differs from the first by these metrics, at these loads (none: at any) and in
    these cells (none: in all). By other metrics, loads and cells it may differ or not.
    """

    arm: str
    metrics: Sequence[str]
    loads: Sequence[float | None] = ()
    cells: Sequence[str] = ()
    truth: Truth = "slower"

    def asks(self, found: Comparison) -> bool:
        return (
            found.arm == self.arm
            and any(found.metric.startswith(metric) for metric in self.metrics)
            and (not self.loads or found.load_share in self.loads)
            and (not self.cells or found.link in self.cells)
        )


@dataclass(frozen=True)
class Study:
    """A run of an experiment with its short preset. `programs`: forwarders, the first is the
    baseline; none: those of the experiment. `copy`: the one that is the first under another name.
    `statements`: the metrics of true statements about frameworks (`cloud`).
    """

    name: str
    command: Sequence[str]
    programs: Sequence[Program]
    planted: Sequence[Planted] = ()
    copy: Program | None = None
    statements: Sequence[str] = ()

    def truth(self, found: Comparison) -> Truth | None:
        """Return the right answer of a comparison; None: it is not known."""
        if self.copy and found.arm == self.copy.name:
            return "same"
        return next((each.truth for each in self.planted if each.asks(found)), None)

    def truth_of(self, found: TakeawayEntry) -> Truth | None:
        """Return the right answer of a statement, which is known only if it is about frameworks
        alone.
        """
        alone = found.origin == "tested" and found.about == [FRAMEWORK]
        return "differs" if alone and found.metric in self.statements else None


PLAIN, TWIN = chained("plain", 0), chained("plain-copy", 0)
HARMLESS, HARMLESS_TWIN = impaired("harmless", ""), impaired("harmless-copy", "")
# Some 30 cycles a packet in full bursts, and more in others.
ADDS = chained("adds-1000", 1000)
# A tenth of the cost of a burst on a link that sends nothing.
ADDS_LESS = chained("adds-60", 60)
DELAYS = impaired("delays-20-us", "--delay 20")
DROPS = impaired("drops-1-in-50", "--drop 50")
# In `cloud` a forwarder waits milliseconds for its core, so 20 us would not be seen.
DELAYS_MORE = impaired("delays-5-ms", "--delay 5000")
# The lab's rules let all packets pass, so they only add work.
ROUTES, ROUTES_TWIN = routing("routes"), routing("routes-copy")
ASKS_RULES = routing("routes-and-asks-rules", "--rule_ipv4={rules_ipv4}")
ROUND_TRIPS = ("round_trip_udp_p50", "round_trip_arp_p50")
STUDIES = (
    Study(
        "overload",
        ("overload", "--preset", "quick", "--link", "memif"),
        [PLAIN, TWIN, ADDS],
        # The generator nearly limits its rate: the report says so and compares costs.
        [Planted(ADDS.name, ["busy_cycles_per_packet"])],
        TWIN,
    ),
    Study(
        "overload null2",
        ("overload", "--preset", "quick", "--link", "null2"),
        [PLAIN, TWIN, ADDS_LESS],
        [Planted(ADDS_LESS.name, ["forwarder_rx_pps"])],
        TWIN,
    ),
    Study(
        "latency",
        ("latency", "--preset", "quick", "--link", "memif", "--no-inside"),
        [HARMLESS, HARMLESS_TWIN, DELAYS],
        # At higher loads each has a rate of its own, and the queues of the baseline are as long.
        [Planted(DELAYS.name, ROUND_TRIPS, (0.0, 0.1, 0.5))],
        HARMLESS_TWIN,
    ),
    Study(
        "paths",
        ("paths", "--preset", "quick", "--link", "veth"),
        [HARMLESS, HARMLESS_TWIN, DELAYS],
        [Planted(DELAYS.name, ["common_latency_p50_us"])],
        HARMLESS_TWIN,
    ),
    Study(
        "rfc2544",
        ("rfc2544", "--preset", "quick", "--link", "memif", "--sizes", "64", "--tests",
         "throughput,latency,loss"),
        [HARMLESS, HARMLESS_TWIN, DROPS],
        [Planted(DROPS.name, ["pdr_pps"])],
        HARMLESS_TWIN,
    ),
    Study(
        "l3fwd",
        ("l3fwd", "--preset", "demo"),
        [ROUTES, ROUTES_TWIN, ASKS_RULES],
        [
            Planted(
                ASKS_RULES.name, ["forwarder_rx_pps"], cells=("nearfree1-ip:1000-routes:100-rules",)
            ),
            Planted(ASKS_RULES.name, ["busy_cycles_per_packet"], cells=("memif",)),
        ],
        ROUTES_TWIN,
    ),
    Study(
        "graph",
        ("graph", "--preset", "demo"),
        [],
        [Planted("one-loop", ["objects_per_s"], truth="faster")],
    ),
    Study(
        "cloud",
        # Two frame sizes would take longer than the goal.
        ("cloud", "--design", "demo", "--sizes", "64"),
        [HARMLESS, DELAYS_MORE],
        statements=("latency_p50_us",),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Answers:
    """The result of a run. `comparisons`: those of which the right answer is known; `questions`:
    those among them that compare a planted difference; `answered`: the questions with the right
    answer; `wrong`: the comparisons with a wrong answer.
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

    @property
    def interrupted(self) -> bool:
        """True if somebody ended the run by a signal (exit status 128 + N)."""
        return self.status - 128 in ENDINGS


def judged(
    study: Study,
    comparisons: Sequence[Comparison],
    statements: Sequence[TakeawayEntry] = (),
    controls: Sequence[TakeawayEntry] = (),
) -> dict[str, object]:
    """Return the counts of `Answers`. `controls`: the comparisons of the reference with itself
    (`cloud`).
    """
    known: list[tuple[Comparison | TakeawayEntry, Truth]] = [
        (each, truth) for each in comparisons if (truth := study.truth(each))
    ]
    known += [(each, truth) for each in statements if (truth := study.truth_of(each))]
    known += [(each, "same") for each in controls]
    planted = [(each, truth) for each, truth in known if truth != "same"]
    missing = [each for each, truth in planted if each.verdict != RIGHT[truth]]
    return {
        "questions": len(planted),
        "answered": len(planted) - len(missing),
        "comparisons": len(known),
        "wrong": sum(each.verdict in WRONG_ANSWERS[truth] for each, truth in known),
        "unanswered": tuple(f"{_words(each)}: {each.verdict}, {each.reason}" for each in missing),
    }


def _words(found: Comparison | TakeawayEntry) -> str:
    if isinstance(found, TakeawayEntry):
        return f"{found.statement}{f' ({found.part})' if found.part else ''}"
    return f"{found.link}: {found.metric} at {found.load_share}"


def asked(study: Study, seed: int, beside: bool, run: RunDirectory, keep: Path) -> Answers:
    """Make one run, as a user starts it; what it found stays in `keep`."""
    name = f"{study.name}-{seed}-{'beside' if beside else 'alone'}"
    attempt = 1
    # An interrupted run left its directory.
    while (directory := keep / f"{name}-{attempt}").exists():
        attempt += 1
    directory.mkdir(parents=True)
    files = []
    for program in study.programs:
        files.append(directory / f"{program.name}.toml")
        files[-1].write_text(program.definition(), encoding="utf-8")
    out = directory / "run"
    command = [
        sys.executable, "-m", "linerate", "run", *study.command, "--seed", str(seed),
        *(["--forwarders", ",".join(map(str, files))] if files else []), "--out", str(out),
    ]  # fmt: skip
    with compilers(run, os.sched_getaffinity(0) if beside else ()):
        status = attended(["timeout", "--signal=INT", str(MOST_S), *command])
    found = out / SUMMARY
    counts: dict[str, object] = {}
    took_s = 0.0
    if found.exists():
        took_s = measured_s(out)
        summary = json.loads(found.read_text(encoding="utf-8"))
        entries = TypeAdapter(list[TakeawayEntry])
        counts = judged(
            study,
            TypeAdapter(list[Comparison]).validate_python(summary["comparisons"]),
            entries.validate_python(summary.get("takeaways") or []),
            entries.validate_python((summary.get("cloud") or {}).get("control") or []),
        )
    return TypeAdapter(Answers).validate_python(
        {"study": study.name, "beside": beside, "seed": seed, "status": status, "took_s": took_s}
        | counts
    )


def measured_s(run: Path) -> float:
    """Return the seconds from start to end, without those in which other labs had the CPUs."""
    return sum(
        (datetime.fromisoformat(each.ended_at) - datetime.fromisoformat(each.started_at))
        .total_seconds()
        for each in run_file.load(run).sessions
        if each.ended_at
    )  # fmt: skip


def read(path: Path) -> list[Answers]:
    """Return the recorded runs."""
    if not path.exists():
        return []
    reader = TypeAdapter(Answers)
    return [reader.validate_json(line) for line in path.read_text().splitlines() if line]


def told(study: str, runs: Sequence[Answers]) -> str:
    """Return a line of the table."""
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
                    if found.interrupted:
                        print(
                            f"{_of(done, study, beside)[0]}, seed {seed}: interrupted by "
                            f"{signal.Signals(found.status - 128).name}, not recorded; the next "
                            "call makes it again",
                            flush=True,
                        )
                        continue
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
