# SPDX-License-Identifier: BSD-3-Clause
"""Spans of a window, from a forwarder's counts since its start; and the check of its clock."""

from __future__ import annotations

from typing import Any, cast

import pytest
from probed import hdr_pieces
from trials import made_trial

from linerate.host.errors import TelemetryError
from linerate.records.outcome import Clock
from linerate.telemetry.client import Reading, Telemetry
from linerate.telemetry.spans import Spans, read_clock
from linerate.trial import clock_check


class Answers:
    """A program with scripted answers; the last one is repeated."""

    def __init__(self, answers: list[Any]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def ask(self, command: str) -> Any:
        self.asked.append(command)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def read_tight(self, command: str) -> Reading:
        value, before_ns, after_ns = self.ask(command)
        return Reading(value, before_ns, after_ns)


def telemetry(*answers: Any) -> Telemetry:
    return cast(Telemetry, Answers(list(answers)))


def entry(values: list[int], span: str = "rx-return_tx-call", **changes: Any) -> dict[str, Any]:
    found = {
        "span": span, "port": 0, "queue": 0, "one_in": 1, "sampled": len(values),
        "count": len(values), "hdr": hdr_pieces(values),
    }  # fmt: skip
    if not values:
        del found["hdr"]
    return found | changes


def test_a_window_has_what_came_in_it() -> None:
    before, during = [1000] * 5, [100, 100, 100, 200]
    wide = entry([], "rx-call_tx-return")
    program = telemetry([entry(before), wide], [entry([*before, *during]), wide])
    spans = Spans(program, "/linerate/latency", 1)
    (found,) = spans.found()
    assert (found.span, found.count, found.sampled) == ("rx-return_tx-call", 4, 4)
    assert found.mean_cycles == 125
    assert found.quantiles_cycles["0.5"] == 100
    assert found.quantiles_cycles["0.999"] == 200
    assert cast(Answers, program).asked == ["/linerate/latency,0"] * 2


def test_what_began_in_the_window_counts_whole() -> None:
    spans = Spans(telemetry([], [entry([7, 7])]), "/linerate/latency", 1)
    assert [each.count for each in spans.found()] == [2]


@pytest.mark.parametrize(
    "answer",
    [
        [{"port": 0}],
        "x",
        [entry([1], hdr=None)],
        [entry([1], hdr=["nonsense"])],
        [entry([1], port="x")],
    ],
)
def test_an_answer_that_is_none_is_an_error(answer: Any) -> None:
    with pytest.raises(TelemetryError, match="/linerate/latency,0 answered"):
        Spans(telemetry(answer), "/linerate/latency", 1)


def test_counts_that_fell_are_of_another_program() -> None:
    spans = Spans(telemetry([entry([1, 2])], [entry([1])]), "/linerate/latency", 1)
    with pytest.raises(TelemetryError, match="counts fell"):
        spans.found()


def test_a_clock_without_its_cost_is_an_error() -> None:
    assert read_clock(telemetry({"tsc_hz": 10, "clock_cost_cycles": 3})).cost_cycles == 3
    with pytest.raises(TelemetryError, match="/linerate/clock answered"):
        read_clock(telemetry({"tsc_hz": 10}))


def test_the_counter_is_held_against_the_kernels_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """2 000 000 cycles in a millisecond are 2 GHz, within the time of the two readings."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    first = ([{"total_tsc": 5_000}], 0, 20)
    last = ([{"total_tsc": 2_005_000}], 1_000_000, 1_000_020)
    found = clock_check.check(telemetry(first, last), told_hz=2_010_000_000, cost_cycles=26)
    assert found.checked_hz == pytest.approx(2e9)
    assert found.within_ppm == pytest.approx(20)
    assert found.apart_ppm == pytest.approx(-4975, abs=1)
    # DPDK rounds to 10 MHz, which is no error; another clock is.
    assert found.complaint() is None
    wrong = clock_check.ClockCheck(2_000_000_000, 26, 1e9, 20)
    assert "2000.000 MHz" in (wrong.complaint() or "")


def test_the_check_stands_beside_what_the_sender_said() -> None:
    trial = made_trial(
        experiment="latency", seed=1, block=0, position=0, role="search", arm="a", forwarder="a",
        link="memif", size=64, load="paced", started_at="",
    )  # fmt: skip
    check = clock_check.ClockCheck(2_600_000_000, 26, 2.596e9, 100)
    check.enter(trial)
    assert trial.frames.clock is None
    trial.frames.clock = Clock(tsc_hz=2_600_000_000, cost_cycles=26)
    check.enter(trial)
    assert (trial.frames.clock.checked_hz, trial.frames.clock.checked_within_ppm) == (2.596e9, 100)
