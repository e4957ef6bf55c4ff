# SPDX-License-Identifier: BSD-3-Clause
"""From records to verdicts, on a simulated machine with known costs."""

from __future__ import annotations

import json
import math

import by_schema
import pytest
from conftest import FORWARDERS, at_lower_load, simulated_run

from linerate.experiments.overload.summarise import summarise
from linerate.records import summary
from linerate.records.cells import Cell
from linerate.records.summary import Comparison, Summary
from linerate.records.trial import Trial
from linerate.runs.plans.blocks import PROBED_EVERY
from linerate.verdict import stats
from linerate.verdict.arms import quartiles

CELLS = [Cell("null", 64, 20), Cell("memif", 64, 20)]


@pytest.fixture(scope="module")
def found() -> Summary:
    setup, trials = simulated_run(CELLS)
    return summarise(setup, trials, interrupted=False)


def test_it_validates(found: Summary) -> None:
    by_schema.check(json.loads(summary.dump(found)), "summary-1.json")
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
        assert comparison.sentence.startswith("On ")
        assert comparison.ci_low is not None
        assert comparison.ci_high is not None
        assert comparison.ratio is not None
        assert comparison.ci_low <= comparison.ratio <= comparison.ci_high


def test_what_is_no_number_is_not_written(found: Summary) -> None:
    """JSON cannot represent it; values that were added later are not checked before."""
    changed = found.model_copy(deep=True)
    changed.comparisons[0].ratio = math.inf
    with pytest.raises(ValueError, match="not JSON compliant"):
        summary.dump(changed)


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
    """memif costs every program the same here, so both arms are near the self-test's ceiling."""
    comparison = next(
        c for c in found.comparisons if c.primary and c.link == "memif" and c.arm == "rust-l2fwd"
    )
    assert comparison.limited_by == "link"
    assert comparison.verdict == "undecided"
    assert "limited by the link" in comparison.sentence
    assert {limit.arm for limit in found.limited_by} >= {"c-l2fwd", "rust-l2fwd"}


def test_an_unclosed_book_is_told() -> None:
    setup, trials = simulated_run(CELLS)
    next(t for t in trials if t.cell.name == "memif").frames.unattributed = 1
    assert not summarise(setup, trials, interrupted=False).books_closed


def test_a_biased_control_forbids_every_verdict_of_its_cell() -> None:
    setup, trials = simulated_run(CELLS)
    for trial in trials:
        if trial.arm == "c-l2fwd-again" and trial.cell.name == "null" and trial.frames.forwarder_rx:
            trial.frames.forwarder_rx = round(trial.frames.forwarder_rx * 1.1)
    result = summarise(setup, trials, interrupted=False)
    assert [aa.found_difference for aa in result.aa if aa.link == "null"] == [True]
    assert {c.verdict for c in result.comparisons if c.link == "null"} == {"invalid"}


def test_a_block_with_an_invalid_trial_is_left_out_of_its_pair() -> None:
    setup, trials = simulated_run(CELLS)
    victim = next(t for t in trials if t.arm == "rust-l2fwd" and t.cell.name == "null")
    victim.reject("ended", "forwarder was killed by signal 9")
    result = summarise(setup, trials, interrupted=False)
    comparison = next(c for c in result.comparisons if (c.link, c.arm) == ("null", "rust-l2fwd"))
    assert comparison.n == 19
    assert result.invalid_trials == 1
    assert [(r.code, r.count, r.example) for r in result.invalid_reasons] == [
        ("ended", 1, "forwarder was killed by signal 9")
    ]


def test_an_interrupted_run_summarises_what_there_is() -> None:
    setup, trials = simulated_run(CELLS)
    result = summarise(setup, trials[:9], interrupted=True)
    assert result.interrupted
    assert [cell.link for cell in result.cells] == ["null"]
    assert all(c.verdict in ("undecided", "invalid") for c in result.comparisons)


def test_blocks_that_a_run_did_not_come_to_are_not_lost() -> None:
    setup, trials = simulated_run([CELLS[0]])
    begun = [trial for trial in trials if trial.block < 8]
    result = summarise(setup, begun, interrupted=True)
    burst = of(result, "null", "rust-l2fwd-burst")
    assert (burst.verdict, burst.n) == ("faster", 8)
    for trial in begun:
        if trial.arm == "rust-l2fwd-burst" and trial.block >= 3:
            trial.reject("starved", "others had the forwarder's CPU")
    burst = of(summarise(setup, begun, interrupted=True), "null", "rust-l2fwd-burst")
    assert (burst.verdict, burst.reason) == ("invalid", "only 3 of 8 blocks were valid")


