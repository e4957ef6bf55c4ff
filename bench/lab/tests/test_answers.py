# SPDX-License-Identifier: BSD-3-Clause
"""Which answers of a run count as right, given what was planted."""

from __future__ import annotations

import signal
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from linerate.experiments.graph.cells import FAMILIES
from linerate.forwarders.definition import Definition
from linerate.records.cloud_summary import TakeawayEntry, TakeawayVerdict
from linerate.records.summary import Comparison
from linerate.records.types import Verdict
from linerate_bench.trust import answers
from linerate_bench.trust.answers import STUDIES, Answers, judged, told

LATENCY, L3FWD, GRAPH, CLOUD = (
    next(each for each in STUDIES if each.name == name)
    for name in ("latency", "l3fwd", "graph", "cloud")
)


def compared(
    arm: str, metric: str, verdict: Verdict, load: float | None = 0.1, link: str = "memif"
) -> Comparison:
    return Comparison(
        metric=metric, load_share=load, primary=True, link=link, size=64, baseline="harmless",
        arm=arm, n=9, verdict=verdict, reason="as it is", sentence="",
    )  # fmt: skip


def test_answers_are_counted() -> None:
    found = judged(
        LATENCY,
        [
            compared("delays-20-us", "round_trip_udp_p50_cycles", "slower"),
            compared("delays-20-us", "round_trip_arp_p50_cycles", "undecided", 0.5),
            compared("delays-20-us", "round_trip_udp_p50_cycles", "equal", 0.5),
            # Nobody knows.
            compared("delays-20-us", "round_trip_udp_p50_cycles", "faster", 0.9),
            compared("delays-20-us", "round_trip_udp_p99_cycles", "faster"),
            compared("harmless-copy", "round_trip_udp_p99_cycles", "equal"),
            compared("harmless-copy", "round_trip_udp_p50_cycles", "slower"),
        ],
    )
    assert found == {
        "questions": 3, "answered": 1, "comparisons": 5, "wrong": 2,
        "unanswered": (
            "memif: round_trip_arp_p50_cycles at 0.5: undecided, as it is",
            "memif: round_trip_udp_p50_cycles at 0.5: equal, as it is",
        ),
    }  # fmt: skip


def counts_of(found: dict[str, object]) -> list[object]:
    return [found[each] for each in ("questions", "answered", "comparisons", "wrong")]


def test_rules_cost_where_a_cell_has_some() -> None:
    asks, rate = "routes-and-asks-rules", "forwarder_rx_pps"
    found = judged(
        L3FWD,
        [
            compared(asks, rate, "slower", None, "nearfree1-ip:1000-routes:100-rules"),
            compared(asks, "busy_cycles_per_packet", "equal", 0.5, "memif"),
            # The same program there: no rules.
            compared(asks, rate, "faster", None, "nearfree1-ip:1000-routes"),
            # The generator may be the limit.
            compared(asks, rate, "equal", None, "memif"),
            compared("routes-copy", rate, "equal", None, "nearfree1-ip:1-routes"),
        ],
    )
    assert counts_of(found) == [2, 1, 3, 1]


def test_a_loop_is_faster_than_a_graph() -> None:
    cell = "chain4/swap/hash5/nostats/256"
    found = judged(
        GRAPH,
        [
            compared("one-loop", "objects_per_s", "faster", None, cell),
            compared("one-loop", "objects_per_s", "undecided", None, cell),
            compared("one-loop", "objects_per_s", "slower", None, cell),
            # Nobody knows.
            compared("fused", "objects_per_s", "slower", None, cell),
        ],
    )
    assert counts_of(found) == [3, 1, 3, 1]


def stated(verdict: TakeawayVerdict, **more: Any) -> TakeawayEntry:
    known: dict[str, Any] = {
        "origin": "tested", "statement": "it depends on the framework", "about": ["framework"],
        "metric": "latency_p50_us", "test": "some", "measure": "ratio", "reason": "as it is",
    }  # fmt: skip
    return TakeawayEntry(verdict=verdict, **known | more)


def test_statements_about_frameworks_are_counted() -> None:
    found = judged(
        CLOUD,
        [],
        [
            stated("held"),
            stated("not held", part="loads"),
            stated("undecided"),
            # Nobody knows.
            stated("held", metric="loss"),
            stated("held", about=["framework", "load"]),
            stated("held", origin="study"),
        ],
        [stated("not held", metric="loss"), stated("held")],
    )
    assert counts_of(found) == [3, 1, 5, 2]
    assert found["unanswered"] == (
        "it depends on the framework (loads): not held, as it is",
        "it depends on the framework: undecided, as it is",
    )


@pytest.mark.parametrize(
    ("counts", "word"),
    [
        ({"questions": 10, "answered": 9, "comparisons": 100, "wrong": 1}, "PASS"),
        ({"questions": 10, "answered": 8, "comparisons": 100, "wrong": 0}, "FAIL"),
        ({"questions": 10, "answered": 10, "comparisons": 100, "wrong": 2}, "FAIL"),
        # It ended before it could ask anything.
        ({"questions": 0, "answered": 0, "comparisons": 0, "wrong": 0}, "FAIL"),
    ],
)
def test_the_goal(counts: dict[str, Any], word: str) -> None:
    line = told("latency", [Answers("latency", False, 1, 0, 300.0, **counts)])
    assert line.endswith(word)
    assert told("latency", [Answers("latency", False, 1, 0, 601.0, **counts)]).endswith("FAIL")


def ending_with(*statuses: int) -> Callable[..., int]:
    """Return a stand-in for runs, which end with these exit statuses in turn and find nothing."""
    left = iter(statuses)

    def attended(argv: Sequence[str]) -> int:
        Path(argv[argv.index("--out") + 1]).mkdir()
        return next(left)

    return attended


def recorded(path: Path, monkeypatch: pytest.MonkeyPatch, *statuses: int) -> list[tuple[int, int]]:
    """Run two seeds of one study; return seed and status of each run in the file."""
    monkeypatch.setattr(answers, "attended", ending_with(*statuses))
    words = ["answers", "--records", str(path), "--only", "graph", "--where", "alone"]
    monkeypatch.setattr("sys.argv", [*words, "--count", "2"])
    answers.main()
    return [(each.seed, each.status) for each in answers.read(path)]


@pytest.mark.parametrize("number", answers.ENDINGS)
def test_interrupted_runs_are_made_again(
    number: signal.Signals,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "answers.jsonl"
    assert recorded(path, monkeypatch, 128 + number, 0) == [(2, 0)]
    assert f"graph, seed 1: interrupted by {number.name}, not recorded" in capsys.readouterr().out
    assert recorded(path, monkeypatch, 3) == [(2, 0), (1, 3)]
    assert recorded(path, monkeypatch) == [(2, 0), (1, 3)]


def test_runs_that_crashed_or_took_too_long_are_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "answers.jsonl"
    crashed, too_long = 128 + signal.SIGSEGV, 124
    assert recorded(path, monkeypatch, crashed, too_long) == [(1, crashed), (2, too_long)]


@pytest.mark.parametrize("study", STUDIES, ids=lambda each: each.name)
def test_planted_programs_are_forwarders(study: Any) -> None:
    names = [
        Definition.model_validate(tomllib.loads(program.definition())).name
        for program in study.programs
    ]
    assert len(set(names)) == len(names)
    known = {*names, *FAMILIES}
    assert known.issuperset(each.arm for each in study.planted)
    assert study.planted or study.statements
