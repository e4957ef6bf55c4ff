# SPDX-License-Identifier: BSD-3-Clause
"""Which answers of a run are right, from what was planted."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from linerate.forwarders.definition import Definition
from linerate.records.summary import Comparison
from linerate.records.types import Verdict
from linerate_bench.trust.answers import STUDIES, Answers, judged, told

LATENCY = next(each for each in STUDIES if each.name == "latency")


def compared(arm: str, metric: str, verdict: Verdict, load: float | None = 0.1) -> Comparison:
    return Comparison(
        metric=metric, load_share=load, primary=True, link="memif", size=64, baseline="harmless",
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
            "round_trip_arp_p50_cycles at 0.5: undecided, as it is",
            "round_trip_udp_p50_cycles at 0.5: equal, as it is",
        ),
    }  # fmt: skip


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


@pytest.mark.parametrize("study", STUDIES, ids=lambda each: each.name)
def test_planted_programs_are_forwarders(study: Any) -> None:
    names = [
        Definition.model_validate(tomllib.loads(program.definition())).name
        for program in study.programs
    ]
    assert len(set(names)) == len(names) > 2