def test_polls_are_known_of_every_program_alike(found: Summary) -> None:
    for cell in found.cells:
        for arm in [*cell.arms, *cell.references]:
            assert arm.probed_trials == math.ceil(cell.blocks / PROBED_EVERY)
            assert arm.busy_cycles_per_packet is not None
            assert arm.average_rx_burst is not None
            assert arm.average_rx_burst.n == arm.probed_trials


def test_the_probe_is_in_no_trial_that_is_compared() -> None:
    setup, trials = simulated_run(CELLS)
    without = [trial for trial in trials if trial.role != "probed"]
    both = [summarise(setup, some, interrupted=False) for some in (trials, without)]
    assert both[0].comparisons == both[1].comparisons
    assert all(arm.average_rx_burst is None for cell in both[1].cells for arm in cell.arms)


def test_empty_polls_count_in_one_average_burst_only() -> None:
    setup, trials = simulated_run([CELLS[1]])
    paced = at_lower_load(trials)
    for trial in trials + paced:
        for entry in trial.frames.polling or ():
            # Three polls in four find nothing, the others 24 packets.
            entry.polls, entry.empty_polls, entry.packets = 4000, 3000, 24_000
    cell = summarise(setup, trials + paced, interrupted=False).cells[0]
    arm = next(a for a in cell.arms if a.arm == "rust-l2fwd")
    low = next(e for e in cell.lower_load if e.arm == "rust-l2fwd")
    for found in (arm, low):
        assert found.average_rx_burst is not None
        assert found.average_nonempty_rx_burst is not None
        assert found.average_rx_burst.median == 6
        assert found.average_nonempty_rx_burst.median == 24


def test_without_a_packet_there_is_no_average_nonempty_burst() -> None:
    setup, trials = simulated_run([CELLS[0]])
    for trial in trials:
        for entry in trial.frames.polling or ():
            entry.empty_polls, entry.packets = entry.polls, 0
    arm = summarise(setup, trials, interrupted=False).cells[0].arms[2]
    assert arm.average_rx_burst is not None
    assert arm.average_rx_burst.median == 0
    assert arm.average_nonempty_rx_burst is None


def test_lower_loads_are_per_load_and_arm() -> None:
    setup, trials = simulated_run([CELLS[1]])
    paced = at_lower_load(trials) + at_lower_load(trials, 0.5)
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


@pytest.mark.parametrize("count", range(1, 6))
def test_quartiles_of_few_values_have_no_interval(count: int) -> None:
    figure = quartiles([float(n) for n in range(count)])
    assert figure is not None
    assert figure.n == count
    assert figure.low is None
    assert figure.high is None


def test_quartiles_of_six_values_span_all() -> None:
    figure = quartiles([float(n) for n in range(6)])
    assert figure is not None
    assert (figure.low, figure.high) == (0.0, 5.0)


# -- the rules of a whole cell --------------------------------------------------------------------


def scale(trials: list[Trial], arm: str, factor: float, link: str = "memif") -> None:
    """Make an arm faster or slower; its books still close."""
    for trial in trials:
        if trial.cell.name == link and trial.arm == arm and trial.frames.forwarder_rx:
            packets = round(trial.frames.forwarder_rx * factor)
            trial.frames.forwarder_rx = trial.frames.forwarder_tx = packets
            if trial.frames.received is not None:
                trial.frames.accepted = trial.frames.received = packets
                trial.frames.attempted = packets + (trial.frames.refused or 0)


def of(result: Summary, link: str, arm: str) -> Comparison:
    return next(c for c in result.comparisons if c.primary and (c.link, c.arm) == (link, arm))


def test_an_arm_that_spreads_takes_no_verdict_from_the_others() -> None:
    """Nor from itself: its result is shown, with a note about the size."""
    setup, trials = simulated_run(CELLS)
    before = of(summarise(setup, trials, interrupted=False), "null", "rust-l2fwd-burst")
    for trial in trials:
        if trial.arm == "rust-l2fwd" and trial.cell.name == "null" and trial.frames.forwarder_rx:
            trial.frames.forwarder_rx = round(
                trial.frames.forwarder_rx * (2.4 if trial.block % 2 else 1.6)
            )
    result = summarise(setup, trials, interrupted=False)
    burst, wide = (of(result, "null", arm) for arm in ("rust-l2fwd-burst", "rust-l2fwd"))
    assert (burst.verdict, burst.ci_low) == (before.verdict, before.ci_low)
    assert wide.spread is not None
    assert wide.spread > 0.15
    assert wide.verdict == "faster"
    assert f"The ratio varies by {wide.spread * 100:.0f} % from block to block" in wide.sentence
    assert "varies" not in burst.sentence


