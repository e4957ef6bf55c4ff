# SPDX-License-Identifier: BSD-3-Clause
"""From records to verdicts, on a simulated machine with known costs."""

from __future__ import annotations

import json

import jsonschema
import pytest
from conftest import simulated_run

from linerate import schemas, summary
from linerate.design import Cell
from linerate.overload_summary import summarise
from linerate.records import Trial
from linerate.summary import Summary, quartiles

CELLS = [Cell("null", 64, 20), Cell("memif", 64, 20)]


@pytest.fixture(scope="module")
def found() -> Summary:
    setup, trials = simulated_run(CELLS)
    return summarise(setup, trials, interrupted=False)


def test_it_validates(found: Summary) -> None:
    jsonschema.validate(json.loads(summary.dump(found)), schemas.stored("summary-1.json"))
    assert Summary.model_validate_json(summary.dump(found)) == found


def test_known_differences_are_found(found: Summary) -> None:
    verdicts = {(c.link, c.arm): c for c in found.comparisons if c.primary}
    burst = verdicts["null", "rust-l2fwd-burst"]
    assert burst.verdict == "faster"
    assert burst.ratio == pytest.approx(40 / 33, rel=0.02)
    assert burst.a12 == 1.0
    assert verdicts["null", "rust-l2fwd"].verdict == "equal"
    for comparison in verdicts.values():
        assert comparison.arm in comparison.sentence
        assert comparison.ci_low is not None
        assert comparison.ci_high is not None
        assert comparison.ratio is not None
        assert comparison.ci_low <= comparison.ratio <= comparison.ci_high


def test_every_required_key_is_there(found: Summary) -> None:
    data = json.loads(summary.dump(found))
    assert data["books_closed"] is True
    assert data["smallest_detectable"] > 0
    assert isinstance(data["limited_by"], list)
    for comparison in data["comparisons"]:
        assert {"metric", "baseline", "arm", "ratio", "ci_low", "ci_high", "verdict"} <= set(
            comparison
        )


def test_equal_rates_at_the_ceiling_say_nothing_about_the_programs(found: Summary) -> None:
    """memif here costs everyone alike, so both arms are near the ceiling of the self-test."""
    comparison = next(
        c for c in found.comparisons if c.primary and c.link == "memif" and c.arm == "rust-l2fwd"
    )
    assert comparison.limited_by == "link"
    assert comparison.verdict == "undecided"
    assert "limited by the link" in comparison.sentence
    assert {limit.arm for limit in found.limited_by} >= {"c-l2fwd", "rust-l2fwd"}


def test_an_unclosed_book_is_told() -> None:
    setup, trials = simulated_run(CELLS)
    next(t for t in trials if t.link == "memif").unattributed = 1
    assert not summarise(setup, trials, interrupted=False).books_closed


def test_a_biased_control_forbids_every_verdict_of_its_cell() -> None:
    setup, trials = simulated_run(CELLS)
    for trial in trials:
        if trial.arm == "c-l2fwd-again" and trial.link == "null" and trial.forwarder_rx:
            trial.forwarder_rx = round(trial.forwarder_rx * 1.1)
    result = summarise(setup, trials, interrupted=False)
    assert [aa.found_difference for aa in result.aa if aa.link == "null"] == [True]
    assert {c.verdict for c in result.comparisons if c.link == "null"} == {"invalid"}


def test_a_block_with_an_invalid_trial_is_left_out_of_its_pair() -> None:
    setup, trials = simulated_run(CELLS)
    victim = next(t for t in trials if t.arm == "rust-l2fwd" and t.link == "null")
    victim.invalid = "forwarder was killed by signal 9"
    result = summarise(setup, trials, interrupted=False)
    comparison = next(c for c in result.comparisons if (c.link, c.arm) == ("null", "rust-l2fwd"))
    assert comparison.n == 19
    assert result.invalid_trials == 1
    assert result.invalid_reasons == {"forwarder was killed by signal 9": 1}


def test_an_interrupted_run_summarises_what_there_is() -> None:
    setup, trials = simulated_run(CELLS)
    result = summarise(setup, trials[:9], interrupted=True)
    assert result.interrupted
    assert [cell.link for cell in result.cells] == ["null"]
    assert all(c.verdict in ("undecided", "invalid") for c in result.comparisons)


def test_c_has_no_busy_cycles(found: Summary) -> None:
    arms = {arm.arm: arm for arm in found.cells[0].arms}
    assert arms["c-l2fwd"].busy_cycles_per_packet is None
    assert arms["c-l2fwd"].average_rx_burst is None
    assert arms["rust-l2fwd"].busy_cycles_per_packet is not None


def test_lower_loads_are_per_load_and_arm() -> None:
    setup, trials = simulated_run([CELLS[1]])
    paced: list[Trial] = []
    for share in (0.25, 0.5):
        for trial in trials:
            if trial.role == "measure" and trial.block < 3:
                copy = trial.model_copy(deep=True)
                copy.role, copy.load, copy.load_share = "lower-load", "paced", share
                copy.attempted, copy.refused = copy.accepted, None
                paced.append(copy)
    cell = summarise(setup, trials + paced, interrupted=False).cells[0]
    assert {(e.load_share, e.arm) for e in cell.lower_load} >= {
        (0.25, "c-l2fwd"),
        (0.5, "rust-l2fwd"),
    }
    assert all(entry.loss_share == 0 for entry in cell.lower_load)


def test_quartiles() -> None:
    assert quartiles([None]) is None
    figure = quartiles([float(n) for n in range(1, 21)])
    assert figure is not None
    # The sign test's interval for a median of 20: the 6th and the 15th value, 95.9 %.
    assert (figure.median, figure.low, figure.high) == (10.5, 6.0, 15.0)