def test_loss_at_a_fixed_load_takes_the_cost_of_that_load_alone() -> None:
    setup, trials = simulated_run([CELLS[1]])
    paced = at_lower_load(trials, blocks=8, control=True)
    for trial in paced:
        if trial.arm == "rust-l2fwd" and trial.frames.attempted:
            trial.frames.attempted = round(trial.frames.attempted * 1.05)
    result = summarise(setup, trials + paced, interrupted=False)
    costs = {c.arm: c for c in result.comparisons if c.metric == "busy_cycles_per_packet"}
    assert costs["rust-l2fwd"].verdict == "invalid"
    assert "lost 4.8% of the frames at this load" in costs["rust-l2fwd"].reason
    assert costs["rust-l2fwd-burst"].verdict != "invalid"
    rates = [c for c in result.comparisons if c.load_share is None]
    assert "invalid" not in {c.verdict for c in rates}


@pytest.mark.parametrize("factor", [0.5, 0.9])
def test_a_limit_of_the_faster_one_makes_the_difference_a_lower_bound(factor: float) -> None:
    """The baseline is at the ceiling, the arm is not."""
    setup, trials = simulated_run([CELLS[1]])
    scale(trials, "rust-l2fwd", factor)
    found = of(summarise(setup, trials, interrupted=False), "memif", "rust-l2fwd")
    assert (found.verdict, found.limited_by, found.limited) == ("slower", "link", "baseline")
    assert "at least" in found.sentence
    assert "c-l2fwd is limited by the link" in found.sentence
    assert (
        "at least"
        not in of(summarise(setup, trials, interrupted=False), "memif", "rust-l2fwd-burst").sentence
    )


def test_a_limited_arm_against_a_slow_baseline_is_faster_by_at_least() -> None:
    setup, trials = simulated_run([CELLS[1]])
    for label in ("c-l2fwd", "c-l2fwd-again"):
        scale(trials, label, 0.7)
    found = of(summarise(setup, trials, interrupted=False), "memif", "rust-l2fwd")
    assert (found.verdict, found.limited) == ("faster", "arm")
    assert "is faster than c-l2fwd: at least" in found.sentence


def test_an_arm_above_the_ceiling_is_not_limited_and_is_named() -> None:
    setup, trials = simulated_run([CELLS[1]])
    scale(trials, "rust-l2fwd-burst", 1.2)
    result = summarise(setup, trials, interrupted=False)
    assert "rust-l2fwd-burst" not in {limit.arm for limit in result.limited_by}
    arm = next(a for a in result.cells[0].arms if a.arm == "rust-l2fwd-burst")
    assert arm.ceiling_unproven
    assert arm.ceiling_share == pytest.approx(1.2, rel=0.05)
    warnings = [text for text in result.warnings if "unproven" in text]
    assert len(warnings) == 1
    assert "rust-l2fwd-burst" in warnings[0]


def test_the_ceiling_is_that_of_the_same_block() -> None:
    """A machine that is twice as slow in half of the blocks limits no arm."""
    setup, trials = simulated_run([CELLS[1]])
    scale(trials, "rust-l2fwd", 0.9)
    calm = summarise(setup, trials, interrupted=False)
    for trial in trials:
        if trial.block >= 9 and trial.frames.duration_s:
            trial.frames.duration_s *= 2
    jumpy = summarise(setup, trials, interrupted=False)
    assert jumpy.limited_by == calm.limited_by
    assert [c.verdict for c in jumpy.comparisons] == [c.verdict for c in calm.comparisons]


def test_the_line_rate_of_the_user_is_compared_with_the_median() -> None:
    setup, trials = simulated_run([CELLS[1]])
    setup.line_rate = 1e12
    assert summarise(setup, trials, interrupted=False).limited_by == []
    setup.line_rate = 1e6
    result = summarise(setup, trials, interrupted=False)
    # The A/A arm is a control, not an answer.
    assert [limit.arm for limit in result.limited_by] == FORWARDERS
    assert not any("unproven" in text for text in result.warnings)


def test_a_minority_of_lossy_trials_at_a_low_load_is_seen() -> None:
    setup, trials = simulated_run([CELLS[1]])
    scale(trials, "rust-l2fwd", 0.8)
    paced = at_lower_load(trials, blocks=8, control=True)
    rates = summarise(setup, trials + paced, interrupted=False).comparisons
    carried = next(c for c in rates if (c.metric, c.arm) == ("received_pps", "rust-l2fwd"))
    # The baseline was held back, so the cost per packet is the answer; this is another one.
    assert (carried.verdict, carried.primary) == ("slower", False)
    assert carried.sentence.startswith("Exploratory: on memif at 64 B, rust-l2fwd is slower than")
    victim = next(t for t in paced if t.arm == "rust-l2fwd" and t.frames.attempted)
    victim.frames.attempted = round((victim.frames.attempted or 0) * 1.02)
    result = summarise(setup, trials + paced, interrupted=False)
    entry = next(e for e in result.cells[0].lower_load if e.arm == "rust-l2fwd")
    assert entry.loss_share == pytest.approx(0.02 / 8, rel=0.05)
    # Below the smallest difference of costs that counts: shown, and no more.
    assert "invalid" not in {c.verdict for c in result.comparisons}


def test_where_the_link_is_the_limit_the_cost_of_a_packet_decides() -> None:
    setup, trials = simulated_run([CELLS[1]])
    paced = [
        trial
        for share in (0.25, 0.5)
        for trial in at_lower_load(trials, share, blocks=8, control=True)
    ]
    result = summarise(setup, trials + paced, interrupted=False)
    primary = {(c.arm, c.load_share): c for c in result.comparisons if c.primary}
    assert {c.metric for c in primary.values()} == {"busy_cycles_per_packet"}
    assert {key: c.verdict for key, c in primary.items()} == {
        ("rust-l2fwd", 0.25): "equal",
        ("rust-l2fwd", 0.5): "equal",
        ("rust-l2fwd-burst", 0.25): "faster",
        ("rust-l2fwd-burst", 0.5): "faster",
    }
    found = primary["rust-l2fwd-burst", 0.5]
    assert (found.better, found.n, found.limited_by) == ("lower", 8, None)
    assert found.ratio == pytest.approx(33 / 40, rel=0.01)
    assert "is cheaper than c-l2fwd: 17.5 % fewer busy cycles per packet at 50 % load" in (
        found.sentence
    )
    controls = [each.load_share for each in result.aa if each.metric == found.metric]
    assert controls == [0.25, 0.5]
    # Fewer than six blocks are too few, but were not lost: lower loads have no more.
    few = at_lower_load(trials, blocks=3, control=True)
    reasons = {
        c.reason for c in summarise(setup, trials + few, interrupted=False).comparisons if c.primary
    }
    assert reasons == {"no test can reject with fewer than 6 blocks"}


def test_a_rate_of_zero_leaves_its_block_out_and_says_so() -> None:
    setup, trials = simulated_run(CELLS)
    victim = next(t for t in trials if t.arm == "rust-l2fwd" and t.cell.name == "null")
    victim.frames.forwarder_rx = 0
    found = of(summarise(setup, trials, interrupted=False), "null", "rust-l2fwd")
    assert (found.n, found.zero_blocks) == (19, 1)
    assert "1 more left out because a value was 0" in found.sentence


def test_the_smallest_detectable_is_absent_when_a_comparison_could_find_nothing() -> None:
    setup, trials = simulated_run(CELLS)
    for trial in trials:
        if trial.arm == "rust-l2fwd" and trial.cell.name == "null" and trial.block >= 3:
            trial.reject("link", "lost")
    assert summarise(setup, trials, interrupted=False).smallest_detectable is None


def test_without_books_nothing_is_closed() -> None:
    setup, trials = simulated_run([CELLS[0]])
    result = summarise(setup, trials, interrupted=False)
    assert result.books_checked == 0
    assert json.loads(summary.dump(result))["books_closed"] is None


def test_drops_are_of_what_the_forwarder_received() -> None:
    setup, trials = simulated_run([CELLS[1]])
    for trial in trials:
        trial.frames.accepted, trial.frames.forwarder_rx, trial.frames.forwarder_drops = (
            200,
            100,
            10,
        )
    arm = summarise(setup, trials, interrupted=False).cells[0].arms[0]
    assert arm.dropped_share == pytest.approx(0.1)


def test_holm_is_over_the_sizes_of_one_arm() -> None:
    setup, trials = simulated_run([Cell("memif", 64, 20), Cell("memif", 512, 20)])
    result = summarise(setup, trials, interrupted=False)
    families: dict[tuple[str, str], list[Comparison]] = {}
    for each in result.comparisons:
        families.setdefault((each.metric, each.arm), []).append(each)
    assert len(families) == 4
    for family in families.values():
        assert [c.p_holm for c in family] == stats.holm([c.p for c in family if c.p is not None])
